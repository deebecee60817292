/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/host-local.h - what the two files of host-local share
 */
#ifndef PLUGINS_HOST_LOCAL_HOST_LOCAL_H
#define PLUGINS_HOST_LOCAL_HOST_LOCAL_H

#include <hawser/plugin.h>

#include "plugins/host-local/lease.h"

int host_local_open(const struct hw_call *call, enum lease_open how, struct lease_store *store,
		    struct hw_err *e);
int host_local_gc(struct hw_call *call, struct hw_err *e);
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

extern const struct hw_plugin host_local_plugin;

#endif
