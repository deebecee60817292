/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/grpc.c - one gRPC connection, either side of it, without I/O
 *
 * How:   an nghttp2 session; its callbacks find the call of a stream and hand
 *        on what came. The calls themselves are in call.c.
 * Rules: windows are opened by hand. The connection's always, at once: one call
 *        whose owner is slow must not stop the others; a call's own as its
 *        messages are taken.
 *        Floods of resets, pings, settings and continuations are nghttp2's to
 *        end (its limits are on unless asked otherwise). Answers to a peer that
 *        does not read are counted here: grpc_is_full().
 */
#include "rpc/grpc/grpc-internal.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"

#define HANDSHAKE (10 * 1000000000LL) /* ns */

static const uint8_t drain_ping[8] = "hawser-d";

static struct call *find_call(nghttp2_session *session, int32_t id)
{
	return id > 0 ? nghttp2_session_get_stream_user_data(session, id) : NULL;
}

/* ---- nghttp2's events --------------------------------------------------------------- */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct grpc *g = user;
	struct call *c;

	if (g->role != GRPC_SERVER || frame->hd.type != NGHTTP2_HEADERS ||
	    frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	c = call_new(g);
	c->id = frame->hd.stream_id;
	nghttp2_session_set_stream_user_data(session, c->id, c);
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
		     void *user)
{
	struct call *c = find_call(session, frame->hd.stream_id);

	(void)flags;
	(void)user;
	if (c)
		header_add(&c->header, (const char *)name, name_len, (const char *)value,
			   value_len);
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
		   size_t len, void *user)
{
	struct call *c = find_call(session, id);

	(void)flags;
	(void)user;
	nghttp2_session_consume_connection(session, len);
	if (c)
		call_data(c, data, len);
	return 0;
}

static void on_headers(struct grpc *g, struct call *c, const nghttp2_frame *frame)
{
	if (g->role == GRPC_CLIENT)
		call_response(c);
	else if (frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		call_request(c);
}

/* The peer knows by now that we take no new calls: those it had sent before are here. */
static void on_pong(struct grpc *g, const nghttp2_frame *frame)
{
	if (!g->draining || !(frame->hd.flags & NGHTTP2_FLAG_ACK) ||
	    memcmp(frame->ping.opaque_data, drain_ping, sizeof(drain_ping)) != 0)
		return;
	nghttp2_submit_goaway(g->session, NGHTTP2_FLAG_NONE,
			      nghttp2_session_get_last_proc_stream_id(g->session), NGHTTP2_NO_ERROR,
			      NULL, 0);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct call *c = find_call(session, frame->hd.stream_id);
	struct grpc *g = user;

	if (frame->hd.type == NGHTTP2_SETTINGS)
		g->handshake = TIME_NEVER;
	else if (frame->hd.type == NGHTTP2_PING)
		on_pong(g, frame);
	else if (frame->hd.type == NGHTTP2_GOAWAY)
		g->refused = true;
	else if (frame->hd.type == NGHTTP2_HEADERS && c)
		on_headers(g, c, frame);
	if (c && (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
	    frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		call_half_closed(c);
	return 0;
}

/* Server: the trailers are out. A peer that still sends its request is told to stop. */
static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct grpc *g = user;

	if (g->role == GRPC_SERVER && frame->hd.type == NGHTTP2_HEADERS &&
	    frame->hd.flags & NGHTTP2_FLAG_END_STREAM &&
	    nghttp2_session_get_stream_remote_close(session, frame->hd.stream_id) == 0)
		nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
					  NGHTTP2_NO_ERROR);
	return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error_code, void *user)
{
	struct call *c = find_call(session, id);
	struct grpc *g = user;

	if (!c)
		return 0;
	if (g->role == GRPC_SERVER)
		call_over(c, STATUS_CANCELLED, "cancelled by the client");
	else if (g->refused && error_code == NGHTTP2_NO_ERROR)
		call_over(c, STATUS_UNAVAILABLE, "the server is going away");
	else
		call_over(c, status_from_h2(error_code), nghttp2_http2_strerror(error_code));
	nghttp2_session_set_stream_user_data(session, id, NULL);
	call_free(c);
	return 0;
}

/* ---- the connection ----------------------------------------------------------------- */

static nghttp2_session *session_new(struct grpc *g)
{
	nghttp2_session_callbacks *callbacks;
	nghttp2_session *session;
	nghttp2_option *option;
	int r;

	if (nghttp2_session_callbacks_new(&callbacks) < 0 || nghttp2_option_new(&option) < 0)
		mem_exhausted();
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	nghttp2_option_set_no_auto_window_update(option, 1);
	nghttp2_option_set_no_closed_streams(option, 1);
	r = (g->role == GRPC_SERVER ? nghttp2_session_server_new2
				    : nghttp2_session_client_new2)(&session, callbacks, g, option);
	if (r < 0)
		mem_exhausted();
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	return session;
}

/**
 * grpc_new() - a connection that was just made
 * @role:   which side we are
 * @limits: what the peer may make us keep
 * @events: the owner's functions
 * @ctx:    for them
 * @now:    the time
 */
struct grpc *grpc_new(enum grpc_role role, const struct grpc_limits *limits,
		      const struct grpc_events *events, void *ctx, int64_t now)
{
	struct grpc *g = mem_new(sizeof(*g));
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, GRPC_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits->header },
		{ role == GRPC_SERVER ? NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS
				      : NGHTTP2_SETTINGS_ENABLE_PUSH,
		  role == GRPC_SERVER ? limits->streams : 0 },
	};

	g->role = role;
	g->limits = *limits;
	g->events = events;
	g->ctx = ctx;
	g->now = now;
	g->handshake = now + HANDSHAKE;
	g->next = g->handshake;
	list_init(&g->calls);
	g->session = session_new(g);
	nghttp2_submit_settings(g->session, NGHTTP2_FLAG_NONE, settings, ARRAY_SIZE(settings));
	nghttp2_session_set_local_window_size(g->session, NGHTTP2_FLAG_NONE, 0, GRPC_WINDOWS);
	return g;
}

/**
 * grpc_free() - the connection is gone: so are its calls
 */
void grpc_free(struct grpc *g)
{
	if (!g)
		return;
	while (!list_is_empty(&g->calls)) {
		struct call *c = list_entry(g->calls.next, struct call, link);

		call_over(c, STATUS_UNAVAILABLE, "the connection was lost");
		call_free(c);
	}
	nghttp2_session_del(g->session);
	free(g);
}

/**
 * grpc_feed() - bytes that came from the peer
 */
int grpc_feed(struct grpc *g, const void *data, size_t len, int64_t now, struct hw_err *e)
{
	ssize_t r;

	g->now = now;
	r = nghttp2_session_mem_recv(g->session, data, len);
	if (r >= 0)
		return 0;
	g->dead = true;
	return err_text(e, -EPROTO, "HTTP/2: %s", nghttp2_strerror((int)r));
}

/**
 * grpc_output() - bytes for the peer
 */
size_t grpc_output(struct grpc *g, const uint8_t **ret_data)
{
	ssize_t n = nghttp2_session_mem_send(g->session, ret_data);

	if (n >= 0)
		return (size_t)n;
	g->dead = true;
	return 0;
}

/**
 * grpc_deadline() - when grpc_tick() has something to do, at the soonest
 */
int64_t grpc_deadline(const struct grpc *g)
{
	return g->next;
}

void grpc_wake_at(struct grpc *g, int64_t deadline)
{
	g->next = time_sooner(g->next, deadline);
}

/**
 * grpc_tick() - end what has had its time
 */
void grpc_tick(struct grpc *g, int64_t now)
{
	g->now = now;
	if (now < g->next)
		return;
	g->next = g->handshake;
	if (now >= g->handshake)
		g->dead = true;
	list_for_each_safe(struct call, c, &g->calls, link)
		call_tick(c, now);
}

/**
 * grpc_drain() - take no new calls
 *
 * As RFC 9113 section 6.8 wants it of a server: a first GOAWAY that refuses
 * nothing, and when the peer has seen it (a ping comes back) a second that says
 * what was taken. A client only finishes what it has begun.
 */
void grpc_drain(struct grpc *g)
{
	if (g->draining)
		return;
	g->draining = true;
	if (g->role == GRPC_CLIENT) {
		nghttp2_submit_goaway(g->session, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, NULL, 0);
		return;
	}
	nghttp2_submit_shutdown_notice(g->session);
	nghttp2_submit_ping(g->session, NGHTTP2_FLAG_NONE, drain_ping);
}

/**
 * grpc_is_done() - whether the connection has no more use
 */
bool grpc_is_done(const struct grpc *g)
{
	return g->dead ||
	       (!nghttp2_session_want_read(g->session) && !nghttp2_session_want_write(g->session));
}

/**
 * grpc_is_usable() - whether a client may start calls here
 */
bool grpc_is_usable(const struct grpc *g)
{
	return !g->dead && !g->refused && !g->draining &&
	       nghttp2_session_check_request_allowed(g->session);
}

/**
 * grpc_is_idle() - whether there is no call, not even one whose answer is on its way
 */
bool grpc_is_idle(const struct grpc *g)
{
	return list_is_empty(&g->calls);
}

/**
 * grpc_is_full() - whether more frames wait for the peer than it could have calls
 */
bool grpc_is_full(const struct grpc *g)
{
	return nghttp2_session_get_outbound_queue_size(g->session) > 2 * (size_t)g->limits.streams;
}

/**
 * grpc_held() - bytes of messages that are half here, or not taken: by us, or by the peer
 */
size_t grpc_held(const struct grpc *g)
{
	return g->held;
}
