/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/network-status.h - what the plugins of a network say to STATUS
 *
 * What:  runs the verb STATUS of CNI 1.1 beside the loop, now and then for as long as
 *        there is a network that has it, and remembers the answer.
 * Rules: for the loop's thread. A plugin that does not answer is given up after ten
 *        seconds; nobody waits for one.
 */
#ifndef CRI_NETWORK_STATUS_H
#define CRI_NETWORK_STATUS_H

#include <hawser/cni.h>
#include <hawser/field.h>

struct network_status;
struct uv_loop_s;

/* @bin_dirs: borrowed; told(ctx): there is an answer, or another one than before */
struct network_status *network_status_new(struct uv_loop_s *loop, const struct hw_strings *bin_dirs,
					  void (*told)(void *ctx), void *ctx);
/* Its handles are closed by the loop, which frees it. */
void network_status_close(struct network_status *s);

/* This network is to be asked, at once and from now on. @conf: taken; NULL, or one before 1.1.0:
 * nobody is */
void network_status_ask(struct network_status *s, struct hw_conf *conf);
/* Why an ADD to this network would fail; NULL: it would not, as far as its plugins say. */
const char *network_status_why(const struct network_status *s, const struct hw_conf *conf);

#endif
