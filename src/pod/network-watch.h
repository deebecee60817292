/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network-watch.h - configuration and readiness of the pod network
 *
 * What:  finds the first valid network configuration in the CNI directory. The network is
 *        ready if all of its plugins exist and, from CNI 1.1.0 on, their STATUS succeeds.
 *        The directories are watched, because network add-ons install their files
 *        after we have started.
 * Rules: all functions except network_view_get() are for the loop's thread only. The
 *        result is published as an immutable view.
 */
#ifndef POD_NETWORK_WATCH_H
#define POD_NETWORK_WATCH_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

struct network;
struct uv_loop_s;

struct network_view {
	unsigned int refs;
	bool ready;
	char *name;    /* NULL if no network is configured */
	char *file;    /* configuration file of the network; NULL if no network is configured */
	char *message; /* why the network is not ready; "" if it is ready */
};

/* @bin_dirs is a list separated by colons. Directories may be missing. */
struct network *network_new(struct uv_loop_s *loop, const char *conf_dir, const char *bin_dirs);
void network_update(struct network *n); /* reads the directories again at once */
/* The loop frees the object when its handles are closed. NULL is allowed. */
void network_close(struct network *n);

/* May be called from any thread. Return: a new reference */
struct network_view *network_view_get(struct network *n);
void network_view_put(struct network_view *view);

AUTO_DEFINE(network_view_put, struct network_view);

#endif
