/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/host-local.h - internal interfaces of the plugin host-local
 *
 * host-local.c  the CNI verbs except GC
 * gc.c          GC
 */
#ifndef PLUGINS_HOST_LOCAL_HOST_LOCAL_H
#define PLUGINS_HOST_LOCAL_HOST_LOCAL_H

#include <hawser/plugin.h>

#include "plugins/host-local/lease.h"

/* Call lease_open() for the network of the call, and return its result. */
int host_local_open(const struct hw_call *call, enum lease_mode mode, struct lease_store *store,
		    struct hw_err *e);

/* ---- gc.c -------------------------------------------------------------------------- */

int host_local_gc(struct hw_call *call, struct hw_err *e);

struct lease_gc_options {
	bool has_list; /* the runtime has sent a list of the valid attachments */
	bool (*is_valid)(void *ctx, const struct lease_owner *owner);
	void *ctx;
};

/*
 * Release leases whose owner is not valid; the table in gc.c lists the conditions. Leases that are
 * created after the call began are kept.
 * @store: opened with LEASE_READ; locked when the function returns
 */
int lease_gc(struct lease_store *store, const struct lease_gc_options *options, struct hw_err *e);

extern const struct hw_plugin host_local_plugin;

#endif
