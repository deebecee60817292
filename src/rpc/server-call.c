/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/server-call.c - calls of the gRPC server: from connections to handlers and back
 *
 * How:   a call is created when its headers are received. Its handler is started when its request
 *        is complete, or at once if the request is a stream. The handler returns its output to the
 *        loop through the list of ready calls.
 */
#include <errno.h>

#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "base/time.h"
#include "rpc/server-internal.h"

#define STOPPING "server is stopping"

/* ---- limit of long calls ------------------------------------------------------------- */

/* Calls of one method that wait for ever must leave room for every other method. So a part of the long
 * calls is reserved for each method (rpc_server_add()), and the methods share the rest. */
static int check_long_limit(const struct rpc_server *s, const struct server_method *m,
			    struct hw_err *e)
{
	unsigned max = s->config.long_calls_max;

	if (m->n_long < s->reserved || s->n_shared < max - s->n_long_methods * s->reserved)
		return 0;
	return err_text(e, -EBUSY,
			"no thread for another long call: %u running, %u of this method, limit %u",
			s->n_long, m->n_long, max);
}

/* A handler is started. */
static void count_start(struct rpc_server *s, struct rpc_call *call)
{
	struct server_method *m = call->entry;

	s->n_calls++;
	if (call->method->flags & RPC_ENDLESS)
		list_append(&s->endless, &call->endless_link);
	if (!(call->method->flags & RPC_LONG))
		return;
	s->n_long++;
	s->n_shared += m->n_long >= s->reserved;
	m->n_long++;
}

/* A handler has returned. */
static void count_end(struct rpc_server *s, struct rpc_call *call)
{
	struct server_method *m = call->entry;

	s->n_calls--;
	list_remove(&call->endless_link);
	if (!(call->method->flags & RPC_LONG))
		return;
	s->n_long--;
	m->n_long--;
	s->n_shared -= m->n_long >= s->reserved;
}

/* ---- from the connection to the handler --------------------------------------------- */

static void report_finished(struct rpc_server *s, const char *path, uint64_t id,
			    enum status_code code, int64_t started)
{
	const struct rpc_finished_call call = {
		.path = path, .id = id, .code = code, .ns = time_now() - started
	};

	if (s->config.finished)
		s->config.finished(s->config.ctx, &call);
}

void server_call_finished(void *ctx, struct rpc_call *call, enum status_code code)
{
	if (rpc_is_cancelled(call))
		code = call->cancel_code;
	report_finished(ctx, call->method->path, call->id, code, call->started);
}

/* The stream is closed or finished: drops the loop's reference. */
static void detach_stream(struct rpc_call *call)
{
	struct conn *c = call->conn;

	c->n_calls--;
	call->stream = NULL;
	call->conn = NULL;
	rpc_call_unref(call);
}

/* Ends a call without running its handler. */
static void refuse_call(struct rpc_server *s, struct rpc_call *call, enum status_code code,
			const char *text)
{
	report_finished(s, call->method->path, call->id, code, call->started);
	grpc_finish(call->stream, code, text);
	detach_stream(call);
}

static void process_call(struct rpc_server *s, struct rpc_call *call, bool done);

static void start_handler(struct rpc_server *s, struct rpc_call *call)
{
	struct hw_err e;
	int r = 0;

	if (call->method->flags & RPC_INSTANT) {
		count_start(s, call);
		call->refs++;
		rpc_call_run(call);
		process_call(s, call, true);
		return;
	}
	if (s->stopping && call->method->flags & RPC_ENDLESS) {
		refuse_call(s, call, STATUS_UNAVAILABLE, STOPPING);
		return;
	}
	if (call->method->flags & RPC_LONG)
		r = check_long_limit(s, call->entry, &e);
	if (r == 0)
		r = rpc_call_dispatch(call, &e);
	if (r < 0) {
		refuse_call(s, call, STATUS_RESOURCE_EXHAUSTED, e.msg);
		return;
	}
	count_start(s, call);
}

static void on_begin(void *ctx, struct grpc_call *stream)
{
	struct conn *c = ctx;
	struct rpc_server *s = c->server;
	struct server_method *m;
	struct rpc_call *call;

	m = map_find(s->methods, stream->path);
	if (!m) {
		autofree char *text = str_printf("unknown method %s", stream->path);

		report_finished(s, "", ++s->last_id, STATUS_UNIMPLEMENTED, time_now());
		grpc_finish(stream, STATUS_UNIMPLEMENTED, text);
		return;
	}
	call = rpc_call_new(&s->calls, m->method, m->ctx);
	call->id = ++s->last_id;
	call->deadline = stream->deadline;
	call->stream = stream;
	call->conn = c;
	c->n_calls++;
	call->entry = m;
	stream->user = call;
	if (m->method->flags & RPC_STREAM_IN)
		start_handler(s, call);
}

static void on_message(void *ctx, struct grpc_call *stream, struct buf *message)
{
	struct rpc_call *call = stream->user;
	struct conn *c = ctx;

	if (call->n_in > 0 && !(call->method->flags & RPC_STREAM_IN))
		refuse_call(c->server, call, STATUS_UNIMPLEMENTED,
			    "expected one request message, got more");
	else
		rpc_call_add_message(call, message);
}

static void on_request_end(void *ctx, struct grpc_call *stream)
{
	struct rpc_call *call = stream->user;
	struct conn *c = ctx;

	rpc_call_end_request(call);
	if (call->method->flags & RPC_STREAM_IN)
		return;
	if (call->n_in == 1)
		start_handler(c->server, call);
	else
		refuse_call(c->server, call, STATUS_UNIMPLEMENTED,
			    "expected one request message, got none");
}

static void on_sent(void *ctx, struct grpc_call *stream)
{
	(void)ctx;
	rpc_call_stream_sent(stream->user);
}

static void on_closed(void *ctx, struct grpc_call *stream, enum status_code code, const char *text)
{
	struct rpc_call *call = stream->user;
	struct conn *c = ctx;

	(void)text;
	if (call->refs > 1) /* the handler has been started */
		rpc_call_cancel(call, code);
	else
		report_finished(c->server, call->method->path, call->id, code, call->started);
	detach_stream(call);
}

const struct grpc_events server_events = {
	.begin = on_begin,
	.message = on_message,
	.request_end = on_request_end,
	.sent = on_sent,
	.closed = on_closed,
};

/* ---- from the handler back to the connection ---------------------------------------- */

/* Return: NULL if no call is ready */
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

/* @done: the handler has returned */
static void process_call(struct rpc_server *s, struct rpc_call *call, bool done)
{
	struct list out = LIST_INIT(out);
	unsigned consumed;
	struct hw_err e;

	rpc_call_take_output(call, &out, &consumed);
	while (call->stream && consumed-- > 0)
		grpc_consumed(call->stream);
	if (call->stream)
		conn_schedule_flush(call->conn);
	list_for_each_safe(struct rpc_message, m, &out, link) {
		list_remove(&m->link);
		if (call->stream && grpc_send(call->stream, &m->body, &e) < 0) {
			rpc_call_cancel(call, status_from_err(&e));
			grpc_finish(call->stream, status_from_err(&e), e.msg);
			detach_stream(call);
		}
		buf_done(&m->body);
		free(m);
	}
	if (!done)
		return;
	if (call->stream) {
		grpc_finish(call->stream, call->code, str_or(call->text, ""));
		detach_stream(call);
	}
	count_end(s, call);
	rpc_call_unref(call);
}

void server_end_endless(struct rpc_server *s)
{
	list_for_each(struct rpc_call, call, &s->endless, endless_link) {
		if (!call->stream)
			continue;
		rpc_call_cancel(call, STATUS_UNAVAILABLE);
		conn_schedule_flush(call->conn);
		grpc_finish_until(call->stream, STATUS_UNAVAILABLE, STOPPING, s->close_idle_at);
		detach_stream(call); /* the handler still has a reference */
	}
}

void server_process_ready(struct rpc_server *s)
{
	struct rpc_call *call;
	bool done;

	while ((call = next_ready(&s->calls, &done)))
		process_call(s, call, done);
}
