/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/lease.h - the leases of host-local, in the same files as upstream
 *
 * What:  a lease is the file DATADIR/NETWORK/<address>, which contains its owner.
 *        The same directory has the files `lock` and `last_reserved_ip.<set>`.
 *        Names and formats are the same as in upstream, so that both plugins can
 *        use the same directory in turn. An index in a subdirectory (see index.c)
 *        finds the leases of an owner without reading all files.
 * Rules: the file of a lease is created with O_EXCL, so that an address cannot be
 *        leased twice. Every change is made under the lock, which upstream uses
 *        too. Therefore an empty lease that is found under the lock was left by a
 *        writer that was killed. The wall clock is never used.
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
 * @store: initialized with LEASE_STORE_INIT. Call lease_close() also after an error
 * Return: 1 if opened; 0 if the directory does not exist and @mode is not LEASE_CREATE; or a negative
 * errno
 */
int lease_open(struct lease_store *store, const char *data_dir, const char *network,
	       enum lease_mode mode, struct hw_err *e);
/* Acquire the lock, which excludes all other writers, including upstream's plugin, until
 * lease_close(). A timeout is an error with CNI code 11. */
int lease_lock(struct lease_store *store, struct hw_err *e);
/* Note that a lease may have no index entry. */
void lease_set_incomplete(struct lease_store *store);
void lease_close(struct lease_store *store);

/* ---- one lease ------------------------------------------------------------------------ */

#define LEASE_TEXT_MAX 4096 /* limit for container ID and interface name together */

struct lease_text {
	char text[LEASE_TEXT_MAX];
	/* Points into text. container_id NULL: the owner is unknown. container_id "" and ifname
	 * NULL: the file is empty. container_id set and ifname NULL: written by upstream before
	 * version 0.7. */
	struct lease_owner owner;
};

/*
 * Read the owner of a lease. The owner is unknown if the lease is not a regular file or too long.
 * @ret_st: attributes of the lease's file; may be NULL
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
/* Does the name of the index entry contain the hash of the lease's owner?
 * Return: 1 if so; 0 if not, or if the address is not leased; or a negative errno */
int lease_matches_entry(const struct lease_store *store, const char *entry, const struct hw_ip *ip);

/* Create a lease and its index entry. After an error neither of them exists.
 * Return: 0; 1 if the address is already leased */
int lease_allocate(struct lease_store *store, const struct lease_owner *owner,
		   const struct hw_ip *ip, struct hw_err *e);
/* Record, for all leases of the owner, that their ADD has finished now. A GC that was called before
 * that time keeps the leases. */
int lease_finish(struct lease_store *store, const struct lease_owner *owner, struct hw_err *e);
/* Delete the file of a lease, without checking its owner. Succeeds if the file does not exist. */
int lease_unlink(const struct lease_store *store, const struct hw_ip *ip, struct hw_err *e);
/* If @owner owns the lease, release it and remove its index entry.
 * Return: 1 if released, 0 if not */
int lease_release(struct lease_store *store, const struct lease_owner *owner,
		  const struct hw_ip *ip, struct hw_err *e);

/* ---- many leases ---------------------------------------------------------------------- */

/* List all leased addresses, sorted, by reading the directory. */
int lease_list_all(const struct lease_store *store, struct ip_list *ret_list, struct hw_err *e);
/* List the owner's leases of this boot. Uses only the index. */
int lease_list_owned(const struct lease_store *store, const struct lease_owner *owner,
		     struct ip_list *ret_list, struct hw_err *e);
/* List the stale leases, sorted: those that this machine created before its last boot. Their pods
 * no longer exist. */
int lease_list_stale(const struct lease_store *store, struct ip_list *ret_list, struct hw_err *e);

/* Does the owner have a lease? Uses the index and, if that has no lease, reads all files.
 * Return: 1 if so, 0 if not */
int lease_has_any(const struct lease_store *store, const struct lease_owner *owner,
		  struct hw_err *e);

/*
 * Release all leases of an owner: those in the index and those among @known. All files are read to
 * find more leases in two cases: if the index may be incomplete, and @known is empty or nothing was
 * released; and if the index shows that an ADD of the owner did not finish.
 * @known: addresses that the owner has according to a previous result
 */
int lease_release_all(struct lease_store *store, const struct lease_owner *owner,
		      const struct ip_list *known, struct hw_err *e);
/* Release all stale leases. Return: the number of released leases */
int lease_release_stale(struct lease_store *store, struct hw_err *e);

/* ---- the address last allocated from a set ----------------------------------------------- */

/* Return: the address last allocated from the set; family 0 if unknown */
struct hw_ip lease_last_reserved(const struct lease_store *store, size_t set);
int lease_set_last_reserved(const struct lease_store *store, size_t set, const struct hw_ip *ip,
			    struct hw_err *e);

AUTO_VALUE_DEFINE(lease_close, struct lease_store);

#endif
