/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/server.h - a gRPC server: sockets on a libuv loop, handlers on threads
 *
 * What:  accepts connections, finds the method of each call and runs its handler
 *        (call.h): instant calls on the loop, short calls on a pool of threads, long
 *        calls on threads of their own.
 * How:   the caller's loop does all I/O. It never waits for a handler, and a handler waits only for
 *        its own client.
 * Rules: only the loop's thread may call the functions, except for rpc_server_stats().
 *        To end a server: rpc_server_stop(); after stopped(), rpc_server_free(); only
 *        then uv_loop_close().
 *        Calls over a limit are answered with RESOURCE_EXHAUSTED. A connection over the limit
 *        replaces the one that is idle longest, or is refused if all have calls; the client of a
 *        connection that is closed is told why.
 */
#ifndef RPC_SERVER_H
#define RPC_SERVER_H

#include <stdint.h>

#include "rpc/call.h"
#include "rpc/grpc/grpc.h"

struct rpc_server;
struct uv_loop_s;

/* A finished call, for metrics and logs. */
struct rpc_finished_call {
	const char *path; /* path of the method; "" if the method is unknown */
	uint64_t id;
	enum status_code code; /* status sent to the client, or why the call was cancelled */
	int64_t ns;	       /* time since the headers were received */
};

struct rpc_config {
	struct grpc_limits limits; /* for each connection */
	unsigned connections_max;
	unsigned pool_threads; /* number of threads for short calls */
	unsigned queue_max;    /* short calls that wait for a thread */
	/* Long calls that run at the same time. Half of them are reserved in equal parts for each
	 * long method, but at least one, so that calls of one method leave room for every other
	 * method. Nothing is reserved if there are more long methods. */
	unsigned long_calls_max;
	int stall_ms; /* a client that makes no progress is dropped after this time */
	/* Called from any thread; may be NULL. */
	void (*finished)(void *ctx, const struct rpc_finished_call *call);
	/* A connection over the limit was refused, or an idle one was closed for it. Called from the
	 * loop's thread; may be NULL. */
	void (*full)(void *ctx, bool refused);
	void *ctx;
};

#define RPC_CONFIG                                                                                 \
	{                                                                                          \
		.limits = GRPC_LIMITS, .connections_max = 256, .pool_threads = 4,                  \
		.queue_max = 1024, .long_calls_max = 512, .stall_ms = 300000                       \
	}

struct rpc_stats {
	unsigned connections;
	unsigned calls;	     /* calls whose handler runs or waits for a thread */
	unsigned long_calls; /* how many of these calls are long */
};

/* Creates a server that has no methods and no sockets yet. @config is copied. */
int rpc_server_new(struct uv_loop_s *loop, const struct rpc_config *config,
		   struct rpc_server **ret_server, struct hw_err *e);
/* Adds methods, before the first call. The table ends with { 0 } and is not copied; ctx is
 * passed to the handlers. */
void rpc_server_add(struct rpc_server *s, const struct rpc_method *methods, void *ctx);
/* Serves on a listening, non-blocking socket. Takes the descriptor, also on failure. */
int rpc_server_listen(struct rpc_server *s, int fd, struct hw_err *e);
/* Accepts no more calls. Endless calls are cancelled at once, and their clients have a second to read
 * that; other calls are cancelled if they still run after @ms. stopped(ctx) is called when the last handler has returned and all connections are closed. */
void rpc_server_stop(struct rpc_server *s, int ms, void (*stopped)(void *ctx), void *ctx);
void rpc_server_free(struct rpc_server *s);		 /* only after stopped(); NULL is allowed */
struct rpc_stats rpc_server_stats(struct rpc_server *s); /* any thread may call it */

#endif
