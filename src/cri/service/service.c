/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/service.c - a gRPC service from its protobuf descriptor and a table of methods
 */
#include "cri/service/service.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "api/call.h"
#include "base/log.h"
#include "base/str.h"
#include "cri/service/error-status.h"
#include "rpc/grpc/status.h"

struct service {
	const void *ctx; /* for the methods */
	const ProtobufCServiceDescriptor *descriptor;
	struct rpc_method *methods; /* in the descriptor's order, then { 0 } */
	const struct service_method *
		*implemented; /* in the order of methods; NULL if not implemented */
};

static int serve_method(struct service *s, size_t i, struct rpc_call *call, struct hw_err *e)
{
	const struct service_method *method = s->implemented[i];
	AUTO(message_free) ProtobufCMessage *request = NULL;
	int r;

	if (!method)
		return status_set(e, STATUS_UNIMPLEMENTED, "%s is not implemented by hawser-cri %s",
				  s->descriptor->methods[i].name, HAWSER_VERSION);
	if (!(method->flags & RPC_STREAM_IN)) {
		r = api_receive(call, s->descriptor->methods[i].input, &request, e);
		if (r < 0)
			return r;
	}
	return method->serve(s->ctx, call, request, e);
}

static int handle_call(struct rpc_call *call, void *ctx, struct hw_err *e)
{
	struct service *s = ctx;
	size_t i = (size_t)(rpc_method(call) - s->methods);
	char id[24];
	int r;

	snprintf(id, sizeof(id), "%" PRIu64, rpc_id(call));
	log_context("call", id);
	r = serve_method(s, i, call, e);
	if (r < 0)
		error_status_set(e);
	if (r < 0 && status_from_err(e) != STATUS_UNIMPLEMENTED)
		log_event(LOG_INFO, "call failed", "method", s->descriptor->methods[i].name, "code",
			  status_name((int)status_from_err(e)), "error", e->msg, NULL);
	else
		log_event(LOG_DEBUG, "call served", "method", s->descriptor->methods[i].name, NULL);
	log_context(NULL, NULL);
	return r < 0 ? r : 0;
}

static const struct service_method *find_method(const struct service_method *methods,
						const char *name)
{
	for (; methods->name; methods++)
		if (str_equal(methods->name, name))
			return methods;
	return NULL;
}

struct service *service_new(const void *ctx, const ProtobufCServiceDescriptor *descriptor,
			    const struct service_method *methods)
{
	struct service *s = mem_new(sizeof(*s));
	unsigned n = descriptor->n_methods;

	*s = (struct service){ .ctx = ctx, .descriptor = descriptor };
	s->methods = mem_new((n + 1) * sizeof(*s->methods));
	s->implemented = mem_new(n * sizeof(const struct service_method *));
	for (unsigned i = 0; i < n; i++) {
		const char *name = descriptor->methods[i].name;

		s->implemented[i] = find_method(methods, name);
		s->methods[i] = (struct rpc_method){
			.path = str_printf("/%s/%s", descriptor->name, name),
			.handle = handle_call,
			.flags = s->implemented[i] ? s->implemented[i]->flags : RPC_INSTANT,
		};
	}
	for (; methods->name; methods++)
		assert(protobuf_c_service_descriptor_get_method_by_name(descriptor, methods->name));
	return s;
}

void service_free(struct service *s)
{
	if (!s)
		return;
	for (struct rpc_method *m = s->methods; m->path; m++)
		free((char *)m->path);
	free(s->methods);
	free(s->implemented);
	free(s);
}

const struct rpc_method *service_methods(const struct service *s)
{
	return s->methods;
}
