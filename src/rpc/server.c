/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/server.c - a gRPC server: sockets on a libuv loop, handlers on threads
 *
 * How:   a connection is a descriptor polled by the loop, a struct grpc, and what
 *        could not be written yet. Calls go to threads through call.c and come
 *        back over a list that uv_async wakes us for; connections that have new
 *        output are written once per turn. One timer serves all deadlines: it is
 *        set to the soonest, and when it fires everybody is asked.
 * Rules: a connection is closed only by conn_settle(), at the end of a turn, never
 *        below one of its own events.
 */
#include "rpc/server.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include <uv.h>

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/time.h"
#include "rpc/call-loop.h"

#define READ_SIZE    (64 << 10)
#define WRITE_SIZE   (64 << 10)
#define ACCEPT_BATCH 64
#define ACCEPT_PAUSE 100 /* ms, when there are no descriptors left */

struct method {
	const struct rpc_method *method;
	void *ctx;
};

struct listener {
	struct list link;
	struct rpc_server *server;
	int fd;
	uv_poll_t poll;
};

struct conn {
	struct list link;
	struct list dirty; /* in server.dirty: has to be settled this turn */
	struct rpc_server *server;
	int fd;
	uv_poll_t poll;
	int events; /* that are polled for */
	struct grpc *grpc;
	struct buf out; /* what was not written yet: from out_at on */
	size_t out_at;
	int64_t stalled; /* when out is given up; TIME_NEVER while there is none */
	bool broken;
};

struct rpc_server {
	struct rpc_config config;
	uv_loop_t *loop;
	uv_async_t async;
	uv_timer_t timer;
	int64_t next;	/* when the timer is wanted */
	int64_t armed;	/* when it fires */
	int64_t resume; /* when listeners that were paused go on */
	struct map *methods;
	struct rpc_calls calls;
	struct list listeners, conns, dirty;
	atomic_uint n_conns, n_calls, n_long;
	uint64_t last_id;
	/* from rpc_server_stop() on */
	bool stopping;
	int64_t stop_at;
	unsigned open_handles; /* async and timer */
	void (*stopped)(void *ctx);
	void *stopped_ctx;
};

static void wake_at(struct rpc_server *s, int64_t when)
{
	if (when < s->next)
		s->next = when;
}

/* ---- connections -------------------------------------------------------------------- */

static void conn_mark(struct conn *c)
{
	if (list_is_empty(&c->dirty))
		list_append(&c->server->dirty, &c->dirty);
}

static void on_conn_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void conn_close(struct conn *c)
{
	grpc_free(c->grpc);
	buf_done(&c->out);
	list_remove(&c->link);
	list_remove(&c->dirty);
	uv_poll_stop(&c->poll);
	close(c->fd);
	c->server->n_conns--;
	uv_close((uv_handle_t *)&c->poll, on_conn_closed);
}

/* Fill out with what the connection has to say. Return: whether there is something */
static bool conn_gather(struct conn *c)
{
	const uint8_t *data;
	size_t n;

	if (c->out.len > 0)
		return true;
	while (c->out.len < WRITE_SIZE && (n = grpc_output(c->grpc, &data)) > 0)
		buf_add(&c->out, data, n);
	return c->out.len > 0;
}

/* Return: false: the peer takes no more now, or never again (broken) */
static bool conn_write(struct conn *c)
{
	ssize_t n = send(c->fd, c->out.data + c->out_at, c->out.len - c->out_at,
			 MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0) {
		c->broken = errno != EAGAIN && errno != EINTR;
		return false;
	}
	c->stalled = TIME_NEVER;
	c->out_at += (size_t)n;
	if (c->out_at < c->out.len)
		return true;
	buf_done(&c->out);
	c->out_at = 0;
	return true;
}

static void on_conn(uv_poll_t *poll, int status, int events);

static void conn_poll(struct conn *c, int events)
{
	if (events != c->events)
		uv_poll_start(&c->poll, events, on_conn);
	c->events = events;
}

static void conn_flush(struct conn *c)
{
	while (conn_gather(c) && conn_write(c))
		;
	if (c->out.len > 0 && c->stalled == TIME_NEVER)
		c->stalled = time_deadline(c->server->config.stall_ms);
	wake_at(c->server, c->stalled);
	conn_poll(c, UV_READABLE | (c->out.len > 0 ? UV_WRITABLE : 0));
}

/* After whatever happened: write, look at the time, close what is at its end. */
static void conn_settle(struct conn *c)
{
	list_remove(&c->dirty);
	if (!c->broken)
		conn_flush(c);
	if (c->broken || (grpc_is_done(c->grpc) && c->out.len == 0))
		conn_close(c);
	else
		wake_at(c->server, grpc_deadline(c->grpc));
}

static void conn_read(struct conn *c)
{
	uint8_t data[READ_SIZE];
	ssize_t n = recv(c->fd, data, sizeof(data), MSG_DONTWAIT);
	struct hw_err e;

	if (n > 0)
		(void)grpc_feed(c->grpc, data, (size_t)n, time_now(), &e); /* then it is done */
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		c->broken = true;
}

/* ---- a turn of the loop ------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer);
static void check_stopped(struct rpc_server *s);

/* The last thing of each callback. */
static void end_turn(struct rpc_server *s)
{
	list_for_each_safe(struct conn, c, &s->dirty, dirty)
		conn_settle(c);
	if (s->next < s->armed) {
		s->armed = s->next;
		uv_timer_start(&s->timer, on_timer, (uint64_t)time_left_ms(s->armed), 0);
	}
	if (s->stopping)
		check_stopped(s);
}

static void on_conn(uv_poll_t *poll, int status, int events)
{
	struct conn *c = poll->data;

	if (status < 0)
		c->broken = true;
	else if (events & UV_READABLE)
		conn_read(c);
	conn_mark(c);
	end_turn(c->server);
}

/* ---- calls: from the connection to a thread ----------------------------------------- */

static void report(struct rpc_server *s, const char *path, uint64_t id, enum status_code code,
		   int64_t began)
{
	const struct rpc_ended ended = {
		.path = path, .id = id, .code = code, .ns = time_now() - began
	};

	if (s->config.ended)
		s->config.ended(s->config.ctx, &ended);
}

static void on_handler_ended(void *ctx, struct rpc_call *call, enum status_code code)
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

static const struct grpc_events events = {
	.begin = on_begin,
	.message = on_message,
	.end = on_end,
	.sent = on_sent,
	.over = on_over,
};

/* ---- calls: from the thread back to the connection ---------------------------------- */

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
		if (call->stream)
			(void)grpc_send(call->stream, &m->body,
					&e); /* rpc_send() has measured it */
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
	send_messages(call, &out);
	if (call->stream)
		conn_mark(call->conn);
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

static void on_async(uv_async_t *async)
{
	struct rpc_server *s = async->data;
	struct rpc_call *call;
	bool done;

	while ((call = next_ready(&s->calls, &done)))
		collect(s, call, done);
	end_turn(s);
}

static void wake_loop(void *ctx)
{
	struct rpc_server *s = ctx;

	uv_async_send(&s->async);
}

/* ---- listening ---------------------------------------------------------------------- */

static void conn_new(struct rpc_server *s, int fd)
{
	struct conn *c = mem_new(sizeof(*c));

	if (uv_poll_init(s->loop, &c->poll, fd) < 0) {
		close(fd);
		free(c);
		return;
	}
	c->server = s;
	c->fd = fd;
	c->stalled = TIME_NEVER;
	c->grpc = grpc_new(GRPC_SERVER, &s->config.limits, &events, c, time_now());
	c->poll.data = c;
	list_init(&c->dirty);
	list_append(&s->conns, &c->link);
	s->n_conns++;
	conn_mark(c);
}

static bool is_shortage(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

static void on_listen(uv_poll_t *poll, int status, int events_)
{
	struct listener *l = poll->data;
	struct rpc_server *s = l->server;

	(void)status;
	(void)events_;
	for (int i = 0; i < ACCEPT_BATCH; i++) {
		int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && is_shortage(errno)) {
			uv_poll_stop(poll);
			s->resume = time_deadline(ACCEPT_PAUSE);
			wake_at(s, s->resume);
		}
		if (fd < 0)
			break;
		if (s->n_conns < s->config.connections)
			conn_new(s, fd);
		else
			close(fd);
	}
	end_turn(s);
}

static void resume_listeners(struct rpc_server *s)
{
	s->resume = TIME_NEVER;
	list_for_each(struct listener, l, &s->listeners, link)
		uv_poll_start(&l->poll, UV_READABLE, on_listen);
}

/**
 * rpc_server_listen() - serve on one more socket
 */
int rpc_server_listen(struct rpc_server *s, int fd, struct hw_err *e)
{
	struct listener *l = mem_new(sizeof(*l));
	int r = uv_poll_init(s->loop, &l->poll, fd);

	if (r < 0) {
		free(l);
		close(fd);
		return err_set(e, r, "poll a listening socket");
	}
	l->server = s;
	l->fd = fd;
	l->poll.data = l;
	list_append(&s->listeners, &l->link);
	uv_poll_start(&l->poll, UV_READABLE, on_listen);
	return 0;
}

/* ---- time --------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer)
{
	struct rpc_server *s = timer->data;
	int64_t now = time_now();

	s->next = s->armed = TIME_NEVER;
	if (now >= s->resume)
		resume_listeners(s);
	wake_at(s, s->resume);
	wake_at(s, s->stop_at > now ? s->stop_at : TIME_NEVER);
	list_for_each(struct conn, c, &s->conns, link) {
		grpc_tick(c->grpc, now);
		if (now >= c->stalled || now >= s->stop_at)
			c->broken = true;
		conn_mark(c);
	}
	end_turn(s);
}

/* ---- beginning and end -------------------------------------------------------------- */

/**
 * rpc_server_new() - a server that has no methods and no sockets yet
 * @loop:       to run on
 * @config:     copied
 * @ret_server: the server
 * @e:          the error
 */
int rpc_server_new(struct uv_loop_s *loop, const struct rpc_config *config,
		   struct rpc_server **ret_server, struct hw_err *e)
{
	const struct workers_limits limits = { .pool = config->pool, .queue = config->queue };
	struct rpc_server *s = mem_new(sizeof(*s));
	int r = uv_async_init(loop, &s->async, on_async);

	if (r < 0) {
		free(s);
		return err_set(e, r, "make a server");
	}
	s->config = *config;
	s->loop = loop;
	s->next = s->armed = s->resume = s->stop_at = TIME_NEVER;
	uv_timer_init(loop, &s->timer);
	s->async.data = s->timer.data = s;
	list_init(&s->listeners);
	list_init(&s->conns);
	list_init(&s->dirty);
	s->methods = map_new(free);
	s->calls = (struct rpc_calls){
		.workers = workers_new(&limits),
		.stall_ms = config->stall_ms,
		.message_max = config->limits.message,
		.ended = on_handler_ended,
		.wake = wake_loop,
		.ctx = s,
	};
	pthread_mutex_init(&s->calls.lock, NULL);
	list_init(&s->calls.ready);
	*ret_server = s;
	return 0;
}

/**
 * rpc_server_add() - more methods
 */
void rpc_server_add(struct rpc_server *s, const struct rpc_method *methods, void *ctx)
{
	for (; methods->path; methods++) {
		struct method *m = mem_new(sizeof(*m));

		*m = (struct method){ .method = methods, .ctx = ctx };
		map_set(s->methods, methods->path, m);
	}
}

static void on_listener_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void on_handle_closed(uv_handle_t *handle)
{
	struct rpc_server *s = handle->data;

	if (--s->open_handles == 0)
		s->stopped(s->stopped_ctx);
}

/* Nobody is connected and no handler runs: the rest goes, too. */
static void check_stopped(struct rpc_server *s)
{
	if (!list_is_empty(&s->conns) || s->n_calls > 0 || s->open_handles > 0)
		return;
	s->open_handles = 2;
	uv_close((uv_handle_t *)&s->async, on_handle_closed);
	uv_close((uv_handle_t *)&s->timer, on_handle_closed);
}

/**
 * rpc_server_stop() - take no new calls, let those that run end
 * @s:       the server
 * @ms:      after which calls that still run are over
 * @stopped: called when all is quiet
 * @ctx:     for it
 */
void rpc_server_stop(struct rpc_server *s, int ms, void (*stopped)(void *ctx), void *ctx)
{
	assert(!s->stopping);
	s->stopping = true;
	s->stopped = stopped;
	s->stopped_ctx = ctx;
	s->stop_at = ms > 0 ? time_deadline(ms) : time_now();
	s->resume = TIME_NEVER;
	wake_at(s, s->stop_at);
	list_for_each_safe(struct listener, l, &s->listeners, link) {
		list_remove(&l->link);
		uv_poll_stop(&l->poll);
		close(l->fd);
		uv_close((uv_handle_t *)&l->poll, on_listener_closed);
	}
	list_for_each(struct conn, c, &s->conns, link) {
		grpc_drain(c->grpc);
		conn_mark(c);
	}
	end_turn(s);
}

/**
 * rpc_server_free() - after it has stopped
 */
void rpc_server_free(struct rpc_server *s)
{
	if (!s)
		return;
	workers_free(s->calls.workers);
	pthread_mutex_destroy(&s->calls.lock);
	map_free(s->methods);
	free(s);
}

/**
 * rpc_server_stats() - how much is going on; from any thread
 */
struct rpc_stats rpc_server_stats(struct rpc_server *s)
{
	return (struct rpc_stats){
		.connections = s->n_conns,
		.calls = s->n_calls,
		.long_calls = s->n_long,
	};
}
