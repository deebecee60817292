/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/service.h - a service of proto/, with functions for the calls that we offer
 *
 * What:  makes the server's table of methods from the service's descriptor. A call
 *        is decoded before its function sees it, an error is logged after it, and
 *        what is logged meanwhile carries the call's id. A call that the descriptor
 *        has and the table has not is UNIMPLEMENTED by name.
 */
#ifndef CRI_SERVICE_SERVICE_H
#define CRI_SERVICE_SERVICE_H

#include <protobuf-c/protobuf-c.h>

#include "base/err.h"
#include "rpc/call.h"

struct daemon;
struct service;

struct service_method {
	const char *name; /* in the descriptor */
	/* @request: NULL with RPC_STREAM_IN. The answer is sent with api_send(). */
	int (*serve)(struct daemon *d, struct rpc_call *call, const ProtobufCMessage *request,
		     struct hw_err *e);
	unsigned flags; /* enum rpc_flags */
};

/* @methods ends with { 0 }. */
struct service *service_new(struct daemon *d, const ProtobufCServiceDescriptor *descriptor,
			    const struct service_method *methods);
void service_free(struct service *s);
/* For rpc_server_add(), whose ctx is the service. */
const struct rpc_method *service_methods(const struct service *s);

#endif
