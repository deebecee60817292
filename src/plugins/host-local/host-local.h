/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/host-local.h - the parts of host-local: host-local.c (verbs) and gc.c (GC)
 */
#ifndef PLUGINS_HOST_LOCAL_HOST_LOCAL_H
#define PLUGINS_HOST_LOCAL_HOST_LOCAL_H

#include <hawser/plugin.h>

#include "plugins/host-local/lease.h"

/* lease_open() of the call's network */
int host_local_open(const struct hw_call *call, enum lease_mode mode, struct lease_store *store,
		    struct hw_err *e);

/* ---- gc.c -------------------------------------------------------------------------- */

int host_local_gc(struct hw_call *call, struct hw_err *e);

struct lease_gc_options {
	bool has_list; /* is_valid() knows all valid attachments */
	bool (*is_valid)(void *ctx, const struct lease_owner *owner);
	void *ctx;
};

/*
 * Release the leases whose owner is not valid; gc.c has a table of which. Leases that are made after
 * the call began are kept.
 * @store: opened with LEASE_READ; locked on return
 */
int lease_gc(struct lease_store *store, const struct lease_gc_options *options, struct hw_err *e);

extern const struct hw_plugin host_local_plugin;

#endif
