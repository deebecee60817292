/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api/call.c - gRPC calls with protobuf-c messages
 */
#include "api/call.h"

#include <assert.h>

#include "base/str.h"

int api_call(struct rpc_client *client, const ProtobufCServiceDescriptor *service,
	     const char *method, const ProtobufCMessage *request, int64_t deadline,
	     ProtobufCMessage **ret_response, struct hw_err *e)
{
	const ProtobufCMethodDescriptor *m =
		protobuf_c_service_descriptor_get_method_by_name(service, method);
	autofree char *path = str_printf("/%s/%s", service->name, method);
	AUTO(buf_done) struct buf response = { 0 };
	struct buf bytes;
	int r;

	assert(m && m->input == request->descriptor);
	message_encode(request, &bytes);
	r = rpc_client_call(client, path, &bytes, deadline, &response, e);
	if (r < 0)
		return r;
	if (message_decode(m->output, &response, MESSAGE_RESPONSE_MAX, ret_response, e) < 0)
		return err_ctx(e, "response of %s", method);
	return 0;
}

int api_stream_open(struct rpc_client *client, const ProtobufCServiceDescriptor *service,
		    const char *method, const ProtobufCMessage *request, int64_t deadline,
		    struct rpc_stream **ret_stream, struct hw_err *e)
{
	autofree char *path = str_printf("/%s/%s", service->name, method);
	struct buf bytes = { 0 };

	assert(protobuf_c_service_descriptor_get_method_by_name(service, method));
	if (request)
		message_encode(request, &bytes);
	return rpc_stream_open(client, path, request ? &bytes : NULL, deadline, ret_stream, e);
}

int api_stream_send(struct rpc_stream *stream, const ProtobufCMessage *message, struct hw_err *e)
{
	struct buf bytes;

	message_encode(message, &bytes);
	return rpc_stream_send(stream, &bytes, e);
}

int api_stream_receive(struct rpc_stream *stream, const ProtobufCMessageDescriptor *type,
		       ProtobufCMessage **ret_message, struct hw_err *e)
{
	AUTO(buf_done) struct buf bytes = { 0 };
	int r;

	r = rpc_stream_receive(stream, &bytes, e);
	if (r != 1)
		return r;
	r = message_decode(type, &bytes, MESSAGE_RESPONSE_MAX, ret_message, e);
	return r < 0 ? r : 1;
}

int api_receive(struct rpc_call *call, const ProtobufCMessageDescriptor *type,
		ProtobufCMessage **ret_message, struct hw_err *e)
{
	AUTO(buf_done) struct buf bytes = { 0 };
	int r;

	r = rpc_receive(call, &bytes, e);
	if (r != 1)
		return r;
	r = message_decode(type, &bytes, MESSAGE_REQUEST_MAX, ret_message, e);
	return r < 0 ? r : 1;
}

int api_send(struct rpc_call *call, const ProtobufCMessage *message, struct hw_err *e)
{
	struct buf bytes;

	message_encode(message, &bytes);
	return rpc_send(call, &bytes, e);
}
