/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api/call.h - gRPC calls with protobuf-c messages
 *
 * What:  the calls of rpc/client and rpc/call, with messages instead of bytes. A method
 *        is given by its name and by the protobuf descriptor of its service. The path of
 *        the method and the types of its messages follow from these two.
 * Rules: the caller frees returned messages with message_free(), or declares variables
 *        of the generated type with AUTO(api_free).
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

/* hawser-cri's errors with status RESOURCE_EXHAUSTED have this text in their message if the disk is
 * full. Then it does not help to try again. */
#define API_DISK_FULL "out of disk space"

/* For AUTO(): frees a variable of any message type. */
static inline void auto_api_free(void *variable)
{
	message_free(*(ProtobufCMessage **)variable);
}

/* ---- client ------------------------------------------------------------------------- */

/* Makes a unary call. @request must be of the method's input type; *ret_response is of its output
 * type. @deadline may be TIME_NEVER. */
int api_call(struct rpc_client *client, const ProtobufCServiceDescriptor *service,
	     const char *method, const ProtobufCMessage *request, int64_t deadline,
	     ProtobufCMessage **ret_response, struct hw_err *e);

/* Starts a streaming call, like rpc_stream_open(). If @request is NULL, the caller then uses
 * api_stream_send() and rpc_stream_end_request(). */
int api_stream_open(struct rpc_client *client, const ProtobufCServiceDescriptor *service,
		    const char *method, const ProtobufCMessage *request, int64_t deadline,
		    struct rpc_stream **ret_stream, struct hw_err *e);
int api_stream_send(struct rpc_stream *stream, const ProtobufCMessage *message, struct hw_err *e);
/* Return: 1 if a message was received; 0 if the call has ended successfully; or a negative errno
 * with the error of the call */
int api_stream_receive(struct rpc_stream *stream, const ProtobufCMessageDescriptor *type,
		       ProtobufCMessage **ret_message, struct hw_err *e);

/* ---- handler of a call on the server ------------------------------------------------ */

/* Receives a message. Return: the same as rpc_receive(); also fails with STATUS_INVALID_ARGUMENT if
 * the message is malformed */
int api_receive(struct rpc_call *call, const ProtobufCMessageDescriptor *type,
		ProtobufCMessage **ret_message, struct hw_err *e);
/* Sends a message. Return: the same as rpc_send() */
int api_send(struct rpc_call *call, const ProtobufCMessage *message, struct hw_err *e);

#endif
