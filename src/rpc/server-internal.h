/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/server-internal.h - what the parts of the server know of each other
 *
 *	server.c        sockets, the timer, beginning and end
 *	server-call.c   calls, to the threads and back
 *
 * All of it is the loop's thread's. Each callback of the loop ends with
 * server_end_turn(), which writes what there is to write and closes what has ended.
 */
#ifndef RPC_SERVER_INTERNAL_H
#define RPC_SERVER_INTERNAL_H

#include <stdatomic.h>

#include <uv.h>

#include "base/list.h"
#include "rpc/call-internal.h"
#include "rpc/server.h"

struct method {
	const struct rpc_method *method;
	void *ctx;
};

struct conn {
	struct list link;
	struct list dirty; /* in server.dirty: has to be settled this turn */
	struct rpc_server *server;
	int fd;
	uv_poll_t poll;
	int events; /* that are polled for */
	struct grpc *grpc;
	struct buf out; /* what was not written yet: from out_at on */
	size_t out_at;
	int64_t stalled; /* when out is given up; TIME_NEVER while there is none */
	bool broken;
};

struct rpc_server {
	struct rpc_config config;
	uv_loop_t *loop;
	uv_async_t async;
	uv_timer_t timer;
	int64_t next;	/* when the timer is wanted */
	int64_t armed;	/* when it fires */
	int64_t resume; /* when listeners that were paused go on */
	struct map *methods;
	struct rpc_calls calls;
	struct list listeners, conns, dirty;
	atomic_uint n_conns, n_calls, n_long;
	uint64_t last_id;
	/* from rpc_server_stop() on */
	bool stopping;
	int64_t idle_at;       /* from then on connections without calls are closed */
	int64_t stop_at;       /* and all others */
	unsigned open_handles; /* async and timer */
	void (*stopped)(void *ctx);
	void *stopped_ctx;
};

/* ---- server.c ----------------------------------------------------------------------- */

void conn_mark(struct conn *c); /* to be settled at the end of this turn */

/* ---- server-call.c ------------------------------------------------------------------ */

extern const struct grpc_events server_events; /* their ctx is a struct conn */
void server_collect(struct rpc_server *s);     /* what the threads have done since */
void server_call_ended(void *ctx, struct rpc_call *call, enum status_code code);

#endif
