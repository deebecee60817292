/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/service.h - a gRPC service from its protobuf descriptor and a table of methods
 *
 * What:  creates the server's table of methods. Each request is decoded before its
 *        function is called, failed calls are logged, and log lines written during
 *        a call contain its ID. A method of the descriptor that is not in the table
 *        fails with UNIMPLEMENTED.
 */
#ifndef CRI_SERVICE_SERVICE_H
#define CRI_SERVICE_SERVICE_H

#include <protobuf-c/protobuf-c.h>

#include "base/err.h"
#include "rpc/call.h"

struct service;

struct service_method {
	const char *name; /* name of the method in the descriptor */
	/* @ctx is the context of the service; @request is the decoded message, NULL with
	 * RPC_STREAM_IN. The function sends the response with api_send(). */
	int (*serve)(const void *ctx, struct rpc_call *call, const ProtobufCMessage *request,
		     struct hw_err *e);
	unsigned flags; /* enum rpc_flags */
};

/* @methods ends with { 0 }; all its names must be in the descriptor. @ctx is borrowed. */
struct service *service_new(const void *ctx, const ProtobufCServiceDescriptor *descriptor,
			    const struct service_method *methods);
void service_free(struct service *s);
/* The table for rpc_server_add(), to be added with the service as ctx. */
const struct rpc_method *service_methods(const struct service *s);

#endif
