/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/server-internal.h - structures shared by server.c (sockets) and server-call.c (calls)
 *
 * Only the loop's thread uses these structures and functions, except for server_call_finished().
 */
#ifndef RPC_SERVER_INTERNAL_H
#define RPC_SERVER_INTERNAL_H

#include <stdatomic.h>

#include <uv.h>

#include "base/list.h"
#include "rpc/call-internal.h"
#include "rpc/server.h"

struct server_method {
	const struct rpc_method *method;
	void *ctx;
	unsigned n_long; /* running calls of a long method */
};

struct conn {
	struct list link;
	struct list flush_link; /* in rpc_server.to_flush */
	struct rpc_server *server;
	int fd;
	uv_poll_t poll;
	int events; /* events that poll waits for */
	struct grpc *grpc;
	struct buf out; /* output that is not written yet, from out_at on */
	size_t out_at;
	int64_t stall_at; /* when a peer that does not read is dropped; TIME_NEVER: unset */
	unsigned n_calls; /* calls that are not finished */
	bool broken;	  /* conn_flush() must close the connection */
};

struct rpc_server {
	struct rpc_config config;
	uv_loop_t *loop;
	uv_async_t async; /* wakes the loop from other threads */
	uv_timer_t timer;
	int64_t wake_at;   /* when the timer must fire next */
	int64_t timer_at;  /* when the timer will fire */
	int64_t resume_at; /* when paused listeners accept again */
	struct map *methods;
	struct rpc_calls calls;
	struct list listeners, conns;
	struct list to_flush; /* connections: see conn_schedule_flush() */
	atomic_uint n_conns, n_calls, n_long;
	/* Long calls: so many are reserved for each long method. All methods share the others, and
	 * n_shared of them are running. */
	unsigned n_long_methods, reserved, n_shared;
	struct list endless; /* running endless calls */
	uint64_t last_id;
	/* set by rpc_server_stop() */
	bool stopping;
	int64_t close_idle_at; /* when connections without calls, or with a peer that does not read
				  the end of its calls, are closed */
	int64_t close_all_at;  /* when all connections are closed */
	unsigned open_handles; /* how many of async and timer are still being closed */
	void (*stopped)(void *ctx);
	void *stopped_ctx;
};

/* ---- server.c ----------------------------------------------------------------------- */

/* Writes the connection's output, or closes the connection, at the end of the current callback of
 * the loop. */
void conn_schedule_flush(struct conn *c);

/* ---- server-call.c ------------------------------------------------------------------ */

extern const struct grpc_events server_events;	 /* their ctx is a struct conn */
void server_process_ready(struct rpc_server *s); /* processes the list of ready calls */
void server_end_endless(struct rpc_server *s);	 /* cancels all endless calls */
/* For struct rpc_calls: reports a finished call to rpc_config.finished(). */
void server_call_finished(void *ctx, struct rpc_call *call, enum status_code code);

#endif
