/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/test-grpc.c - a client and a server that are fed with each other's bytes
 *
 * How:   each side writes what happens to it into a text; pump() carries bytes
 *        to and fro until nobody has any. The clock is a number. Where our own
 *        client is too well-behaved, a bare nghttp2 session takes its place.
 */
#include "rpc/grpc/grpc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the ones above */
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"

#define SECOND 1000000000LL
#define CALLS  2048

/* ---- two sides ---------------------------------------------------------------------- */

struct side {
	struct grpc *grpc;
	struct buf log;
	struct grpc_call *calls[CALLS]; /* in the order they began; NULL: over */
	size_t n;
	bool keep;    /* do not take messages */
	size_t bytes; /* of all messages */
};

struct world {
	struct side server, client;
	nghttp2_session *raw; /* instead of client.grpc */
	int64_t now;
	size_t piece; /* bytes that are carried at a time */
	struct grpc_limits limits;
};

static void on_begin(void *ctx, struct grpc_call *call)
{
	struct side *s = ctx;

	buf_printf(&s->log, "begin %s\n", call->path);
	assert_true(s->n < CALLS);
	s->calls[s->n++] = call;
}

static void on_message(void *ctx, struct grpc_call *call, struct buf *message)
{
	struct side *s = ctx;

	s->bytes += message->len;
	if (message->len < 100)
		buf_printf(&s->log, "message %s\n", str_or(message->data, ""));
	else
		buf_printf(&s->log, "message of %zu\n", message->len);
	if (!s->keep)
		grpc_taken(call);
}

static void on_end(void *ctx, struct grpc_call *call)
{
	struct side *s = ctx;

	(void)call;
	buf_puts(&s->log, "end\n");
}

static void on_sent(void *ctx, struct grpc_call *call)
{
	struct side *s = ctx;

	(void)call;
	buf_puts(&s->log, "sent\n");
}

static void on_over(void *ctx, struct grpc_call *call, enum status_code code, const char *text)
{
	struct side *s = ctx;

	buf_printf(&s->log, "over %s %s\n", status_name(code), text);
	for (size_t i = 0; i < s->n; i++)
		if (s->calls[i] == call)
			s->calls[i] = NULL;
}

static const struct grpc_events server_events = {
	.begin = on_begin, .message = on_message, .end = on_end, .over = on_over
};
static const struct grpc_events client_events = { .message = on_message, .over = on_over };
static const struct grpc_events sent_events = {
	.begin = on_begin, .message = on_message, .sent = on_sent, .over = on_over
};

static int world_make(void **state)
{
	struct world *w = mem_new(sizeof(*w));

	w->limits = (struct grpc_limits)GRPC_LIMITS;
	w->piece = 4096;
	w->now = 1000 * SECOND;
	w->server.grpc = grpc_new(GRPC_SERVER, &w->limits, &server_events, &w->server, w->now);
	w->client.grpc = grpc_new(GRPC_CLIENT, &w->limits, &client_events, &w->client, w->now);
	*state = w;
	return 0;
}

static int world_end(void **state)
{
	struct world *w = *state;

	grpc_free(w->server.grpc);
	grpc_free(w->client.grpc);
	nghttp2_session_del(w->raw);
	buf_done(&w->server.log);
	buf_done(&w->client.log);
	free(w);
	return 0;
}

/* With a server of other limits or events. */
static void restart_server(struct world *w, const struct grpc_events *events)
{
	grpc_free(w->server.grpc);
	w->server.grpc = grpc_new(GRPC_SERVER, &w->limits, events, &w->server, w->now);
}

/* Return: whether there was something to carry */
static bool carry(struct world *w, struct side *from, struct side *to)
{
	const uint8_t *data;
	struct hw_err e;
	size_t len = grpc_output(from->grpc, &data);

	for (size_t at = 0, n; at < len; at += n) {
		n = len - at < w->piece ? len - at : w->piece;
		if (grpc_feed(to->grpc, data + at, n, w->now, &e) < 0)
			buf_printf(&to->log, "failed %s\n", e.msg);
	}
	return len > 0;
}

static void pump(struct world *w)
{
	bool moved;

	do {
		moved = carry(w, &w->client, &w->server);
		moved = carry(w, &w->server, &w->client) || moved;
	} while (moved);
}

static void expect(struct side *s, const char *text)
{
	assert_string_equal(str_or(s->log.data, ""), text);
	buf_done(&s->log);
}

static struct grpc_call *start(struct world *w, const char *path, int64_t timeout)
{
	struct side *s = &w->client;
	struct hw_err e;

	if (grpc_start(s->grpc, path, timeout, w->now, NULL, &s->calls[s->n], &e) < 0)
		fail_msg("%s", e.msg);
	return s->calls[s->n++];
}

static void send_text(struct grpc_call *call, const char *text)
{
	struct buf b = { 0 };
	struct hw_err e;

	buf_puts(&b, text);
	assert_int_equal(grpc_send(call, &b, &e), 0);
	assert_null(b.data);
}

static int send_size(struct grpc_call *call, size_t size, struct hw_err *e)
{
	struct buf b = { 0 };

	memset(buf_reserve(&b, size), 'x', size);
	buf_added(&b, size);
	return grpc_send(call, &b, e);
}

/* ---- calls -------------------------------------------------------------------------- */

static void unary(void **state)
{
	static const size_t pieces[] = { 1, 7, 9000 };
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		struct grpc_call *call = start(w, "/a.B/C", TIME_NEVER);

		w->piece = pieces[i];
		send_text(call, "ask");
		grpc_end(call);
		pump(w);
		expect(&w->server, "begin /a.B/C\nmessage ask\nend\n");
		assert_true(w->server.calls[i]->deadline == TIME_NEVER);
		send_text(w->server.calls[i], "answer");
		grpc_finish(w->server.calls[i], STATUS_OK, "");
		pump(w);
		expect(&w->client, "message answer\nover OK \n");
	}
	expect(&w->server, "");
}

static void streams(void **state)
{
	struct world *w = *state;
	struct grpc_call *call = start(w, "/a.B/Both", TIME_NEVER);

	send_text(call, "one");
	pump(w);
	send_text(call, "");
	send_text(call, "three");
	pump(w);
	expect(&w->server, "begin /a.B/Both\nmessage one\nmessage \nmessage three\n");
	send_text(w->server.calls[0], "1");
	pump(w);
	expect(&w->client, "message 1\n");
	grpc_end(call);
	send_text(w->server.calls[0], "2");
	pump(w);
	grpc_finish(w->server.calls[0], STATUS_DATA_LOSS, "no more");
	pump(w);
	expect(&w->server, "end\n");
	expect(&w->client, "message 2\nover DATA_LOSS no more\n");
}

static void fails(void **state)
{
	struct world *w = *state;

	start(w, "/a.B/C", TIME_NEVER);
	pump(w);
	grpc_finish(w->server.calls[0], STATUS_NOT_FOUND, "kein \"größeres\" 100 %\nBild");
	pump(w);
	expect(&w->client, "over NOT_FOUND kein \"größeres\" 100 %\nBild\n");
	expect(&w->server, "begin /a.B/C\n");
}

static void answers_before_the_end(void **state)
{
	struct world *w = *state;
	struct grpc_call *call = start(w, "/a.B/C", TIME_NEVER);

	send_text(call, "x");
	pump(w);
	send_text(w->server.calls[0], "enough");
	grpc_finish(w->server.calls[0], STATUS_OK, "");
	pump(w);
	expect(&w->client, "message enough\nover OK \n");
	expect(&w->server, "begin /a.B/C\nmessage x\n");
}

static void large_messages(void **state)
{
	struct world *w = *state;
	struct grpc_call *call = start(w, "/a.B/C", TIME_NEVER);
	struct hw_err e;

	w->piece = 1 << 16;
	assert_int_equal(send_size(call, 16 << 20, &e), 0);
	grpc_end(call);
	pump(w);
	expect(&w->server, "begin /a.B/C\nmessage of 16777216\nend\n");
	assert_int_equal(send_size(w->server.calls[0], 16 << 20, &e), 0);
	grpc_finish(w->server.calls[0], STATUS_OK, "");
	pump(w);
	expect(&w->client, "message of 16777216\nover OK \n");
	assert_int_equal(grpc_held(w->server.grpc) + grpc_held(w->client.grpc), 0);
}

static void too_large_messages(void **state)
{
	struct world *w = *state;
	struct grpc_call *call = start(w, "/a.B/C", TIME_NEVER);
	struct hw_err e;

	assert_int_equal(send_size(call, (16 << 20) + 1, &e), -EAGAIN);
	assert_int_equal(status_of(&e), STATUS_RESOURCE_EXHAUSTED);
	w->limits.message = 1000;
	restart_server(w, &server_events);
	assert_int_equal(send_size(call, 1001, &e), 0);
	pump(w);
	expect(&w->server,
	       "begin /a.B/C\nover RESOURCE_EXHAUSTED a message of 1001 bytes is longer "
	       "than the limit of 1000\n");
	expect(&w->client, "over RESOURCE_EXHAUSTED a message of 1001 bytes is longer than the "
			   "limit of 1000\n");
}

static void long_texts(void **state)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct world *w = *state;

	buf_putc(&text, '%');
	while (text.len < 10000)
		buf_puts(&text, "ö");
	start(w, "/a.B/C", TIME_NEVER);
	pump(w);
	grpc_finish(w->server.calls[0], STATUS_UNKNOWN, text.data);
	pump(w);
	text.data[2047] = '\0'; /* the character at 2047 would end at 2049 */
	assert_int_equal(w->client.log.len, strlen("over UNKNOWN \n") + 2047);
	assert_non_null(strstr(w->client.log.data, text.data));
}

/* ---- windows and limits ------------------------------------------------------------- */

static void slow_receiver(void **state)
{
	struct world *w = *state;
	struct grpc_call *call = start(w, "/a.B/C", TIME_NEVER);
	size_t kept;
	struct hw_err e;

	w->client.keep = true;
	w->piece = 1 << 16;
	pump(w);
	for (int i = 0; i < 64; i++)
		assert_int_equal(send_size(w->server.calls[0], 100000, &e), 0);
	grpc_finish(w->server.calls[0], STATUS_OK, "");
	pump(w);
	kept = w->client.bytes;
	assert_true(kept > 0 && kept < 3 << 20);

	w->client.keep = false;
	for (size_t i = 0; i < kept / 100000; i++)
		grpc_taken(call);
	pump(w);
	assert_int_equal(w->client.bytes, 6400000);
	assert_null(w->client.calls[0]);
}

static void slow_one_of_two(void **state)
{
	struct world *w = *state;
	struct hw_err e;

	w->piece = 1 << 16;
	w->client.keep = true;
	for (int i = 0; i < 12; i++)
		start(w, "/a.B/Slow", TIME_NEVER);
	pump(w);
	for (int i = 0; i < 12; i++) {
		for (int j = 0; j < 20; j++)
			assert_int_equal(send_size(w->server.calls[i], 100000, &e), 0);
		grpc_finish(w->server.calls[i], STATUS_OK, "");
	}
	pump(w);
	w->client.keep = false;
	buf_done(&w->client.log);
	start(w, "/a.B/Fast", TIME_NEVER);
	pump(w);
	send_text(w->server.calls[12], "here");
	grpc_finish(w->server.calls[12], STATUS_OK, "");
	pump(w);
	expect(&w->client, "message here\nover OK \n");
}

static void tells_when_sent(void **state)
{
	struct world *w = *state;
	struct hw_err e;

	restart_server(w, &sent_events);
	w->client.keep = true;
	w->piece = 1 << 16;
	start(w, "/a.B/C", TIME_NEVER);
	pump(w);
	assert_int_equal(send_size(w->server.calls[0], 4 << 20, &e), 0);
	assert_int_equal(send_size(w->server.calls[0], 3 << 20, &e), 0);
	pump(w);
	expect(&w->server, "begin /a.B/C\n");
	grpc_taken(w->client.calls[0]);
	pump(w);
	expect(&w->server, "sent\n");
}

static void bounded_memory(void **state)
{
	struct world *w = *state;
	struct hw_err e;

	w->limits.held = 200000;
	restart_server(w, &server_events);
	w->server.keep = true;
	for (int i = 0; i < 3; i++)
		assert_int_equal(send_size(start(w, "/a.B/C", TIME_NEVER), 90000, &e), 0);
	pump(w);
	assert_non_null(strstr(w->client.log.data, "over RESOURCE_EXHAUSTED unfinished messages on "
						   "one connection exceed 200000 bytes\n"));
	assert_true(grpc_held(w->server.grpc) <= 200000);
	assert_true(grpc_held(w->server.grpc) >= 180000);
}

static void many_calls(void **state)
{
	struct world *w = *state;

	pump(w);
	for (int i = 0; i < 1500; i++)
		grpc_end(start(w, "/a.B/C", TIME_NEVER));
	pump(w);
	assert_int_equal(w->server.n, 1024); /* the others wait at the client */
	for (size_t i = 0; i < w->server.n; i++) {
		grpc_finish(w->server.calls[i], STATUS_OK, "");
		pump(w);
	}
	assert_int_equal(w->server.n, 1500);
	for (size_t i = 0; i < 1500; i++)
		assert_null(w->client.calls[i]);
}

/* ---- calls that end otherwise ------------------------------------------------------- */

static void cancelled(void **state)
{
	struct world *w = *state;
	struct grpc_call *call = start(w, "/a.B/C", TIME_NEVER);

	pump(w);
	grpc_cancel(call);
	pump(w);
	expect(&w->server, "begin /a.B/C\nover CANCELLED cancelled by the client\n");
	expect(&w->client, "");
}

static void tick(struct world *w, struct side *s)
{
	assert_true(grpc_deadline(s->grpc) <= w->now);
	grpc_tick(s->grpc, w->now);
}

static void server_deadline(void **state)
{
	struct world *w = *state;
	struct hw_err e;

	start(w, "/a.B/C", 5 * SECOND);
	pump(w);
	assert_true(w->server.calls[0]->deadline == w->now + 5 * SECOND);
	assert_int_equal(send_size(w->server.calls[0], 10, &e), 0);
	pump(w);
	buf_done(&w->client.log);
	w->now += 5 * SECOND - 1;
	grpc_tick(w->server.grpc, w->now);
	expect(&w->server, "begin /a.B/C\n");
	w->now++;
	tick(w, &w->server);
	expect(&w->server, "over DEADLINE_EXCEEDED deadline exceeded\n");
	pump(w);
	expect(&w->client, "over DEADLINE_EXCEEDED deadline exceeded\n");
}

static void client_deadline(void **state)
{
	struct world *w = *state;

	start(w, "/a.B/Early", 5 * SECOND);
	start(w, "/a.B/Late", 50 * SECOND);
	pump(w);
	w->now += 5 * SECOND;
	tick(w, &w->client);
	expect(&w->client, "over DEADLINE_EXCEEDED deadline exceeded\n");
	pump(w);
	expect(&w->server,
	       "begin /a.B/Early\nbegin /a.B/Late\nover CANCELLED cancelled by the client\n");
	assert_true(grpc_deadline(w->client.grpc) == w->now + 45 * SECOND);
}

static void lost(void **state)
{
	struct world *w = *state;

	start(w, "/a.B/C", TIME_NEVER);
	pump(w);
	grpc_free(w->server.grpc);
	w->server.grpc = NULL;
	grpc_free(w->client.grpc);
	w->client.grpc = NULL;
	expect(&w->server, "begin /a.B/C\nover UNAVAILABLE the connection was lost\n");
	expect(&w->client, "over UNAVAILABLE the connection was lost\n");
}

static void not_taken_answer(void **state)
{
	struct world *w = *state;
	struct hw_err e;

	w->client.keep = true;
	start(w, "/a.B/C", TIME_NEVER);
	pump(w);
	for (int i = 0; i < 40; i++)
		assert_int_equal(send_size(w->server.calls[0], 100000, &e), 0);
	grpc_finish(w->server.calls[0], STATUS_OK, "");
	pump(w);
	for (int i = 0; i < 3; i++) {
		w->now += 60 * SECOND;
		grpc_tick(w->server.grpc, w->now);
	}
	buf_done(&w->client.log);
	pump(w);
	expect(&w->client, "over CANCELLED CANCEL\n");
}

static void drains(void **state)
{
	struct world *w = *state;
	struct hw_err e;

	start(w, "/a.B/C", TIME_NEVER);
	pump(w);
	grpc_drain(w->server.grpc);
	start(w, "/a.B/Late", TIME_NEVER); /* sent before the client can know */
	pump(w);
	expect(&w->server, "begin /a.B/C\nbegin /a.B/Late\n");
	assert_false(grpc_is_usable(w->client.grpc));
	assert_true(grpc_start(w->client.grpc, "/a.B/C", TIME_NEVER, w->now, NULL,
			       &w->client.calls[2], &e) < 0);
	assert_int_equal(status_of(&e), STATUS_UNAVAILABLE);
	assert_false(grpc_is_done(w->server.grpc));
	grpc_finish(w->server.calls[0], STATUS_OK, "");
	grpc_finish(w->server.calls[1], STATUS_OK, "");
	pump(w);
	expect(&w->client, "over OK \nover OK \n");
	assert_true(grpc_is_done(w->server.grpc));
	assert_true(grpc_is_done(w->client.grpc));
}

static void drains_idle(void **state)
{
	struct world *w = *state;

	pump(w);
	assert_false(grpc_is_done(w->server.grpc));
	grpc_drain(w->server.grpc);
	pump(w);
	assert_true(grpc_is_done(w->server.grpc));
}

/* ---- peers that misbehave ----------------------------------------------------------- */

static void silent(void **state)
{
	struct world *w = *state;

	w->now += 10 * SECOND;
	tick(w, &w->server);
	assert_true(grpc_is_done(w->server.grpc));
}

static void not_http2(void **state)
{
	static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct world *w = *state;
	struct hw_err e;

	assert_true(grpc_feed(w->server.grpc, request, strlen(request), w->now, &e) < 0);
	assert_true(grpc_is_done(w->server.grpc));
}

static void reset_flood(void **state)
{
	struct world *w = *state;

	pump(w);
	for (int i = 0; i < 2000 && grpc_is_usable(w->client.grpc); i++) {
		struct grpc_call *call = start(w, "/a.B/C", TIME_NEVER);

		pump(w);
		grpc_cancel(call);
		pump(w);
		w->client.n = w->server.n = 0;
	}
	assert_false(grpc_is_usable(w->client.grpc));
	assert_true(grpc_is_done(w->server.grpc));
}

static int raw_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		      size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
		      void *user)
{
	struct side *s = user;

	(void)session;
	(void)frame;
	(void)name_len;
	(void)value_len;
	(void)flags;
	buf_printf(&s->log, "%s: %s\n", (const char *)name, (const char *)value);
	return 0;
}

static int raw_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct side *s = user;

	(void)session;
	if (frame->hd.type == NGHTTP2_PING && frame->hd.flags & NGHTTP2_FLAG_ACK)
		buf_printf(&s->log, "pong %.8s\n", (const char *)frame->ping.opaque_data);
	if (frame->hd.type == NGHTTP2_RST_STREAM)
		buf_printf(&s->log, "reset %u\n", frame->rst_stream.error_code);
	return 0;
}

static void raw_start(struct world *w)
{
	nghttp2_session_callbacks *callbacks;

	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, raw_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, raw_frame);
	nghttp2_session_client_new(&w->raw, callbacks, &w->client);
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_submit_settings(w->raw, NGHTTP2_FLAG_NONE, NULL, 0);
}

static void raw_pump(struct world *w)
{
	const uint8_t *data;
	struct hw_err e;
	ssize_t n, m;

	do {
		n = nghttp2_session_mem_send(w->raw, &data);
		if (n > 0)
			assert_int_equal(grpc_feed(w->server.grpc, data, (size_t)n, w->now, &e), 0);
		m = (ssize_t)grpc_output(w->server.grpc, &data);
		if (m > 0)
			assert_int_equal(nghttp2_session_mem_recv(w->raw, data, (size_t)m), m);
	} while (n > 0 || m > 0);
}

static ssize_t raw_body(nghttp2_session *session, int32_t id, uint8_t *to, size_t room,
			uint32_t *flags, nghttp2_data_source *source, void *user)
{
	(void)session;
	(void)id;
	(void)user;
	assert_true(room >= 7);
	memcpy(to, source->ptr, 7);
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	return 7;
}

#define NV(name, value)                                                                            \
	{                                                                                          \
		(uint8_t *)(name), (uint8_t *)(value), strlen(name), strlen(value), 0              \
	}

/* A request with these three headers and, unless NULL, seven bytes. */
static void raw_request(struct world *w, const char *method, const char *type, const char *encoding,
			const char *body)
{
	nghttp2_nv nv[] = {
		NV(":method", method), NV(":scheme", "http"),	 NV(":path", "/a.B/C"),
		NV(":authority", "x"), NV("content-type", type), NV("grpc-encoding", encoding),
	};
	nghttp2_data_provider provider = { .source.ptr = (void *)body, .read_callback = raw_body };

	assert_true(nghttp2_submit_request(w->raw, NULL, nv, ARRAY_SIZE(nv),
					   body ? &provider : NULL, NULL) > 0);
	raw_pump(w);
}

static void foreign_requests(void **state)
{
	struct world *w = *state;

	raw_start(w);
	raw_request(w, "POST", "application/grpc", "gzip", NULL);
	expect(&w->client, ":status: 200\ncontent-type: application/grpc\n"
			   "grpc-accept-encoding: identity\ngrpc-status: 12\n"
			   "grpc-message: grpc-encoding \"gzip\" is not supported, only "
			   "\"identity\"\n");
	raw_request(w, "GET", "application/grpc", "identity", NULL);
	assert_non_null(strstr(w->client.log.data, ":status: 405\n"));
	buf_done(&w->client.log);
	raw_request(w, "POST", "text/html", "identity", NULL);
	assert_non_null(strstr(w->client.log.data, ":status: 415\n"));
	expect(&w->server, "");
}

static void broken_bodies(void **state)
{
	struct world *w = *state;

	raw_start(w);
	raw_request(w, "POST", "application/grpc", "identity", "\0\0\0\0\3ab");
	expect(&w->server, "begin /a.B/C\nover INTERNAL the stream ended within a message\n");
	raw_request(w, "POST", "application/grpc", "identity", "\1\0\0\0\2ab");
	expect(&w->server, "begin /a.B/C\nover INTERNAL a message is marked as compressed, but "
			   "grpc-encoding names no compression\n");
	raw_request(w, "POST", "application/grpc", "identity", "\0\0\0\0\2ab");
	expect(&w->server, "begin /a.B/C\nmessage ab\nend\n");
}

static void ping(void **state)
{
	struct world *w = *state;

	raw_start(w);
	nghttp2_submit_ping(w->raw, NGHTTP2_FLAG_NONE, (const uint8_t *)"are you?");
	raw_pump(w);
	expect(&w->client, "pong are you?\n");
}

#define TEST(name, f)                                                                              \
	{                                                                                          \
		name, f, world_make, world_end, NULL                                               \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("grpc: a unary call, however its bytes are cut", unary),
		TEST("grpc: streams in both directions", streams),
		TEST("grpc: a failed call brings its code and its text", fails),
		TEST("grpc: an answer may come before the request has ended",
		     answers_before_the_end),
		TEST("grpc: messages of 16 MiB, both ways", large_messages),
		TEST("grpc: a message over the limit is refused, by the sender too",
		     too_large_messages),
		TEST("grpc: a text longer than the limit is cut off", long_texts),
		TEST("grpc: a receiver that takes nothing stops the sender", slow_receiver),
		TEST("grpc: a slow call does not stop the others", slow_one_of_two),
		TEST("grpc: a sender learns when all is sent", tells_when_sent),
		TEST("grpc: unfinished messages of a connection are bounded", bounded_memory),
		TEST("grpc: calls beyond the limit wait at the client", many_calls),
		TEST("grpc: the server learns that a call was cancelled", cancelled),
		TEST("grpc: the server keeps the deadline and says so", server_deadline),
		TEST("grpc: the client keeps the deadline by itself", client_deadline),
		TEST("grpc: a lost connection ends its calls on both sides", lost),
		TEST("grpc: an answer that nobody takes is dropped after a while",
		     not_taken_answer),
		TEST("grpc: draining finishes what runs and takes nothing new", drains),
		TEST("grpc: draining an idle connection ends it", drains_idle),
		TEST("grpc: a peer that says nothing is given up", silent),
		TEST("grpc: what is not HTTP/2 ends the connection", not_http2),
		TEST("grpc: a flood of resets ends the connection", reset_flood),
		TEST("grpc: requests that are not gRPC are refused as the specification says",
		     foreign_requests),
		TEST("grpc: broken messages end their call and no other", broken_bodies),
		TEST("grpc: a ping is answered", ping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
