/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/test-server.c - server and client over real sockets
 *
 * How:   a server with the sample service runs on its own thread. Calls of Sleep sleep until they
 *        are cancelled, so the tests do not depend on the speed of the machine. Deadlines are
 *        reached only if a test fails.
 */
#include "rpc/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <uv.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "rpc/client.h"
#include "rpc/sample.h"
#include "rpc/socket.h"

#define LONG	 60000	   /* ms; reached only if a test fails */
#define FOR_EVER "2000000" /* ms */

/* ---- fixture ------------------------------------------------------------------------ */

struct fixture {
	char dir[64];
	char path[80];
	pthread_t thread;
	uv_loop_t loop;
	uv_async_t stop;
	int stop_ms;
	atomic_bool stopped;
	struct rpc_server *server;
	struct sample_counts sample;
	atomic_uint finished[STATUS_UNAUTHENTICATED + 1]; /* calls, by status code */
	atomic_uint closed_idle, refused;		  /* connections */
};

static void on_finished(void *ctx, const struct rpc_finished_call *call)
{
	struct fixture *f = ctx;

	f->finished[call->code]++;
}

static void on_full(void *ctx, bool refused)
{
	struct fixture *f = ctx;

	if (refused)
		f->refused++;
	else
		f->closed_idle++;
}

static void on_stopped(void *ctx)
{
	struct fixture *f = ctx;

	uv_close((uv_handle_t *)&f->stop, NULL);
}

static void on_stop(uv_async_t *async)
{
	struct fixture *f = async->data;

	rpc_server_stop(f->server, f->stop_ms, on_stopped, f);
}

static void *run_loop(void *arg)
{
	struct fixture *f = arg;

	uv_run(&f->loop, UV_RUN_DEFAULT);
	f->stopped = true;
	return NULL;
}

static void start_server(struct fixture *f, const struct rpc_config *config)
{
	const struct socket_owner owner = { .mode = 0600, .uid = (uid_t)-1, .gid = (gid_t)-1 };
	struct rpc_config c = *config;
	struct hw_err e;
	int fd;

	c.finished = on_finished;
	c.full = on_full;
	c.ctx = f;
	f->stopped = false;
	f->stop_ms = 0;
	assert_int_equal(uv_loop_init(&f->loop), 0);
	uv_async_init(&f->loop, &f->stop, on_stop);
	f->stop.data = f;
	if (rpc_server_new(&f->loop, &c, &f->server, &e) < 0 ||
	    socket_listen(f->path, &owner, &fd, &e) < 0 || rpc_server_listen(f->server, fd, &e) < 0)
		fail_msg("%s", e.msg);
	rpc_server_add(f->server, sample_methods, &f->sample);
	assert_int_equal(pthread_create(&f->thread, NULL, run_loop, f), 0);
}

static void stop_server(struct fixture *f)
{
	uv_async_send(&f->stop);
	pthread_join(f->thread, NULL);
	rpc_server_free(f->server);
	f->server = NULL;
	assert_int_equal(uv_loop_close(&f->loop), 0);
	assert_int_equal(f->sample.started, f->sample.ended);
}

static int fixture_setup(void **state)
{
	struct fixture *f = mem_new(sizeof(*f));

	snprintf(f->dir, sizeof(f->dir), "%.40s/server.XXXXXX", str_or(getenv("TMPDIR"), "/tmp"));
	if (!mkdtemp(f->dir))
		return -1;
	snprintf(f->path, sizeof(f->path), "%s/sock", f->dir);
	*state = f;
	return 0;
}

static int fixture_teardown(void **state)
{
	struct fixture *f = *state;

	if (f->server)
		stop_server(f);
	unlink(f->path);
	rmdir(f->dir);
	free(f);
	return 0;
}

static const struct rpc_config defaults = RPC_CONFIG;

/* ---- clients ------------------------------------------------------------------------ */

static struct rpc_client *open_client(struct fixture *f)
{
	struct rpc_client *client = NULL;
	struct hw_err e;

	if (rpc_client_open(f->path, &client, &e) < 0)
		fail_msg("%s", e.msg);
	return client;
}

static int call_until(struct rpc_client *client, const char *method, const char *text,
		      int64_t deadline, struct buf *ret, struct hw_err *e)
{
	autofree char *path = str_printf("/sample.Sample/%s", method);
	struct buf request = { 0 };

	buf_puts(&request, text);
	return rpc_client_call(client, path, &request, deadline, ret, e);
}

static enum status_code call_unary(struct rpc_client *client, const char *method, const char *text)
{
	AUTO(buf_done) struct buf response = { 0 };
	struct hw_err e;

	if (call_until(client, method, text, time_deadline(LONG), &response, &e) < 0)
		return status_from_err(&e);
	if (str_equal(method, "Echo") || str_equal(method, "Now"))
		assert_string_equal(response.data, text);
	return STATUS_OK;
}

/* Return: the message of a call that fails because the server is not available */
static const char *call_error(struct rpc_client *client)
{
	AUTO(buf_done) struct buf response = { 0 };
	static struct hw_err e;

	assert_true(call_until(client, "Echo", "x", time_deadline(LONG), &response, &e) < 0);
	assert_int_equal(status_from_err(&e), STATUS_UNAVAILABLE);
	return e.msg;
}

static struct rpc_stream *open_stream(struct rpc_client *client, const char *method,
				      const char *text)
{
	autofree char *path = str_printf("/sample.Sample/%s", method);
	struct rpc_stream *stream = NULL;
	struct buf request = { 0 };
	struct hw_err e;

	if (text)
		buf_puts(&request, text);
	if (rpc_stream_open(client, path, text ? &request : NULL, time_deadline(LONG), &stream,
			    &e) < 0)
		fail_msg("%s", e.msg);
	return stream;
}

/* Waits for a counter that other threads change. */
static void wait_for(atomic_uint *count, unsigned n)
{
	int64_t deadline = time_deadline(LONG);

	while (*count < n && !time_has_passed(deadline))
		time_sleep(1);
	assert_true(*count >= n);
}

/* Starts calls of Sleep on one connection and waits until the handlers of all of them run. */
static void start_sleepers(struct fixture *f, struct rpc_client *client,
			   struct rpc_stream **streams, unsigned n)
{
	unsigned before = f->sample.started;

	for (unsigned i = 0; i < n; i++)
		streams[i] = open_stream(client, "Sleep", FOR_EVER);
	/* While the client waits for this response, it also receives the server's limit of
	 * concurrent calls. Only then can it send all calls above. */
	assert_int_equal(call_unary(client, "Echo", "all sent"), STATUS_OK);
	wait_for(&f->sample.started, before + n);
}

static void cancel_sleepers(struct rpc_stream **streams, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		rpc_stream_free(streams[i]);
}

/* ---- calls -------------------------------------------------------------------------- */

static void unary_calls(void **state)
{
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	struct fixture *f = *state;
	AUTO(buf_done) struct buf response = { 0 };
	struct hw_err e;

	start_server(f, &defaults);
	client = open_client(f);
	assert_int_equal(call_unary(client, "Echo", "hello"), STATUS_OK);
	assert_int_equal(call_unary(client, "Echo", ""), STATUS_OK);
	assert_int_equal(call_unary(client, "Now", "here"), STATUS_OK);
	assert_true(call_until(client, "Fail", "5 no \"such\" größe", time_deadline(LONG),
			       &response, &e) < 0);
	assert_int_equal(e.code, -ENOENT);
	assert_int_equal(e.domain, HW_DOMAIN_GRPC);
	assert_int_equal(e.wire, STATUS_NOT_FOUND);
	assert_string_equal(e.msg, "no \"such\" größe");
	assert_int_equal(call_unary(client, "Nothing", ""), STATUS_UNIMPLEMENTED);
	assert_int_equal(call_unary(client, "Mute", ""), STATUS_INTERNAL);
	assert_int_equal(call_unary(client, "Sleep", "1"), STATUS_OK);
	assert_int_equal(call_unary(client, "Count", "2 10"),
			 STATUS_UNIMPLEMENTED); /* two responses to a unary call */
	stop_server(f);
	assert_int_equal(f->finished[STATUS_NOT_FOUND], 1);
	assert_int_equal(f->finished[STATUS_UNIMPLEMENTED], 1);
	assert_int_equal(f->finished[STATUS_INTERNAL], 1);
}

static void instant_calls(void **state)
{
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	struct fixture *f = *state;
	char large[200001];

	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	start_server(f, &defaults);
	client = open_client(f);
	for (int i = 0; i < 10; i++)
		assert_int_equal(call_unary(client, "Now", large), STATUS_OK);
	assert_int_equal(call_unary(client, "Echo", "still here"), STATUS_OK);
}

static void responses_stream(void **state)
{
	struct fixture *f = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	size_t n = 0, bytes = 0;
	struct hw_err e;
	int r;

	start_server(f, &defaults);
	client = open_client(f);
	stream = open_stream(client, "Count", "300 100000");
	do {
		AUTO(buf_done) struct buf message = { 0 };

		r = rpc_stream_receive(stream, &message, &e);
		n += r == 1;
		bytes += message.len;
		if (n == 10)
			assert_int_equal(call_unary(client, "Echo", "meanwhile"), STATUS_OK);
	} while (r == 1);
	assert_int_equal(r, 0);
	assert_int_equal(n, 300);
	assert_int_equal(bytes, 30000000);
}

static void requests_stream(void **state)
{
	struct fixture *f = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	AUTO(buf_done) struct buf response = { 0 };
	struct hw_err e;

	start_server(f, &defaults);
	client = open_client(f);
	stream = open_stream(client, "Sum", NULL);
	for (int i = 0; i < 300; i++) {
		struct buf message = { 0 };

		memset(buf_reserve(&message, 100000), 'y', 100000);
		buf_commit(&message, 100000);
		assert_int_equal(rpc_stream_send(stream, &message, &e), 0);
	}
	rpc_stream_end_request(stream);
	assert_int_equal(rpc_stream_receive(stream, &response, &e), 1);
	assert_string_equal(response.data, "300 30000000");
	buf_done(&response);
	assert_int_equal(rpc_stream_receive(stream, &response, &e), 0);
}

static void both_stream(void **state)
{
	struct fixture *f = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	AUTO(buf_done) struct buf end = { 0 };
	struct hw_err e;

	start_server(f, &defaults);
	client = open_client(f);
	stream = open_stream(client, "Chat", NULL);
	for (int i = 0; i < 100; i++) {
		AUTO(buf_done) struct buf message = { 0 };
		AUTO(buf_done) struct buf response = { 0 };

		buf_printf(&message, "%d", i);
		assert_int_equal(rpc_stream_send(stream, &message, &e), 0);
		assert_int_equal(rpc_stream_receive(stream, &response, &e), 1);
		buf_printf(&message, "%d", i);
		assert_string_equal(response.data, message.data);
	}
	rpc_stream_end_request(stream);
	assert_int_equal(rpc_stream_receive(stream, &end, &e), 0);
}

static void message_sizes(void **state)
{
	struct fixture *f = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	AUTO(buf_done) struct buf response = { 0 };
	struct buf request = { 0 };
	struct hw_err e;

	start_server(f, &defaults);
	client = open_client(f);
	memset(buf_reserve(&request, 16 << 20), 'z', 16 << 20);
	buf_commit(&request, 16 << 20);
	assert_int_equal(rpc_client_call(client, "/sample.Sample/Echo", &request,
					 time_deadline(LONG), &response, &e),
			 0);
	assert_int_equal(response.len, 16 << 20);
	assert_int_equal(call_unary(client, "Count", "1 16777217"), STATUS_RESOURCE_EXHAUSTED);
}

/* ---- threads ------------------------------------------------------------------------ */

#define SLEEPERS 200
#define DEAD	 50

/* Starts clients that hang: some send nothing, some stop in the middle of a frame, some never read
 * their responses. */
static void start_dead_clients(struct fixture *f, int fds[DEAD], struct rpc_client **readers,
			       struct rpc_stream **unread)
{
	static const char half[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
				   "\0\0\0\4\0\0\0\0\0" /* SETTINGS */
				   "\0\0\x10\1\4\0\0\0\1half" /* HEADERS of 16 bytes */;
	struct hw_err e;

	for (int i = 0; i < DEAD; i++) {
		if (socket_connect(f->path, &fds[i], &e) < 0)
			fail_msg("%s", e.msg);
		if (i % 2 == 0)
			assert_true(send(fds[i], half, sizeof(half) - 1, MSG_NOSIGNAL) > 0);
	}
	for (int i = 0; i < DEAD; i++) {
		readers[i] = open_client(f);
		unread[i] = open_stream(readers[i], "Count", "100 1000000");
	}
}

static void sleeping_threads(void **state)
{
	struct fixture *f = *state;
	AUTO(rpc_client_close) struct rpc_client *sleeping = NULL, *client = NULL;
	struct rpc_stream *sleepers[SLEEPERS], *unread[DEAD];
	struct rpc_client *readers[DEAD];
	int fds[DEAD];

	start_server(f, &defaults);
	sleeping = open_client(f);
	start_sleepers(f, sleeping, sleepers, SLEEPERS);
	start_dead_clients(f, fds, readers, unread);
	wait_for(&f->sample.started, SLEEPERS + DEAD);

	client = open_client(f);
	for (int i = 0; i < 500; i++)
		assert_int_equal(call_unary(client, "Echo", "still there"), STATUS_OK);
	assert_int_equal(f->sample.ended, 0);
	assert_int_equal(rpc_server_stats(f->server).long_calls, SLEEPERS + DEAD);
	/* silent clients may have reached the handshake timeout by now */
	assert_in_range(rpc_server_stats(f->server).connections, DEAD + DEAD / 2 + 2, 2 * DEAD + 2);

	cancel_sleepers(sleepers, SLEEPERS);
	for (int i = 0; i < DEAD; i++) {
		rpc_stream_free(unread[i]);
		rpc_client_close(readers[i]);
		close(fds[i]);
	}
	wait_for(&f->sample.cancelled, SLEEPERS + DEAD);
}

/* The sample service has five long methods, so of twenty long calls two are reserved for each method,
 * and all methods share ten. */
static void long_calls_limit(void **state)
{
	struct rpc_config config = defaults;
	struct fixture *f = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	struct rpc_stream *sleepers[12];
	int64_t deadline = time_deadline(LONG);

	config.long_calls_max = 20;
	start_server(f, &config);
	client = open_client(f);
	start_sleepers(f, client, sleepers, ARRAY_SIZE(sleepers));
	assert_int_equal(call_unary(client, "Sleep", "0"), STATUS_RESOURCE_EXHAUSTED);
	assert_int_equal(call_unary(client, "Echo", "short calls work"), STATUS_OK);
	cancel_sleepers(sleepers, 1);
	while (call_unary(client, "Sleep", "0") == STATUS_RESOURCE_EXHAUSTED &&
	       !time_has_passed(deadline))
		time_sleep(1);
	assert_int_equal(call_unary(client, "Sleep", "0"), STATUS_OK);
	cancel_sleepers(sleepers + 1, ARRAY_SIZE(sleepers) - 1);
}

static void long_calls_of_each_method(void **state)
{
	struct rpc_config config = defaults;
	struct fixture *f = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	struct rpc_stream *sleepers[12], *sums[2], *chats[2];

	config.long_calls_max = 20;
	start_server(f, &config);
	client = open_client(f);
	start_sleepers(f, client, sleepers, ARRAY_SIZE(sleepers));
	assert_int_equal(call_unary(client, "Sleep", "0"), STATUS_RESOURCE_EXHAUSTED);
	for (size_t i = 0; i < ARRAY_SIZE(sums); i++) {
		sums[i] = open_stream(client, "Sum", NULL);
		chats[i] = open_stream(client, "Chat", NULL);
	}
	assert_int_equal(call_unary(client, "Sum", "x"), STATUS_RESOURCE_EXHAUSTED);
	assert_int_equal(call_unary(client, "Count", "1"), STATUS_OK);
	assert_int_equal(rpc_server_stats(f->server).long_calls, ARRAY_SIZE(sleepers) + 4);
	for (size_t i = 0; i < ARRAY_SIZE(sums); i++) {
		rpc_stream_free(sums[i]);
		rpc_stream_free(chats[i]);
	}
	cancel_sleepers(sleepers, ARRAY_SIZE(sleepers));
}

/* As many long calls as long methods: one is reserved for each. */
static void one_long_call_of_each_method(void **state)
{
	struct rpc_config config = defaults;
	struct fixture *f = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	struct rpc_stream *sleeper[1];

	config.long_calls_max = 5;
	start_server(f, &config);
	client = open_client(f);
	start_sleepers(f, client, sleeper, 1);
	assert_int_equal(call_unary(client, "Sleep", "0"), STATUS_RESOURCE_EXHAUSTED);
	assert_int_equal(call_unary(client, "Count", "1"), STATUS_OK);
	cancel_sleepers(sleeper, 1);
}

static void *client_main(void *arg)
{
	struct fixture *f = arg;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	struct rpc_stream *stream;
	struct hw_err e;

	for (int i = 0; i < 100; i++) {
		if (!client)
			client = open_client(f);
		assert_int_equal(call_unary(client, "Echo", "x"), STATUS_OK);
		assert_int_equal(call_unary(client, "Sleep", "0"), STATUS_OK);
		stream = open_stream(client, i % 2 ? "Count" : "Sleep", i % 2 ? "9 99999" : "9999");
		if (i % 3 == 0) {
			AUTO(buf_done) struct buf message = { 0 };

			if (i % 2)
				assert_int_equal(rpc_stream_receive(stream, &message, &e), 1);
		}
		rpc_stream_free(stream);
		if (i % 5 == 0)
			rpc_client_close(take_ptr(client));
	}
	return NULL;
}

static void many_threads(void **state)
{
	struct fixture *f = *state;
	pthread_t threads[8];

	start_server(f, &defaults);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, client_main, f), 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	assert_true(f->finished[STATUS_OK] >= 1600);
}

static void full_queue(void **state)
{
	struct rpc_config config = defaults;
	struct fixture *f = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;

	config.queue_max = 0; /* every short call is refused */
	start_server(f, &config);
	client = open_client(f);
	assert_int_equal(call_unary(client, "Echo", "x"), STATUS_RESOURCE_EXHAUSTED);
	assert_int_equal(call_unary(client, "Now", "x"), STATUS_OK);
	assert_int_equal(call_unary(client, "Sleep", "0"), STATUS_OK);
}

/* ---- ends of calls ------------------------------------------------------------------ */

static void deadline(void **state)
{
	struct fixture *f = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	AUTO(buf_done) struct buf response = { 0 };
	struct hw_err e;

	start_server(f, &defaults);
	client = open_client(f);
	assert_true(call_until(client, "Sleep", FOR_EVER, time_deadline(50), &response, &e) < 0);
	assert_int_equal(status_from_err(&e), STATUS_DEADLINE_EXCEEDED);
	assert_int_equal(e.code, -ETIMEDOUT);
	wait_for(&f->sample.cancelled, 1);
	assert_true(call_until(client, "Echo", "x", time_now() - 1, &response, &e) < 0);
	assert_int_equal(status_from_err(&e), STATUS_DEADLINE_EXCEEDED);
	assert_int_equal(call_unary(client, "Echo", "x"), STATUS_OK);
}

static void cancelled_calls(void **state)
{
	struct fixture *f = *state;
	struct rpc_client *client;
	struct rpc_stream *stream;

	start_server(f, &defaults);
	client = open_client(f);
	start_sleepers(f, client, &stream, 1);
	rpc_stream_free(stream);
	wait_for(&f->sample.cancelled, 1);
	start_sleepers(f, client, &stream, 1);
	rpc_stream_free(stream);
	rpc_client_close(client);
	wait_for(&f->sample.cancelled, 2);
}

static void stalled_client(void **state)
{
	struct rpc_config config = defaults;
	struct fixture *f = *state;
	AUTO(rpc_client_close) struct rpc_client *reader = NULL, *writer = NULL;
	AUTO(rpc_stream_free) struct rpc_stream *unread = NULL, *unsent = NULL;

	config.stall_ms = 100;
	start_server(f, &config);
	reader = open_client(f);
	writer = open_client(f);
	unread = open_stream(reader, "Count", "100 1000000");
	unsent = open_stream(writer, "Sum", NULL);
	/* this call also writes the headers of Sum */
	assert_int_equal(call_unary(writer, "Echo", "x"), STATUS_OK);
	wait_for(&f->sample.ended, 2);
}

static void idle_connection_closed(void **state)
{
	struct rpc_config config = defaults;
	struct fixture *f = *state;
	AUTO(rpc_client_close)
	struct rpc_client *busy = NULL, *old = NULL, *recent = NULL, *new = NULL;
	AUTO(rpc_stream_free) struct rpc_stream *sleeper = NULL;

	config.connections_max = 3;
	start_server(f, &config);
	busy = open_client(f);
	recent = open_client(f);
	assert_int_equal(call_unary(recent, "Echo", "x"), STATUS_OK);
	old = open_client(f);
	assert_int_equal(call_unary(old, "Echo", "x"), STATUS_OK);
	assert_int_equal(call_unary(recent, "Echo", "x"), STATUS_OK);
	start_sleepers(f, busy, &sleeper, 1);
	new = open_client(f);
	assert_int_equal(call_unary(new, "Echo", "x"), STATUS_OK);
	assert_int_equal(f->closed_idle, 1);
	assert_int_equal(rpc_server_stats(f->server).connections, 3);
	assert_int_equal(call_unary(recent, "Echo", "x"), STATUS_OK);
	assert_int_equal(f->sample.ended, 0);
	/* the old client learns why, and connects again */
	assert_string_equal(
		call_error(old),
		"server closed the connection: too many connections: limit 3, this one was idle");
	assert_int_equal(call_unary(old, "Echo", "x"), STATUS_OK);
	assert_int_equal(f->refused, 0);
}

static void connection_refused(void **state)
{
	struct rpc_config config = defaults;
	struct fixture *f = *state;
	AUTO(rpc_client_close) struct rpc_client *busy = NULL, *new = NULL;
	AUTO(rpc_stream_free) struct rpc_stream *sleeper = NULL;

	config.connections_max = 1;
	start_server(f, &config);
	busy = open_client(f);
	start_sleepers(f, busy, &sleeper, 1);
	new = open_client(f);
	assert_string_equal(
		call_error(new),
		"server closed the connection: too many connections: limit 1, none is idle");
	wait_for(&f->refused, 1);
	assert_int_equal(f->closed_idle, 0);
	assert_int_equal(f->sample.ended, 0);
	rpc_stream_free(take_ptr(sleeper));
	wait_for(&f->sample.ended, 1);
	assert_int_equal(call_unary(new, "Echo", "x"), STATUS_OK);
}

/* ---- ends of servers ---------------------------------------------------------------- */

static void drain(void **state)
{
	struct fixture *f = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	AUTO(buf_done) struct buf response = { 0 };
	struct buf message = { 0 };
	struct hw_err e;

	start_server(f, &defaults);
	client = open_client(f);
	stream = open_stream(client, "Sum", NULL);
	assert_int_equal(call_unary(client, "Echo", "x"), STATUS_OK);
	f->stop_ms = LONG;
	uv_async_send(&f->stop);
	while (call_unary(client, "Echo", "x") == STATUS_OK)
		time_sleep(1);
	assert_false(f->stopped);
	buf_puts(&message, "last words");
	assert_int_equal(rpc_stream_send(stream, &message, &e), 0);
	rpc_stream_end_request(stream);
	assert_int_equal(rpc_stream_receive(stream, &response, &e), 1);
	assert_string_equal(response.data, "1 10");
	buf_done(&response);
	assert_int_equal(rpc_stream_receive(stream, &response, &e), 0);
	pthread_join(f->thread, NULL);
	assert_int_equal(f->sample.cancelled, 0);
	rpc_server_free(take_ptr(f->server));
	assert_int_equal(uv_loop_close(&f->loop), 0);
}

static void endless_calls(void **state)
{
	struct fixture *f = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	AUTO(buf_done) struct buf response = { 0 };
	struct hw_err e;

	start_server(f, &defaults);
	client = open_client(f);
	stream = open_stream(client, "Watch", "");
	assert_int_equal(rpc_stream_receive(stream, &response, &e), 1);
	f->stop_ms = LONG;
	stop_server(f);
	buf_done(&response);
	assert_true(rpc_stream_receive(stream, &response, &e) < 0);
	assert_int_equal(status_from_err(&e), STATUS_UNAVAILABLE);
	assert_string_equal(e.msg, "server is stopping");
}

/* A client that does not read delays the stop as little as one that does. */
static void endless_calls_unread(void **state)
{
	struct fixture *f = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	int64_t before;

	start_server(f, &defaults);
	client = open_client(f);
	stream = open_stream(client, "Watch", "65536");
	wait_for(&f->sample.started, 1);
	f->stop_ms = LONG;
	before = time_now();
	stop_server(f);
	assert_true(time_now() - before < (int64_t)LONG / 2 * 1000000);
	assert_int_equal(f->sample.cancelled, 1);
}

static void stop_without_draining(void **state)
{
	struct fixture *f = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	AUTO(buf_done) struct buf response = { 0 };
	struct hw_err e;

	start_server(f, &defaults);
	client = open_client(f);
	start_sleepers(f, client, &stream, 1);
	stop_server(f);
	assert_int_equal(f->sample.cancelled, 1);
	assert_true(rpc_stream_receive(stream, &response, &e) < 0);
	assert_int_equal(status_from_err(&e), STATUS_UNAVAILABLE);
}

static void reconnects(void **state)
{
	struct fixture *f = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;

	start_server(f, &defaults);
	client = open_client(f);
	assert_int_equal(call_unary(client, "Echo", "before"), STATUS_OK);
	stop_server(f);
	assert_int_equal(call_unary(client, "Echo", "x"), STATUS_UNAVAILABLE);
	assert_int_equal(call_unary(client, "Echo", "x"), STATUS_UNAVAILABLE);
	start_server(f, &defaults);
	assert_int_equal(call_unary(client, "Echo", "after"), STATUS_OK);
}

#define TEST(name, f)                                                                              \
	{                                                                                          \
		name, f, fixture_setup, fixture_teardown, NULL                                     \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("server: calls on threads and on the event loop end with the expected status",
		     unary_calls),
		TEST("server: an instant call may have a large request", instant_calls),
		TEST("server: responses stream while other calls work", responses_stream),
		TEST("server: a handler receives a stream of requests", requests_stream),
		TEST("server: a handler responds immediately to each request of a stream",
		     both_stream),
		TEST("server: messages of 16 MiB are handled, larger ones are refused",
		     message_sizes),
		TEST("server: short calls work while 200 long calls sleep and clients hang",
		     sleeping_threads),
		TEST("server: when all threads for long calls are busy, only long calls are "
		     "refused",
		     long_calls_limit),
		TEST("server: calls of one long method leave room for every other method",
		     long_calls_of_each_method),
		TEST("server: one long call of each method is reserved, if the limit is small",
		     one_long_call_of_each_method),
		TEST("server: clients on 8 threads can call, cancel, connect and disconnect",
		     many_threads),
		TEST("server: a short call is refused when the queue for the threads is full",
		     full_queue),
		TEST("server: client and handler are informed of a missed deadline", deadline),
		TEST("server: the handler is informed when its client disconnects",
		     cancelled_calls),
		TEST("server: a handler waits for a stalled client for a limited time",
		     stalled_client),
		TEST("server: a connection over the limit replaces the one that is idle longest",
		     idle_connection_closed),
		TEST("server: a connection over the limit is refused if none is idle",
		     connection_refused),
		TEST("server: draining waits for running calls", drain),
		TEST("server: draining does not wait for endless calls", endless_calls),
		TEST("server: draining does not wait for endless calls whose client does not read",
		     endless_calls_unread),
		TEST("server: a stop without draining cancels all calls", stop_without_draining),
		TEST("server: a client reconnects to a server that was restarted", reconnects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
