/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/server.c - a gRPC server: sockets on a libuv loop
 *
 * How:   three kinds of events wake the loop: a listening socket or a connection is readable or
 *        writable; a thread has put a call on the ready list (server-call.c, through uv_async); or
 *        the timer for all deadlines fires. The timer is set to the earliest deadline, and all
 *        connections are checked when it fires.
 *        Output is written once per callback of the loop: callbacks schedule
 *        connections for a flush, and end with flush_server().
 * Rules: a connection is closed only by conn_flush(), never inside one of its own
 *        events.
 */
#include "rpc/server.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/time.h"
#include "rpc/server-internal.h"

#define READ_SIZE    (64 << 10)
#define WRITE_SIZE   (64 << 10)
#define IDLE_MS	     1000 /* how long connections without calls stay open while the server stops */
#define ACCEPT_BATCH 64
#define ACCEPT_PAUSE 100 /* ms; delay before accepting again if no descriptors are left */

struct listener {
	struct list link;
	struct rpc_server *server;
	int fd;
	uv_poll_t poll;
};

static void on_timer(uv_timer_t *timer);
static void conn_flush(struct conn *c);

/* ---- callbacks of the loop ---------------------------------------------------------- */

/* Requests that the timer fires at @when or earlier. flush_server() sets the timer. */
static void wake_at(struct rpc_server *s, int64_t when)
{
	if (when < s->wake_at)
		s->wake_at = when;
}

static void on_handle_closed(uv_handle_t *handle)
{
	struct rpc_server *s = handle->data;

	if (--s->open_handles == 0)
		s->stopped(s->stopped_ctx);
}

/* Each callback of the loop calls this function last. */
static void flush_server(struct rpc_server *s)
{
	list_for_each_safe(struct conn, c, &s->to_flush, flush_link)
		conn_flush(c);
	if (s->wake_at < s->timer_at) {
		s->timer_at = s->wake_at;
		uv_timer_start(&s->timer, on_timer, (uint64_t)time_left_ms(s->timer_at), 0);
	}
	if (s->stopping && list_is_empty(&s->conns) && s->n_calls == 0 && s->open_handles == 0) {
		s->open_handles = 2;
		uv_close((uv_handle_t *)&s->async, on_handle_closed);
		uv_close((uv_handle_t *)&s->timer, on_handle_closed);
	}
}

static void on_async(uv_async_t *async)
{
	struct rpc_server *s = async->data;

	server_process_ready(s);
	flush_server(s);
}

static void wake_loop(void *ctx)
{
	struct rpc_server *s = ctx;

	uv_async_send(&s->async);
}

/* ---- connections -------------------------------------------------------------------- */

void conn_schedule_flush(struct conn *c)
{
	if (list_is_empty(&c->flush_link))
		list_append(&c->server->to_flush, &c->flush_link);
}

static void free_handle_data(uv_handle_t *handle)
{
	free(handle->data);
}

/* The list of connections is sorted by their last activity. */
static void mark_active(struct conn *c)
{
	list_remove(&c->link);
	list_append(&c->server->conns, &c->link);
}

static void on_conn(uv_poll_t *poll, int status, int events)
{
	struct conn *c = poll->data;
	uint8_t data[READ_SIZE];
	struct hw_err e;
	ssize_t n;

	if (status < 0) {
		c->broken = true;
	} else if (events & UV_READABLE) {
		n = recv(c->fd, data, sizeof(data), MSG_DONTWAIT);
		if (n > 0)
			mark_active(c);
		/* after an error grpc_is_done() is true: conn_flush() writes the output, then
		 * closes */
		if (n > 0)
			(void)grpc_feed(c->grpc, data, (size_t)n, time_now(), &e);
		else if (n == 0 || (errno != EAGAIN && errno != EINTR))
			c->broken = true;
	}
	conn_schedule_flush(c);
	flush_server(c->server);
}

/* Writes as much output as the socket accepts; the rest stays in c->out. */
static void conn_write_output(struct conn *c)
{
	int events = UV_READABLE;
	const uint8_t *data;
	size_t len;
	ssize_t n;

	for (;;) {
		if (c->out.len == 0)
			while (c->out.len < WRITE_SIZE && (len = grpc_output(c->grpc, &data)) > 0)
				buf_add(&c->out, data, len);
		if (c->out.len == 0)
			break;
		n = send(c->fd, c->out.data + c->out_at, c->out.len - c->out_at,
			 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0) {
			c->broken = errno != EAGAIN && errno != EINTR;
			break;
		}
		c->stall_at = TIME_NEVER;
		mark_active(c);
		c->out_at += (size_t)n;
		if (c->out_at == c->out.len) {
			buf_done(&c->out);
			c->out_at = 0;
		}
	}
	if (c->out.len > 0) {
		events = grpc_is_full(c->grpc) ? UV_WRITABLE : UV_READABLE | UV_WRITABLE;
		if (c->stall_at == TIME_NEVER)
			c->stall_at = time_deadline(c->server->config.stall_ms);
	}
	wake_at(c->server, c->stall_at);
	if (events != c->events)
		uv_poll_start(&c->poll, events, on_conn);
	c->events = events;
}

/* Writes output, then closes the connection if it has ended. */
static void conn_flush(struct conn *c)
{
	list_remove(&c->flush_link);
	if (!c->broken)
		conn_write_output(c);
	if (!c->broken && (!grpc_is_done(c->grpc) || c->out.len > 0)) {
		wake_at(c->server, grpc_deadline(c->grpc));
		return;
	}
	grpc_free(c->grpc);
	buf_done(&c->out);
	list_remove(&c->link);
	c->server->n_conns--;
	/* before close(): uv_close() uses the descriptor, and after close() another thread may
	 * reuse its number */
	uv_close((uv_handle_t *)&c->poll, free_handle_data);
	close(c->fd);
}

/* Takes the descriptor. */
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
	c->stall_at = TIME_NEVER;
	c->grpc = grpc_new(GRPC_SERVER, &s->config.limits, &server_events, c, time_now());
	c->poll.data = c;
	list_init(&c->flush_link);
	list_append(&s->conns, &c->link);
	s->n_conns++;
	conn_schedule_flush(c);
}

/* ---- too many connections ----------------------------------------------------------- */

static void report_full(const struct rpc_server *s, bool refused)
{
	if (s->config.full)
		s->config.full(s->config.ctx, refused);
}

/* Without calls, and everything is written. */
static bool is_idle(const struct conn *c)
{
	return grpc_is_idle(c->grpc) && c->out_at == c->out.len;
}

/* The peer does not read. */
static bool is_stalled(const struct conn *c)
{
	return c->stall_at != TIME_NEVER;
}

/* Return: false if all connections have calls */
static bool close_idle_conn(struct rpc_server *s)
{
	char text[80];

	snprintf(text, sizeof(text), "too many connections: limit %u, this one was idle",
		 s->config.connections_max);
	list_for_each_safe(struct conn, c, &s->conns, link) {
		if (!is_idle(c))
			continue;
		grpc_end(c->grpc, text);
		conn_write_output(c);
		c->broken = true; /* also if the peer does not read */
		conn_flush(c);
		report_full(s, false);
		return true;
	}
	return false;
}

/* Takes the descriptor. The new socket's buffer has room for the few bytes of the refusal. */
static void refuse_conn(struct rpc_server *s, int fd)
{
	AUTO(grpc_free)
	struct grpc *grpc =
		grpc_new(GRPC_SERVER, &s->config.limits, &server_events, NULL, time_now());
	const uint8_t *data;
	char text[80];
	size_t len;

	snprintf(text, sizeof(text), "too many connections: limit %u, none is idle",
		 s->config.connections_max);
	grpc_end(grpc, text);
	while ((len = grpc_output(grpc, &data)) > 0)
		(void)!send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
	report_full(s, true);
}

/* ---- listening ---------------------------------------------------------------------- */

static bool is_shortage(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

static void on_listen(uv_poll_t *poll, int status, int events)
{
	struct listener *l = poll->data;
	struct rpc_server *s = l->server;

	(void)status;
	(void)events;
	for (int i = 0; i < ACCEPT_BATCH; i++) {
		int fd;

		fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && is_shortage(errno)) {
			uv_poll_stop(poll);
			s->resume_at = time_deadline(ACCEPT_PAUSE);
			wake_at(s, s->resume_at);
		}
		if (fd < 0)
			break;
		if (s->n_conns < s->config.connections_max || close_idle_conn(s))
			conn_new(s, fd);
		else
			refuse_conn(s, fd);
	}
	flush_server(s);
}

int rpc_server_listen(struct rpc_server *s, int fd, struct hw_err *e)
{
	struct listener *l = mem_new(sizeof(*l));
	int r;

	r = uv_poll_init(s->loop, &l->poll, fd);
	if (r < 0) {
		free(l);
		close(fd);
		return err_set(e, r, "poll listening socket");
	}
	l->server = s;
	l->fd = fd;
	l->poll.data = l;
	list_append(&s->listeners, &l->link);
	uv_poll_start(&l->poll, UV_READABLE, on_listen);
	return 0;
}

/* ---- timer -------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer)
{
	struct rpc_server *s = timer->data;
	int64_t now = time_now();

	s->wake_at = s->timer_at = TIME_NEVER;
	if (now >= s->resume_at) {
		s->resume_at = TIME_NEVER;
		list_for_each(struct listener, l, &s->listeners, link)
			uv_poll_start(&l->poll, UV_READABLE, on_listen);
	}
	wake_at(s, s->resume_at);
	wake_at(s, s->close_idle_at > now ? s->close_idle_at : TIME_NEVER);
	wake_at(s, s->close_all_at > now ? s->close_all_at : TIME_NEVER);
	list_for_each(struct conn, c, &s->conns, link) {
		grpc_tick(c->grpc, now);
		if (now >= c->stall_at || now >= s->close_all_at ||
		    (now >= s->close_idle_at && c->n_calls == 0 && (is_idle(c) || is_stalled(c))))
			c->broken = true;
		conn_schedule_flush(c);
	}
	flush_server(s);
}

/* ---- lifetime ----------------------------------------------------------------------- */

int rpc_server_new(struct uv_loop_s *loop, const struct rpc_config *config,
		   struct rpc_server **ret_server, struct hw_err *e)
{
	const struct workers_limits limits = { .pool = config->pool_threads,
					       .queue = config->queue_max };
	struct rpc_server *s = mem_new(sizeof(*s));
	int r;

	r = uv_async_init(loop, &s->async, on_async);
	if (r < 0) {
		free(s);
		return err_set(e, r, "create gRPC server");
	}
	s->config = *config;
	s->loop = loop;
	s->wake_at = s->timer_at = s->resume_at = TIME_NEVER;
	s->close_idle_at = s->close_all_at = TIME_NEVER;
	uv_timer_init(loop, &s->timer);
	s->async.data = s->timer.data = s;
	list_init(&s->listeners);
	list_init(&s->conns);
	list_init(&s->to_flush);
	list_init(&s->endless);
	s->methods = map_new(free);
	s->calls = (struct rpc_calls){
		.workers = workers_new(&limits),
		.stall_ms = config->stall_ms,
		.message_max = config->limits.message,
		.finished = server_call_finished,
		.wake = wake_loop,
		.ctx = s,
	};
	pthread_mutex_init(&s->calls.lock, NULL);
	list_init(&s->calls.ready);
	*ret_server = s;
	return 0;
}

void rpc_server_add(struct rpc_server *s, const struct rpc_method *methods, void *ctx)
{
	for (; methods->path; methods++) {
		struct server_method *m = mem_new(sizeof(*m));

		/* a handler waits for the client that sends or reads a stream */
		assert(methods->flags & RPC_LONG ||
		       !(methods->flags & (RPC_STREAM_IN | RPC_STREAM_OUT)));
		*m = (struct server_method){ .method = methods, .ctx = ctx };
		map_set(s->methods, methods->path, m);
		s->n_long_methods += (methods->flags & RPC_LONG) != 0;
	}
	/* half of the long calls are reserved, but at least one for each method */
	if (s->n_long_methods > 0)
		s->reserved = s->config.long_calls_max / 2 / s->n_long_methods;
	if (s->reserved == 0 && s->config.long_calls_max >= s->n_long_methods)
		s->reserved = 1;
}

void rpc_server_stop(struct rpc_server *s, int ms, void (*stopped)(void *ctx), void *ctx)
{
	assert(!s->stopping);
	s->stopping = true;
	s->stopped = stopped;
	s->stopped_ctx = ctx;
	s->close_all_at = ms > 0 ? time_deadline(ms) : time_now();
	s->close_idle_at = time_earlier(s->close_all_at, time_deadline(IDLE_MS));
	s->resume_at = TIME_NEVER;
	wake_at(s, s->close_idle_at);
	list_for_each_safe(struct listener, l, &s->listeners, link) {
		list_remove(&l->link);
		uv_close((uv_handle_t *)&l->poll, free_handle_data);
		close(l->fd);
	}
	list_for_each(struct conn, c, &s->conns, link) {
		grpc_drain(c->grpc);
		conn_schedule_flush(c);
	}
	server_end_endless(s);
	flush_server(s);
}

void rpc_server_free(struct rpc_server *s)
{
	if (!s)
		return;
	workers_free(s->calls.workers);
	pthread_mutex_destroy(&s->calls.lock);
	map_free(s->methods);
	free(s);
}

struct rpc_stats rpc_server_stats(struct rpc_server *s)
{
	return (struct rpc_stats){
		.connections = s->n_conns,
		.calls = s->n_calls,
		.long_calls = s->n_long,
	};
}
