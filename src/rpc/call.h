/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/call.h - a call, as the code that serves it sees it
 *
 * What:  the request's messages, the answer's, and whether somebody still waits.
 *        A handler is straight-line code that may block; it runs on a thread of
 *        rpc/workers, beside a loop that does the I/O.
 * How:   what comes from the peer and what goes to it meets in two short queues
 *        under the call's lock. The loop's side of them is call-internal.h.
 * Rules: the call is valid until its handler returns. A wait ends when the call
 *        is over (cancelled by the client, past its deadline, connection lost),
 *        and when the peer does not move for the server's stall time.
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
	RPC_LONG = 1 << 0,	 /* may take long: a thread of its own, not one of the pool */
	RPC_STREAM_IN = 1 << 1,	 /* any number of requests; runs from the first header on */
	RPC_STREAM_OUT = 1 << 2, /* any number of answers */
	/* Waits for nothing, not even for a lock that somebody holds for long: runs on the loop.
	 * For what is asked often and known already; no other flag goes with it. */
	RPC_INSTANT = 1 << 3,
};

struct rpc_method {
	const char *path; /* "/package.Service/Method" */
	/* Return: 0, the call succeeded; else status_of(e) and e->msg are told to the client. */
	int (*handle)(struct rpc_call *call, void *ctx, struct hw_err *e);
	unsigned flags;
};

/* The next message of the request. Without RPC_STREAM_IN there is one, and it is here. Return: 1;
 * 0: there is no more; -ECANCELED, -ETIMEDOUT. *ret is overwritten. */
int rpc_receive(struct rpc_call *call, struct buf *ret, struct hw_err *e);
/* A message of the answer; its bytes are taken, also on failure. Waits while too much is unsent.
 * -EMSGSIZE, -ECANCELED, -ETIMEDOUT. Without RPC_STREAM_OUT it is called once. */
int rpc_send(struct rpc_call *call, struct buf *message, struct hw_err *e);

bool rpc_is_over(struct rpc_call *call); /* nobody waits for the answer any more */
/* Readable once it is over: for poll(), and for proc.cancel_fd. It belongs to the call. */
int rpc_over_fd(struct rpc_call *call);
int64_t rpc_deadline(const struct rpc_call *call); /* TIME_NEVER: none */
uint64_t rpc_id(const struct rpc_call *call);	   /* for logs; no two calls have the same */
const struct rpc_method *rpc_method(const struct rpc_call *call);

#endif
