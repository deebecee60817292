/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/pull.h - pulls, asked for over CRI or hawser.v1
 */
#ifndef CRI_SERVICE_PULL_H
#define CRI_SERVICE_PULL_H

#include "cri/daemon.h"
#include "image/pull/pull.h"

/* runtime.v1.ImageService/PullImage; the rest of that service is in image.c. */
int pull_serve_cri(struct daemon *d, struct rpc_call *call, const ProtobufCMessage *message,
		   struct hw_err *e);

/* How images are to be got; borrows from both. @program: hawser-fetch */
struct pull_options pull_options(const struct config *c, const char *program);

/* The pulls of a configuration, from now on. */
struct puller *pull_start(struct store *store, const struct config *c);
void pull_configure(struct puller *p, const struct config *c);

#endif
