/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/server.h - a gRPC server: sockets on a libuv loop, handlers on threads
 *
 * What:  accepts connections, finds the method of each call and lets its handler
 *        run (call.h): instant ones on the loop, short ones on a pool, long ones on
 *        threads of their own.
 * How:   the loop is the caller's and does all I/O; it waits for no handler, and
 *        a handler for no client but its own.
 * Rules: every function is for the loop's thread, rpc_server_stats() apart.
 *        The end is rpc_server_stop(), then, after stopped(), rpc_server_free(),
 *        and only then uv_loop_close().
 *        Too much of something is answered with RESOURCE_EXHAUSTED (calls) or
 *        closed at once (connections).
 */
#ifndef RPC_SERVER_H
#define RPC_SERVER_H

#include <stdint.h>

#include "rpc/call.h"
#include "rpc/grpc/grpc.h"

struct rpc_server;
struct uv_loop_s;

/* One call that has ended, for metrics and logs. */
struct rpc_ended {
	const char *path; /* of the method; "" where there is none of that name */
	uint64_t id;
	enum status_code code; /* what the client was told, or why it could not be told */
	int64_t ns;	       /* from its headers on */
};

struct rpc_config {
	struct grpc_limits limits; /* of a connection */
	unsigned connections;
	unsigned pool;	     /* threads for short calls */
	unsigned queue;	     /* short calls that wait for them */
	unsigned long_calls; /* at a time */
	int stall_ms;	     /* after so long a peer that does not move is given up */
	void (*ended)(void *ctx, const struct rpc_ended *ended); /* from any thread; may be NULL */
	void *ctx;
};

#define RPC_CONFIG                                                                                 \
	{                                                                                          \
		.limits = GRPC_LIMITS, .connections = 256, .pool = 4, .queue = 1024,               \
		.long_calls = 512, .stall_ms = 300000                                              \
	}

struct rpc_stats {
	unsigned connections;
	unsigned calls;	     /* whose handler runs, or waits for a thread */
	unsigned long_calls; /* of these */
};

int rpc_server_new(struct uv_loop_s *loop, const struct rpc_config *config,
		   struct rpc_server **ret_server, struct hw_err *e);
/* More methods: a table that ends with { 0 } and stays where it is. ctx is for them. */
void rpc_server_add(struct rpc_server *s, const struct rpc_method *methods, void *ctx);
/* Serve on a socket that listens and does not block; it is the server's from now on. */
int rpc_server_listen(struct rpc_server *s, int fd, struct hw_err *e);
/* No new calls. Those that run have @ms to end, then they are over; stopped(ctx) is called when the
 * last handler has returned. */
void rpc_server_stop(struct rpc_server *s, int ms, void (*stopped)(void *ctx), void *ctx);
void rpc_server_free(struct rpc_server *s);
struct rpc_stats rpc_server_stats(struct rpc_server *s);

#endif
