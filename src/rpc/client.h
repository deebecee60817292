/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/client.h - a gRPC client: blocking calls over a unix socket
 *
 * What:  unary calls, and streams of messages in either direction; several streams
 *        may be open at a time.
 * Rules: only one thread may use a client at a time. Every function blocks at most until the
 *        deadline of its call (base/time.h). A status that the server sends is returned as an error
 *        of HW_DOMAIN_GRPC (rpc/grpc/status.h) with the server's text.
 *        If the connection was lost or the server drains it, the next call opens a
 *        new connection. A failed call is never retried.
 *
 *	AUTO(rpc_client_close) struct rpc_client *client = NULL;
 *	AUTO(buf_done) struct buf response = { 0 };
 *
 *	r = rpc_client_open(path, &client, e);
 *	if (r == 0)
 *		r = rpc_client_call(client, "/a.B/C", &request, time_deadline(2000), &response, e);
 */
#ifndef RPC_CLIENT_H
#define RPC_CLIENT_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct rpc_client;
struct rpc_stream;

int rpc_client_open(const char *path, struct rpc_client **ret_client, struct hw_err *e);
void rpc_client_close(struct rpc_client *client); /* all its streams must be freed before */

/* Makes a unary call. @method is "/package.Service/Method"; @deadline may be TIME_NEVER. Takes the
 * request's bytes; *ret_response is overwritten. */
int rpc_client_call(struct rpc_client *client, const char *method, struct buf *request,
		    int64_t deadline, struct buf *ret_response, struct hw_err *e);

/* Starts a call. The parameters are those of rpc_client_call(). If @request is NULL, the caller
 * sends the request with rpc_stream_send() and rpc_stream_end_request(). */
int rpc_stream_open(struct rpc_client *client, const char *method, struct buf *request,
		    int64_t deadline, struct rpc_stream **ret_stream, struct hw_err *e);
/* Sends a message of the request and takes its bytes. Blocks until the server's flow-control window
 * has admitted all bytes; the last ones may not be written to the socket yet. If the server has
 * ended the call, the error is the server's status. */
int rpc_stream_send(struct rpc_stream *stream, struct buf *message, struct hw_err *e);
void rpc_stream_end_request(struct rpc_stream *stream); /* ends the request */
/* Receives the next message of the response. Return: 1 if received, *ret is overwritten; 0 if the
 * call has succeeded; otherwise the error with which the call failed */
int rpc_stream_receive(struct rpc_stream *stream, struct buf *ret, struct hw_err *e);
void rpc_stream_free(struct rpc_stream *stream); /* cancels the call if it has not ended */

AUTO_DEFINE(rpc_client_close, struct rpc_client);
AUTO_DEFINE(rpc_stream_free, struct rpc_stream);

#endif
