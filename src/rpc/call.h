/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/call.h - a gRPC call on the server, as its handler sees it
 *
 * What:  functions for handlers: receive the messages of the request, send the messages of the
 *        response, and find out whether the client still waits. A handler is sequential code that
 *        may block; the event loop of rpc/server does the I/O.
 * How:   handler and loop exchange messages through two short queues under the call's lock.
 *        call-internal.h has the loop's functions for these queues.
 * Rules: a call is valid until its handler returns.
 *
 * Words: A *short* call runs on a thread of a small pool, and waits in a queue if all threads are
 *        busy. A *long* call (RPC_LONG) has a thread of its own; the number of long calls is
 *        limited, in total and for each method. An *instant* call (RPC_INSTANT) runs on the event loop itself and must not block.
 *        A call is *cancelled* when its client no longer waits for the response: the
 *        client has cancelled it, its deadline has passed, the connection is lost, or
 *        the server stops. The handler is not interrupted, but its waits in
 *        rpc_receive() and rpc_send() fail.
 *        A client is *stalled* when the handler waits for the client to send a message or to read
 *        the response, and the client does not do so. The wait fails after the time
 *        rpc_config.stall_ms.
 *
 *	static int echo(struct rpc_call *call, void *ctx, struct hw_err *e)
 *	{
 *		AUTO(buf_done) struct buf message = { 0 };
 *		int r = rpc_receive(call, &message, e);
 *
 *		return r < 0 ? r : rpc_send(call, &message, e);
 *	}
 */
#ifndef RPC_CALL_H
#define RPC_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct rpc_call;

enum rpc_flags {
	RPC_LONG = 1 << 0,	 /* streams need it: their handler waits for the client */
	RPC_STREAM_IN = 1 << 1,	 /* any number of requests; the handler starts after the headers */
	RPC_STREAM_OUT = 1 << 2, /* any number of responses */
	/* The stream of responses has no end of its own: a stopping server cancels the call at once
	 * instead of waiting for it. */
	RPC_ENDLESS = 1 << 4,
	/* For frequent calls whose response is already known. The handler must not block, and must
	 * not wait for a lock that another thread may hold for long. Not combined with other
	 * flags. */
	RPC_INSTANT = 1 << 3,
};

struct rpc_method {
	const char *path; /* "/package.Service/Method" */
	/* Return: 0 for success; otherwise the client gets status_from_err(e) and e->msg */
	int (*handle)(struct rpc_call *call, void *ctx, struct hw_err *e);
	unsigned flags; /* enum rpc_flags */
};

/* Receives the next message of the request; *ret is overwritten. Without RPC_STREAM_IN there is
 * exactly one message, and receiving it does not block.
 * Return: 1 if received, 0 at the end of the request; an error such as -ECANCELED or -ETIMEDOUT if
 * the call is cancelled; -ETIMEDOUT if the client is stalled */
int rpc_receive(struct rpc_call *call, struct buf *ret, struct hw_err *e);
/* Sends a message of the response. Without RPC_STREAM_OUT it must be called once only. Takes the
 * bytes, also on failure. Blocks while too many bytes are unsent.
 * Return: 0; -EMSGSIZE if the message is over the limit; other errors in the same cases as
 * rpc_receive() */
int rpc_send(struct rpc_call *call, struct buf *message, struct hw_err *e);

bool rpc_is_cancelled(struct rpc_call *call);
/* A descriptor that becomes readable when the call is cancelled, for poll() and proc.cancel_fd.
 * Owned by the call. Return: -1 if no descriptor is available */
int rpc_cancel_fd(struct rpc_call *call);
int64_t rpc_deadline(const struct rpc_call *call); /* TIME_NEVER if the call has none */
uint64_t rpc_id(const struct rpc_call *call);	   /* unique in this server, for logs */
const struct rpc_method *rpc_method(const struct rpc_call *call);

#endif
