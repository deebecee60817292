/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/test-grpc.c - a gRPC client and server connected in memory
 *
 * How:   each side logs its events as text; pump() carries bytes in both directions until neither
 *        side has output. The clock is a number. For requests that our own client cannot send, a
 *        plain nghttp2 session replaces the client.
 */
#include "rpc/grpc/grpc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"

#define SECOND 1000000000LL
#define CALLS  2048

/* ---- fixture ------------------------------------------------------------------------ */

struct side {
	struct grpc *grpc;
	struct buf log;
	struct grpc_call *calls[CALLS]; /* in the order in which they began; NULL if closed */
	size_t n;
	bool slow;    /* does not consume messages */
	size_t bytes; /* total size of all messages */
};

struct fixture {
	struct side server, client;
	nghttp2_session *raw; /* replaces client.grpc */
	int64_t now;
	size_t piece; /* bytes fed at a time */
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
	if (!s->slow)
		grpc_consumed(call);
}

static void on_request_end(void *ctx, struct grpc_call *call)
{
	struct side *s = ctx;

	(void)call;
	buf_puts(&s->log, "request end\n");
}

static void on_sent(void *ctx, struct grpc_call *call)
{
	struct side *s = ctx;

	(void)call;
	buf_puts(&s->log, "sent\n");
}

static void on_closed(void *ctx, struct grpc_call *call, enum status_code code, const char *text)
{
	struct side *s = ctx;

	buf_printf(&s->log, "closed %s %s\n", status_name(code), text);
	for (size_t i = 0; i < s->n; i++)
		if (s->calls[i] == call)
			s->calls[i] = NULL;
}

static const struct grpc_events server_events = {
	.begin = on_begin, .message = on_message, .request_end = on_request_end, .closed = on_closed
};
static const struct grpc_events client_events = { .message = on_message, .closed = on_closed };
static const struct grpc_events sent_events = {
	.begin = on_begin, .message = on_message, .sent = on_sent, .closed = on_closed
};

static int fixture_setup(void **state)
{
	struct fixture *f = mem_new(sizeof(*f));

	f->limits = (struct grpc_limits)GRPC_LIMITS;
	f->piece = 4096;
	f->now = 1000 * SECOND;
	f->server.grpc = grpc_new(GRPC_SERVER, &f->limits, &server_events, &f->server, f->now);
	f->client.grpc = grpc_new(GRPC_CLIENT, &f->limits, &client_events, &f->client, f->now);
	*state = f;
	return 0;
}

static int fixture_teardown(void **state)
{
	struct fixture *f = *state;

	grpc_free(f->server.grpc);
	grpc_free(f->client.grpc);
	nghttp2_session_del(f->raw);
	buf_done(&f->server.log);
	buf_done(&f->client.log);
	free(f);
	return 0;
}

/* Replaces the server with one that has the current limits and these events. */
static void restart_server(struct fixture *f, const struct grpc_events *events)
{
	grpc_free(f->server.grpc);
	f->server.grpc = grpc_new(GRPC_SERVER, &f->limits, events, &f->server, f->now);
}

/* Return: whether there was output */
static bool carry_output(struct fixture *f, struct side *from, struct side *to)
{
	const uint8_t *data;
	struct hw_err e;
	size_t len = grpc_output(from->grpc, &data);

	for (size_t at = 0, n; at < len; at += n) {
		n = len - at < f->piece ? len - at : f->piece;
		if (grpc_feed(to->grpc, data + at, n, f->now, &e) < 0)
			buf_printf(&to->log, "failed %s\n", e.msg);
	}
	return len > 0;
}

static void pump(struct fixture *f)
{
	bool moved;

	do {
		moved = carry_output(f, &f->client, &f->server);
		moved = carry_output(f, &f->server, &f->client) || moved;
	} while (moved);
}

static void expect_log(struct side *s, const char *text)
{
	assert_string_equal(str_or(s->log.data, ""), text);
	buf_done(&s->log);
}

static struct grpc_call *start_call(struct fixture *f, const char *path, int64_t timeout)
{
	struct side *s = &f->client;
	struct hw_err e;

	if (grpc_start(s->grpc, path, timeout, f->now, NULL, &s->calls[s->n], &e) < 0)
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
	buf_commit(&b, size);
	return grpc_send(call, &b, e);
}

/* ---- calls -------------------------------------------------------------------------- */

static void unary(void **state)
{
	static const size_t pieces[] = { 1, 7, 9000 };
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		struct grpc_call *call = start_call(f, "/a.B/C", TIME_NEVER);

		f->piece = pieces[i];
		send_text(call, "request");
		grpc_end_request(call);
		pump(f);
		expect_log(&f->server, "begin /a.B/C\nmessage request\nrequest end\n");
		assert_true(f->server.calls[i]->deadline == TIME_NEVER);
		send_text(f->server.calls[i], "response");
		grpc_finish(f->server.calls[i], STATUS_OK, "");
		pump(f);
		expect_log(&f->client, "message response\nclosed OK \n");
	}
	expect_log(&f->server, "");
}

static void streams(void **state)
{
	struct fixture *f = *state;
	struct grpc_call *call = start_call(f, "/a.B/Both", TIME_NEVER);

	send_text(call, "one");
	pump(f);
	send_text(call, "");
	send_text(call, "three");
	pump(f);
	expect_log(&f->server, "begin /a.B/Both\nmessage one\nmessage \nmessage three\n");
	send_text(f->server.calls[0], "1");
	pump(f);
	expect_log(&f->client, "message 1\n");
	grpc_end_request(call);
	send_text(f->server.calls[0], "2");
	pump(f);
	grpc_finish(f->server.calls[0], STATUS_DATA_LOSS, "no more");
	pump(f);
	expect_log(&f->server, "request end\n");
	expect_log(&f->client, "message 2\nclosed DATA_LOSS no more\n");
}

static void fails_with_status(void **state)
{
	struct fixture *f = *state;

	start_call(f, "/a.B/C", TIME_NEVER);
	pump(f);
	grpc_finish(f->server.calls[0], STATUS_NOT_FOUND, "kein \"größeres\" 100 %\nBild");
	pump(f);
	expect_log(&f->client, "closed NOT_FOUND kein \"größeres\" 100 %\nBild\n");
	expect_log(&f->server, "begin /a.B/C\n");
}

static void responds_before_request_end(void **state)
{
	struct fixture *f = *state;
	struct grpc_call *call = start_call(f, "/a.B/C", TIME_NEVER);

	send_text(call, "x");
	pump(f);
	send_text(f->server.calls[0], "enough");
	grpc_finish(f->server.calls[0], STATUS_OK, "");
	pump(f);
	expect_log(&f->client, "message enough\nclosed OK \n");
	expect_log(&f->server, "begin /a.B/C\nmessage x\n");
}

static void large_messages(void **state)
{
	struct fixture *f = *state;
	struct grpc_call *call = start_call(f, "/a.B/C", TIME_NEVER);
	struct hw_err e;

	f->piece = 1 << 16;
	assert_int_equal(send_size(call, 16 << 20, &e), 0);
	grpc_end_request(call);
	pump(f);
	expect_log(&f->server, "begin /a.B/C\nmessage of 16777216\nrequest end\n");
	assert_int_equal(send_size(f->server.calls[0], 16 << 20, &e), 0);
	grpc_finish(f->server.calls[0], STATUS_OK, "");
	pump(f);
	expect_log(&f->client, "message of 16777216\nclosed OK \n");
	assert_int_equal(grpc_buffered(f->server.grpc) + grpc_buffered(f->client.grpc), 0);
}

static void too_large_messages(void **state)
{
	struct fixture *f = *state;
	struct grpc_call *call = start_call(f, "/a.B/C", TIME_NEVER);
	struct hw_err e;

	assert_int_equal(send_size(call, (16 << 20) + 1, &e), -EAGAIN);
	assert_int_equal(status_from_err(&e), STATUS_RESOURCE_EXHAUSTED);
	f->limits.message = 1000;
	restart_server(f, &server_events);
	assert_int_equal(send_size(call, 1001, &e), 0);
	pump(f);
	expect_log(&f->server,
		   "begin /a.B/C\nclosed RESOURCE_EXHAUSTED message too large: 1001 bytes, limit "
		   "1000\n");
	expect_log(&f->client, "closed RESOURCE_EXHAUSTED message too large: 1001 bytes, limit "
			       "1000\n");
}

static void truncates_text(void **state)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct fixture *f = *state;

	buf_putc(&text, '%');
	while (text.len < 10000)
		buf_puts(&text, "ö");
	start_call(f, "/a.B/C", TIME_NEVER);
	pump(f);
	grpc_finish(f->server.calls[0], STATUS_UNKNOWN, text.data);
	pump(f);
	text.data[2047] = '\0'; /* the last byte of the next character is over the limit */
	assert_int_equal(f->client.log.len, strlen("closed UNKNOWN \n") + 2047);
	assert_non_null(strstr(f->client.log.data, text.data));
}

/* ---- flow control and limits -------------------------------------------------------- */

static void slow_receiver(void **state)
{
	struct fixture *f = *state;
	struct grpc_call *call = start_call(f, "/a.B/C", TIME_NEVER);
	size_t received;
	struct hw_err e;

	f->client.slow = true;
	f->piece = 1 << 16;
	pump(f);
	for (int i = 0; i < 64; i++)
		assert_int_equal(send_size(f->server.calls[0], 100000, &e), 0);
	grpc_finish(f->server.calls[0], STATUS_OK, "");
	pump(f);
	received = f->client.bytes;
	assert_true(received > 0 && received < 3 << 20);

	f->client.slow = false;
	for (size_t i = 0; i < received / 100000; i++)
		grpc_consumed(call);
	pump(f);
	assert_int_equal(f->client.bytes, 6400000);
	assert_null(f->client.calls[0]);
}

static void slow_call_beside_others(void **state)
{
	struct fixture *f = *state;
	struct hw_err e;

	f->piece = 1 << 16;
	f->client.slow = true;
	for (int i = 0; i < 12; i++)
		start_call(f, "/a.B/Slow", TIME_NEVER);
	pump(f);
	for (int i = 0; i < 12; i++) {
		for (int j = 0; j < 20; j++)
			assert_int_equal(send_size(f->server.calls[i], 100000, &e), 0);
		grpc_finish(f->server.calls[i], STATUS_OK, "");
	}
	pump(f);
	f->client.slow = false;
	buf_done(&f->client.log);
	start_call(f, "/a.B/Fast", TIME_NEVER);
	pump(f);
	send_text(f->server.calls[12], "here");
	grpc_finish(f->server.calls[12], STATUS_OK, "");
	pump(f);
	expect_log(&f->client, "message here\nclosed OK \n");
}

static void reports_sent(void **state)
{
	struct fixture *f = *state;
	struct hw_err e;

	restart_server(f, &sent_events);
	f->client.slow = true;
	f->piece = 1 << 16;
	start_call(f, "/a.B/C", TIME_NEVER);
	pump(f);
	assert_int_equal(send_size(f->server.calls[0], 4 << 20, &e), 0);
	assert_int_equal(send_size(f->server.calls[0], 3 << 20, &e), 0);
	pump(f);
	expect_log(&f->server, "begin /a.B/C\n");
	grpc_consumed(f->client.calls[0]);
	pump(f);
	expect_log(&f->server, "sent\n");
}

static void bounded_memory(void **state)
{
	struct fixture *f = *state;
	struct hw_err e;

	f->limits.buffered = 200000;
	restart_server(f, &server_events);
	f->server.slow = true;
	for (int i = 0; i < 3; i++)
		assert_int_equal(send_size(start_call(f, "/a.B/C", TIME_NEVER), 90000, &e), 0);
	pump(f);
	assert_non_null(strstr(f->client.log.data,
			       "closed RESOURCE_EXHAUSTED received messages exceed the "
			       "connection's buffer limit of 200000 bytes\n"));
	assert_true(grpc_buffered(f->server.grpc) <= 200000);
	assert_true(grpc_buffered(f->server.grpc) >= 180000);
}

static void many_calls(void **state)
{
	struct fixture *f = *state;

	pump(f);
	for (int i = 0; i < 1500; i++)
		grpc_end_request(start_call(f, "/a.B/C", TIME_NEVER));
	pump(f);
	assert_int_equal(f->server.n, 1024); /* the client queues the remaining calls */
	for (size_t i = 0; i < f->server.n; i++) {
		grpc_finish(f->server.calls[i], STATUS_OK, "");
		pump(f);
	}
	assert_int_equal(f->server.n, 1500);
	for (size_t i = 0; i < 1500; i++)
		assert_null(f->client.calls[i]);
}

/* ---- calls and connections that end early ------------------------------------------- */

static void cancelled_call(void **state)
{
	struct fixture *f = *state;
	struct grpc_call *call = start_call(f, "/a.B/C", TIME_NEVER);

	pump(f);
	grpc_cancel(call);
	pump(f);
	expect_log(&f->server, "begin /a.B/C\nclosed CANCELLED cancelled by the client\n");
	expect_log(&f->client, "");
}

static void tick_side(struct fixture *f, struct side *s)
{
	assert_true(grpc_deadline(s->grpc) <= f->now);
	grpc_tick(s->grpc, f->now);
}

static void server_deadline(void **state)
{
	struct fixture *f = *state;
	struct hw_err e;

	start_call(f, "/a.B/C", 5 * SECOND);
	pump(f);
	assert_true(f->server.calls[0]->deadline == f->now + 5 * SECOND);
	assert_int_equal(send_size(f->server.calls[0], 10, &e), 0);
	pump(f);
	buf_done(&f->client.log);
	f->now += 5 * SECOND - 1;
	grpc_tick(f->server.grpc, f->now);
	expect_log(&f->server, "begin /a.B/C\n");
	f->now++;
	tick_side(f, &f->server);
	expect_log(&f->server, "closed DEADLINE_EXCEEDED deadline exceeded\n");
	pump(f);
	expect_log(&f->client, "closed DEADLINE_EXCEEDED deadline exceeded\n");
}

static void client_deadline(void **state)
{
	struct fixture *f = *state;

	start_call(f, "/a.B/Early", 5 * SECOND);
	start_call(f, "/a.B/Late", 50 * SECOND);
	pump(f);
	f->now += 5 * SECOND;
	tick_side(f, &f->client);
	expect_log(&f->client, "closed DEADLINE_EXCEEDED deadline exceeded\n");
	pump(f);
	expect_log(&f->server,
		   "begin /a.B/Early\nbegin /a.B/Late\nclosed CANCELLED cancelled by the client\n");
	assert_true(grpc_deadline(f->client.grpc) == f->now + 45 * SECOND);
}

static void lost_connection(void **state)
{
	struct fixture *f = *state;

	start_call(f, "/a.B/C", TIME_NEVER);
	pump(f);
	grpc_free(f->server.grpc);
	f->server.grpc = NULL;
	grpc_free(f->client.grpc);
	f->client.grpc = NULL;
	expect_log(&f->server, "begin /a.B/C\nclosed UNAVAILABLE connection lost\n");
	expect_log(&f->client, "closed UNAVAILABLE connection lost\n");
}

static void unread_response(void **state)
{
	struct fixture *f = *state;
	struct hw_err e;

	f->client.slow = true;
	start_call(f, "/a.B/C", TIME_NEVER);
	pump(f);
	for (int i = 0; i < 40; i++)
		assert_int_equal(send_size(f->server.calls[0], 100000, &e), 0);
	grpc_finish(f->server.calls[0], STATUS_OK, "");
	pump(f);
	for (int i = 0; i < 3; i++) {
		f->now += 60 * SECOND;
		grpc_tick(f->server.grpc, f->now);
		/* otherwise the owner would call grpc_tick() again and again, until the peer reads */
		assert_true(grpc_deadline(f->server.grpc) > f->now);
	}
	buf_done(&f->client.log);
	pump(f);
	expect_log(&f->client, "closed CANCELLED CANCEL\n");
}

static void unread_response_until(void **state)
{
	struct fixture *f = *state;
	struct hw_err e;

	f->client.slow = true;
	start_call(f, "/a.B/C", TIME_NEVER);
	pump(f);
	for (int i = 0; i < 40; i++)
		assert_int_equal(send_size(f->server.calls[0], 100000, &e), 0);
	grpc_finish_until(f->server.calls[0], STATUS_UNAVAILABLE, "stop", f->now + SECOND);
	assert_int_equal(grpc_deadline(f->server.grpc), f->now + SECOND);
	pump(f);
	assert_false(grpc_is_idle(f->server.grpc));
	f->now += SECOND;
	grpc_tick(f->server.grpc, f->now);
	buf_done(&f->client.log);
	pump(f);
	expect_log(&f->client, "closed CANCELLED CANCEL\n");
	assert_true(grpc_is_idle(f->server.grpc));
}

static void drains(void **state)
{
	struct fixture *f = *state;
	struct hw_err e;

	start_call(f, "/a.B/C", TIME_NEVER);
	pump(f);
	grpc_drain(f->server.grpc);
	start_call(f, "/a.B/Late", TIME_NEVER); /* sent before the client has received the GOAWAY */
	pump(f);
	expect_log(&f->server, "begin /a.B/C\nbegin /a.B/Late\n");
	assert_false(grpc_is_usable(f->client.grpc));
	assert_true(grpc_start(f->client.grpc, "/a.B/C", TIME_NEVER, f->now, NULL,
			       &f->client.calls[2], &e) < 0);
	assert_int_equal(status_from_err(&e), STATUS_UNAVAILABLE);
	assert_false(grpc_is_done(f->server.grpc));
	grpc_finish(f->server.calls[0], STATUS_OK, "");
	grpc_finish(f->server.calls[1], STATUS_OK, "");
	pump(f);
	expect_log(&f->client, "closed OK \nclosed OK \n");
	assert_true(grpc_is_done(f->server.grpc));
	assert_true(grpc_is_done(f->client.grpc));
}

static void drains_idle_connection(void **state)
{
	struct fixture *f = *state;

	pump(f);
	assert_false(grpc_is_done(f->server.grpc));
	grpc_drain(f->server.grpc);
	pump(f);
	assert_true(grpc_is_done(f->server.grpc));
}

/* ---- peers that misbehave ----------------------------------------------------------- */

static void silent_peer(void **state)
{
	struct fixture *f = *state;

	f->now += 10 * SECOND;
	tick_side(f, &f->server);
	assert_true(grpc_is_done(f->server.grpc));
}

static void not_http2(void **state)
{
	static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct fixture *f = *state;
	struct hw_err e;

	assert_true(grpc_feed(f->server.grpc, request, strlen(request), f->now, &e) < 0);
	assert_true(grpc_is_done(f->server.grpc));
}

static void reset_flood(void **state)
{
	struct fixture *f = *state;

	pump(f);
	for (int i = 0; i < 2000 && grpc_is_usable(f->client.grpc); i++) {
		struct grpc_call *call = start_call(f, "/a.B/C", TIME_NEVER);

		pump(f);
		grpc_cancel(call);
		pump(f);
		f->client.n = f->server.n = 0;
	}
	assert_false(grpc_is_usable(f->client.grpc));
	assert_true(grpc_is_done(f->server.grpc));
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

static void raw_start(struct fixture *f)
{
	nghttp2_session_callbacks *callbacks;

	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, raw_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, raw_frame);
	nghttp2_session_client_new(&f->raw, callbacks, &f->client);
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_submit_settings(f->raw, NGHTTP2_FLAG_NONE, NULL, 0);
}

static void raw_pump(struct fixture *f)
{
	const uint8_t *data;
	struct hw_err e;
	ssize_t n, m;

	do {
		n = nghttp2_session_mem_send(f->raw, &data);
		if (n > 0)
			assert_int_equal(grpc_feed(f->server.grpc, data, (size_t)n, f->now, &e), 0);
		m = (ssize_t)grpc_output(f->server.grpc, &data);
		if (m > 0)
			assert_int_equal(nghttp2_session_mem_recv(f->raw, data, (size_t)m), m);
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

/* Sends a request with these headers. @body: seven bytes, or NULL for a request without a body */
static void raw_request(struct fixture *f, const char *method, const char *type,
			const char *encoding, const char *body)
{
	nghttp2_nv nv[] = {
		NV(":method", method), NV(":scheme", "http"),	 NV(":path", "/a.B/C"),
		NV(":authority", "x"), NV("content-type", type), NV("grpc-encoding", encoding),
	};
	nghttp2_data_provider provider = { .source.ptr = (void *)body, .read_callback = raw_body };

	assert_true(nghttp2_submit_request(f->raw, NULL, nv, ARRAY_SIZE(nv),
					   body ? &provider : NULL, NULL) > 0);
	raw_pump(f);
}

static void invalid_requests(void **state)
{
	struct fixture *f = *state;

	raw_start(f);
	raw_request(f, "POST", "application/grpc", "gzip", NULL);
	expect_log(&f->client, ":status: 200\ncontent-type: application/grpc\n"
			       "grpc-accept-encoding: identity\ngrpc-status: 12\n"
			       "grpc-message: unsupported grpc-encoding \"gzip\", expected "
			       "\"identity\"\n");
	raw_request(f, "GET", "application/grpc", "identity", NULL);
	assert_non_null(strstr(f->client.log.data, ":status: 405\n"));
	buf_done(&f->client.log);
	raw_request(f, "POST", "text/html", "identity", NULL);
	assert_non_null(strstr(f->client.log.data, ":status: 415\n"));
	expect_log(&f->server, "");
}

static void malformed_messages(void **state)
{
	struct fixture *f = *state;

	raw_start(f);
	raw_request(f, "POST", "application/grpc", "identity", "\0\0\0\0\3ab");
	expect_log(&f->server,
		   "begin /a.B/C\nclosed INTERNAL stream ended in the middle of a message\n");
	raw_request(f, "POST", "application/grpc", "identity", "\1\0\0\0\2ab");
	expect_log(&f->server, "begin /a.B/C\nclosed INTERNAL message marked as compressed, but "
			       "grpc-encoding is identity or missing\n");
	raw_request(f, "POST", "application/grpc", "identity", "\0\0\0\0\2ab");
	expect_log(&f->server, "begin /a.B/C\nmessage ab\nrequest end\n");
}

static void ping(void **state)
{
	struct fixture *f = *state;

	raw_start(f);
	nghttp2_submit_ping(f->raw, NGHTTP2_FLAG_NONE, (const uint8_t *)"are you?");
	raw_pump(f);
	expect_log(&f->client, "pong are you?\n");
}

#define TEST(name, f)                                                                              \
	{                                                                                          \
		name, f, fixture_setup, fixture_teardown, NULL                                     \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("grpc: a unary call works in whatever pieces its bytes arrive", unary),
		TEST("grpc: messages are streamed in both directions", streams),
		TEST("grpc: the client receives code and text of a failed call", fails_with_status),
		TEST("grpc: a server can respond before the request has ended",
		     responds_before_request_end),
		TEST("grpc: messages of 16 MiB are sent in both directions", large_messages),
		TEST("grpc: sender and receiver both refuse a message over the limit",
		     too_large_messages),
		TEST("grpc: a status text over the limit is truncated", truncates_text),
		TEST("grpc: a receiver that consumes nothing stops the sender", slow_receiver),
		TEST("grpc: a slow call does not block other calls", slow_call_beside_others),
		TEST("grpc: the sender is informed when all messages are sent", reports_sent),
		TEST("grpc: the size of unconsumed messages on a connection is limited",
		     bounded_memory),
		TEST("grpc: the client queues calls beyond the limit", many_calls),
		TEST("grpc: the server is informed when a call is cancelled", cancelled_call),
		TEST("grpc: the server enforces the deadline and informs the client",
		     server_deadline),
		TEST("grpc: the client enforces the deadline itself", client_deadline),
		TEST("grpc: a lost connection ends its calls on both sides", lost_connection),
		TEST("grpc: a response that the client does not read is dropped after a timeout",
		     unread_response),
		TEST("grpc: a response that the client does not read is dropped at a given time",
		     unread_response_until),
		TEST("grpc: draining finishes running calls and refuses new ones", drains),
		TEST("grpc: draining an idle connection closes it", drains_idle_connection),
		TEST("grpc: a silent peer is disconnected after the handshake timeout",
		     silent_peer),
		TEST("grpc: bytes that are not HTTP/2 close the connection", not_http2),
		TEST("grpc: a flood of resets closes the connection", reset_flood),
		TEST("grpc: requests that are not gRPC are refused as the specification requires",
		     invalid_requests),
		TEST("grpc: a malformed message ends only its own call", malformed_messages),
		TEST("grpc: the server responds to a ping", ping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
