/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/services.h - the gRPC services of hawser-cri and their methods
 *
 *	service                     table and short methods   methods in files of their own
 *	runtime.v1.RuntimeService   runtime.c
 *	runtime.v1.ImageService     image.c                   pull.c (PullImage)
 *	hawser.v1.Daemon            hawser.c
 *	hawser.v1.Images            hawser.c                  load.c pull.c save.c verify.c
 */
#ifndef CRI_SERVICE_SERVICES_H
#define CRI_SERVICE_SERVICES_H

#include "cri/config/config.h"
#include "cri/service/service.h"
#include "image/pull/pull.h"

extern const struct service_method runtime_methods[];	    /* runtime.v1.RuntimeService */
extern const struct service_method image_methods[];	    /* runtime.v1.ImageService */
extern const struct service_method hawser_daemon_methods[]; /* hawser.v1.Daemon */
extern const struct service_method hawser_images_methods[]; /* hawser.v1.Images */

/* Methods in these tables: see struct service_method. */
int serve_load(struct daemon *d, struct rpc_call *call, const ProtobufCMessage *message,
	       struct hw_err *e);
int serve_pull(struct daemon *d, struct rpc_call *call, const ProtobufCMessage *message,
	       struct hw_err *e); /* hawser.v1 */
int serve_pull_image(struct daemon *d, struct rpc_call *call, const ProtobufCMessage *message,
		     struct hw_err *e); /* runtime.v1 */
int serve_save(struct daemon *d, struct rpc_call *call, const ProtobufCMessage *message,
	       struct hw_err *e);
int serve_verify(struct daemon *d, struct rpc_call *call, const ProtobufCMessage *message,
		 struct hw_err *e);

/* ---- pull.c: pulls with the daemon's configuration ---------------------------------- */

/* Options for image/pull that point into @c and @program, the path of hawser-fetch. */
struct pull_options pull_options_from_config(const struct config *c, const char *program);
struct puller *puller_new_from_config(struct store *store, const struct config *c);
/* Change the configuration of pulls that start from now on. */
void puller_set_config(struct puller *p, const struct config *c);

#endif
