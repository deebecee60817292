/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/grpc-internal.h - what grpc.c, the connection, and call.c, one call, know of each other
 *
 * A call lives as long as its HTTP/2 stream, which may be longer than its owner
 * is told of it: a refused one is never its owner's, a finished one still sends.
 */
#ifndef RPC_GRPC_GRPC_INTERNAL_H
#define RPC_GRPC_GRPC_INTERNAL_H

#include <nghttp2/nghttp2.h>

#include "base/list.h"
#include "rpc/grpc/frame.h"
#include "rpc/grpc/grpc.h"
#include "rpc/grpc/header.h"

#define GRPC_WINDOW   (1 << 20)		  /* what a peer may send of one call unasked */
#define GRPC_WINDOWS  (8 << 20)		  /* of all calls together, on the way */
#define GRPC_LINGER   (60 * 1000000000LL) /* ns that a finished call may take to be sent, at least */
#define GRPC_TEXT_MAX 2048		  /* bytes of grpc-message, before it is encoded */

struct grpc {
	nghttp2_session *session;
	enum grpc_role role;
	struct grpc_limits limits;
	const struct grpc_events *events;
	void *ctx;
	struct list calls;
	size_t held;
	int64_t now;	   /* as last told */
	int64_t next;	   /* no deadline is sooner than this */
	int64_t handshake; /* until then the peer has to have said something sensible */
	bool draining;
	bool refused; /* the peer takes no new calls */
	bool dead;
};

struct call {
	struct grpc_call pub;
	struct grpc *grpc;
	struct list link;
	int32_t id;
	bool owned;
	struct header header; /* the peer's, trailers too */

	struct frame in;
	unsigned waiting;  /* messages for grpc_taken() */
	size_t unconsumed; /* bytes of the window that wait with them */
	size_t held;	   /* this call's part of grpc.held */

	struct list out;  /* struct message */
	bool has_headers; /* server: the answer's are sent */
	bool ending;	  /* after what is in out comes the end */
	int64_t linger;	  /* server: then the peer has had its time to take the answer; 0: unset */
	enum status_code code; /* server: of the trailers */
	char *text;
};

/* ---- call.c: called by the connection ------------------------------------------ */

struct call *call_new(struct grpc *g);
void call_free(struct call *c);
void call_request(struct call *c);  /* server: all headers are here */
void call_response(struct call *c); /* client: all headers, or trailers, are here */
void call_data(struct call *c, const uint8_t *data, size_t len);
void call_half_closed(struct call *c); /* the peer sends no more */
void call_over(struct call *c, enum status_code code, const char *text);
void call_tick(struct call *c, int64_t now);

/* ---- grpc.c: called by calls -------------------------------------------------------- */

void grpc_wake_at(struct grpc *g, int64_t deadline);

#endif
