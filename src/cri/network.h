/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/network.h - the pod network's configuration and whether it is ready
 *
 * What:  finds the first valid network configuration in the CNI directory. It is ready
 *        if all of its plugins exist and, from CNI 1.1.0 on, their STATUS succeeds.
 *        The directories are watched, because network add-ons install their files
 *        after we have started.
 * Rules: for the loop's thread, except for network_view_get(). The result is published
 *        as a view that never changes.
 */
#ifndef CRI_NETWORK_H
#define CRI_NETWORK_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

struct network;
struct uv_loop_s;

struct network_view {
	unsigned int refs;
	bool ready;
	char *name;    /* NULL if no network is configured */
	char *file;    /* that configures it; NULL without a network */
	char *message; /* why it is not ready; "" if it is */
};

/* @bin_dirs is a list separated by colons. Directories may be missing. */
struct network *network_new(struct uv_loop_s *loop, const char *conf_dir, const char *bin_dirs);
void network_update(struct network *n); /* reads the directories again, now */
/* The loop frees the object when its handles are closed. NULL is allowed. */
void network_close(struct network *n);

struct network_view *network_view_get(struct network *n); /* from any thread; a new reference */
void network_view_put(struct network_view *view);

AUTO_DEFINE(network_view_put, struct network_view);

#endif
