/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/lease.h - the leases of host-local, in upstream's files
 *
 * What:  DATADIR/NETWORK/<address>, one file per lease with its owner in it,
 *        `lock` and `last_reserved_ip.<set>`, all as upstream's plugin writes and
 *        reads them, so that both can be used in turn on the same directory; and
 *        an index beside them (see lease-index.c), by which an owner's leases are
 *        found without reading all files.
 * Rules: the O_EXCL of the lease's file is what keeps an address from being
 *        leased twice. Every change is made under the lock, which upstream takes
 *        too; so an empty lease seen under it is that of a writer who died.
 *        Nothing here looks at the wall clock.
 */
#ifndef PLUGINS_HOST_LOCAL_LEASE_H
#define PLUGINS_HOST_LOCAL_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/addr.h>

#include "base/err.h"
#include "base/mem.h"

struct lease_owner {
	const char *container_id, *ifname;
};

struct lease_store {
	char *path;
	int dir;      /* DATADIR/NETWORK */
	int lock;     /* -1: only looking */
	int index;    /* of this boot; -1: none yet */
	bool indexed; /* each lease has its place in the index; only known under the lock */
	char boot[64];
};
#define LEASE_STORE                                                                                \
	{                                                                                          \
		.dir = -1, .lock = -1, .index = -1                                                 \
	}

/* Ascending; struct hw_ip. */
struct lease_list {
	struct hw_ip *v;
	size_t n, room;
};

enum lease_open { LEASE_LOOK, LEASE_CHANGE, LEASE_MAKE }; /* MAKE: the directory too */

/* -ENOENT when there is no such directory, unless LEASE_MAKE. */
int lease_open(struct lease_store *store, const char *data_dir, const char *network,
	       enum lease_open how, struct hw_err *e);
int lease_lock(struct lease_store *store, struct hw_err *e);
void lease_close(struct lease_store *store);

/* Return: 0, or 1 when somebody has it; what failed leaves nothing. */
int lease_take(struct lease_store *store, const struct lease_owner *owner, const struct hw_ip *ip,
	       struct hw_err *e);
/* All that the owner took is taken: a GC that was called before keeps it. */
int lease_finish(struct lease_store *store, const struct lease_owner *owner, struct hw_err *e);

/* Who has it? WHOLE: the owner; ID_ONLY: that container, written by an old version. */
enum lease_match { LEASE_NONE, LEASE_OTHER, LEASE_EMPTY, LEASE_ID_ONLY, LEASE_WHOLE };
int lease_match(const struct lease_store *store, const struct hw_ip *ip,
		const struct lease_owner *owner); /* or a negative errno */

/* The owner's leases of this boot, by the index alone. */
int lease_find(const struct lease_store *store, const struct lease_owner *owner,
	       struct lease_list *ret_list, struct hw_err *e);
/* End one lease if it is the owner's. */
int lease_end(struct lease_store *store, const struct lease_owner *owner, const struct hw_ip *ip,
	      struct hw_err *e);
/* End all the owner's leases: those of the index, those of @known that are the owner's, and without
 * @known those that a look into all files finds, unless the index is known to have them all. */
int lease_end_all(struct lease_store *store, const struct lease_owner *owner,
		  const struct lease_list *known, struct hw_err *e);
/* Is there any, as upstream looks for it: in the index, else in all files? 1: yes. */
int lease_has_any(const struct lease_store *store, const struct lease_owner *owner,
		  struct hw_err *e);

/* All addresses that are taken: one walk through the directory. */
int lease_list(const struct lease_store *store, struct lease_list *ret_list, struct hw_err *e);
/* Those of them that were leased by this machine before it was booted. */
int lease_list_stale(const struct lease_store *store, struct lease_list *ret_list,
		     struct hw_err *e);
/* End those. Return: how many. */
int lease_end_stale(struct lease_store *store, struct hw_err *e);

/* The address handed out last from a set; none where that is not known. */
struct hw_ip lease_last(const struct lease_store *store, size_t set);
int lease_set_last(const struct lease_store *store, size_t set, const struct hw_ip *ip,
		   struct hw_err *e);

/*
 * End every lease whose owner is not to be kept. With @known, which says that keep() knows all that
 * is valid, also finished ones of this boot and those without a place in the index. Kept in any case
 * is what has been leased since this was called.
 */
struct lease_gc {
	bool known;
	bool (*keep)(void *ctx, const struct lease_owner *owner);
	void *ctx;
};
int lease_gc(struct lease_store *store, const struct lease_gc *gc, struct hw_err *e);

void lease_list_add(struct lease_list *list, const struct hw_ip *ip);
bool lease_list_has(const struct lease_list *list, const struct hw_ip *ip); /* sorted */
void lease_list_sort(struct lease_list *list);
void lease_list_done(struct lease_list *list);

AUTO_VALUE_DEFINE(lease_close, struct lease_store);
AUTO_VALUE_DEFINE(lease_list_done, struct lease_list);

#endif
