/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api/call.h - calls with messages instead of bytes
 *
 * What:  both sides of rpc/ for protobuf-c's messages. A method is named by its
 *        service's descriptor and its name, which have its path and its types.
 * Rules: messages that come out belong to the caller: message_free(), or
 *        AUTO(api_free) on a variable of the generated type.
 *
 *	AUTO(api_free) Runtime__V1__VersionResponse *version = NULL;
 *	Runtime__V1__VersionRequest request = RUNTIME__V1__VERSION_REQUEST__INIT;
 *
 *	r = api_call(client, &runtime__v1__runtime_service__descriptor, "Version",
 *		     &request.base, deadline, (ProtobufCMessage **)&version, e);
 */
#ifndef API_CALL_H
#define API_CALL_H

#include <stdint.h>

#include "api/message.h"
#include "rpc/call.h"
#include "rpc/client.h"

/* For AUTO(): of a variable of any message type. */
static inline void auto_api_free(void *variable)
{
	message_free(*(ProtobufCMessage **)variable);
}

/* ---- the client's side -------------------------------------------------------------- */

int api_call(struct rpc_client *client, const ProtobufCServiceDescriptor *service,
	     const char *method, const ProtobufCMessage *request, int64_t deadline,
	     ProtobufCMessage **ret_answer, struct hw_err *e);

/* A stream whose one request is @request, or, if that is NULL, follows with api_stream_send(). */
int api_stream_open(struct rpc_client *client, const ProtobufCServiceDescriptor *service,
		    const char *method, const ProtobufCMessage *request, int64_t deadline,
		    struct rpc_stream **ret_stream, struct hw_err *e);
int api_stream_send(struct rpc_stream *stream, const ProtobufCMessage *message, struct hw_err *e);
/* Return: 1 a message; 0 the call has succeeded; else how it failed */
int api_stream_receive(struct rpc_stream *stream, const ProtobufCMessageDescriptor *type,
		       ProtobufCMessage **ret_message, struct hw_err *e);

/* ---- the handler's side ------------------------------------------------------------- */

/* Return: as rpc_receive() */
int api_receive(struct rpc_call *call, const ProtobufCMessageDescriptor *type,
		ProtobufCMessage **ret_message, struct hw_err *e);
int api_send(struct rpc_call *call, const ProtobufCMessage *message, struct hw_err *e);

#endif
