/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/metrics-http.c - an HTTP/1 server for GET /metrics
 *
 * How:   reads from a client until the end of the request's head, sends one response,
 *        and closes the connection. Anything after the head is ignored.
 */
#include "cri/metrics-http.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <uv.h>

#include "base/list.h"
#include "base/str.h"
#include "rpc/socket.h"

#define CLIENTS_MAX 16
#define HEAD_MAX    8192  /* maximum size of a request */
#define TIMEOUT	    10000 /* ms for a request and its response */

struct metrics_http {
	uv_pipe_t listener; /* libuv's pipes work with any stream socket */
	void (*write)(void *ctx, struct buf *b);
	void *ctx;
	struct list clients;
	unsigned n_clients;
	bool closed;
};

struct http_client {
	struct metrics_http *http;
	uv_pipe_t stream;
	uv_timer_t timer;
	uv_write_t request;
	struct buf head, response;
	bool responded;
	unsigned open_handles;
	struct list link;
	char input[1024];
};

/* ---- responses ---------------------------------------------------------------------- */

static void put_response(struct buf *b, const char *status, const char *type,
			 const struct buf *body)
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
	put_response(b, status, "text/plain", &body);
}

/* ---- clients ------------------------------------------------------------------------ */

static void free_if_unused(struct metrics_http *http)
{
	if (http->closed && http->n_clients == 0)
		free(http);
}

static void on_client_closed(uv_handle_t *handle)
{
	struct http_client *c = handle->data;
	struct metrics_http *http = c->http;

	if (--c->open_handles > 0)
		return;
	list_remove(&c->link);
	http->n_clients--;
	buf_done(&c->head);
	buf_done(&c->response);
	free(c);
	free_if_unused(http);
}

#ifdef __SANITIZE_THREAD__
void __sanitizer_syscall_pre_impl_close(long fd);

/* libuv closes a connection by a system call that TSan does not notice. Unless it is told, TSan takes the next file
 * with the same number for the connection, and reports a race. */
static void tell_tsan(const struct http_client *c)
{
	uv_os_fd_t fd;

	if (uv_fileno((const uv_handle_t *)&c->stream, &fd) == 0)
		__sanitizer_syscall_pre_impl_close(fd);
}
#else
static void tell_tsan(const struct http_client *c)
{
	(void)c;
}
#endif

static void client_close(struct http_client *c)
{
	if (uv_is_closing((uv_handle_t *)&c->stream))
		return;
	tell_tsan(c);
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

static void send_response(struct http_client *c)
{
	const char *head = c->head.data;
	size_t method = strcspn(head, " \r\n");
	const char *path = head[method] == ' ' ? head + method + 1 : "";
	size_t len = strcspn(path, " ?\r\n");
	AUTO(buf_done) struct buf body = { 0 };
	uv_buf_t out;

	c->responded = true;
	if (!*path || !strstr(path, " HTTP/1.")) {
		put_error(&c->response, "400 Bad Request");
	} else if (len != strlen("/metrics") || !str_starts(path, "/metrics")) {
		put_error(&c->response, "404 Not Found");
	} else if (!str_starts(head, "GET ")) {
		put_error(&c->response, "405 Method Not Allowed");
	} else {
		c->http->write(c->http->ctx, &body);
		put_response(&c->response, "200 OK", "text/plain; version=0.0.4; charset=utf-8",
			     &body);
	}
	out = uv_buf_init(c->response.data, (unsigned)c->response.len);
	c->request.data = c;
	if (uv_write(&c->request, (uv_stream_t *)&c->stream, &out, 1, on_written) < 0)
		client_close(c);
}

static void on_alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *ret)
{
	struct http_client *c = handle->data;

	(void)wanted;
	*ret = uv_buf_init(c->input, sizeof(c->input));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *data)
{
	struct http_client *c = stream->data;

	if (n < 0 && !c->responded)
		client_close(c);
	if (n <= 0 || c->responded)
		return;
	buf_add(&c->head, data->base, (size_t)n);
	if (strstr(c->head.data, "\r\n\r\n") || strstr(c->head.data, "\n\n"))
		send_response(c);
	else if (c->head.len > HEAD_MAX)
		client_close(c);
}

static void on_connection(uv_stream_t *listener, int status)
{
	struct metrics_http *http = listener->data;
	struct http_client *c;

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
	    uv_read_start((uv_stream_t *)&c->stream, on_alloc, on_read) < 0)
		client_close(c);
	else
		uv_timer_start(&c->timer, on_timeout, TIMEOUT, 0);
}

/* ---- server ------------------------------------------------------------------------- */

static int listen_tcp(const struct config_address *address, int *ret_fd, struct hw_err *e)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(address->port) };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(address->port) };
	bool is_v6 = address->ip.family == AF_INET6;
	autoclose int fd = -1;
	const int on = 1;

	fd = socket(address->ip.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	memcpy(&v6.sin6_addr, address->ip.bytes, sizeof(v6.sin6_addr));
	memcpy(&v4.sin_addr, address->ip.bytes, sizeof(v4.sin_addr));
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4,
		 is_v6 ? sizeof(v6) : sizeof(v4)) < 0)
		return err_set(e, -errno, "listen on port %d", address->port);
	*ret_fd = take_fd(fd);
	return 0;
}

int metrics_http_open(struct uv_loop_s *loop, const struct config_address *address,
		      const struct socket_owner *owner, void (*write)(void *ctx, struct buf *b),
		      void *ctx, struct metrics_http **ret_http, struct hw_err *e)
{
	struct metrics_http *http;
	int fd = -1, r;

	r = address->path ? socket_listen(address->path, owner, &fd, e)
			  : listen_tcp(address, &fd, e);
	if (r < 0)
		return r;
	http = mem_new(sizeof(*http));
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

void metrics_http_close(struct metrics_http *http)
{
	if (!http)
		return;
	list_for_each(struct http_client, c, &http->clients, link)
		client_close(c);
	uv_close((uv_handle_t *)&http->listener, on_listener_closed);
}
