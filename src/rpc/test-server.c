/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/test-server.c - the server and the client of this folder over real sockets
 *
 * How:   a server with the sample service runs on a thread of its own. Sleeping
 *        calls sleep until they are over, so nothing here depends on how fast a
 *        machine is; waiting is bounded by deadlines that only a failure reaches.
 */
#include "rpc/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the ones above */
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

#define LONG	 60000	   /* ms: reached only when something is broken */
#define FOR_EVER "2000000" /* ms */

/* ---- a server ----------------------------------------------------------------------- */

struct world {
	char dir[64];
	char path[80];
	pthread_t thread;
	uv_loop_t loop;
	uv_async_t stop;
	int stop_ms;
	atomic_bool stopped;
	struct rpc_server *server;
	struct sample sample;
	atomic_uint ended[STATUS_UNAUTHENTICATED + 1]; /* calls, by code */
};

static void on_ended(void *ctx, const struct rpc_ended *ended)
{
	struct world *w = ctx;

	w->ended[ended->code]++;
}

static void on_stopped(void *ctx)
{
	struct world *w = ctx;

	uv_close((uv_handle_t *)&w->stop, NULL);
}

static void on_stop(uv_async_t *async)
{
	struct world *w = async->data;

	rpc_server_stop(w->server, w->stop_ms, on_stopped, w);
}

static void *run(void *arg)
{
	struct world *w = arg;

	uv_run(&w->loop, UV_RUN_DEFAULT);
	w->stopped = true;
	return NULL;
}

static void serve(struct world *w, const struct rpc_config *config)
{
	const struct socket_owner owner = { .mode = 0600, .uid = (uid_t)-1, .gid = (gid_t)-1 };
	struct rpc_config c = *config;
	struct hw_err e;
	int fd;

	c.ended = on_ended;
	c.ctx = w;
	w->stopped = false;
	w->stop_ms = 0;
	assert_int_equal(uv_loop_init(&w->loop), 0);
	uv_async_init(&w->loop, &w->stop, on_stop);
	w->stop.data = w;
	if (rpc_server_new(&w->loop, &c, &w->server, &e) < 0 ||
	    socket_listen(w->path, &owner, &fd, &e) < 0 || rpc_server_listen(w->server, fd, &e) < 0)
		fail_msg("%s", e.msg);
	rpc_server_add(w->server, sample_methods, &w->sample);
	assert_int_equal(pthread_create(&w->thread, NULL, run, w), 0);
}

static void stop(struct world *w)
{
	uv_async_send(&w->stop);
	pthread_join(w->thread, NULL);
	rpc_server_free(w->server);
	w->server = NULL;
	assert_int_equal(uv_loop_close(&w->loop), 0);
	assert_int_equal(w->sample.begun, w->sample.ended);
}

static int world_make(void **state)
{
	struct world *w = mem_new(sizeof(*w));

	snprintf(w->dir, sizeof(w->dir), "%.40s/server.XXXXXX", str_or(getenv("TMPDIR"), "/tmp"));
	if (!mkdtemp(w->dir))
		return -1;
	snprintf(w->path, sizeof(w->path), "%s/sock", w->dir);
	*state = w;
	return 0;
}

static int world_end(void **state)
{
	struct world *w = *state;

	if (w->server)
		stop(w);
	unlink(w->path);
	rmdir(w->dir);
	free(w);
	return 0;
}

static const struct rpc_config usual = RPC_CONFIG;

/* ---- clients ------------------------------------------------------------------------ */

static struct rpc_client *dial(struct world *w)
{
	struct rpc_client *client = NULL;
	struct hw_err e;

	if (rpc_client_open(w->path, &client, &e) < 0)
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

static enum status_code call(struct rpc_client *client, const char *method, const char *text)
{
	AUTO(buf_done) struct buf answer = { 0 };
	struct hw_err e;

	if (call_until(client, method, text, time_deadline(LONG), &answer, &e) < 0)
		return status_of(&e);
	if (str_equal(method, "Echo") || str_equal(method, "Now"))
		assert_string_equal(answer.data, text);
	return STATUS_OK;
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

/* Wait for a count that other threads change. */
static void wait_for(atomic_uint *count, unsigned n)
{
	int64_t deadline = time_deadline(LONG);

	while (*count < n && !time_is_over(deadline))
		time_sleep(1);
	assert_true(*count >= n);
}

/* Sleeping calls on one connection; each is there once its handler runs. */
static void sleepers_start(struct world *w, struct rpc_client *client, struct rpc_stream **streams,
			   unsigned n)
{
	unsigned before = w->sample.begun;

	for (unsigned i = 0; i < n; i++)
		streams[i] = open_stream(client, "Sleep", FOR_EVER);
	/* so that the client hears how many may be open at a time */
	assert_int_equal(call(client, "Echo", "all sent"), STATUS_OK);
	wait_for(&w->sample.begun, before + n);
}

static void sleepers_end(struct rpc_stream **streams, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		rpc_stream_free(streams[i]);
}

/* ---- calls -------------------------------------------------------------------------- */

static void calls(void **state)
{
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	struct world *w = *state;
	AUTO(buf_done) struct buf answer = { 0 };
	struct hw_err e;

	serve(w, &usual);
	client = dial(w);
	assert_int_equal(call(client, "Echo", "hello"), STATUS_OK);
	assert_int_equal(call(client, "Echo", ""), STATUS_OK);
	assert_int_equal(call(client, "Now", "here"), STATUS_OK);
	assert_true(call_until(client, "Fail", "5 no \"such\" größe", time_deadline(LONG), &answer,
			       &e) < 0);
	assert_int_equal(e.code, -ENOENT);
	assert_int_equal(e.domain, HW_DOMAIN_GRPC);
	assert_int_equal(e.wire, STATUS_NOT_FOUND);
	assert_string_equal(e.msg, "no \"such\" größe");
	assert_int_equal(call(client, "Nothing", ""), STATUS_UNIMPLEMENTED);
	assert_int_equal(call(client, "Mute", ""), STATUS_INTERNAL);
	assert_int_equal(call(client, "Sleep", "1"), STATUS_OK);
	assert_int_equal(call(client, "Count", "2 10"), STATUS_UNIMPLEMENTED); /* two answers */
	stop(w);
	assert_int_equal(w->ended[STATUS_NOT_FOUND], 1);
	assert_int_equal(w->ended[STATUS_UNIMPLEMENTED], 1);
	assert_int_equal(w->ended[STATUS_INTERNAL], 1);
}

static void instant(void **state)
{
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	struct world *w = *state;
	char large[200001];

	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	serve(w, &usual);
	client = dial(w);
	for (int i = 0; i < 10; i++)
		assert_int_equal(call(client, "Now", large), STATUS_OK);
	assert_int_equal(call(client, "Echo", "still here"), STATUS_OK);
}

static void answers_stream(void **state)
{
	struct world *w = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	size_t n = 0, bytes = 0;
	struct hw_err e;
	int r;

	serve(w, &usual);
	client = dial(w);
	stream = open_stream(client, "Count", "300 100000");
	do {
		AUTO(buf_done) struct buf message = { 0 };

		r = rpc_stream_receive(stream, &message, &e);
		n += r == 1;
		bytes += message.len;
		if (n == 10)
			assert_int_equal(call(client, "Echo", "meanwhile"), STATUS_OK);
	} while (r == 1);
	assert_int_equal(r, 0);
	assert_int_equal(n, 300);
	assert_int_equal(bytes, 30000000);
}

static void requests_stream(void **state)
{
	struct world *w = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	AUTO(buf_done) struct buf answer = { 0 };
	struct hw_err e;

	serve(w, &usual);
	client = dial(w);
	stream = open_stream(client, "Sum", NULL);
	for (int i = 0; i < 300; i++) {
		struct buf message = { 0 };

		memset(buf_reserve(&message, 100000), 'y', 100000);
		buf_added(&message, 100000);
		assert_int_equal(rpc_stream_send(stream, &message, &e), 0);
	}
	rpc_stream_end(stream);
	assert_int_equal(rpc_stream_receive(stream, &answer, &e), 1);
	assert_string_equal(answer.data, "300 30000000");
	buf_done(&answer);
	assert_int_equal(rpc_stream_receive(stream, &answer, &e), 0);
}

static void both_stream(void **state)
{
	struct world *w = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	AUTO(buf_done) struct buf end = { 0 };
	struct hw_err e;

	serve(w, &usual);
	client = dial(w);
	stream = open_stream(client, "Chat", NULL);
	for (int i = 0; i < 100; i++) {
		AUTO(buf_done) struct buf message = { 0 };
		AUTO(buf_done) struct buf answer = { 0 };

		buf_printf(&message, "%d", i);
		assert_int_equal(rpc_stream_send(stream, &message, &e), 0);
		assert_int_equal(rpc_stream_receive(stream, &answer, &e), 1);
		buf_printf(&message, "%d", i);
		assert_string_equal(answer.data, message.data);
	}
	rpc_stream_end(stream);
	assert_int_equal(rpc_stream_receive(stream, &end, &e), 0);
}

static void sizes(void **state)
{
	struct world *w = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	AUTO(buf_done) struct buf answer = { 0 };
	struct buf request = { 0 };
	struct hw_err e;

	serve(w, &usual);
	client = dial(w);
	memset(buf_reserve(&request, 16 << 20), 'z', 16 << 20);
	buf_added(&request, 16 << 20);
	assert_int_equal(rpc_client_call(client, "/sample.Sample/Echo", &request,
					 time_deadline(LONG), &answer, &e),
			 0);
	assert_int_equal(answer.len, 16 << 20);
	assert_int_equal(call(client, "Count", "1 16777217"), STATUS_RESOURCE_EXHAUSTED);
}

/* ---- the model of threads ----------------------------------------------------------- */

#define SLEEPERS 200
#define DEAD	 50

/* Clients that hang: silent, in the middle of a frame, and never reading their answers. */
static void dead_start(struct world *w, int fds[DEAD], struct rpc_client **readers,
		       struct rpc_stream **unread)
{
	static const char half[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
				   "\0\0\0\4\0\0\0\0\0" /* SETTINGS */
				   "\0\0\x10\1\4\0\0\0\1half" /* HEADERS of 16 bytes */;
	struct hw_err e;

	for (int i = 0; i < DEAD; i++) {
		if (socket_connect(w->path, &fds[i], &e) < 0)
			fail_msg("%s", e.msg);
		if (i % 2 == 0)
			assert_true(send(fds[i], half, sizeof(half) - 1, MSG_NOSIGNAL) > 0);
	}
	for (int i = 0; i < DEAD; i++) {
		readers[i] = dial(w);
		unread[i] = open_stream(readers[i], "Count", "100 1000000");
	}
}

static void sleeping_threads(void **state)
{
	struct world *w = *state;
	AUTO(rpc_client_close) struct rpc_client *sleeping = NULL, *client = NULL;
	struct rpc_stream *sleepers[SLEEPERS], *unread[DEAD];
	struct rpc_client *readers[DEAD];
	int fds[DEAD];

	serve(w, &usual);
	sleeping = dial(w);
	sleepers_start(w, sleeping, sleepers, SLEEPERS);
	dead_start(w, fds, readers, unread);
	wait_for(&w->sample.begun, SLEEPERS + DEAD);

	client = dial(w);
	for (int i = 0; i < 500; i++)
		assert_int_equal(call(client, "Echo", "still there"), STATUS_OK);
	assert_int_equal(w->sample.ended, 0);
	assert_int_equal(rpc_server_stats(w->server).long_calls, SLEEPERS + DEAD);
	/* those that said nothing may have been given up by now */
	assert_in_range(rpc_server_stats(w->server).connections, DEAD + DEAD / 2 + 2, 2 * DEAD + 2);

	sleepers_end(sleepers, SLEEPERS);
	for (int i = 0; i < DEAD; i++) {
		rpc_stream_free(unread[i]);
		rpc_client_close(readers[i]);
		close(fds[i]);
	}
	wait_for(&w->sample.wasted, SLEEPERS + DEAD);
}

static void cap_of_threads(void **state)
{
	struct world *w = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	struct rpc_stream *sleepers[512];
	int64_t deadline = time_deadline(LONG);

	assert_int_equal(usual.long_calls, ARRAY_SIZE(sleepers));
	serve(w, &usual);
	client = dial(w);
	sleepers_start(w, client, sleepers, ARRAY_SIZE(sleepers));
	assert_int_equal(call(client, "Sleep", "0"), STATUS_RESOURCE_EXHAUSTED);
	assert_int_equal(call(client, "Echo", "short ones go on"), STATUS_OK);
	sleepers_end(sleepers, 1);
	while (call(client, "Sleep", "0") == STATUS_RESOURCE_EXHAUSTED && !time_is_over(deadline))
		time_sleep(1);
	assert_int_equal(call(client, "Sleep", "0"), STATUS_OK);
	sleepers_end(sleepers + 1, ARRAY_SIZE(sleepers) - 1);
}

static void *hammer(void *arg)
{
	struct world *w = arg;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	struct rpc_stream *stream;
	struct hw_err e;

	for (int i = 0; i < 100; i++) {
		if (!client)
			client = dial(w);
		assert_int_equal(call(client, "Echo", "x"), STATUS_OK);
		assert_int_equal(call(client, "Sleep", "0"), STATUS_OK);
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
	struct world *w = *state;
	pthread_t threads[8];

	serve(w, &usual);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hammer, w), 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	assert_true(w->ended[STATUS_OK] >= 1600);
}

static void full_queue(void **state)
{
	struct rpc_config config = usual;
	struct world *w = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;

	config.queue = 0; /* nobody may wait, so nobody is served */
	serve(w, &config);
	client = dial(w);
	assert_int_equal(call(client, "Echo", "x"), STATUS_RESOURCE_EXHAUSTED);
	assert_int_equal(call(client, "Now", "x"), STATUS_OK);
	assert_int_equal(call(client, "Sleep", "0"), STATUS_OK);
}

/* ---- ends of calls ------------------------------------------------------------------ */

static void deadline(void **state)
{
	struct world *w = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	AUTO(buf_done) struct buf answer = { 0 };
	struct hw_err e;

	serve(w, &usual);
	client = dial(w);
	assert_true(call_until(client, "Sleep", FOR_EVER, time_deadline(50), &answer, &e) < 0);
	assert_int_equal(status_of(&e), STATUS_DEADLINE_EXCEEDED);
	assert_int_equal(e.code, -ETIMEDOUT);
	wait_for(&w->sample.wasted, 1);
	assert_true(call_until(client, "Echo", "x", time_now() - 1, &answer, &e) < 0);
	assert_int_equal(status_of(&e), STATUS_DEADLINE_EXCEEDED);
	assert_int_equal(call(client, "Echo", "x"), STATUS_OK);
}

static void vanished_client(void **state)
{
	struct world *w = *state;
	struct rpc_client *client;
	struct rpc_stream *stream;

	serve(w, &usual);
	client = dial(w);
	sleepers_start(w, client, &stream, 1);
	rpc_stream_free(stream);
	wait_for(&w->sample.wasted, 1);
	sleepers_start(w, client, &stream, 1);
	rpc_stream_free(stream);
	rpc_client_close(client);
	wait_for(&w->sample.wasted, 2);
}

static void stalled_client(void **state)
{
	struct rpc_config config = usual;
	struct world *w = *state;
	AUTO(rpc_client_close) struct rpc_client *reader = NULL, *writer = NULL;
	AUTO(rpc_stream_free) struct rpc_stream *unread = NULL, *unsent = NULL;

	config.stall_ms = 100;
	serve(w, &config);
	reader = dial(w);
	writer = dial(w);
	unread = open_stream(reader, "Count", "100 1000000");
	unsent = open_stream(writer, "Sum", NULL);
	assert_int_equal(call(writer, "Echo", "x"), STATUS_OK); /* writes the headers */
	wait_for(&w->sample.ended, 2);
}

static void crowd(void **state)
{
	struct rpc_config config = usual;
	struct world *w = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	struct pollfd p = { .events = POLLIN };
	struct hw_err e;
	char c;

	config.connections = 1;
	serve(w, &config);
	client = dial(w);
	assert_int_equal(call(client, "Echo", "x"), STATUS_OK);
	assert_int_equal(socket_connect(w->path, &p.fd, &e), 0);
	assert_int_equal(poll(&p, 1, LONG), 1);
	assert_int_equal(recv(p.fd, &c, 1, 0), 0);
	close(p.fd);
	assert_int_equal(call(client, "Echo", "x"), STATUS_OK);
}

/* ---- ends of servers ---------------------------------------------------------------- */

static void drain(void **state)
{
	struct world *w = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	AUTO(buf_done) struct buf answer = { 0 };
	struct buf message = { 0 };
	struct hw_err e;

	serve(w, &usual);
	client = dial(w);
	stream = open_stream(client, "Sum", NULL);
	assert_int_equal(call(client, "Echo", "x"), STATUS_OK);
	w->stop_ms = LONG;
	uv_async_send(&w->stop);
	while (call(client, "Echo", "x") == STATUS_OK)
		time_sleep(1);
	assert_false(w->stopped);
	buf_puts(&message, "last words");
	assert_int_equal(rpc_stream_send(stream, &message, &e), 0);
	rpc_stream_end(stream);
	assert_int_equal(rpc_stream_receive(stream, &answer, &e), 1);
	assert_string_equal(answer.data, "1 10");
	buf_done(&answer);
	assert_int_equal(rpc_stream_receive(stream, &answer, &e), 0);
	pthread_join(w->thread, NULL);
	assert_int_equal(w->sample.wasted, 0);
	rpc_server_free(take_ptr(w->server));
	assert_int_equal(uv_loop_close(&w->loop), 0);
}

static void impatient_stop(void **state)
{
	struct world *w = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	AUTO(buf_done) struct buf answer = { 0 };
	struct hw_err e;

	serve(w, &usual);
	client = dial(w);
	sleepers_start(w, client, &stream, 1);
	stop(w);
	assert_int_equal(w->sample.wasted, 1);
	assert_true(rpc_stream_receive(stream, &answer, &e) < 0);
	assert_int_equal(status_of(&e), STATUS_UNAVAILABLE);
}

static void restart(void **state)
{
	struct world *w = *state;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;

	serve(w, &usual);
	client = dial(w);
	assert_int_equal(call(client, "Echo", "before"), STATUS_OK);
	stop(w);
	assert_int_equal(call(client, "Echo", "x"), STATUS_UNAVAILABLE);
	assert_int_equal(call(client, "Echo", "x"), STATUS_UNAVAILABLE);
	serve(w, &usual);
	assert_int_equal(call(client, "Echo", "after"), STATUS_OK);
}

#define TEST(name, f)                                                                              \
	{                                                                                          \
		name, f, world_make, world_end, NULL                                               \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("server: a thread serves each call, and each ends as it should", calls),
		TEST("server: a large request is answered on the spot, too", instant),
		TEST("server: answers stream from a thread, other calls go on meanwhile",
		     answers_stream),
		TEST("server: requests stream to a thread", requests_stream),
		TEST("server: a thread that answers each request of a stream at once", both_stream),
		TEST("server: messages of 16 MiB through a thread, and no larger ones", sizes),
		TEST("server: 200 sleeping threads and dead clients leave short calls answered",
		     sleeping_threads),
		TEST("server: at the cap of threads a long call is refused, a short one is not",
		     cap_of_threads),
		TEST("server: clients on 8 threads call, cancel and come and go", many_threads),
		TEST("server: with a full queue for its threads a short call is refused",
		     full_queue),
		TEST("server: past the deadline the client and the thread are told", deadline),
		TEST("server: the thread of a client that left is told", vanished_client),
		TEST("server: a thread waits only so long for a client that does not move",
		     stalled_client),
		TEST("server: a connection too many is closed, threads or not", crowd),
		TEST("server: draining waits for the threads that run", drain),
		TEST("server: a stop without patience ends the threads' calls", impatient_stop),
		TEST("server: a client calls its successor, threads and all", restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
