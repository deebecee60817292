/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/grpc.c - the gRPC protocol of one connection, client or server, without I/O
 *
 * How:   an nghttp2 session whose callbacks find the call of a stream and pass on the received
 *        headers and data. call.c implements the calls.
 * Rules: flow-control windows are updated by hand. The connection's window is updated at once,
 *        because a call with a slow owner must not block the other calls. A call's window is
 *        updated when its messages are consumed.
 *        nghttp2's default limits stop floods of resets, pings, settings and continuations.
 *        grpc_is_full() limits the responses that are queued for a peer that does not read.
 */
#include "rpc/grpc/grpc-internal.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"

#define GOAWAY_TEXT_MAX	  256
#define HANDSHAKE_TIMEOUT (10 * 1000000000LL) /* ns */

static const uint8_t drain_ping[8] = "hawser-d";

static struct call *find_call(nghttp2_session *session, int32_t id)
{
	return id > 0 ? nghttp2_session_get_stream_user_data(session, id) : NULL;
}

/* ---- nghttp2 callbacks -------------------------------------------------------------- */

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
		grpc_header_add(&c->header, (const char *)name, name_len, (const char *)value,
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
		call_on_data(c, data, len);
	return 0;
}

/* The peer answers the ping of grpc_drain() after it has received the first GOAWAY. All calls that
 * it started before have then been received, and the second GOAWAY names the last of them. */
static void on_ping(struct grpc *g, const nghttp2_frame *frame)
{
	if (!g->draining || !(frame->hd.flags & NGHTTP2_FLAG_ACK) ||
	    memcmp(frame->ping.opaque_data, drain_ping, sizeof(drain_ping)) != 0)
		return;
	nghttp2_submit_goaway(g->session, NGHTTP2_FLAG_NONE,
			      nghttp2_session_get_last_proc_stream_id(g->session), NGHTTP2_NO_ERROR,
			      NULL, 0);
}

static void on_goaway(struct grpc *g, const nghttp2_goaway *frame)
{
	size_t len =
		frame->opaque_data_len < GOAWAY_TEXT_MAX ? frame->opaque_data_len : GOAWAY_TEXT_MAX;

	g->goaway_received = true;
	if (len == 0 || g->goaway_text)
		return;
	g->goaway_text = str_printf("server closed the connection: %.*s", (int)len,
				    (const char *)frame->opaque_data);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct call *c = find_call(session, frame->hd.stream_id);
	struct grpc *g = user;

	if (frame->hd.type == NGHTTP2_SETTINGS)
		g->handshake = TIME_NEVER;
	else if (frame->hd.type == NGHTTP2_PING)
		on_ping(g, frame);
	else if (frame->hd.type == NGHTTP2_GOAWAY)
		on_goaway(g, &frame->goaway);
	else if (frame->hd.type == NGHTTP2_HEADERS && c && g->role == GRPC_CLIENT)
		call_on_response_headers(c);
	else if (frame->hd.type == NGHTTP2_HEADERS && c &&
		 frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		call_on_request_headers(c);
	if (c && (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
	    frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		call_on_end_stream(c);
	return 0;
}

/* Server: resets the stream after the trailers if the client is still sending its request. */
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
	struct call *c;
	struct grpc *g = user;

	c = find_call(session, id);
	if (!c)
		return 0;
	if (g->role == GRPC_SERVER)
		call_close(c, STATUS_CANCELLED, "cancelled by the client");
	else if (g->goaway_text && error_code == NGHTTP2_REFUSED_STREAM)
		call_close(c, STATUS_UNAVAILABLE, g->goaway_text);
	else if (g->goaway_received && error_code == NGHTTP2_NO_ERROR)
		call_close(c, STATUS_UNAVAILABLE, "server is shutting down");
	else
		call_close(c, status_from_h2(error_code), nghttp2_http2_strerror(error_code));
	nghttp2_session_set_stream_user_data(session, id, NULL);
	call_free(c);
	return 0;
}

/* ---- connection --------------------------------------------------------------------- */

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

struct grpc *grpc_new(enum grpc_role role, const struct grpc_limits *limits,
		      const struct grpc_events *events, void *ctx, int64_t now)
{
	struct grpc *g = mem_new(sizeof(*g));
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, GRPC_CALL_WINDOW },
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
	g->handshake = now + HANDSHAKE_TIMEOUT;
	g->next = g->handshake;
	list_init(&g->calls);
	g->session = session_new(g);
	nghttp2_submit_settings(g->session, NGHTTP2_FLAG_NONE, settings, ARRAY_SIZE(settings));
	nghttp2_session_set_local_window_size(g->session, NGHTTP2_FLAG_NONE, 0, GRPC_CONN_WINDOW);
	return g;
}

void grpc_free(struct grpc *g)
{
	if (!g)
		return;
	while (!list_is_empty(&g->calls)) {
		struct call *c = list_entry(g->calls.next, struct call, link);

		call_close(c, STATUS_UNAVAILABLE, str_or(g->goaway_text, "connection lost"));
		call_free(c);
	}
	nghttp2_session_del(g->session);
	free(g->goaway_text);
	free(g);
}

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

size_t grpc_output(struct grpc *g, const uint8_t **ret_data)
{
	ssize_t n;

	n = nghttp2_session_mem_send(g->session, ret_data);
	if (n >= 0)
		return (size_t)n;
	g->dead = true;
	return 0;
}

int64_t grpc_deadline(const struct grpc *g)
{
	return g->next;
}

void grpc_wake_at(struct grpc *g, int64_t deadline)
{
	g->next = time_earlier(g->next, deadline);
}

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

/* RFC 9113 section 6.8 recommends that a server sends two GOAWAYs. The first one refuses no call.
 * The second one is sent when a ping shows that the peer has received the first one, and names the
 * last accepted call. */
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

void grpc_end(struct grpc *g, const char *text)
{
	nghttp2_submit_goaway(g->session, NGHTTP2_FLAG_NONE,
			      nghttp2_session_get_last_proc_stream_id(g->session),
			      NGHTTP2_ENHANCE_YOUR_CALM, (const uint8_t *)text, strlen(text));
}

bool grpc_is_done(const struct grpc *g)
{
	return g->dead ||
	       (!nghttp2_session_want_read(g->session) && !nghttp2_session_want_write(g->session));
}

bool grpc_is_usable(const struct grpc *g)
{
	return !g->dead && !g->goaway_received && !g->draining &&
	       nghttp2_session_check_request_allowed(g->session);
}

bool grpc_is_idle(const struct grpc *g)
{
	return list_is_empty(&g->calls);
}

/* The number of accepted calls limits their frames. If more frames are queued, they are responses
 * to frames that are cheap for the peer, such as pings and refused calls. */
bool grpc_is_full(const struct grpc *g)
{
	return nghttp2_session_get_outbound_queue_size(g->session) > 2 * (size_t)g->limits.streams;
}

size_t grpc_buffered(const struct grpc *g)
{
	return g->buffered;
}
