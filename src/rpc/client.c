/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/client.c - a gRPC client: blocking calls over a unix socket
 *
 * How:   a function that waits drives the connection: it writes pending output, polls, reads, and
 *        checks deadlines. Messages received for other streams are stored in these streams until
 *        their functions are called.
 */
#include "rpc/client.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "rpc/grpc/grpc.h"
#include "rpc/socket.h"

#define READ_SIZE (16 << 10)

struct received_message {
	struct list link;
	struct buf body;
};

struct rpc_client {
	char *path;
	int fd;		   /* -1 if not connected */
	struct grpc *grpc; /* NULL if not connected */
	struct buf out;	   /* output that is not written yet, from out_at on */
	size_t out_at;
	unsigned streams;
};

struct rpc_stream {
	struct rpc_client *client;
	struct grpc_call *call; /* NULL if closed; then code and text are the status */
	struct list in;		/* struct received_message */
	unsigned n_in;		/* total number of messages received */
	bool unsent;		/* rpc_stream_send() waits until the message is sent */
	enum status_code code;
	char *text;
};

/* ---- events ------------------------------------------------------------------------- */

static void on_message(void *ctx, struct grpc_call *call, struct buf *message)
{
	struct rpc_stream *stream = call->user;
	struct received_message *m = mem_new(sizeof(*m));

	(void)ctx;
	m->body = *message;
	*message = (struct buf){ 0 };
	list_append(&stream->in, &m->link);
	stream->n_in++;
}

static void on_sent(void *ctx, struct grpc_call *call)
{
	struct rpc_stream *stream = call->user;

	(void)ctx;
	stream->unsent = false;
}

static void on_closed(void *ctx, struct grpc_call *call, enum status_code code, const char *text)
{
	struct rpc_stream *stream = call->user;

	(void)ctx;
	stream->call = NULL;
	stream->code = code;
	stream->text = str_copy(text);
}

static const struct grpc_events events = { .message = on_message,
					   .sent = on_sent,
					   .closed = on_closed };

/* ---- connection --------------------------------------------------------------------- */

static void disconnect(struct rpc_client *client)
{
	grpc_free(client->grpc); /* closes the remaining calls */
	client->grpc = NULL;
	mem_close_fd(&client->fd);
	client->fd = -1;
	buf_done(&client->out);
	client->out_at = 0;
}

static int reconnect(struct rpc_client *client, struct hw_err *e)
{
	static const struct grpc_limits limits = GRPC_LIMITS;
	int r;

	disconnect(client);
	r = socket_connect(client->path, &client->fd, e);
	if (r == 0)
		client->grpc = grpc_new(GRPC_CLIENT, &limits, &events, client, time_now());
	return r;
}

/* Writes as much output as the socket accepts; the rest stays in out. */
static void write_output(struct rpc_client *client)
{
	const uint8_t *data;
	size_t len;
	ssize_t n;

	for (;;) {
		if (client->out_at == client->out.len) {
			buf_done(&client->out);
			client->out_at = 0;
			len = grpc_output(client->grpc, &data);
			if (len == 0)
				return;
			buf_add(&client->out, data, len);
		}
		n = send(client->fd, client->out.data + client->out_at,
			 client->out.len - client->out_at, MSG_NOSIGNAL);
		if (n < 0)
			return;
		client->out_at += (size_t)n;
	}
}

/* Waits once; to be called after write_output(). Closes calls if the connection is lost or their
 * deadline has passed. */
static void wait_for_io(struct rpc_client *client)
{
	struct pollfd p = { .fd = client->fd, .events = POLLIN };
	uint8_t data[READ_SIZE];
	bool alive = true;
	struct hw_err e;
	ssize_t n;

	if (client->out_at < client->out.len)
		p.events |= POLLOUT;
	if (poll(&p, 1, time_left_ms(grpc_deadline(client->grpc))) < 0 && errno != EINTR)
		alive = false;
	if (alive && p.revents & (POLLIN | POLLHUP | POLLERR)) {
		n = recv(client->fd, data, sizeof(data), 0);
		if (n > 0)
			alive = grpc_feed(client->grpc, data, (size_t)n, time_now(), &e) == 0;
		else
			alive = n < 0 && (errno == EAGAIN || errno == EINTR);
	}
	grpc_tick(client->grpc, time_now());
	write_output(client);
	if (!alive || grpc_is_done(client->grpc))
		disconnect(client);
}

int rpc_client_open(const char *path, struct rpc_client **ret_client, struct hw_err *e)
{
	struct rpc_client *client = mem_new(sizeof(*client));
	int r;

	client->path = str_copy(path);
	client->fd = -1;
	r = reconnect(client, e);
	if (r < 0)
		rpc_client_close(client);
	else
		*ret_client = client;
	return r;
}

void rpc_client_close(struct rpc_client *client)
{
	if (!client)
		return;
	assert(client->streams == 0);
	disconnect(client);
	free(client->path);
	free(client);
}

/* ---- streams ------------------------------------------------------------------------ */

int rpc_stream_open(struct rpc_client *client, const char *method, struct buf *request,
		    int64_t deadline, struct rpc_stream **ret_stream, struct hw_err *e)
{
	AUTO(rpc_stream_free) struct rpc_stream *stream = mem_new(sizeof(*stream));
	int64_t now = time_now();
	int r = 0;

	stream->client = client;
	list_init(&stream->in);
	client->streams++;
	if (!client->grpc || (!grpc_is_usable(client->grpc) && client->streams == 1))
		r = reconnect(client, e);
	if (r == 0)
		r = grpc_start(client->grpc, method,
			       deadline == TIME_NEVER ? TIME_NEVER : deadline - now, now, stream,
			       &stream->call, e);
	if (r == 0 && request)
		r = grpc_send(stream->call, request, e);
	if (request)
		buf_done(request);
	if (r < 0)
		return r;
	if (request)
		grpc_end_request(stream->call);
	write_output(client);
	*ret_stream = take_ptr(stream);
	return 0;
}

static int stream_error(const struct rpc_stream *stream, struct hw_err *e)
{
	if (stream->code == STATUS_OK)
		return status_set(e, STATUS_UNKNOWN, "server has already ended the call");
	return status_set(e, stream->code, "%s", stream->text);
}

int rpc_stream_send(struct rpc_stream *stream, struct buf *message, struct hw_err *e)
{
	int r;

	if (!stream->call) {
		buf_done(message);
		return stream_error(stream, e);
	}
	stream->unsent = true;
	r = grpc_send(stream->call, message, e);
	if (r < 0)
		return r;
	write_output(stream->client);
	while (stream->call && stream->unsent)
		wait_for_io(stream->client);
	return stream->unsent ? stream_error(stream, e) : 0;
}

void rpc_stream_end_request(struct rpc_stream *stream)
{
	if (!stream->call)
		return;
	grpc_end_request(stream->call);
	write_output(stream->client);
}

static bool take_message(struct list *in, struct buf *ret)
{
	list_for_each_safe(struct received_message, m, in, link) {
		list_remove(&m->link);
		*ret = m->body;
		free(m);
		return true;
	}
	return false;
}

int rpc_stream_receive(struct rpc_stream *stream, struct buf *ret, struct hw_err *e)
{
	if (stream->call)
		write_output(stream->client);
	while (stream->call && list_is_empty(&stream->in))
		wait_for_io(stream->client);
	if (!take_message(&stream->in, ret))
		return stream->code == STATUS_OK ? 0 : stream_error(stream, e);
	if (stream->call)
		grpc_consumed(stream->call);
	return 1;
}

void rpc_stream_free(struct rpc_stream *stream)
{
	if (!stream)
		return;
	if (stream->call) {
		grpc_cancel(stream->call);
		write_output(stream->client);
	}
	list_for_each_safe(struct received_message, m, &stream->in, link) {
		list_remove(&m->link);
		buf_done(&m->body);
		free(m);
	}
	stream->client->streams--;
	free(stream->text);
	free(stream);
}

/* ---- unary calls -------------------------------------------------------------------- */

int rpc_client_call(struct rpc_client *client, const char *method, struct buf *request,
		    int64_t deadline, struct buf *ret_response, struct hw_err *e)
{
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	int r;

	r = rpc_stream_open(client, method, request, deadline, &stream, e);
	if (r < 0)
		return r;
	while (stream->call && stream->n_in < 2)
		wait_for_io(client);
	if (stream->n_in > 1)
		return status_set(e, STATUS_UNIMPLEMENTED, "expected one response, got more");
	if (stream->code != STATUS_OK)
		return stream_error(stream, e);
	if (!take_message(&stream->in, ret_response))
		return status_set(e, STATUS_UNIMPLEMENTED, "expected one response, got none");
	return 0;
}
