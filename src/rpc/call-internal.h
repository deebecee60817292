/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/call-internal.h - the loop's side of a call: what server.c does with call.c
 *
 * Rules: two hold a call: the loop, as long as there is a stream, and the
 *        handler, from rpc_call_dispatch() until the loop has seen that it
 *        ended. rpc_call_unref() is for the loop alone, so the count needs no lock.
 */
#ifndef RPC_CALL_INTERNAL_H
#define RPC_CALL_INTERNAL_H

#include <pthread.h>

#include "base/list.h"
#include "rpc/call.h"
#include "rpc/grpc/status.h"
#include "rpc/workers.h"

struct rpc_message {
	struct list link;
	struct buf body;
};

/* What the calls of a server share. */
struct rpc_calls {
	struct workers *workers;
	int stall_ms;
	uint32_t message_max;
	/* In the handler's thread, as its last word; must not block. */
	void (*ended)(void *ctx, struct rpc_call *call, enum status_code code);
	/* From any thread: look at calls.ready soon. May come when there is nothing any more, but
	 * not after the thread has ended. */
	void (*wake)(void *ctx);
	void *ctx;
	pthread_mutex_t lock; /* of what follows, and of rpc_call.ready_link, is_ready, is_done */
	struct list ready;    /* calls with something for the loop */
};

struct rpc_call {
	struct rpc_calls *calls;
	const struct rpc_method *method;
	void *ctx; /* the method's */
	uint64_t id;
	int64_t deadline;
	int64_t began;
	struct job job;

	/* the loop's */
	struct grpc_call *stream; /* NULL: over, or finished */
	void *conn;		  /* of the stream */
	unsigned refs;

	/* under calls->lock */
	struct list ready_link;
	bool is_ready;
	bool is_done; /* the handler has ended: code and text say how */

	/* under lock */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct list in; /* struct rpc_message */
	unsigned n_in;	/* messages that ever came */
	bool in_end;
	unsigned taken; /* messages that the handler took since the loop last looked */
	struct list out;
	size_t unsent;	/* bytes in out, and with the stream */
	unsigned n_out; /* messages that were ever sent */
	bool over;
	enum status_code over_code;
	int over_fd; /* -1: nobody asked yet */
	enum status_code code;
	char *text;
};

struct rpc_call *rpc_call_new(struct rpc_calls *calls, const struct rpc_method *method, void *ctx);
void rpc_call_unref(struct rpc_call *call);
void rpc_call_push(struct rpc_call *call, struct buf *message); /* of the request; takes it */
void rpc_call_push_end(struct rpc_call *call);
void rpc_call_over(struct rpc_call *call, enum status_code code);
void rpc_call_sent(struct rpc_call *call); /* the stream has sent all that it was given */
void rpc_call_serve(struct rpc_call *call);
bool rpc_call_dispatch(struct rpc_call *call); /* false: too many are running */
/* What the handler has for the stream: messages are moved to *ret_out. */
void rpc_call_collect(struct rpc_call *call, struct list *ret_out, unsigned *ret_taken);

#endif
