/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/host-local.h - what the two files of host-local share
 */
#ifndef PLUGINS_HOST_LOCAL_HOST_LOCAL_H
#define PLUGINS_HOST_LOCAL_HOST_LOCAL_H

#include <hawser/plugin.h>

#include "plugins/host-local/lease.h"

const char *host_local_dir(const struct hw_call *call);
int host_local_open(const struct hw_call *call, enum lease_open how, struct lease_store *store,
		    struct hw_err *e);
int host_local_gc(struct hw_call *call, struct hw_err *e);
int host_local_status(struct hw_call *call, struct hw_err *e);

extern const struct hw_plugin host_local_plugin;

#endif
