/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/grpc.h - the gRPC protocol of one connection, client or server, without I/O
 *
 * What:  bytes in, events out, bytes to send out. nghttp2 does HTTP/2; this adds
 *        message framing, headers, deadlines, status and limits.
 * How:   the owner of a connection passes the bytes it has read to grpc_feed(),
 *        writes the bytes it gets from grpc_output(), and calls grpc_tick() at
 *        grpc_deadline(). Events are calls of the functions in struct grpc_events.
 * Rules: the owner may use a call from begin() or grpc_start() until closed(),
 *        grpc_finish() or grpc_cancel(), whichever comes first. Exactly one of
 *        them happens, and the pointer is invalid afterwards.
 *        An event function may call any function on calls, but not grpc_feed(),
 *        grpc_output(), grpc_tick() or grpc_free(). One thread at a time.
 *
 * In order, functions with (), events without:
 *
 *	server                               client
 *	begin         headers received       grpc_start()
 *	message       once per request       grpc_send(), grpc_end_request()
 *	request_end                          message   once per response
 *	grpc_send(), then grpc_finish()      closed    with the server's status
 *
 * A call ends early with closed() on either side, or with grpc_cancel() by the client.
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

/* Bounds on the memory that a peer can make us use. */
struct grpc_limits {
	uint32_t streams; /* concurrent calls */
	uint32_t header;  /* bytes of the headers of a call, as HTTP/2 counts them */
	uint32_t message; /* bytes of a message, sent or received */
	/* Bytes of messages of the connection that are received but not consumed, or, on a server,
	 * queued but not sent. */
	size_t buffered;
};

#define GRPC_LIMITS                                                                                \
	{                                                                                          \
		.streams = 1024, .header = 16 << 10, .message = 16 << 20, .buffered = 64 << 20     \
	}

struct grpc_call {
	void *user;	  /* for the owner */
	const char *path; /* "/package.Service/Method" */
	int64_t deadline; /* TIME_NEVER if the call has none */
};

/* ctx is the owner's, from grpc_new(). Functions that are NULL are not called; a server needs begin
 * and message, a client message. */
struct grpc_events {
	void (*begin)(void *ctx, struct grpc_call *call);
	/* The function may take the bytes. The owner calls grpc_consumed() once for each message;
	 * until then the call's window stays closed, which bounds what the peer can send. */
	void (*message)(void *ctx, struct grpc_call *call, struct buf *message);
	/* Server: the client sends no more messages. */
	void (*request_end)(void *ctx, struct grpc_call *call);
	/* Everything passed to grpc_send() has been turned into output of the connection. */
	void (*sent)(void *ctx, struct grpc_call *call);
	/* Client: the server's status, or why it has sent none. Server: STATUS_CANCELLED by the
	 * client, STATUS_DEADLINE_EXCEEDED (the client is informed), STATUS_UNAVAILABLE if the
	 * connection was lost, or the protocol error in what the client sent after its headers. */
	void (*closed)(void *ctx, struct grpc_call *call, enum status_code code, const char *text);
};

/* ---- connections -------------------------------------------------------------------- */

enum grpc_role { GRPC_SERVER, GRPC_CLIENT };

/* For a connection that was just established. @limits is copied, @events is not. */
struct grpc *grpc_new(enum grpc_role role, const struct grpc_limits *limits,
		      const struct grpc_events *events, void *ctx, int64_t now);
void grpc_free(struct grpc *g); /* closed() with STATUS_UNAVAILABLE for all remaining calls */

/* Processes bytes that were read. After an error the connection is closed as soon as grpc_output()
 * returns nothing. */
int grpc_feed(struct grpc *g, const void *data, size_t len, int64_t now, struct hw_err *e);
/* The next bytes to write, valid until the next function call with @g. Return: their number; 0 if
 * there is nothing to write at the moment */
size_t grpc_output(struct grpc *g, const uint8_t **ret_data);
int64_t grpc_deadline(const struct grpc *g); /* when to call grpc_tick() next */
void grpc_tick(struct grpc *g, int64_t now); /* ends calls and handshakes that timed out */

/* Refuses new calls and informs the peer; running calls continue. */
void grpc_drain(struct grpc *g);
bool grpc_is_done(const struct grpc *g);   /* nothing left to read or write: close it */
bool grpc_is_usable(const struct grpc *g); /* client: grpc_start() is possible */
bool grpc_is_idle(const struct grpc *g);   /* no call, not even one that is still being sent */
/* Too many frames are queued for a peer that does not read: stop reading from it. */
bool grpc_is_full(const struct grpc *g);
size_t grpc_buffered(const struct grpc *g); /* bytes that count for limits.buffered */

/* ---- calls -------------------------------------------------------------------------- */

/* Client: starts a call; grpc_send() and grpc_end_request() follow. @path is
 * "/package.Service/Method". @timeout, in ns or TIME_NEVER, is sent to the server and enforced here
 * too. */
int grpc_start(struct grpc *g, const char *path, int64_t timeout, int64_t now, void *user,
	       struct grpc_call **ret_call, struct hw_err *e);
/* The owner has processed one message: the peer may send more. */
void grpc_consumed(struct grpc_call *call);
/* Queues a message; not after grpc_end_request(). Takes the bytes, also on failure.
 * STATUS_RESOURCE_EXHAUSTED: larger than limits.message, or, on a server, unsent messages exceed
 * limits.buffered. */
int grpc_send(struct grpc_call *call, struct buf *message, struct hw_err *e);
void grpc_end_request(struct grpc_call *call); /* client: no more messages follow */
/* Server: ends the call after the queued messages. @text may be "". */
void grpc_finish(struct grpc_call *call, enum status_code code, const char *text);
void grpc_cancel(struct grpc_call *call); /* client */

AUTO_DEFINE(grpc_free, struct grpc);

#endif
