/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/lease.h - the leases of host-local, in upstream's files
 *
 * What:  DATADIR/NETWORK/<address>, one file per lease with its owner in it,
 *        `lock` and `last_reserved_ip.<set>`, all as upstream's plugin writes and
 *        reads them, so that both can be used in turn on the same directory; and
 *        an index beside them (see index.c), by which an owner's leases are
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
#include <sys/stat.h>

#include <hawser/addr.h>

#include "base/err.h"
#include "base/mem.h"
#include "plugins/host-local/range.h"

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
	       struct ip_list *ret_list, struct hw_err *e);
/* End one lease if it is the owner's. */
int lease_end(struct lease_store *store, const struct lease_owner *owner, const struct hw_ip *ip,
	      struct hw_err *e);
/* End all the owner's leases: those of the index, those of @known that are the owner's, and without
 * @known those that a look into all files finds, unless the index is known to have them all. */
int lease_end_all(struct lease_store *store, const struct lease_owner *owner,
		  const struct ip_list *known, struct hw_err *e);
/* Is there any, as upstream looks for it: in the index, else in all files? 1: yes. */
int lease_has_any(const struct lease_store *store, const struct lease_owner *owner,
		  struct hw_err *e);

/* All addresses that are taken: one walk through the directory. */
int lease_list(const struct lease_store *store, struct ip_list *ret_list, struct hw_err *e);
/* Those of them that were leased by this machine before it was booted. */
int lease_list_stale(const struct lease_store *store, struct ip_list *ret_list, struct hw_err *e);
/* End those. Return: how many. */
int lease_end_stale(struct lease_store *store, struct hw_err *e);

/* The address handed out last from a set; none where that is not known. */
struct hw_ip lease_last(const struct lease_store *store, size_t set);
int lease_set_last(const struct lease_store *store, size_t set, const struct hw_ip *ip,
		   struct hw_err *e);

#define LEASE_TEXT_MAX 4096 /* of an id and an interface name */

struct lease_text {
	char text[LEASE_TEXT_MAX];
	struct lease_owner owner; /* no id: nobody can tell; "" and no ifname: empty */
};

/* Return: 1, 0 when nobody has the address, or a negative errno when that cannot be told now;
 * @ret_st: its file, may be NULL */
int lease_read(const struct lease_store *store, const struct hw_ip *ip, struct lease_text *ret,
	       struct stat *ret_st);
int lease_is_agreed(const struct lease_store *store, const char *entry, const struct hw_ip *ip);
/* Finds out whether the index has all leases: by reading them all. */
int lease_look_at_index(struct lease_store *store, struct hw_err *e);
int lease_unlink(const struct lease_store *store, const struct hw_ip *ip, struct hw_err *e);

AUTO_VALUE_DEFINE(lease_close, struct lease_store);

#endif
