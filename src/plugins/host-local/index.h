/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/index.h - the index of leases by owner
 *
 * index.c describes the format, and why upstream's plugin cannot corrupt the index. An owner's
 * entries are numbered from 0 without gaps. In all functions, @dir is the index directory of one
 * boot; -1 is treated as an empty directory.
 */
#ifndef PLUGINS_HOST_LOCAL_INDEX_H
#define PLUGINS_HOST_LOCAL_INDEX_H

#include "plugins/host-local/lease.h"

#define INDEX_HASH 32 /* length of the owner's hash at the start of an entry's name */
#define INDEX_NAME (INDEX_HASH + 24) /* size of an entry's name */

/* ---- directories, one per boot ------------------------------------------------------------ */

enum index_origin {
	INDEX_THIS_BOOT,
	INDEX_EARLIER_BOOT,  /* an earlier boot of this machine */
	INDEX_OTHER_MACHINE, /* its leases are not changed */
	INDEX_UNKNOWN,	     /* the machine ID or boot ID is missing */
};

struct index_dir {
	int fd;
	enum index_origin origin;
	char *name;
};

struct index_dirs {
	struct index_dir *v;
	size_t n;
};

/* Open this boot's directory. If it does not exist, store->index is set to -1, and the function
 * succeeds. */
int index_open(struct lease_store *store, struct hw_err *e);
/* Open the index directories of all boots: this one, earlier ones, and those of other machines. */
int index_open_all(const struct lease_store *store, struct index_dirs *ret, struct hw_err *e);
void index_close_all(struct index_dirs *dirs);
/* Remove the empty directories of earlier boots. */
void index_remove_empty(const struct lease_store *store, const struct index_dirs *dirs);

/* ---- entries ------------------------------------------------------------------------------ */

void index_hash(const struct lease_owner *owner, char ret_hex[INDEX_HASH + 1]);
void index_name(const struct lease_owner *owner, unsigned n, char ret_name[INDEX_NAME]);

/* Add an entry to this boot's directory, which is created if missing. */
int index_add(struct lease_store *store, const struct lease_owner *owner, const struct hw_ip *ip,
	      struct hw_err *e);
/*
 * Read the address of an entry, by its name or by its number.
 * @ret_ip: family 0 if the entry is malformed
 * Return: 1 if found, 0 if not, or a negative errno
 */
int index_read(int dir, const char *name, struct hw_ip *ret_ip);
int index_get(int dir, const struct lease_owner *owner, unsigned n, struct hw_ip *ret_ip);
bool index_has(int dir, const struct lease_owner *owner, const struct hw_ip *ip);
/* Does an owner other than @owner have an entry for the address? Reads all entries.
 * Return: 1 if so, 0 if not, or a negative errno */
int index_has_other(int dir, const struct lease_owner *owner, const struct hw_ip *ip,
		    struct hw_err *e);
/* Remove an entry by its name. The owner's last entry gets the name of the removed entry, so that
 * there is no gap.
 * Return: 0, or a negative errno */
int index_remove_entry(int dir, const char *name);
/* Remove the owner's entry for an address. Succeeds if there is no such entry.
 * Return: 0, or a negative errno */
int index_remove(int dir, const struct lease_owner *owner, const struct hw_ip *ip);

/* ---- when the ADD of an entry finished ----------------------------------------------------- */

/* Set the time of the owner's n-th entry to the current time: its ADD has finished.
 * Return: 1 if set, 0 if there is no such entry, or a negative errno */
int index_set_finished(int dir, const struct lease_owner *owner, unsigned n, struct hw_err *e);
/* Return: the time when the ADD finished, CLOCK_BOOTTIME in ns; 0 if it has not finished or there
 * is no entry; the current time if the entry is unreadable */
int64_t index_finished_at(int dir, const struct lease_owner *owner, const struct hw_ip *ip);
bool index_is_finished(int dir, const struct lease_owner *owner, unsigned n);

AUTO_VALUE_DEFINE(index_close_all, struct index_dirs);

#endif
