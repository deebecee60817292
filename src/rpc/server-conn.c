/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/server-conn.c - a connection of the server
 *
 * How:   a descriptor that the loop polls, a struct grpc, and what the socket
 *        would not take yet. New output is gathered and written once per turn.
 * Rules: a connection is closed by conn_settle(), at the end of a turn, never
 *        below one of its own events.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/time.h"
#include "rpc/server-internal.h"

#define READ_SIZE  (64 << 10)
#define WRITE_SIZE (64 << 10)

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
void conn_settle(struct conn *c)
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
void conn_new(struct rpc_server *s, int fd)
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
