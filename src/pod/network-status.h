/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network-status.h - poll the plugins of a network with CNI's STATUS
 *
 * What:  runs the command STATUS of CNI 1.1 repeatedly in a separate thread, if the
 *        network supports it, and stores the result.
 * Rules: the functions are for the loop's thread; none of them waits for a plugin to
 *        answer. A plugin that does not answer within ten seconds is killed, and its
 *        STATUS fails.
 */
#ifndef POD_NETWORK_STATUS_H
#define POD_NETWORK_STATUS_H

#include <hawser/cni.h>
#include <hawser/field.h>

struct network_status;
struct uv_loop_s;

/* @bin_dirs is borrowed. updated(ctx) is called after each STATUS. */
struct network_status *network_status_new(struct uv_loop_s *loop, const struct hw_strings *bin_dirs,
					  void (*updated)(void *ctx), void *ctx);
/* Kills a running plugin. The loop frees the object when its handles are closed. */
void network_status_close(struct network_status *s);

/* Poll this network from now on, instead of the previous one. The first STATUS starts at once.
 * Takes ownership of @conf. If it is NULL or its CNI version is below 1.1.0, polling stops. */
void network_status_set(struct network_status *s, struct hw_conf *conf);
/* Return: why ADD to this network would fail; NULL if STATUS has succeeded or is not supported */
const char *network_status_error(const struct network_status *s, const struct hw_conf *conf);

#endif
