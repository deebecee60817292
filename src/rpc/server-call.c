/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/server-call.c - calls, from connections to threads and back
 *
 * How:   a call is made when its headers are here, and served when its request is:
 *        at once (instant), on the pool (short) or on a thread of its own (long).
 *        What its handler has done comes back over the list of ready calls.
 */
#include "base/map.h"
#include "base/str.h"
#include "base/time.h"
#include "rpc/server-internal.h"

/* ---- from the connection to a thread ------------------------------------------------ */

static void report(struct rpc_server *s, const char *path, uint64_t id, enum status_code code,
		   int64_t began)
{
	const struct rpc_ended ended = {
		.path = path, .id = id, .code = code, .ns = time_now() - began
	};

	if (s->config.ended)
		s->config.ended(s->config.ctx, &ended);
}

/**
 * server_call_ended() - a handler has; from its thread
 */
void server_call_ended(void *ctx, struct rpc_call *call, enum status_code code)
{
	if (rpc_is_over(call))
		code = call->over_code;
	report(ctx, call->method->path, call->id, code, call->began);
}

/* The stream is no longer the call's. */
static void let_go(struct rpc_call *call)
{
	call->stream = NULL;
	call->conn = NULL;
	rpc_call_unref(call);
}

/* A call whose handler will not run. */
static void refuse(struct rpc_server *s, struct rpc_call *call, enum status_code code,
		   const char *text)
{
	report(s, call->method->path, call->id, code, call->began);
	grpc_finish(call->stream, code, text);
	let_go(call);
}

static void collect(struct rpc_server *s, struct rpc_call *call, bool done);

static bool is_long(const struct rpc_call *call)
{
	return call->method->flags & RPC_LONG;
}

static void dispatch(struct rpc_server *s, struct rpc_call *call)
{
	autofree char *text = NULL;

	if (call->method->flags & RPC_INSTANT) {
		s->n_calls++;
		call->refs++;
		rpc_call_serve(call);
		collect(s, call, true);
		return;
	}
	if (!(is_long(call) && s->n_long >= s->config.long_calls) && rpc_call_dispatch(call)) {
		s->n_calls++;
		s->n_long += is_long(call);
		return;
	}
	text = is_long(call) ? str_printf("no thread for one more long call: %u run, %u may",
					  s->n_long, s->config.long_calls)
			     : str_printf("%u calls are waiting already", s->config.queue);
	refuse(s, call, STATUS_RESOURCE_EXHAUSTED, text);
}

static void on_begin(void *ctx, struct grpc_call *stream)
{
	struct conn *c = ctx;
	struct rpc_server *s = c->server;
	const struct method *m = map_find(s->methods, stream->path);
	struct rpc_call *call;

	if (!m) {
		autofree char *text = str_printf("unknown method %s", stream->path);

		report(s, "", ++s->last_id, STATUS_UNIMPLEMENTED, time_now());
		grpc_finish(stream, STATUS_UNIMPLEMENTED, text);
		return;
	}
	call = rpc_call_new(&s->calls, m->method, m->ctx);
	call->id = ++s->last_id;
	call->deadline = stream->deadline;
	call->stream = stream;
	call->conn = c;
	stream->user = call;
	if (m->method->flags & RPC_STREAM_IN)
		dispatch(s, call);
}

static void on_message(void *ctx, struct grpc_call *stream, struct buf *message)
{
	struct rpc_call *call = stream->user;
	struct conn *c = ctx;

	if (call->n_in > 0 && !(call->method->flags & RPC_STREAM_IN))
		refuse(c->server, call, STATUS_UNIMPLEMENTED, "the method takes one request");
	else
		rpc_call_push(call, message);
}

static void on_end(void *ctx, struct grpc_call *stream)
{
	struct rpc_call *call = stream->user;
	struct conn *c = ctx;

	rpc_call_push_end(call);
	if (call->method->flags & RPC_STREAM_IN)
		return;
	if (call->n_in == 1)
		dispatch(c->server, call);
	else
		refuse(c->server, call, STATUS_UNIMPLEMENTED, "the method takes one request");
}

static void on_sent(void *ctx, struct grpc_call *stream)
{
	(void)ctx;
	rpc_call_sent(stream->user);
}

static void on_over(void *ctx, struct grpc_call *stream, enum status_code code, const char *text)
{
	struct rpc_call *call = stream->user;
	struct conn *c = ctx;

	(void)text;
	if (call->refs > 1)
		rpc_call_over(call, code);
	else
		report(c->server, call->method->path, call->id, code, call->began);
	let_go(call);
}

const struct grpc_events server_events = {
	.begin = on_begin,
	.message = on_message,
	.end = on_end,
	.sent = on_sent,
	.over = on_over,
};

/* ---- from the thread back to the connection ----------------------------------------- */

static struct rpc_call *next_ready(struct rpc_calls *calls, bool *ret_done)
{
	struct rpc_call *call = NULL;

	pthread_mutex_lock(&calls->lock);
	if (!list_is_empty(&calls->ready)) {
		call = list_entry(calls->ready.next, struct rpc_call, ready_link);
		list_remove(&call->ready_link);
		call->is_ready = false;
		*ret_done = call->is_done;
	}
	pthread_mutex_unlock(&calls->lock);
	return call;
}

static void send_messages(struct rpc_call *call, struct list *out)
{
	struct hw_err e;

	list_for_each_safe(struct rpc_message, m, out, link) {
		list_remove(&m->link);
		if (call->stream && grpc_send(call->stream, &m->body, &e) < 0) {
			rpc_call_over(call, status_of(&e));
			grpc_finish(call->stream, status_of(&e), e.msg);
			let_go(call);
		}
		buf_done(&m->body);
		free(m);
	}
}

static void collect(struct rpc_server *s, struct rpc_call *call, bool done)
{
	struct list out = LIST_INIT(out);
	unsigned taken;

	rpc_call_collect(call, &out, &taken);
	while (call->stream && taken-- > 0)
		grpc_taken(call->stream);
	if (call->stream)
		conn_mark(call->conn);
	send_messages(call, &out);
	if (!done)
		return;
	if (call->stream) {
		grpc_finish(call->stream, call->code, str_or(call->text, ""));
		let_go(call);
	}
	s->n_calls--;
	s->n_long -= is_long(call);
	rpc_call_unref(call);
}

/**
 * server_collect() - what handlers have for their clients, and those that have ended
 */
void server_collect(struct rpc_server *s)
{
	struct rpc_call *call;
	bool done;

	while ((call = next_ready(&s->calls, &done)))
		collect(s, call, done);
}
