/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/index.h - an owner's leases, found without reading all files
 *
 * What it is and why upstream's plugin cannot make it wrong: see index.c.
 */
#ifndef PLUGINS_HOST_LOCAL_INDEX_H
#define PLUGINS_HOST_LOCAL_INDEX_H

#include "plugins/host-local/lease.h"

#define INDEX_HASH 32
#define INDEX_NAME (INDEX_HASH + 24)

/*
 * Whose folder it is: of this boot; of an earlier boot of this machine; of another machine, which
 * shares the directory and whose leases are none of our business; of a time when a machine or boot
 * had no id to tell by.
 */
enum index_time { INDEX_NOW, INDEX_EARLIER, INDEX_FOREIGN, INDEX_UNKNOWN };

struct index_folder {
	int fd;
	enum index_time time;
	char *name;
};

struct index_folders {
	struct index_folder *v;
	size_t n;
};

void index_boot(char *ret_name, size_t size);
int index_open(struct lease_store *store, struct hw_err *e);
int index_open_all(const struct lease_store *store, struct index_folders *ret, struct hw_err *e);
void index_close_all(struct index_folders *folders);
/* Remove those of earlier boots that are empty. */
void index_tidy(const struct lease_store *store, const struct index_folders *folders);

void index_hash(const struct lease_owner *owner, char ret_hex[INDEX_HASH + 1]);
void index_name(const struct lease_owner *owner, unsigned n, char ret_name[INDEX_NAME]);

int index_add(struct lease_store *store, const struct lease_owner *owner, const struct hw_ip *ip,
	      struct hw_err *e);
/* An entry's address, none where it says none. Return: 1, 0 when there is no such entry (or folder,
 * which is then -1), or a negative errno. */
int index_read(int folder, const char *name, struct hw_ip *ret_ip);
int index_get(int folder, const struct lease_owner *owner, unsigned n, struct hw_ip *ret_ip);
/* Has the owner an entry for that address? */
bool index_has(int folder, const struct lease_owner *owner, const struct hw_ip *ip);
/* Forget an entry by its name; the last one of the same owner takes its place. */
int index_drop(int folder, const char *name);
/* Forget the owner's entry for that address, if there is one. Both set errno. */
int index_remove(int folder, const struct lease_owner *owner, const struct hw_ip *ip);

/* When the ADD that made the entry was done, by CLOCK_BOOTTIME; 0: never. */
int index_stamp(int folder, const struct lease_owner *owner, unsigned n, struct hw_err *e);
int64_t index_stamped(int folder, const struct lease_owner *owner, const struct hw_ip *ip);
bool index_is_finished(int folder, const struct lease_owner *owner, unsigned n);

AUTO_VALUE_DEFINE(index_close_all, struct index_folders);

#endif
