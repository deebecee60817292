/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/lease-file.h - a lease's file, for lease.c, lease-end.c and lease-gc.c
 */
#ifndef PLUGINS_HOST_LOCAL_LEASE_FILE_H
#define PLUGINS_HOST_LOCAL_LEASE_FILE_H

#include <sys/stat.h>

#include "plugins/host-local/lease.h"

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

#endif
