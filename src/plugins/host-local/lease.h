/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/lease.h - the leases of host-local, in upstream's files
 *
 * What:  DATADIR/NETWORK/<address>, one file per lease that contains its owner,
 *        `lock` and `last_reserved_ip.<set>`, all as upstream's plugin writes and
 *        reads them, so that both plugins can use the same directory in turn.
 *        An index beside them (see index.c) finds the leases of an owner without
 *        reading all files.
 * Rules: O_EXCL on the lease's file prevents that an address is leased twice.
 *        Every change is made under the lock, which upstream takes too;
 *        therefore an empty lease seen under the lock was left by a writer that
 *        was killed. The wall clock is never used.
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

/* ---- the directory of a network ------------------------------------------------------ */

struct lease_store {
	char *path;
	int dir;	     /* DATADIR/NETWORK */
	int lock;	     /* -1: not locked */
	int index;	     /* this boot's directory in the index; -1: does not exist yet */
	bool index_complete; /* every lease has an index entry; known only under the lock */
	char boot_name[64];  /* name of this boot's directory in the index */
};
#define LEASE_STORE_INIT                                                                           \
	{                                                                                          \
		.dir = -1, .lock = -1, .index = -1                                                 \
	}

enum lease_mode {
	LEASE_READ,   /* without the lock */
	LEASE_WRITE,  /* under the lock */
	LEASE_CREATE, /* under the lock; the directory is created if missing */
};

/*
 * Open the leases of a network.
 * @store: starts as LEASE_STORE_INIT; the caller calls lease_close() also after a failure
 * Return: 0; -ENOENT if the directory does not exist and @mode is not LEASE_CREATE; other errors
 */
int lease_open(struct lease_store *store, const char *data_dir, const char *network,
	       enum lease_mode mode, struct hw_err *e);
/* Lock out all other writers, upstream's plugin too, until lease_close(). CNI code 11 on timeout */
int lease_lock(struct lease_store *store, struct hw_err *e);
void lease_close(struct lease_store *store);

/* ---- one lease ------------------------------------------------------------------------ */

#define LEASE_TEXT_MAX 4096 /* of container ID and interface name together */

struct lease_text {
	char text[LEASE_TEXT_MAX];
	/* Points into text. No container_id: the owner is unknown. Empty container_id and no
	 * ifname: the file is empty. Only a container_id: written by upstream before 0.7. */
	struct lease_owner owner;
};

/*
 * Read the owner of a lease. The owner is unknown if the lease is not a regular file or too long.
 * @ret_st: of the lease's file; may be NULL
 * Return: 1 if the address is leased, 0 if not, or a negative errno
 */
int lease_read(const struct lease_store *store, const struct hw_ip *ip, struct lease_text *ret,
	       struct stat *ret_st);

enum lease_match {
	LEASE_FREE,    /* the address is not leased */
	LEASE_OTHER,   /* leased by another owner, or by an unknown one */
	LEASE_EMPTY,   /* leased, but the file is empty */
	LEASE_ID_ONLY, /* leased by the container; the file does not name the interface */
	LEASE_OWNED,
};
/* Compare the owner of a lease with @owner. Return: enum lease_match, or a negative errno */
int lease_match(const struct lease_store *store, const struct hw_ip *ip,
		const struct lease_owner *owner);
/* Is the lease's owner the one that the index entry is named after? 1: yes; 0: no, or not leased;
 * or a negative errno */
int lease_matches_entry(const struct lease_store *store, const char *entry, const struct hw_ip *ip);

/* Create a lease and its index entry. Leaves nothing behind after a failure.
 * Return: 0, or 1 if the address is already leased */
int lease_allocate(struct lease_store *store, const struct lease_owner *owner,
		   const struct hw_ip *ip, struct hw_err *e);
/* Mark all leases of the owner as finished: a GC that was called earlier keeps them. */
int lease_finish(struct lease_store *store, const struct lease_owner *owner, struct hw_err *e);
/* Delete the file of a lease, whatever its owner. A missing file is success. */
int lease_unlink(const struct lease_store *store, const struct hw_ip *ip, struct hw_err *e);
/* Release one lease and its index entry, if @owner owns it. Return: 1 if released, 0 if not owned */
int lease_release(struct lease_store *store, const struct lease_owner *owner,
		  const struct hw_ip *ip, struct hw_err *e);

/* ---- many leases ---------------------------------------------------------------------- */

/* All leased addresses, sorted: one walk through the directory. */
int lease_list_all(const struct lease_store *store, struct ip_list *ret_list, struct hw_err *e);
/* The owner's leases of this boot, by the index alone. */
int lease_list_owned(const struct lease_store *store, const struct lease_owner *owner,
		     struct ip_list *ret_list, struct hw_err *e);
/* The leases that this machine made before its last boot, sorted. Their pods no longer exist. */
int lease_list_stale(const struct lease_store *store, struct ip_list *ret_list, struct hw_err *e);

/* Has the owner any lease, by the index or else by reading all files? 1: yes, 0: no */
int lease_has_any(const struct lease_store *store, const struct lease_owner *owner,
		  struct hw_err *e);

/*
 * Release all leases of an owner: those in the index; those among @known; and, if @known is empty
 * and the index may be incomplete, or if the index shows an unfinished ADD, also those that are
 * found by reading all files.
 * @known: addresses that the owner had according to a result
 */
int lease_release_all(struct lease_store *store, const struct lease_owner *owner,
		      const struct ip_list *known, struct hw_err *e);
/* Release the stale leases. Return: how many */
int lease_release_stale(struct lease_store *store, struct hw_err *e);

/* ---- the address allocated last from a set ----------------------------------------------- */

/* Return: family 0 if unknown */
struct hw_ip lease_last_reserved(const struct lease_store *store, size_t set);
int lease_set_last_reserved(const struct lease_store *store, size_t set, const struct hw_ip *ip,
			    struct hw_err *e);

AUTO_VALUE_DEFINE(lease_close, struct lease_store);

#endif
