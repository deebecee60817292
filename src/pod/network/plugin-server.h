/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network/plugin-server.h - run CNI plugins through `hawser-plugin serve`
 *
 * What:  a struct hw_exec for libhawser. Results, errors and the effects of deadlines and
 *        cancellation are those of hw_exec_run(), but a plugin of hawser-plugin needs no exec.
 *        Plugins get the CNI variables, HAWSER_STATE, and variables of this process that are in a
 *        fixed list (plugin-server.c); hw_exec_run() passes on all variables, as libcni does.
 * How:   serve is started with the first call, and again if it has ended or if its program was
 *        replaced. Its program is hawser-plugin in the first plugin directory that contains one,
 *        because the links beside it lead to that file; otherwise the one of the daemon. While it is
 *        missing or cannot serve, calls fail with the CNI code "try again later".
 * Rules: all functions but new and free may be called from many threads at once.
 *        serve and the processes of its calls hold a lock, STATE/plugins.lock, and end when this
 *        process ends. No call starts before the processes of an earlier daemon have ended: an ADD of
 *        a killed daemon never finishes after a DEL of this one.
 *        The call of a plugin that crashes or is killed fails; other calls are not affected. If
 *        serve is killed, running calls continue.
 */
#ifndef POD_NETWORK_PLUGIN_SERVER_H
#define POD_NETWORK_PLUGIN_SERVER_H

#include <stdint.h>

#include <hawser/cni.h>

#include "base/buf.h"
#include "base/err.h"

struct plugin_server;

struct plugin_server_options {
	const char *plugin_dirs; /* separated by colons; they may be missing */
	const char *program;	 /* path of hawser-plugin if no plugin directory contains one */
	const char *state_dir;	 /* must exist; becomes HAWSER_STATE */
};

struct plugin_server *plugin_server_new(const struct plugin_server_options *options);
/* No call may be running. Kills serve. NULL is allowed. */
void plugin_server_free(struct plugin_server *s);

/* For struct hw_cni_options; valid as long as @s. */
const struct hw_exec *plugin_server_exec(const struct plugin_server *s);

/* Waits until all processes of an earlier daemon's serve have ended. Every call does that, too, up to
 * its own deadline. Return: 0; -ETIMEDOUT; or another negative errno */
int plugin_server_wait(struct plugin_server *s, int64_t deadline, struct hw_err *e);

/* Appends metrics in Prometheus' text format: the durations of calls and the number of failed calls,
 * for each plugin and command. */
void plugin_server_format_metrics(struct plugin_server *s, struct buf *b);

AUTO_DEFINE(plugin_server_free, struct plugin_server);

#endif
