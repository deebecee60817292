/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/grpc.h - the gRPC protocol of one connection, client or server, without I/O
 *
 * What:  received bytes go in; events and bytes to send come out. nghttp2 implements HTTP/2; this
 *        module adds message framing, headers, deadlines, status and limits.
 * How:   the owner of a connection passes the bytes that it has read to grpc_feed(), writes the
 *        bytes that grpc_output() returns, and calls grpc_tick() at the time grpc_deadline(). An
 *        event is a call of a function in struct grpc_events.
 * Rules: the owner may use a call from begin() or grpc_start() until closed(), grpc_finish() or
 *        grpc_cancel(), whichever comes first. Exactly one of these three happens, and the pointer
 *        is invalid afterwards.
 *        An event function may call all functions that take a call, but not grpc_feed(),
 *        grpc_output(), grpc_tick() or grpc_free(). Only one thread may use a connection at a time.
 *
 * Order of function calls, with (), and events, without ():
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

/* Limits on the memory that a peer can make us use. */
struct grpc_limits {
	uint32_t streams; /* number of concurrent calls */
	uint32_t header;  /* size of a call's headers, as HTTP/2 counts it */
	uint32_t message; /* size of a message, sent or received */
	/* Total size of the connection's messages that are received but not consumed or, on a
	 * server, queued but not sent. */
	size_t buffered;
};

#define GRPC_LIMITS                                                                                \
	{                                                                                          \
		.streams = 1024, .header = 16 << 10, .message = 16 << 20, .buffered = 64 << 20     \
	}

struct grpc_call {
	void *user;	  /* for use by the owner */
	const char *path; /* "/package.Service/Method" */
	int64_t deadline; /* TIME_NEVER if the call has none */
};

/* @ctx is the pointer that the owner passed to grpc_new(). Functions may be NULL, except for
 * message and, on a server, begin. */
struct grpc_events {
	void (*begin)(void *ctx, struct grpc_call *call);
	/* A message was received. The function may take the bytes. The owner calls grpc_consumed()
	 * once for each message; until then the call's flow-control window stays closed, which
	 * limits how much the peer can send. */
	void (*message)(void *ctx, struct grpc_call *call, struct buf *message);
	/* Server: the client sends no more messages. */
	void (*request_end)(void *ctx, struct grpc_call *call);
	/* All messages passed to grpc_send() were moved to the output of the connection. */
	void (*sent)(void *ctx, struct grpc_call *call);
	/* The call has ended. On a client, @code is the server's status, or the reason why the
	 * server has sent no status. On a server, @code is STATUS_CANCELLED if the client has
	 * cancelled the call, STATUS_DEADLINE_EXCEEDED (the client is informed), STATUS_UNAVAILABLE
	 * if the connection was lost, or the status of a protocol error after the headers. */
	void (*closed)(void *ctx, struct grpc_call *call, enum status_code code, const char *text);
};

/* ---- connections -------------------------------------------------------------------- */

enum grpc_role { GRPC_SERVER, GRPC_CLIENT };

/* Creates the protocol state of a new connection. @limits is copied, @events is not. */
struct grpc *grpc_new(enum grpc_role role, const struct grpc_limits *limits,
		      const struct grpc_events *events, void *ctx, int64_t now);
void grpc_free(struct grpc *g); /* closes all remaining calls with STATUS_UNAVAILABLE */

/* Processes bytes that were read. After an error the owner must write the remaining output, then
 * close the connection. */
int grpc_feed(struct grpc *g, const void *data, size_t len, int64_t now, struct hw_err *e);
/* Returns the next bytes to write, valid until the next function call with @g. Return: number of
 * bytes; 0 if there is nothing to write at the moment */
size_t grpc_output(struct grpc *g, const uint8_t **ret_data);
int64_t grpc_deadline(const struct grpc *g); /* when to call grpc_tick() next */
void grpc_tick(struct grpc *g, int64_t now); /* ends calls and handshakes that timed out */

/* Refuses new calls and informs the peer; running calls continue. */
void grpc_drain(struct grpc *g);
/* Server: ends a connection without calls. @text tells the peer why. Calls that the peer has already sent
 * are lost, and the peer knows that they were not started. */
void grpc_end(struct grpc *g, const char *text);
bool grpc_is_done(const struct grpc *g);   /* nothing left to read or write: time to close */
bool grpc_is_usable(const struct grpc *g); /* client: new calls can be started */
bool grpc_is_idle(const struct grpc *g);   /* there are no calls; all finished calls were sent */
/* Are too many frames queued for a peer that does not read? Then the owner must not read from the
 * peer. */
bool grpc_is_full(const struct grpc *g);
size_t grpc_buffered(const struct grpc *g); /* bytes counted for limits.buffered */

/* ---- calls -------------------------------------------------------------------------- */

/* Client: starts a call; grpc_send() and grpc_end_request() follow. @path is
 * "/package.Service/Method". @timeout, in ns or TIME_NEVER, is sent to the server, and also
 * enforced by the client. */
int grpc_start(struct grpc *g, const char *path, int64_t timeout, int64_t now, void *user,
	       struct grpc_call **ret_call, struct hw_err *e);
/* To be called when the owner has processed a message: the peer may then send more. */
void grpc_consumed(struct grpc_call *call);
/* Queues a message. Not allowed after grpc_end_request(). Takes the bytes, also on failure.
 * STATUS_RESOURCE_EXHAUSTED: larger than limits.message, or, on a server, unsent messages exceed
 * limits.buffered. */
int grpc_send(struct grpc_call *call, struct buf *message, struct hw_err *e);
void grpc_end_request(struct grpc_call *call); /* client: ends the request */
/* Server: ends the call after the queued messages. @text may be "". The call is reset if the peer does
 * not read them for a minute. */
void grpc_finish(struct grpc_call *call, enum status_code code, const char *text);
/* The same, but the call is already reset at the time @until. */
void grpc_finish_until(struct grpc_call *call, enum status_code code, const char *text,
		       int64_t until);
void grpc_cancel(struct grpc_call *call); /* client: ends the call without waiting for a status */

AUTO_DEFINE(grpc_free, struct grpc);

#endif
