/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/grpc-internal.h - structures shared by grpc.c (connection) and call.c (one call)
 *
 * A struct call lives as long as its HTTP/2 stream, which may be longer than its owner may use it
 * (.owned): a refused call never gets an owner, and a finished call loses its owner while its last
 * bytes are still being sent.
 */
#ifndef RPC_GRPC_GRPC_INTERNAL_H
#define RPC_GRPC_GRPC_INTERNAL_H

#include <nghttp2/nghttp2.h>

#include "base/list.h"
#include "rpc/grpc/frame.h"
#include "rpc/grpc/grpc.h"
#include "rpc/grpc/header.h"

#define GRPC_CALL_WINDOW (1 << 20)	     /* flow-control window of a call, bytes */
#define GRPC_CONN_WINDOW (8 << 20)	     /* flow-control window of the connection, bytes */
#define GRPC_LINGER	 (60 * 1000000000LL) /* ns; time that a peer has to read a finished call */
#define GRPC_TEXT_MAX	 2048		     /* bytes of grpc-message before encoding */

struct grpc {
	nghttp2_session *session;
	enum grpc_role role;
	struct grpc_limits limits;
	const struct grpc_events *events;
	void *ctx;
	struct list calls;
	size_t buffered;
	int64_t now;	   /* the last time that was passed to a function */
	int64_t next;	   /* lower bound of all deadlines */
	int64_t handshake; /* deadline for the peer's SETTINGS; TIME_NEVER once received */
	bool draining;
	bool goaway_received; /* the peer accepts no new calls */
	char *goaway_text;    /* why, if the peer has said so; or NULL */
	bool dead;
};

struct call {
	struct grpc_call pub;
	struct grpc *grpc;
	struct list link;
	int32_t id;
	bool owned;
	struct grpc_header header; /* received headers and trailers */

	struct frame in;
	unsigned unconsumed; /* messages that the owner has not consumed */
	/* received bytes not yet returned to the flow-control window; returned when all messages
	 * are consumed */
	size_t unconsumed_bytes;
	size_t buffered; /* received bytes that are counted in grpc.buffered */

	struct list out;       /* struct outgoing_message */
	bool has_headers;      /* server: response headers were submitted */
	bool ending;	       /* the stream ends after the messages in out */
	int64_t linger;	       /* server: when a finished call is reset; 0 if unset */
	enum status_code code; /* server: code and text for the trailers */
	char *text;
};

/* ---- call.c: called by the connection ----------------------------------------------- */

struct call *call_new(struct grpc *g); /* not owned yet */
void call_free(struct call *c);
void call_on_request_headers(struct call *c);  /* server: all headers are received */
void call_on_response_headers(struct call *c); /* client: all headers or trailers are received */
void call_on_data(struct call *c, const uint8_t *data, size_t len);
void call_on_end_stream(struct call *c); /* the peer has ended the stream */
/* Reports closed() to the owner, unless the call is no longer owned. */
void call_close(struct call *c, enum status_code code, const char *text);
void call_tick(struct call *c, int64_t now);

/* ---- grpc.c: called by calls -------------------------------------------------------- */

/* Makes grpc_deadline() return @deadline or an earlier time. */
void grpc_wake_at(struct grpc *g, int64_t deadline);

#endif
