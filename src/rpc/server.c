/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/server.c - a gRPC server: sockets on a libuv loop, handlers on threads
 *
 * How:   three kinds of things wake the loop: descriptors (here those that listen,
 *        in server-conn.c the connections), threads that have something for it
 *        (server-call.c, through uv_async), and one timer for all deadlines. It is
 *        set to the soonest, and when it fires everybody is asked.
 */
#include "rpc/server.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/time.h"
#include "rpc/server-internal.h"

#define READ_SIZE    (64 << 10)
#define WRITE_SIZE   (64 << 10)
#define IDLE_MS	     1000 /* that a connection without calls may live on when we stop */
#define ACCEPT_BATCH 64
#define ACCEPT_PAUSE 100 /* ms, when there are no descriptors left */

struct listener {
	struct list link;
	struct rpc_server *server;
	int fd;
	uv_poll_t poll;
};

/* ---- a turn of the loop ------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer);
static void check_stopped(struct rpc_server *s);
static void conn_settle(struct conn *c);

/**
 * server_wake_at() - something is to be done then
 */
static void server_wake_at(struct rpc_server *s, int64_t when)
{
	if (when < s->next)
		s->next = when;
}

/**
 * server_end_turn() - the last thing of each callback
 */
static void server_end_turn(struct rpc_server *s)
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

static void on_async(uv_async_t *async)
{
	struct rpc_server *s = async->data;

	server_collect(s);
	server_end_turn(s);
}

static void wake_loop(void *ctx)
{
	struct rpc_server *s = ctx;

	uv_async_send(&s->async);
}

/* ---- connections ------------------------------------------------------------------- */

/**
 * conn_mark() - there is something to write, or to close
 */
void conn_mark(struct conn *c)
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
	c->server->n_conns--;
	/* this touches the descriptor, whose number another thread may have once it is closed */
	uv_close((uv_handle_t *)&c->poll, on_conn_closed);
	close(c->fd);
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
	server_wake_at(c->server, c->stalled);
	conn_poll(c, c->out.len == 0	     ? UV_READABLE
		     : grpc_is_full(c->grpc) ? UV_WRITABLE
					     : UV_READABLE | UV_WRITABLE);
}

/**
 * conn_settle() - after whatever happened
 */
static void conn_settle(struct conn *c)
{
	list_remove(&c->dirty);
	if (!c->broken)
		conn_flush(c);
	if (c->broken || (grpc_is_done(c->grpc) && c->out.len == 0))
		conn_close(c);
	else
		server_wake_at(c->server, grpc_deadline(c->grpc));
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

static void on_conn(uv_poll_t *poll, int status, int events)
{
	struct conn *c = poll->data;

	if (status < 0)
		c->broken = true;
	else if (events & UV_READABLE)
		conn_read(c);
	conn_mark(c);
	server_end_turn(c->server);
}

/**
 * conn_new() - somebody has connected
 * @s:  the server
 * @fd: the connection's from now on
 */
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
	c->grpc = grpc_new(GRPC_SERVER, &s->config.limits, &server_events, c, time_now());
	c->poll.data = c;
	list_init(&c->dirty);
	list_append(&s->conns, &c->link);
	s->n_conns++;
	conn_mark(c);
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
		int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && is_shortage(errno)) {
			uv_poll_stop(poll);
			s->resume = time_deadline(ACCEPT_PAUSE);
			server_wake_at(s, s->resume);
		}
		if (fd < 0)
			break;
		if (s->n_conns < s->config.connections)
			conn_new(s, fd);
		else
			close(fd);
	}
	server_end_turn(s);
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
	server_wake_at(s, s->resume);
	server_wake_at(s, s->idle_at > now ? s->idle_at : TIME_NEVER);
	server_wake_at(s, s->stop_at > now ? s->stop_at : TIME_NEVER);
	list_for_each(struct conn, c, &s->conns, link) {
		grpc_tick(c->grpc, now);
		if (now >= c->stalled || now >= s->stop_at ||
		    (now >= s->idle_at && grpc_is_idle(c->grpc)))
			c->broken = true;
		conn_mark(c);
	}
	server_end_turn(s);
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
	s->next = s->armed = s->resume = s->idle_at = s->stop_at = TIME_NEVER;
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
		.ended = server_call_ended,
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
	s->idle_at = time_sooner(s->stop_at, time_deadline(IDLE_MS));
	s->resume = TIME_NEVER;
	server_wake_at(s, s->idle_at);
	list_for_each_safe(struct listener, l, &s->listeners, link) {
		list_remove(&l->link);
		uv_close((uv_handle_t *)&l->poll, on_listener_closed);
		close(l->fd);
	}
	list_for_each(struct conn, c, &s->conns, link) {
		grpc_drain(c->grpc);
		conn_mark(c);
	}
	server_end_turn(s);
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
