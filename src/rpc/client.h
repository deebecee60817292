/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/client.h - a gRPC client: blocking calls over a unix socket
 *
 * What:  one call that waits for its answer, or a stream of messages in either
 *        direction; several streams may be open at a time.
 * Rules: for one thread at a time. Every function waits at most until the
 *        deadline of its call (base/time.h). What the server says comes back as
 *        an error of HW_DOMAIN_GRPC (rpc/grpc/status.h) with the server's text.
 *        A connection that was lost, or that the server drains, is made anew by
 *        the next call; no call is made twice.
 *
 *	AUTO(rpc_client_close) struct rpc_client *client = NULL;
 *	AUTO(buf_done) struct buf answer = { 0 };
 *
 *	r = rpc_client_open(path, &client, e);
 *	if (r == 0)
 *		r = rpc_client_call(client, "/a.B/C", &request, time_deadline(2000), &answer, e);
 */
#ifndef RPC_CLIENT_H
#define RPC_CLIENT_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct rpc_client;
struct rpc_stream;

int rpc_client_open(const char *path, struct rpc_client **ret_client, struct hw_err *e);
void rpc_client_close(struct rpc_client *client); /* after its streams are freed */

/* One request, one answer. The request's bytes are taken; *ret_answer is overwritten. */
int rpc_client_call(struct rpc_client *client, const char *method, struct buf *request,
		    int64_t deadline, struct buf *ret_answer, struct hw_err *e);

/* Begin a call. @request is all of its request, whose bytes are taken; NULL: rpc_stream_send() and
 * rpc_stream_end() follow. */
int rpc_stream_open(struct rpc_client *client, const char *method, struct buf *request,
		    int64_t deadline, struct rpc_stream **ret_stream, struct hw_err *e);
/* Takes the bytes; waits until they are with the kernel. An error may be the server's status. */
int rpc_stream_send(struct rpc_stream *stream, struct buf *message, struct hw_err *e);
void rpc_stream_end(struct rpc_stream *stream); /* that was the last */
/* Return: 1 a message, *ret is overwritten; 0 the call has succeeded; else how it failed */
int rpc_stream_receive(struct rpc_stream *stream, struct buf *ret, struct hw_err *e);
void rpc_stream_free(struct rpc_stream *stream); /* one that has not ended is cancelled */

AUTO_DEFINE(rpc_client_close, struct rpc_client);
AUTO_DEFINE(rpc_stream_free, struct rpc_stream);

#endif
