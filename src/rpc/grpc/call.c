/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/call.c - one call on a gRPC connection: headers, messages, status
 *
 * How:   in: header fields and bytes come from grpc.c; frame.c cuts the bytes
 *        into messages, which go to the owner. out: messages wait in a queue that
 *        nghttp2 asks for as the peer's windows allow; behind the last of them
 *        comes END_STREAM (client) or the trailers (server).
 *
 *	a server's call	            owned   has_headers   ending
 *	headers are coming          no      no            no
 *	running                     yes     once it sent  no
 *	refused, failed, finished   no      as before     yes     trailers are on their way
 *
 * Rules: what came of a call and is not taken counts for limits.held, and stops
 *        counting when the call is no longer its owner's. So does what a server
 *        has for a peer that does not take it, until it is taken.
 *        nghttp2's submit functions fail only for lack of memory or because the
 *        stream is gone already, which its close tells: their results are not
 *        looked at.
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

struct message {
	struct list link;
	uint8_t prefix[FRAME_PREFIX];
	struct buf body;
	size_t at;   /* how much of both is sent */
	size_t held; /* its part of grpc.held */
};

static struct call *call_of(struct grpc_call *pub)
{
	return list_entry(pub, struct call, pub);
}

/* ---- birth and end ------------------------------------------------------------------ */

/**
 * call_new() - a call that is nobody's yet
 */
struct call *call_new(struct grpc *g)
{
	struct call *c = mem_new(sizeof(*c));

	c->grpc = g;
	c->pub.deadline = TIME_NEVER;
	c->in.max = g->limits.message;
	header_init(&c->header);
	list_init(&c->out);
	list_append(&g->calls, &c->link);
	return c;
}

static void message_free(struct call *c, struct message *m)
{
	c->grpc->held -= m->held;
	list_remove(&m->link);
	buf_done(&m->body);
	free(m);
}

static void drop_output(struct call *c)
{
	list_for_each_safe(struct message, m, &c->out, link)
		message_free(c, m);
}

/* No longer the owner's: what it holds is dropped, what still comes is not looked at. */
static void disown(struct call *c)
{
	c->owned = false;
	c->grpc->held -= c->held;
	c->held = 0;
	frame_next(&c->in);
	if (c->unconsumed > 0)
		nghttp2_session_consume_stream(c->grpc->session, c->id, c->unconsumed);
	c->unconsumed = 0;
}

/**
 * call_over() - the end, if it is not the owner's own doing: tell it
 */
void call_over(struct call *c, enum status_code code, const char *text)
{
	const struct grpc_events *events = c->grpc->events;

	if (!c->owned)
		return;
	disown(c);
	if (events->over)
		events->over(c->grpc->ctx, &c->pub, code, text);
}

void call_free(struct call *c)
{
	drop_output(c);
	frame_done(&c->in);
	header_done(&c->header);
	list_remove(&c->link);
	free(c->text);
	free((char *)c->pub.path);
	free(c);
}

/* ---- sending ------------------------------------------------------------------------ */

static nghttp2_nv field(const char *name, const char *value)
{
	return (nghttp2_nv){ .name = (uint8_t *)name,
			     .value = (uint8_t *)value,
			     .namelen = strlen(name),
			     .valuelen = strlen(value) };
}

/* Fills grpc-status and, if there is a text, grpc-message. Return: how many */
static size_t status_fields(const struct call *c, char number[12], struct buf *text, nghttp2_nv *nv)
{
	snprintf(number, 12, "%d", c->code);
	nv[0] = field("grpc-status", number);
	if (str_empty(c->text))
		return 1;
	status_text_encode(c->text, text);
	nv[1] = field("grpc-message", text->data);
	return 2;
}

static void send_trailers(struct call *c)
{
	AUTO(buf_done) struct buf text = { 0 };
	char number[12];
	nghttp2_nv nv[2];
	size_t n = status_fields(c, number, &text, nv);

	nghttp2_submit_trailer(c->grpc->session, c->id, nv, n);
}

/* Of the prefix, or of the body behind it, as much as fits. */
static size_t copy_message(struct message *m, uint8_t *to, size_t room)
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

/* As much of the queue as fits. */
static size_t copy_output(struct call *c, uint8_t *to, size_t room)
{
	size_t done = 0;

	list_for_each_safe(struct message, m, &c->out, link) {
		if (m->at < FRAME_PREFIX)
			done += copy_message(m, to + done, room - done);
		done += copy_message(m, to + done, room - done);
		if (m->at < FRAME_PREFIX + m->body.len)
			break;
		message_free(c, m);
	}
	return done;
}

/* nghttp2 asks for more bytes of the call. */
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

/* Server: headers, then what is in the queue. */
static void send_headers(struct call *c)
{
	nghttp2_data_provider body = { .source.ptr = c, .read_callback = read_output };
	nghttp2_nv nv[] = { field(":status", "200"), field("content-type", "application/grpc") };

	c->has_headers = true;
	nghttp2_submit_response(c->grpc->session, c->id, nv, ARRAY_SIZE(nv), &body);
}

/* Server: headers and trailers in one. */
static void send_only_trailers(struct call *c, int http)
{
	AUTO(buf_done) struct buf text = { 0 };
	char number[12], status[12];
	nghttp2_nv nv[5];
	size_t n = 0;

	snprintf(status, sizeof(status), "%d", http);
	nv[n++] = field(":status", status);
	nv[n++] = field("content-type", "application/grpc");
	if (c->code == STATUS_UNIMPLEMENTED)
		nv[n++] = field("grpc-accept-encoding", "identity");
	n += status_fields(c, number, &text, nv + n);
	nghttp2_submit_response(c->grpc->session, c->id, nv, n, NULL);
}

/* As much as grpc-message may hold, and no half character at its end. */
static char *cut_text(const char *text)
{
	size_t n = strnlen(text, GRPC_TEXT_MAX);

	while (n > 0 && (text[n] & 0xc0) == 0x80)
		n--;
	return str_ncopy(text, n);
}

/* Server: this is how it ends, after what is queued. */
static void answer(struct call *c, int http, enum status_code code, const char *text)
{
	c->code = code;
	c->text = cut_text(text);
	c->ending = true;
	grpc_wake_at(c->grpc, c->grpc->now + GRPC_LINGER);
	if (c->has_headers)
		nghttp2_session_resume_data(c->grpc->session, c->id);
	else if (!list_is_empty(&c->out))
		send_headers(c);
	else
		send_only_trailers(c, http);
}

static void reset(struct call *c, uint32_t error_code)
{
	drop_output(c);
	nghttp2_submit_rst_stream(c->grpc->session, NGHTTP2_FLAG_NONE, c->id, error_code);
}

/* Something is wrong with the call: its owner and the peer are told. */
static void fail(struct call *c, const struct hw_err *e)
{
	call_over(c, status_of(e), e->msg);
	if (c->grpc->role == GRPC_CLIENT) {
		reset(c, NGHTTP2_CANCEL);
		return;
	}
	drop_output(c);
	if (!c->ending)
		answer(c, HTTP_OK, status_of(e), e->msg);
}

/* ---- receiving ---------------------------------------------------------------------- */

/**
 * call_request() - a server has all headers of a call
 */
void call_request(struct call *c)
{
	struct grpc *g = c->grpc;
	struct hw_err e;
	int http;

	c->pub.path = str_copy(str_or(c->header.path, ""));
	if (header_check_request(&c->header, g->limits.header, &http, &e) < 0) {
		answer(c, http, status_of(&e), e.msg);
		return;
	}
	if (c->header.timeout < TIME_NEVER - g->now)
		c->pub.deadline = g->now + c->header.timeout;
	grpc_wake_at(g, c->pub.deadline);
	c->owned = true;
	g->events->begin(g->ctx, &c->pub);
}

/**
 * call_response() - a client has the headers of an answer, or its trailers
 */
void call_response(struct call *c)
{
	const struct header *h = &c->header;
	struct hw_err e;

	if (h->http >= 100 && h->http < HTTP_OK)
		return;
	if (h->size > c->grpc->limits.header)
		status_set(&e, STATUS_RESOURCE_EXHAUSTED,
			   "the answer's headers of %zu bytes are longer than the limit of %u",
			   h->size, c->grpc->limits.header);
	else if (h->status < 0 && (h->http != HTTP_OK || !h->is_grpc))
		status_set(&e, status_from_http(h->http), "the answer is not gRPC: HTTP status %d",
			   h->http);
	else if (header_check_encoding(h, &e) < 0)
		e.wire = STATUS_INTERNAL;
	else
		return;
	fail(c, &e);
}

/* Server: the request is whole. Client: here is the status. */
static void end_of_input(struct call *c)
{
	const struct header *h = &c->header;

	if (c->grpc->role == GRPC_SERVER) {
		if (c->grpc->events->end)
			c->grpc->events->end(c->grpc->ctx, &c->pub);
		return;
	}
	if (h->status < 0)
		call_over(c, STATUS_INTERNAL, "the server ended the call without a status");
	else
		call_over(c, (enum status_code)h->status, str_or(h->text, ""));
	if (!nghttp2_session_get_stream_local_close(c->grpc->session, c->id))
		reset(c, NGHTTP2_NO_ERROR);
}

/**
 * call_half_closed() - the peer sends no more
 */
void call_half_closed(struct call *c)
{
	bool failed = c->grpc->role == GRPC_CLIENT && c->header.status > STATUS_OK;
	struct hw_err e;

	if (!c->owned)
		return;
	if (frame_is_between(&c->in) || failed) {
		end_of_input(c);
		return;
	}
	status_set(&e, STATUS_INTERNAL, "the stream ended within a message");
	fail(c, &e);
}

static int hold(struct call *c, size_t len, struct hw_err *e)
{
	struct grpc *g = c->grpc;

	if (len > g->limits.held - g->held)
		return status_set(e, STATUS_RESOURCE_EXHAUSTED,
				  "unfinished messages on one connection exceed %zu bytes",
				  g->limits.held);
	g->held += len;
	c->held += len;
	return 0;
}

static int cut(struct call *c, const uint8_t *data, size_t len, struct hw_err *e)
{
	struct grpc *g = c->grpc;
	int r = hold(c, len, e);

	while (r >= 0 && len > 0 && c->owned) {
		r = frame_feed(&c->in, &data, &len, e);
		if (r != 1)
			continue;
		c->waiting++;
		g->events->message(g->ctx, &c->pub, &c->in.message);
		frame_next(&c->in);
	}
	return r;
}

/**
 * call_data() - some bytes of messages
 */
void call_data(struct call *c, const uint8_t *data, size_t len)
{
	struct hw_err e;

	if (!c->owned || c->waiting == 0)
		nghttp2_session_consume_stream(c->grpc->session, c->id, len);
	else
		c->unconsumed += len;
	if (c->owned && cut(c, data, len, &e) < 0)
		fail(c, &e);
}

/**
 * call_tick() - what the time has come for
 *
 * A finished call whose peer does not take the answer is reset.
 */
void call_tick(struct call *c, int64_t now)
{
	bool late = now >= c->pub.deadline;
	struct hw_err e;

	if (c->owned && late) {
		status_set(&e, STATUS_DEADLINE_EXCEEDED, "deadline exceeded");
		fail(c, &e);
	}
	if (c->grpc->role == GRPC_SERVER && c->ending) {
		if (c->linger == 0)
			c->linger = now + GRPC_LINGER;
		else if (now >= c->linger)
			reset(c, NGHTTP2_CANCEL);
		grpc_wake_at(c->grpc, c->linger);
	} else if (c->owned) {
		grpc_wake_at(c->grpc, c->pub.deadline);
	}
}

/* ---- for owners --------------------------------------------------------------------- */

/**
 * grpc_start() - client: begin a call
 * @g:        the connection
 * @path:     "/package.Service/Method"
 * @timeout:  ns; TIME_NEVER: none. The server is told, and we keep it, too
 * @now:      the time
 * @user:     for the owner
 * @ret_call: the call; grpc_send() and grpc_end() come next
 * @e:        the error
 */
int grpc_start(struct grpc *g, const char *path, int64_t timeout, int64_t now, void *user,
	       struct grpc_call **ret_call, struct hw_err *e)
{
	struct call *c = call_new(g);
	nghttp2_data_provider body = { .source.ptr = c, .read_callback = read_output };
	char text[TIMEOUT_TEXT];
	nghttp2_nv nv[] = {
		field(":method", "POST"),
		field(":scheme", "http"),
		field(":path", path),
		field(":authority", "localhost"),
		field("te", "trailers"),
		field("content-type", "application/grpc"),
		field("user-agent", "hawser/" HAWSER_VERSION),
		field("grpc-timeout", timeout_format(timeout, text)),
	};
	size_t n = ARRAY_SIZE(nv) - (timeout == TIME_NEVER);

	assert(g->role == GRPC_CLIENT);
	c->id = grpc_is_usable(g) ? nghttp2_submit_request(g->session, NULL, nv, n, &body, c)
				  : NGHTTP2_ERR_START_STREAM_NOT_ALLOWED;
	if (c->id < 0) {
		status_set(e, STATUS_UNAVAILABLE, "start a call: %s", nghttp2_strerror(c->id));
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

/**
 * grpc_taken() - the messages that came are dealt with: open the peer's window again
 */
void grpc_taken(struct grpc_call *call)
{
	struct call *c = call_of(call);

	if (c->waiting == 0 || --c->waiting > 0)
		return;
	if (c->unconsumed > 0)
		nghttp2_session_consume_stream(c->grpc->session, c->id, c->unconsumed);
	c->unconsumed = 0;
	c->grpc->held -= c->held - c->in.message.len;
	c->held = c->in.message.len;
}

static int check_room(const struct grpc *g, size_t len, struct hw_err *e)
{
	if (len > g->limits.message)
		return status_set(e, STATUS_RESOURCE_EXHAUSTED,
				  "a message of %zu bytes is longer than the limit of %u", len,
				  g->limits.message);
	if (g->role == GRPC_SERVER && len > g->limits.held - g->held)
		return status_set(e, STATUS_RESOURCE_EXHAUSTED,
				  "answers that are not taken exceed %zu bytes on one connection",
				  g->limits.held);
	return 0;
}

/**
 * grpc_send() - queue a message
 * @call:    the call; not after grpc_end()
 * @message: its bytes are taken over
 * @e:       the error
 */
int grpc_send(struct grpc_call *call, struct buf *message, struct hw_err *e)
{
	struct call *c = call_of(call);
	struct message *m;
	int r;

	assert(c->owned && !c->ending);
	r = check_room(c->grpc, message->len, e);
	if (r < 0) {
		buf_done(message);
		return r;
	}
	m = mem_new(sizeof(*m));
	m->held = c->grpc->role == GRPC_SERVER ? message->len : 0;
	c->grpc->held += m->held;
	frame_prefix(m->prefix, message->len);
	m->body = *message;
	*message = (struct buf){ 0 };
	list_append(&c->out, &m->link);
	if (c->grpc->role == GRPC_SERVER && !c->has_headers)
		send_headers(c);
	else
		nghttp2_session_resume_data(c->grpc->session, c->id);
	return 0;
}

/**
 * grpc_end() - client: the request is whole
 */
void grpc_end(struct grpc_call *call)
{
	struct call *c = call_of(call);

	c->ending = true;
	nghttp2_session_resume_data(c->grpc->session, c->id);
}

/**
 * grpc_finish() - server: end the call, after the messages that were sent
 * @call: no longer the owner's afterwards
 * @code: how it ended
 * @text: for people; "" where there is nothing to say
 */
void grpc_finish(struct grpc_call *call, enum status_code code, const char *text)
{
	struct call *c = call_of(call);

	assert(c->owned && c->grpc->role == GRPC_SERVER);
	disown(c);
	answer(c, HTTP_OK, code, text);
}

/**
 * grpc_cancel() - client: no more interest
 * @call: no longer the owner's afterwards
 */
void grpc_cancel(struct grpc_call *call)
{
	struct call *c = call_of(call);

	disown(c);
	reset(c, NGHTTP2_CANCEL);
}
