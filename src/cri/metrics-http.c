/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/metrics-http.c - GET /metrics, and nothing else, over HTTP/1
 *
 * How:   a client is read until its head ends, answered once, and closed. What it
 *        sends after that is thrown away.
 */
#include "cri/metrics-http.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "base/list.h"
#include "base/str.h"

#define CLIENTS_MAX 16
#define HEAD_MAX    8192
#define PATIENCE    10000 /* ms */

struct metrics_http {
	uv_pipe_t listener; /* libuv's pipes do for any stream socket */
	void (*write)(void *ctx, struct buf *b);
	void *ctx;
	struct list clients;
	unsigned n_clients;
	bool closed;
};

struct client {
	struct metrics_http *http;
	uv_pipe_t stream;
	uv_timer_t timer;
	uv_write_t request;
	struct buf head, answer;
	bool answered;
	unsigned open_handles;
	struct list link;
	char room[1024];
};

/* ---- answers ------------------------------------------------------------------------ */

static void put_answer(struct buf *b, const char *status, const char *type, const struct buf *body)
{
	buf_printf(b,
		   "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		   "Connection: close\r\n\r\n",
		   status, type, body->len);
	buf_add(b, str_or(body->data, ""), body->len);
}

static void put_error(struct buf *b, const char *status)
{
	AUTO(buf_done) struct buf body = { 0 };

	buf_printf(&body, "%s\n", status);
	put_answer(b, status, "text/plain", &body);
}

/**
 * metrics_http_answer() - to a head that is complete
 */
void metrics_http_answer(const char *head, void (*write)(void *ctx, struct buf *b), void *ctx,
			 struct buf *ret)
{
	size_t method = strcspn(head, " \r\n");
	const char *path = head[method] == ' ' ? head + method + 1 : "";
	size_t len = strcspn(path, " ?\r\n");
	AUTO(buf_done) struct buf body = { 0 };

	if (!*path || !strstr(path, " HTTP/1.")) {
		put_error(ret, "400 Bad Request");
	} else if (len != strlen("/metrics") || !str_starts(path, "/metrics")) {
		put_error(ret, "404 Not Found");
	} else if (!str_starts(head, "GET ")) {
		put_error(ret, "405 Method Not Allowed");
	} else {
		write(ctx, &body);
		put_answer(ret, "200 OK", "text/plain; version=0.0.4; charset=utf-8", &body);
	}
}

/* ---- clients ------------------------------------------------------------------------ */

static void free_if_unused(struct metrics_http *http)
{
	if (http->closed && http->n_clients == 0)
		free(http);
}

static void on_client_closed(uv_handle_t *handle)
{
	struct client *c = handle->data;
	struct metrics_http *http = c->http;

	if (--c->open_handles > 0)
		return;
	list_remove(&c->link);
	http->n_clients--;
	buf_done(&c->head);
	buf_done(&c->answer);
	free(c);
	free_if_unused(http);
}

static void client_close(struct client *c)
{
	if (uv_is_closing((uv_handle_t *)&c->stream))
		return;
	uv_close((uv_handle_t *)&c->stream, on_client_closed);
	uv_close((uv_handle_t *)&c->timer, on_client_closed);
}

static void on_timeout(uv_timer_t *timer)
{
	client_close(timer->data);
}

static void on_written(uv_write_t *request, int status)
{
	(void)status;
	client_close(request->data);
}

static void answer(struct client *c)
{
	uv_buf_t out;

	c->answered = true;
	metrics_http_answer(c->head.data, c->http->write, c->http->ctx, &c->answer);
	out = uv_buf_init(c->answer.data, (unsigned)c->answer.len);
	c->request.data = c;
	if (uv_write(&c->request, (uv_stream_t *)&c->stream, &out, 1, on_written) < 0)
		client_close(c);
}

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *ret)
{
	struct client *c = handle->data;

	(void)wanted;
	*ret = uv_buf_init(c->room, sizeof(c->room));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *data)
{
	struct client *c = stream->data;

	if (n < 0 && !c->answered)
		client_close(c);
	if (n <= 0 || c->answered)
		return;
	buf_add(&c->head, data->base, (size_t)n);
	if (strstr(c->head.data, "\r\n\r\n") || strstr(c->head.data, "\n\n"))
		answer(c);
	else if (c->head.len > HEAD_MAX)
		client_close(c);
}

static void on_connection(uv_stream_t *listener, int status)
{
	struct metrics_http *http = listener->data;
	struct client *c;

	if (status < 0)
		return;
	c = mem_new(sizeof(*c));
	c->http = http;
	uv_pipe_init(listener->loop, &c->stream, 0);
	uv_timer_init(listener->loop, &c->timer);
	c->stream.data = c->timer.data = c;
	c->open_handles = 2;
	list_append(&http->clients, &c->link);
	http->n_clients++;
	if (uv_accept(listener, (uv_stream_t *)&c->stream) < 0 || http->n_clients > CLIENTS_MAX ||
	    uv_read_start((uv_stream_t *)&c->stream, on_room, on_read) < 0)
		client_close(c);
	else
		uv_timer_start(&c->timer, on_timeout, PATIENCE, 0);
}

/* ---- the server --------------------------------------------------------------------- */

/**
 * metrics_http_new() - serve metrics on a socket
 */
int metrics_http_new(struct uv_loop_s *loop, int fd, void (*write)(void *ctx, struct buf *b),
		     void *ctx, struct metrics_http **ret_http, struct hw_err *e)
{
	struct metrics_http *http = mem_new(sizeof(*http));
	int r;

	*http = (struct metrics_http){ .write = write, .ctx = ctx };
	list_init(&http->clients);
	uv_pipe_init(loop, &http->listener, 0);
	http->listener.data = http;
	r = uv_pipe_open(&http->listener, fd);
	if (r < 0)
		close(fd);
	if (r == 0)
		r = uv_listen((uv_stream_t *)&http->listener, CLIENTS_MAX, on_connection);
	if (r < 0) {
		metrics_http_close(http);
		return err_set(e, r, "listen for metrics");
	}
	*ret_http = http;
	return 0;
}

static void on_listener_closed(uv_handle_t *handle)
{
	struct metrics_http *http = handle->data;

	http->closed = true;
	free_if_unused(http);
}

/**
 * metrics_http_close() - with all its clients
 * @http: NULL: nothing
 */
void metrics_http_close(struct metrics_http *http)
{
	if (!http)
		return;
	list_for_each(struct client, c, &http->clients, link)
		client_close(c);
	uv_close((uv_handle_t *)&http->listener, on_listener_closed);
}
