/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network-watch.h - configuration and readiness of the pod network
 *
 * What:  finds the first valid network configuration in the CNI directory. The network is
 *        ready if all of its plugins exist and, from CNI 1.1.0 on, their STATUS succeeds.
 *        The directories are watched, because network add-ons install their files
 *        after we have started. STATUS is repeated, because its result may change.
 * Rules: all functions except network_watch_view() are for the loop's thread only, and
 *        none of them waits for a plugin. A plugin that does not answer STATUS within ten
 *        seconds is killed, and its STATUS fails. The result is published as an
 *        immutable view.
 */
#ifndef POD_NETWORK_WATCH_H
#define POD_NETWORK_WATCH_H

#include <stdbool.h>

#include "base/shared.h"

struct hw_exec;
struct network_watch;
struct uv_loop_s;

struct network_view {
	struct shared shared;
	bool ready;
	char *name;    /* NULL if no network is configured */
	char *file;    /* configuration file of the network; NULL if no network is configured */
	char *message; /* why the network is not ready; "" if it is ready */
};

/* @bin_dirs is a list separated by colons. Directories may be missing. @exec runs the plugins; it must
 * stay valid. */
struct network_watch *network_watch_new(struct uv_loop_s *loop, const char *conf_dir,
					const char *bin_dirs, const struct hw_exec *exec);
void network_watch_update(struct network_watch *w); /* reads the directories again at once */
/* Kills a plugin that runs STATUS. The loop frees the object when its handles are closed. NULL is
 * allowed. */
void network_watch_close(struct network_watch *w);

/* May be called from any thread. Return: a new reference, to be dropped with shared_unref() */
const struct network_view *network_watch_view(struct network_watch *w);

#endif
