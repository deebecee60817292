/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network/watch.h - configuration and readiness of the pod network
 *
 * What:  finds the first valid network configuration in the CNI directory. The network is
 *        ready if all of its plugins exist and, from CNI 1.1.0 on, their STATUS succeeds.
 *        If the file of the network in use becomes invalid, that network stays in use, also
 *        if one of its plugins is missing for a while. If
 *        the directory has no valid file, there may be a built-in network.
 *        The directories are watched, because network add-ons install their files
 *        after we have started. STATUS is repeated, because its result may change.
 * Rules: the functions that change the watcher are for the loop's thread only, and
 *        none of them waits for a plugin. A plugin that does not answer STATUS within ten
 *        seconds is killed, and its STATUS fails. The result is published as an
 *        immutable view.
 */
#ifndef POD_NETWORK_WATCH_H
#define POD_NETWORK_WATCH_H

#include <stdbool.h>

#include "base/shared.h"

struct hw_conf;
struct hw_err;
struct hw_exec;
struct network_watch;
struct uv_loop_s;

#define NETWORK_BUILT_IN "built in"

/* A configuration that views share. Immutable. */
struct network_conf {
	struct shared shared;
	struct hw_conf *conf;
	char *file; /* NETWORK_BUILT_IN for the built-in network */
};

/* Immutable. */
struct network_view {
	struct shared shared;
	bool ready;
	bool lacks_plugin;		    /* a plugin of the network is missing */
	const struct network_conf *network; /* NULL if no network is configured */
	char *name;			    /* NULL if no network is configured */
	char *file;    /* configuration file of the network; NULL if no network is configured */
	char *message; /* why the network is not ready; "" if it is ready */
	char *warning; /* invalid files, and why; "" if all files are valid */
};

struct network_watch_options {
	const char *conf_dir;
	const char *bin_dirs;	    /* separated by colons */
	bool built_in;		    /* use the built-in network if there is no valid file */
	const struct hw_exec *exec; /* runs plugins; borrowed */
};

/* Directories may be missing. */
int network_watch_new(struct uv_loop_s *loop, const struct network_watch_options *options,
		      struct network_watch **ret_watch, struct hw_err *e);
void network_watch_update(struct network_watch *w); /* reads the directories again at once */
/* Kills a plugin that runs STATUS. The loop frees the object when its handles are closed. NULL is
 * allowed. */
void network_watch_close(struct network_watch *w);

/* May be called from any thread. Return: a new reference, to be dropped with shared_unref() */
const struct network_view *network_watch_view(struct network_watch *w);
/* May be called from any thread. @file: of @conf, for the message. Return: which plugin of @conf
 * does not exist, allocated; NULL: all exist */
char *network_watch_find_missing(const struct network_watch *w, const struct hw_conf *conf,
				 const char *file);

#endif
