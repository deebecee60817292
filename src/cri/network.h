/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/network.h - is there a network for pods?
 *
 * What:  the first valid network configuration of the CNI folder, and whether all
 *        of its plugins are there, and, from version 1.1.0 on, say that they could
 *        do their work (STATUS). The folders are watched: a network plugin puts its
 *        files there some time after we have started.
 * Rules: for the loop's thread, network_view_get() apart. What was found is published
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
	unsigned int users;
	bool ready;
	char *name;    /* of the network; NULL: there is none */
	char *file;    /* that it came from */
	char *message; /* why it is not ready; "" */
};

/* Folders that are not there are looked for again and again. @bin_dirs: with colons between. */
struct network *network_new(struct uv_loop_s *loop, const char *conf_dir, const char *bin_dirs);
void network_look(struct network *n); /* at once */
/* Its handles are closed by the loop, which frees it. */
void network_close(struct network *n);

struct network_view *network_view_get(struct network *n); /* from any thread */
void network_view_put(struct network_view *view);

AUTO_DEFINE(network_view_put, struct network_view);

#endif
