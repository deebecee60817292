/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/services.h - the gRPC services of hawser-cri and their methods
 *
 *	service                     table and short methods   methods in files of their own
 *	runtime.v1.RuntimeService   runtime.c                 sandbox.c container.c events.c
 *	                                                      stats.c container-metrics.c
 *	runtime.v1.ImageService     image.c                   pull.c (PullImage)
 *	hawser.v1.Daemon            hawser.c
 *	hawser.v1.Images            hawser.c                  load.c pull.c recover.c save.c verify.c
 *	hawser.v1.Pods              pods.c
 *	hawser.v1.Containers        pods.c
 *	hawser.v1.Networks          network.c
 */
#ifndef CRI_SERVICE_SERVICES_H
#define CRI_SERVICE_SERVICES_H

#include <stdint.h>

#include "base/shared.h"
#include "cri/config/config.h"
#include "cri/service/service.h"
#include "image/pull/pull.h"
#include "image/store/store.h"
#include "oci/handler.h"
#include "pod/network/pod-cidr.h"
#include "pod/network/watch.h"
#include "pod/pods.h"
#include "rpc/server.h"

/* ---- contexts: the parts of the daemon that a service uses ------------------------- */

struct runtime_service {
	struct slot *config; /* struct config */
	struct pods *pods;
	struct store *store;
	const struct oci_handlers *handlers;
	struct network_watch *network;
	struct pod_cidr *pod_cidr;
};

struct image_service {
	struct slot *config; /* struct config */
	struct store *store;
	struct puller *puller;
	struct pods *pods;
};

struct pod_service {
	struct pods *pods;
};

struct network_service {
	struct slot *config; /* struct config */
	struct pods *pods;
	struct network_watch *network;
};

struct daemon_service {
	struct slot *config; /* struct config */
	struct store *store;
	struct rpc_server *server;
	int64_t started_at; /* ns since 1970 */
};

/* ---- methods ------------------------------------------------------------------------ */

/* Tables for service_new(), each with the context of its methods. */
extern const struct service_method runtime_methods[];		/* struct runtime_service */
extern const struct service_method image_methods[];		/* struct image_service */
extern const struct service_method hawser_daemon_methods[];	/* struct daemon_service */
extern const struct service_method hawser_images_methods[];	/* struct image_service */
extern const struct service_method hawser_pods_methods[];	/* struct pod_service */
extern const struct service_method hawser_containers_methods[]; /* struct pod_service */
extern const struct service_method hawser_networks_methods[];	/* struct network_service */

/* Methods of runtime_methods: see struct service_method. */
int serve_run_pod_sandbox(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			  struct hw_err *e);
int serve_stop_pod_sandbox(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			   struct hw_err *e);
int serve_remove_pod_sandbox(const void *ctx, struct rpc_call *call,
			     const ProtobufCMessage *message, struct hw_err *e);
int serve_pod_sandbox_status(const void *ctx, struct rpc_call *call,
			     const ProtobufCMessage *message, struct hw_err *e);
int serve_list_pod_sandbox(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			   struct hw_err *e);
int serve_stream_pod_sandboxes(const void *ctx, struct rpc_call *call,
			       const ProtobufCMessage *message, struct hw_err *e);

int serve_update_pod_sandbox_resources(const void *ctx, struct rpc_call *call,
				       const ProtobufCMessage *message, struct hw_err *e);

int serve_create_container(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			   struct hw_err *e);
int serve_start_container(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			  struct hw_err *e);
int serve_stop_container(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			 struct hw_err *e);
int serve_remove_container(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			   struct hw_err *e);
int serve_list_containers(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			  struct hw_err *e);
int serve_stream_containers(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			    struct hw_err *e);
int serve_container_status(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			   struct hw_err *e);
int serve_update_container_resources(const void *ctx, struct rpc_call *call,
				     const ProtobufCMessage *message, struct hw_err *e);
int serve_reopen_container_log(const void *ctx, struct rpc_call *call,
			       const ProtobufCMessage *message, struct hw_err *e);
int serve_exec_sync(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
		    struct hw_err *e);

int serve_container_stats(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			  struct hw_err *e);
int serve_list_container_stats(const void *ctx, struct rpc_call *call,
			       const ProtobufCMessage *message, struct hw_err *e);
int serve_stream_container_stats(const void *ctx, struct rpc_call *call,
				 const ProtobufCMessage *message, struct hw_err *e);
int serve_pod_sandbox_stats(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			    struct hw_err *e);
int serve_list_pod_sandbox_stats(const void *ctx, struct rpc_call *call,
				 const ProtobufCMessage *message, struct hw_err *e);
int serve_stream_pod_sandbox_stats(const void *ctx, struct rpc_call *call,
				   const ProtobufCMessage *message, struct hw_err *e);
int serve_list_metric_descriptors(const void *ctx, struct rpc_call *call,
				  const ProtobufCMessage *message, struct hw_err *e);
int serve_list_pod_sandbox_metrics(const void *ctx, struct rpc_call *call,
				   const ProtobufCMessage *message, struct hw_err *e);
int serve_stream_pod_sandbox_metrics(const void *ctx, struct rpc_call *call,
				     const ProtobufCMessage *message, struct hw_err *e);

int serve_get_container_events(const void *ctx, struct rpc_call *call,
			       const ProtobufCMessage *message, struct hw_err *e);

/* Methods in the tables of images. */
int serve_load(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
	       struct hw_err *e);
int serve_pull(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
	       struct hw_err *e); /* hawser.v1 */
int serve_pull_image(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
		     struct hw_err *e); /* runtime.v1 */
int serve_recover(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
		  struct hw_err *e);
int serve_save(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
	       struct hw_err *e);
int serve_verify(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
		 struct hw_err *e);

/* ---- network.c ---------------------------------------------------------------------- */

/* Adds the names of the networks that belong to this daemon: dead attachments in them are deleted when the
 * daemon starts. */
void network_names_to_collect(const struct config *c, struct network_watch *network,
			      struct hw_strings *ret_names);

/* ---- pull.c: pulls with the daemon's configuration ---------------------------------- */

/* Options for image/pull that point into @c and @program, the path of hawser-fetch. */
struct pull_options pull_options_from_config(const struct config *c, const char *program);
struct puller *puller_new_from_config(struct store *store, const struct config *c);
/* Change the configuration of pulls that start from now on. */
void puller_set_config(struct puller *p, const struct config *c);

#endif
