/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/client.c - a gRPC client: blocking calls over a unix socket
 *
 * How:   whoever waits, for a message or for room, turns the crank: write what
 *        there is, poll, read, let time pass. Events of all streams are kept with
 *        the streams until somebody asks.
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

struct message {
	struct list link;
	struct buf body;
};

struct rpc_client {
	char *path;
	int fd;		   /* -1: not connected */
	struct grpc *grpc; /* NULL: not connected */
	struct buf out;	   /* what was not written yet: from out_at on */
	size_t out_at;
	unsigned streams;
};

struct rpc_stream {
	struct rpc_client *client;
	struct grpc_call *call; /* NULL: over */
	struct list in;
	unsigned n_in; /* messages that ever came */
	bool unsent;   /* messages that are still with the connection */
	enum status_code code;
	char *text;
};

/* ---- events ------------------------------------------------------------------------- */

static void on_message(void *ctx, struct grpc_call *call, struct buf *message)
{
	struct rpc_stream *stream = call->user;
	struct message *m = mem_new(sizeof(*m));

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

static void on_over(void *ctx, struct grpc_call *call, enum status_code code, const char *text)
{
	struct rpc_stream *stream = call->user;

	(void)ctx;
	stream->call = NULL;
	stream->code = code;
	stream->text = str_copy(text);
}

static const struct grpc_events events = { .message = on_message,
					   .sent = on_sent,
					   .over = on_over };

/* ---- the connection ----------------------------------------------------------------- */

static void disconnect(struct rpc_client *client)
{
	grpc_free(client->grpc); /* ends the calls that are left */
	client->grpc = NULL;
	mem_close_fd(&client->fd);
	client->fd = -1;
	buf_done(&client->out);
	client->out_at = 0;
}

static int connect_anew(struct rpc_client *client, struct hw_err *e)
{
	static const struct grpc_limits limits = GRPC_LIMITS;
	int r;

	disconnect(client);
	r = socket_connect(client->path, &client->fd, e);
	if (r == 0)
		client->grpc = grpc_new(GRPC_CLIENT, &limits, &events, client, time_now());
	return r;
}

/* Write what the socket takes; the rest stays in out. */
static void flush(struct rpc_client *client)
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

/* Return: whether the connection lives */
static bool read_some(struct rpc_client *client)
{
	uint8_t data[READ_SIZE];
	ssize_t n = recv(client->fd, data, sizeof(data), 0);
	struct hw_err e;

	if (n > 0)
		return grpc_feed(client->grpc, data, (size_t)n, time_now(), &e) == 0;
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* After flush(): wait for something to happen. What ends calls is told to them. */
static void turn(struct rpc_client *client)
{
	struct pollfd p = { .fd = client->fd, .events = POLLIN };
	bool alive = true;

	if (client->out_at < client->out.len)
		p.events |= POLLOUT;
	if (poll(&p, 1, time_left_ms(grpc_deadline(client->grpc))) < 0 && errno != EINTR)
		alive = false;
	if (alive && p.revents & (POLLIN | POLLHUP | POLLERR))
		alive = read_some(client);
	grpc_tick(client->grpc, time_now());
	flush(client);
	if (!alive || grpc_is_done(client->grpc))
		disconnect(client);
}

/**
 * rpc_client_open() - connect to a server
 */
int rpc_client_open(const char *path, struct rpc_client **ret_client, struct hw_err *e)
{
	struct rpc_client *client = mem_new(sizeof(*client));
	int r;

	client->path = str_copy(path);
	client->fd = -1;
	r = connect_anew(client, e);
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

static struct rpc_stream *stream_new(struct rpc_client *client)
{
	struct rpc_stream *stream = mem_new(sizeof(*stream));

	stream->client = client;
	list_init(&stream->in);
	client->streams++;
	return stream;
}

static int stream_start(struct rpc_stream *stream, const char *method, struct buf *request,
			int64_t deadline, struct hw_err *e)
{
	struct rpc_client *client = stream->client;
	int64_t now = time_now();
	int r = 0;

	if (!client->grpc || (!grpc_is_usable(client->grpc) && client->streams == 1))
		r = connect_anew(client, e);
	if (r == 0)
		r = grpc_start(client->grpc, method,
			       deadline == TIME_NEVER ? TIME_NEVER : deadline - now, now, stream,
			       &stream->call, e);
	if (r == 0 && request)
		r = grpc_send(stream->call, request, e);
	if (r == 0 && request)
		grpc_end(stream->call);
	if (r == 0)
		flush(client);
	return r;
}

/**
 * rpc_stream_open() - begin a call
 * @client:     the client
 * @method:     "/package.Service/Method"
 * @request:    taken; NULL: a stream of them follows
 * @deadline:   of the whole call; TIME_NEVER: none
 * @ret_stream: the call
 * @e:          the error
 */
int rpc_stream_open(struct rpc_client *client, const char *method, struct buf *request,
		    int64_t deadline, struct rpc_stream **ret_stream, struct hw_err *e)
{
	AUTO(rpc_stream_free) struct rpc_stream *stream = stream_new(client);
	int r = stream_start(stream, method, request, deadline, e);

	if (request)
		buf_done(request);
	if (r < 0)
		return r;
	*ret_stream = take_ptr(stream);
	return 0;
}

static int stream_error(const struct rpc_stream *stream, struct hw_err *e)
{
	if (stream->code == STATUS_OK)
		return status_set(e, STATUS_UNKNOWN, "the server ended the call already");
	return status_set(e, stream->code, "%s", stream->text);
}

/**
 * rpc_stream_send() - a message of the request
 */
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
	flush(stream->client);
	while (stream->call && stream->unsent)
		turn(stream->client);
	return stream->unsent ? stream_error(stream, e) : 0;
}

/**
 * rpc_stream_end() - the request is whole
 */
void rpc_stream_end(struct rpc_stream *stream)
{
	if (!stream->call)
		return;
	grpc_end(stream->call);
	flush(stream->client);
}

static bool take_message(struct list *in, struct buf *ret)
{
	list_for_each_safe(struct message, m, in, link) {
		list_remove(&m->link);
		*ret = m->body;
		free(m);
		return true;
	}
	return false;
}

/**
 * rpc_stream_receive() - the next message of the answer, or the end
 */
int rpc_stream_receive(struct rpc_stream *stream, struct buf *ret, struct hw_err *e)
{
	if (stream->call)
		flush(stream->client);
	while (stream->call && list_is_empty(&stream->in))
		turn(stream->client);
	if (!take_message(&stream->in, ret))
		return stream->code == STATUS_OK ? 0 : stream_error(stream, e);
	if (stream->call)
		grpc_taken(stream->call);
	return 1;
}

void rpc_stream_free(struct rpc_stream *stream)
{
	if (!stream)
		return;
	if (stream->call) {
		grpc_cancel(stream->call);
		flush(stream->client);
	}
	list_for_each_safe(struct message, m, &stream->in, link) {
		list_remove(&m->link);
		buf_done(&m->body);
		free(m);
	}
	stream->client->streams--;
	free(stream->text);
	free(stream);
}

/* ---- one request, one answer -------------------------------------------------------- */

static int receive_one(struct rpc_stream *stream, struct buf *ret, struct hw_err *e)
{
	while (stream->call && stream->n_in < 2)
		turn(stream->client);
	if (stream->n_in > 1)
		return status_set(e, STATUS_UNIMPLEMENTED, "the server gave more than one answer");
	if (stream->code != STATUS_OK)
		return stream_error(stream, e);
	if (!take_message(&stream->in, ret))
		return status_set(e, STATUS_UNIMPLEMENTED, "the server gave no answer");
	return 0;
}

/**
 * rpc_client_call() - ask, and wait for the answer
 * @client:     the client
 * @method:     "/package.Service/Method"
 * @request:    its bytes are taken
 * @deadline:   TIME_NEVER: none
 * @ret_answer: the answer
 * @e:          the error
 */
int rpc_client_call(struct rpc_client *client, const char *method, struct buf *request,
		    int64_t deadline, struct buf *ret_answer, struct hw_err *e)
{
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	int r = rpc_stream_open(client, method, request, deadline, &stream, e);

	return r < 0 ? r : receive_one(stream, ret_answer, e);
}
