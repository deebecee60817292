/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/grpc.h - one gRPC connection, either side of it, without I/O
 *
 * What:  bytes in, events out, bytes to send out. HTTP/2 is nghttp2's; message
 *        framing, headers, deadlines, status and limits are added here.
 * How:   the owner of a connection gives it the bytes it read (grpc_feed()),
 *        writes the ones it is given (grpc_output()), and calls grpc_tick() at
 *        grpc_deadline(). Events are calls of struct grpc_events.
 * Rules: a call is its owner's from begin() or grpc_start() until over(),
 *        grpc_finish() or grpc_cancel(), whichever comes first; exactly one of
 *        them does, and afterwards the owner no longer uses the pointer.
 *        An event may use any function on calls, but not grpc_feed(),
 *        grpc_output(), grpc_tick() and grpc_free(). One thread at a time.
 *
 *	server                                client
 *	begin    a call, its headers          grpc_start
 *	message  a whole one                  grpc_send, grpc_end
 *	end      that was the last            message
 *	grpc_send, then grpc_finish           over     with the server's status
 *	over     nobody waits any more        grpc_cancel
 */
#ifndef RPC_GRPC_GRPC_H
#define RPC_GRPC_GRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "rpc/grpc/status.h"

struct grpc;

/* What a peer may make us keep. */
struct grpc_limits {
	uint32_t streams; /* calls at a time */
	uint32_t header;  /* bytes of the headers of a call, as HTTP/2 counts */
	uint32_t message; /* bytes of one, in both directions */
	size_t held; /* bytes of all messages that are half here, or wait to be taken by either */
};

#define GRPC_LIMITS                                                                                \
	{                                                                                          \
		.streams = 1024, .header = 16 << 10, .message = 16 << 20, .held = 64 << 20         \
	}

struct grpc_call {
	void *user;	  /* the owner's own */
	const char *path; /* "/package.Service/Method" */
	int64_t deadline; /* TIME_NEVER: none */
};

/* ctx is the owner's, from grpc_new(). A NULL function is not called. */
struct grpc_events {
	void (*begin)(void *ctx, struct grpc_call *call);
	/* Its bytes may be taken. While one waits for grpc_taken() the peer's window stays shut, so
	 * that it cannot send more than that window. */
	void (*message)(void *ctx, struct grpc_call *call, struct buf *message);
	void (*end)(void *ctx, struct grpc_call *call);
	/* Everything given to grpc_send() has left for the connection. */
	void (*sent)(void *ctx, struct grpc_call *call);
	/* Client: what the server said, or why it could not. Server: STATUS_CANCELLED by the peer,
	 * STATUS_DEADLINE_EXCEEDED (it is told so), STATUS_UNAVAILABLE as the connection is gone,
	 * or what was wrong with what came after begin(). */
	void (*over)(void *ctx, struct grpc_call *call, enum status_code code, const char *text);
};

/* ---- a connection ------------------------------------------------------------------- */

enum grpc_role { GRPC_SERVER, GRPC_CLIENT };

struct grpc *grpc_new(enum grpc_role role, const struct grpc_limits *limits,
		      const struct grpc_events *events, void *ctx, int64_t now);
void grpc_free(struct grpc *g); /* over() for every call that is left */

/* Bytes that were read. An error is the end of the connection, once grpc_output() has nothing
 * more. */
int grpc_feed(struct grpc *g, const void *data, size_t len, int64_t now, struct hw_err *e);
/* The next bytes to write; valid until the next call with @g. Return: 0: none for now */
size_t grpc_output(struct grpc *g, const uint8_t **ret_data);
int64_t grpc_deadline(const struct grpc *g);
void grpc_tick(struct grpc *g, int64_t now);

void grpc_drain(struct grpc *g); /* take no new calls, tell the peer; those that run go on */
bool grpc_is_done(const struct grpc *g);   /* nothing to read or write any more: close it */
bool grpc_is_usable(const struct grpc *g); /* client: may start calls */
bool grpc_is_idle(const struct grpc *g);   /* there is no call */
bool grpc_is_full(const struct grpc *g);   /* read no more before the peer has read something */
size_t grpc_held(const struct grpc *g);	   /* bytes that count for limits.held */

/* ---- calls -------------------------------------------------------------------------- */

int grpc_start(struct grpc *g, const char *path, int64_t timeout, int64_t now, void *user,
	       struct grpc_call **ret_call, struct hw_err *e);
void grpc_taken(struct grpc_call *call); /* what message() brought is dealt with */
/* Takes the bytes, also on failure. STATUS_RESOURCE_EXHAUSTED: longer than the limit, or, of a server's
 * messages that the peer does not take, too much in all. */
int grpc_send(struct grpc_call *call, struct buf *message, struct hw_err *e);
void grpc_end(struct grpc_call *call); /* client: no more messages */
void grpc_finish(struct grpc_call *call, enum status_code code, const char *text); /* server */
void grpc_cancel(struct grpc_call *call);

AUTO_DEFINE(grpc_free, struct grpc);

#endif
