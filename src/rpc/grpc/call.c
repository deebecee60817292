/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/call.c - one call on a gRPC connection: headers, messages, status
 *
 * How:   receiving: grpc.c passes on header fields and bytes; frame.c splits the bytes into
 *        messages, which are passed to the owner. Sending: messages wait in a queue that nghttp2
 *        reads as the peer's flow-control windows allow. END_STREAM (client) or the trailers
 *        (server) follow after the last message.
 *
 *	state of a server's call    owned   has_headers   ending
 *	receiving headers           no      no            no
 *	running                     yes     after a send  no
 *	refused, failed, finished   no      unchanged     yes      trailers are submitted
 *
 * Rules: received bytes count for limits.buffered until their messages are consumed or the call is
 *        no longer owned. On a server, queued messages also count until nghttp2 has read them.
 *        Results of nghttp2's submit functions are ignored: they fail only if memory
 *        is exhausted or the stream is closed, and then on_close() follows.
 */
#include "rpc/grpc/grpc-internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "rpc/grpc/timeout.h"

#define HTTP_OK 200

struct outgoing_message {
	struct list link;
	uint8_t prefix[FRAME_PREFIX];
	struct buf body;
	size_t at;	 /* bytes of prefix and body that nghttp2 has read */
	size_t buffered; /* bytes that are counted in grpc.buffered */
};

static struct call *call_of(struct grpc_call *pub)
{
	return list_entry(pub, struct call, pub);
}

/* ---- lifetime ----------------------------------------------------------------------- */

struct call *call_new(struct grpc *g)
{
	struct call *c = mem_new(sizeof(*c));

	c->grpc = g;
	c->pub.deadline = TIME_NEVER;
	c->in.max = g->limits.message;
	grpc_header_init(&c->header);
	list_init(&c->out);
	list_append(&g->calls, &c->link);
	return c;
}

static void message_free(struct call *c, struct outgoing_message *m)
{
	c->grpc->buffered -= m->buffered;
	list_remove(&m->link);
	buf_done(&m->body);
	free(m);
}

static void drop_output(struct call *c)
{
	list_for_each_safe(struct outgoing_message, m, &c->out, link)
		message_free(c, m);
}

/* The call has no owner any more: drops unconsumed input; later input is ignored. */
static void disown(struct call *c)
{
	c->owned = false;
	c->grpc->buffered -= c->buffered;
	c->buffered = 0;
	frame_next(&c->in);
	if (c->unconsumed_bytes > 0)
		nghttp2_session_consume_stream(c->grpc->session, c->id, c->unconsumed_bytes);
	c->unconsumed_bytes = 0;
}

void call_close(struct call *c, enum status_code code, const char *text)
{
	const struct grpc_events *events = c->grpc->events;

	if (!c->owned)
		return;
	disown(c);
	if (events->closed)
		events->closed(c->grpc->ctx, &c->pub, code, text);
}

void call_free(struct call *c)
{
	drop_output(c);
	frame_done(&c->in);
	grpc_header_done(&c->header);
	list_remove(&c->link);
	free(c->text);
	free((char *)c->pub.path);
	free(c);
}

/* ---- sending ------------------------------------------------------------------------ */

static nghttp2_nv make_field(const char *name, const char *value)
{
	return (nghttp2_nv){ .name = (uint8_t *)name,
			     .value = (uint8_t *)value,
			     .namelen = strlen(name),
			     .valuelen = strlen(value) };
}

/* Sets grpc-status and, if there is a text, grpc-message. Return: the number of fields */
static size_t make_status_fields(const struct call *c, char number[12], struct buf *text,
				 nghttp2_nv *nv)
{
	snprintf(number, 12, "%d", c->code);
	nv[0] = make_field("grpc-status", number);
	if (str_empty(c->text))
		return 1;
	status_text_encode(c->text, text);
	nv[1] = make_field("grpc-message", text->data);
	return 2;
}

static void send_trailers(struct call *c)
{
	AUTO(buf_done) struct buf text = { 0 };
	char number[12];
	nghttp2_nv nv[2];
	size_t n = make_status_fields(c, number, &text, nv);

	nghttp2_submit_trailer(c->grpc->session, c->id, nv, n);
}

/* Copies as many bytes as fit: from the prefix if it is not sent yet, otherwise from the body. */
static size_t copy_message(struct outgoing_message *m, uint8_t *to, size_t room)
{
	bool in_prefix = m->at < FRAME_PREFIX;
	size_t start = in_prefix ? 0 : FRAME_PREFIX;
	const uint8_t *from = in_prefix ? m->prefix : (const uint8_t *)m->body.data;
	size_t len = in_prefix ? FRAME_PREFIX : m->body.len;
	size_t left = start + len - m->at;
	size_t n = left < room ? left : room;

	if (n > 0)
		memcpy(to, from + (m->at - start), n);
	m->at += n;
	return n;
}

/* Moves to @to as much of the queue as fits. Return: the number of bytes */
static size_t copy_output(struct call *c, uint8_t *to, size_t room)
{
	size_t done = 0;

	list_for_each_safe(struct outgoing_message, m, &c->out, link) {
		if (m->at < FRAME_PREFIX)
			done += copy_message(m, to + done, room - done);
		done += copy_message(m, to + done, room - done);
		if (m->at < FRAME_PREFIX + m->body.len)
			break;
		message_free(c, m);
	}
	return done;
}

/* nghttp2's read callback for the body of the request or response. */
static ssize_t read_output(nghttp2_session *session, int32_t id, uint8_t *to, size_t room,
			   uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct call *c = source->ptr;
	size_t n = copy_output(c, to, room);

	(void)session;
	(void)id;
	(void)user;
	if (!list_is_empty(&c->out))
		return (ssize_t)n;
	if (n > 0 && c->owned && c->grpc->events->sent)
		c->grpc->events->sent(c->grpc->ctx, &c->pub);
	if (c->ending && list_is_empty(&c->out)) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		if (c->grpc->role == GRPC_SERVER) {
			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
			send_trailers(c);
		}
		return (ssize_t)n;
	}
	return n > 0 ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
}

/* Server: submits the headers, followed by the queue. */
static void send_headers(struct call *c)
{
	nghttp2_data_provider body = { .source.ptr = c, .read_callback = read_output };
	nghttp2_nv nv[] = { make_field(":status", "200"),
			    make_field("content-type", "application/grpc") };

	c->has_headers = true;
	nghttp2_submit_response(c->grpc->session, c->id, nv, ARRAY_SIZE(nv), &body);
}

/* Server: submits a Trailers-Only response, which has headers and status in one frame. */
static void send_trailers_only(struct call *c, int http)
{
	AUTO(buf_done) struct buf text = { 0 };
	char number[12], status[12];
	nghttp2_nv nv[5];
	size_t n = 0;

	snprintf(status, sizeof(status), "%d", http);
	nv[n++] = make_field(":status", status);
	nv[n++] = make_field("content-type", "application/grpc");
	if (c->code == STATUS_UNIMPLEMENTED)
		nv[n++] = make_field("grpc-accept-encoding", "identity");
	n += make_status_fields(c, number, &text, nv + n);
	nghttp2_submit_response(c->grpc->session, c->id, nv, n, NULL);
}

/* Server: ends the call with a status, after the queued messages. @http: value of :status, if no
 * headers were sent before. */
static void send_status(struct call *c, int http, enum status_code code, const char *text)
{
	size_t n = strnlen(text, GRPC_TEXT_MAX);

	while (n > 0 && (text[n] & 0xc0) == 0x80) /* do not split a UTF-8 character */
		n--;
	c->code = code;
	c->text = str_ncopy(text, n);
	c->ending = true;
	grpc_wake_at(c->grpc, c->grpc->now + GRPC_LINGER);
	if (c->has_headers)
		nghttp2_session_resume_data(c->grpc->session, c->id);
	else if (!list_is_empty(&c->out))
		send_headers(c);
	else
		send_trailers_only(c, http);
}

static void reset_stream(struct call *c, uint32_t error_code)
{
	drop_output(c);
	nghttp2_submit_rst_stream(c->grpc->session, NGHTTP2_FLAG_NONE, c->id, error_code);
}

/* Ends a call because of an error on this side: informs the owner and the peer. */
static void fail_call(struct call *c, const struct hw_err *e)
{
	call_close(c, status_from_err(e), e->msg);
	if (c->grpc->role == GRPC_CLIENT) {
		reset_stream(c, NGHTTP2_CANCEL);
		return;
	}
	drop_output(c);
	if (!c->ending)
		send_status(c, HTTP_OK, status_from_err(e), e->msg);
}

/* ---- receiving ---------------------------------------------------------------------- */

void call_on_request_headers(struct call *c)
{
	struct grpc *g = c->grpc;
	struct hw_err e;
	int http;

	c->pub.path = str_copy(str_or(c->header.path, ""));
	if (grpc_header_check_request(&c->header, g->limits.header, &http, &e) < 0) {
		send_status(c, http, status_from_err(&e), e.msg);
		return;
	}
	if (c->header.timeout < TIME_NEVER - g->now)
		c->pub.deadline = g->now + c->header.timeout;
	grpc_wake_at(g, c->pub.deadline);
	c->owned = true;
	g->events->begin(g->ctx, &c->pub);
}

void call_on_response_headers(struct call *c)
{
	const struct grpc_header *h = &c->header;
	struct hw_err e;

	if (h->http >= 100 && h->http < HTTP_OK)
		return;
	if (h->size > c->grpc->limits.header)
		status_set(&e, STATUS_RESOURCE_EXHAUSTED,
			   "response headers too large: %zu bytes, limit %u", h->size,
			   c->grpc->limits.header);
	else if (h->status < 0 && (h->http != HTTP_OK || !h->is_grpc))
		status_set(&e, status_from_http(h->http), "not a gRPC response: HTTP status %d",
			   h->http);
	else if (grpc_header_check_encoding(h, &e) < 0)
		e.wire = STATUS_INTERNAL;
	else
		return;
	fail_call(c, &e);
}

/* Client: called when the trailers are received. If the request is still being sent, the stream is
 * reset, because the server ignores the rest of the request. */
static void on_response_end(struct call *c)
{
	const struct grpc_header *h = &c->header;

	if (h->status < 0)
		call_close(c, STATUS_INTERNAL, "server closed the stream without a grpc-status");
	else
		call_close(c, (enum status_code)h->status, str_or(h->text, ""));
	if (!nghttp2_session_get_stream_local_close(c->grpc->session, c->id))
		reset_stream(c, NGHTTP2_NO_ERROR);
}

void call_on_end_stream(struct call *c)
{
	bool is_client = c->grpc->role == GRPC_CLIENT;
	struct hw_err e;

	if (!c->owned)
		return;
	/* a server that reports an error may stop in the middle of a message */
	if (!frame_is_between(&c->in) && !(is_client && c->header.status > STATUS_OK)) {
		status_set(&e, STATUS_INTERNAL, "stream ended in the middle of a message");
		fail_call(c, &e);
	} else if (is_client) {
		on_response_end(c);
	} else if (c->grpc->events->request_end) {
		c->grpc->events->request_end(c->grpc->ctx, &c->pub);
	}
}

static int receive_messages(struct call *c, const uint8_t *data, size_t len, struct hw_err *e)
{
	struct grpc *g = c->grpc;
	int r = 0;

	if (len > g->limits.buffered - g->buffered)
		return status_set(e, STATUS_RESOURCE_EXHAUSTED,
				  "received messages exceed the connection's buffer limit of %zu "
				  "bytes",
				  g->limits.buffered);
	g->buffered += len;
	c->buffered += len;
	while (r >= 0 && len > 0 && c->owned) {
		r = frame_feed(&c->in, &data, &len, e);
		if (r != 1)
			continue;
		c->unconsumed++;
		g->events->message(g->ctx, &c->pub, &c->in.message);
		frame_next(&c->in);
	}
	return r;
}

void call_on_data(struct call *c, const uint8_t *data, size_t len)
{
	struct hw_err e;

	if (!c->owned || c->unconsumed == 0)
		nghttp2_session_consume_stream(c->grpc->session, c->id, len);
	else
		c->unconsumed_bytes += len;
	if (c->owned && receive_messages(c, data, len, &e) < 0)
		fail_call(c, &e);
}

/* Enforces the deadline, and resets a finished call whose peer does not accept the response. */
void call_tick(struct call *c, int64_t now)
{
	struct hw_err e;

	if (c->owned && now >= c->pub.deadline) {
		status_set(&e, STATUS_DEADLINE_EXCEEDED, "deadline exceeded");
		fail_call(c, &e);
	}
	if (c->grpc->role == GRPC_SERVER && c->ending) {
		if (c->linger == 0)
			c->linger = now + GRPC_LINGER;
		if (now >= c->linger) {
			reset_stream(c, NGHTTP2_CANCEL);
			c->linger = TIME_NEVER; /* the stream ends when the reset is written */
		}
		grpc_wake_at(c->grpc, c->linger);
	} else if (c->owned) {
		grpc_wake_at(c->grpc, c->pub.deadline);
	}
}

/* ---- functions for owners ----------------------------------------------------------- */

int grpc_start(struct grpc *g, const char *path, int64_t timeout, int64_t now, void *user,
	       struct grpc_call **ret_call, struct hw_err *e)
{
	struct call *c = call_new(g);
	nghttp2_data_provider body = { .source.ptr = c, .read_callback = read_output };
	char text[TIMEOUT_TEXT];
	nghttp2_nv nv[] = {
		make_field(":method", "POST"),
		make_field(":scheme", "http"),
		make_field(":path", path),
		make_field(":authority", "localhost"),
		make_field("te", "trailers"),
		make_field("content-type", "application/grpc"),
		make_field("user-agent", "hawser/" HAWSER_VERSION),
		make_field("grpc-timeout", timeout_format(timeout, text)),
	};
	size_t n = ARRAY_SIZE(nv) - (timeout == TIME_NEVER);

	assert(g->role == GRPC_CLIENT);
	c->id = grpc_is_usable(g) ? nghttp2_submit_request(g->session, NULL, nv, n, &body, c)
				  : NGHTTP2_ERR_START_STREAM_NOT_ALLOWED;
	if (c->id < 0) {
		status_set(e, STATUS_UNAVAILABLE, "start call: %s", nghttp2_strerror(c->id));
		call_free(c);
		return e->code;
	}
	g->now = now;
	c->pub.user = user;
	c->pub.path = str_copy(path);
	if (timeout < TIME_NEVER - now)
		c->pub.deadline = now + timeout;
	grpc_wake_at(g, c->pub.deadline);
	c->owned = true;
	*ret_call = &c->pub;
	return 0;
}

void grpc_consumed(struct grpc_call *call)
{
	struct call *c = call_of(call);

	if (c->unconsumed == 0 || --c->unconsumed > 0)
		return;
	if (c->unconsumed_bytes > 0)
		nghttp2_session_consume_stream(c->grpc->session, c->id, c->unconsumed_bytes);
	c->unconsumed_bytes = 0;
	c->grpc->buffered -= c->buffered - c->in.message.len;
	c->buffered = c->in.message.len;
}

int grpc_send(struct grpc_call *call, struct buf *message, struct hw_err *e)
{
	struct call *c = call_of(call);
	struct grpc *g = c->grpc;
	struct outgoing_message *m;
	int r = 0;

	assert(c->owned && !c->ending);
	if (message->len > g->limits.message)
		r = status_set(e, STATUS_RESOURCE_EXHAUSTED,
			       "message too large: %zu bytes, limit %u", message->len,
			       g->limits.message);
	else if (g->role == GRPC_SERVER && message->len > g->limits.buffered - g->buffered)
		r = status_set(e, STATUS_RESOURCE_EXHAUSTED,
			       "unsent responses exceed the connection's buffer limit of %zu "
			       "bytes",
			       g->limits.buffered);
	if (r < 0) {
		buf_done(message);
		return r;
	}
	m = mem_new(sizeof(*m));
	m->buffered = g->role == GRPC_SERVER ? message->len : 0;
	g->buffered += m->buffered;
	frame_prefix(m->prefix, message->len);
	m->body = *message;
	*message = (struct buf){ 0 };
	list_append(&c->out, &m->link);
	if (g->role == GRPC_SERVER && !c->has_headers)
		send_headers(c);
	else
		nghttp2_session_resume_data(g->session, c->id);
	return 0;
}

void grpc_end_request(struct grpc_call *call)
{
	struct call *c = call_of(call);

	c->ending = true;
	nghttp2_session_resume_data(c->grpc->session, c->id);
}

void grpc_finish(struct grpc_call *call, enum status_code code, const char *text)
{
	struct call *c = call_of(call);

	assert(c->owned && c->grpc->role == GRPC_SERVER);
	disown(c);
	send_status(c, HTTP_OK, code, text);
}

void grpc_finish_until(struct grpc_call *call, enum status_code code, const char *text,
		       int64_t until)
{
	struct call *c = call_of(call);

	grpc_finish(call, code, text);
	c->linger = until;
	grpc_wake_at(c->grpc, until);
}

void grpc_cancel(struct grpc_call *call)
{
	struct call *c = call_of(call);

	disown(c);
	reset_stream(c, NGHTTP2_CANCEL);
}
