/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/call-internal.h - a gRPC call on the server, as the event loop sees it
 *
 * How:   a call goes through these steps; "loop" is server-call.c on the loop's
 *        thread, "handler" the thread that runs the method's function:
 *
 *	loop      rpc_call_new(), then rpc_call_add_message() for each message received
 *	          and rpc_call_end_request() after the last
 *	loop      rpc_call_dispatch() starts the handler
 *	handler   rpc_receive() and rpc_send() put the call on the server's ready list
 *	          and wake the loop if the loop must process the call
 *	loop      rpc_call_take_output() for each ready call
 *	handler   returns; the call is put on the ready list for the last time
 *	loop      rpc_call_unref()
 *
 * Rules: there are two references to a call: the loop's, as long as the call has a stream, and the
 *        handler's, from rpc_call_dispatch() until the loop has processed the handler's return.
 *        Only the loop changes the count, so it needs no lock.
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

/* Shared by all calls of a server. */
struct rpc_calls {
	struct workers *workers;
	int stall_ms;
	uint32_t message_max;
	/* Called by the handler's thread after the handler has returned; must not block. */
	void (*finished)(void *ctx, struct rpc_call *call, enum status_code code);
	/* Asks the loop, from any thread, to process the ready list. The list may be empty by then.
	 * Not called after the threads of all handlers have ended. */
	void (*wake)(void *ctx);
	void *ctx;
	pthread_mutex_t lock; /* protects ready; in all calls: ready_link, is_ready, is_done */
	struct list ready;    /* calls that the loop has to process */
};

struct rpc_call {
	struct rpc_calls *calls;
	const struct rpc_method *method;
	void *ctx; /* passed to the method's handler */
	uint64_t id;
	int64_t deadline;
	int64_t started;
	struct worker_job job;

	/* used by the loop only */
	struct grpc_call *stream; /* NULL if cancelled or finished */
	void *conn;		  /* connection of the stream */
	void *entry;		  /* entry of the method in the server's map */
	struct list endless_link; /* in the server's list of endless calls, if it is one */
	unsigned refs;

	/* protected by calls->lock */
	struct list ready_link;
	bool is_ready;
	bool is_done; /* the handler has returned; code and text are set */

	/* protected by lock */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct list in; /* struct rpc_message */
	unsigned n_in;	/* total number of messages received */
	bool in_end;
	unsigned consumed; /* messages that the handler received since rpc_call_take_output() */
	struct list out;   /* struct rpc_message */
	size_t unsent;	   /* bytes in out and in the stream */
	unsigned n_out;	   /* total number of messages sent */
	bool cancelled;
	enum status_code cancel_code;
	int cancel_fd;	       /* eventfd; -1 until rpc_cancel_fd() */
	enum status_code code; /* the handler's result */
	char *text;
};

struct rpc_call *rpc_call_new(struct rpc_calls *calls, const struct rpc_method *method, void *ctx);
void rpc_call_unref(struct rpc_call *call); /* frees the call with the last reference */
/* Adds a received message of the request. Takes the bytes. */
void rpc_call_add_message(struct rpc_call *call, struct buf *message);
void rpc_call_end_request(struct rpc_call *call);
void rpc_call_cancel(struct rpc_call *call, enum status_code code); /* informs the handler */
void rpc_call_stream_sent(struct rpc_call *call); /* the stream has sent all its messages */
void rpc_call_run(struct rpc_call *call);	  /* runs the handler on the calling thread */
/* Starts the handler on a thread. Return: like workers_run_short() */
int rpc_call_dispatch(struct rpc_call *call, struct hw_err *e);
/* Moves the response's messages to @out, an empty list. *ret_consumed is the number of request
 * messages that the handler has received since the last call of this function. */
void rpc_call_take_output(struct rpc_call *call, struct list *out, unsigned *ret_consumed);

#endif
