/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/test-client.c - the client, and servers that are none
 *
 * How:   the test itself is the server: it accepts the client's connection, writes
 *        the bytes of its choice, and only then lets the client call. What good
 *        servers do is in test-server.c and test/test_rpc.py.
 */
#include "rpc/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the ones above */
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "rpc/grpc/status.h"
#include "rpc/socket.h"

#define LONG 60000 /* ms: reached only when something is broken */

struct world {
	char dir[64], path[80];
	int listener, peer;
	struct rpc_client *client;
};

static int world_make(void **state)
{
	const struct socket_owner owner = { .mode = 0600, .uid = (uid_t)-1, .gid = (gid_t)-1 };
	struct world *w = mem_new(sizeof(*w));
	struct hw_err e;

	snprintf(w->dir, sizeof(w->dir), "%.40s/client.XXXXXX", str_or(getenv("TMPDIR"), "/tmp"));
	if (!mkdtemp(w->dir))
		return -1;
	snprintf(w->path, sizeof(w->path), "%s/s", w->dir);
	if (socket_listen(w->path, &owner, &w->listener, &e) < 0 ||
	    rpc_client_open(w->path, &w->client, &e) < 0)
		return -1;
	w->peer = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC);
	*state = w;
	return w->peer < 0 ? -1 : 0;
}

static int world_end(void **state)
{
	struct world *w = *state;

	rpc_client_close(w->client);
	close(w->peer);
	close(w->listener);
	unlink(w->path);
	rmdir(w->dir);
	free(w);
	return 0;
}

/* A call to whatever has been written. */
static enum status_code call(struct world *w, int ms, struct hw_err *e)
{
	AUTO(buf_done) struct buf answer = { 0 };
	struct buf request = { 0 };
	int r = rpc_client_call(w->client, "/a.B/C", &request, time_deadline(ms), &answer, e);

	return r < 0 ? status_of(e) : STATUS_OK;
}

/* ---- frames ------------------------------------------------------------------------- */

enum { DATA, HEADERS, RST_STREAM = 3, SETTINGS = 4, GOAWAY = 7 };
enum { END_STREAM = 1, END_HEADERS = 4 };

static void put_frame(struct buf *b, uint8_t type, uint8_t flags, uint8_t stream,
		      const struct buf *payload)
{
	const uint8_t head[] = {
		0, (uint8_t)(payload->len >> 8), (uint8_t)payload->len, type, flags, 0, 0, 0, stream
	};

	buf_add(b, head, sizeof(head));
	buf_add(b, payload->data, payload->len);
}

/* A literal header field, RFC 7541 section 6.2.2. */
static void put_field(struct buf *b, const char *name, const char *value)
{
	buf_putc(b, '\0');
	buf_putc(b, (char)strlen(name));
	buf_puts(b, name);
	buf_putc(b, (char)strlen(value));
	buf_puts(b, value);
}

static void put_headers(struct buf *b, uint8_t flags, const char *const *fields)
{
	AUTO(buf_done) struct buf block = { 0 };

	for (; *fields; fields += 2)
		put_field(&block, fields[0], fields[1]);
	put_frame(b, HEADERS, END_HEADERS | flags, 1, &block);
}

static void put_bytes(struct buf *b, uint8_t type, uint8_t flags, uint8_t stream, const char *bytes,
		      size_t len)
{
	AUTO(buf_done) struct buf payload = { 0 };

	buf_add(&payload, bytes, len);
	put_frame(b, type, flags, stream, &payload);
}

static void say(struct world *w, struct buf *b)
{
	assert_int_equal(send(w->peer, b->data, b->len, MSG_NOSIGNAL), b->len);
}

static const char *const fine[] = { ":status", "200", "content-type", "application/grpc", NULL };
static const char *const ok[] = { "grpc-status", "0", NULL };

/* SETTINGS, then these headers as the whole answer. */
static enum status_code answered(struct world *w, const char *const *fields, struct hw_err *e)
{
	AUTO(buf_done) struct buf b = { 0 };
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	AUTO(buf_done) struct buf none = { 0 };
	struct buf request = { 0 };
	int r;

	/* the stream has to be there before it is answered */
	assert_int_equal(
		rpc_stream_open(w->client, "/a.B/C", &request, time_deadline(LONG), &stream, e), 0);
	put_bytes(&b, SETTINGS, 0, 0, NULL, 0);
	put_headers(&b, END_STREAM, fields);
	say(w, &b);
	r = rpc_stream_receive(stream, &none, e);
	return r < 0 ? status_of(e) : STATUS_OK;
}

/* ---- tests -------------------------------------------------------------------------- */

static void silent(void **state)
{
	struct hw_err e;

	assert_int_equal(call(*state, 50, &e), STATUS_DEADLINE_EXCEEDED);
}

static void gone(void **state)
{
	struct world *w = *state;
	struct hw_err e;

	shutdown(w->peer, SHUT_RDWR);
	assert_int_equal(call(w, LONG, &e), STATUS_UNAVAILABLE);
	assert_string_equal(e.msg, "the connection was lost");
}

static void not_http2(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct world *w = *state;
	struct hw_err e;

	buf_puts(&b, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
	say(w, &b);
	assert_int_equal(call(w, LONG, &e), STATUS_UNAVAILABLE);
}

static void other_answers(void **state)
{
	static const char *const failed[] = { ":status",	  "200",	 "content-type",
					      "application/grpc", "grpc-status", "7",
					      "grpc-message",	  "not%20you",	 NULL };
	struct hw_err e;

	assert_int_equal(answered(*state, failed, &e), STATUS_PERMISSION_DENIED);
	assert_string_equal(e.msg, "not you");
}

static void http_errors(void **state)
{
	static const char *const busy[] = { ":status", "503", "content-type", "text/html", NULL };
	struct hw_err e;

	assert_int_equal(answered(*state, busy, &e), STATUS_UNAVAILABLE);
	assert_string_equal(e.msg, "the answer is not gRPC: HTTP status 503");
}

static void compressed_answers(void **state)
{
	static const char *const gzip[] = {
		":status", "200", "content-type", "application/grpc", "grpc-encoding", "gzip", NULL
	};
	struct hw_err e;

	assert_int_equal(answered(*state, gzip, &e), STATUS_INTERNAL);
}

static void no_status(void **state)
{
	struct hw_err e;

	assert_int_equal(answered(*state, fine, &e), STATUS_INTERNAL);
	assert_string_equal(e.msg, "the server ended the call without a status");
}

/* What follows SETTINGS, and how the one call fares. */
static enum status_code told(struct world *w, struct buf *frames, struct hw_err *e)
{
	AUTO(buf_done) struct buf b = { 0 };
	AUTO(buf_done) struct buf answer = { 0 };
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	int r;

	assert_int_equal(
		rpc_stream_open(w->client, "/a.B/C", NULL, time_deadline(LONG), &stream, e), 0);
	put_bytes(&b, SETTINGS, 0, 0, NULL, 0);
	buf_add(&b, frames->data, frames->len);
	say(w, &b);
	do {
		buf_done(&answer);
		r = rpc_stream_receive(stream, &answer, e);
	} while (r == 1);
	return r < 0 ? status_of(e) : STATUS_OK;
}

static void cut_off(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err e;

	put_headers(&b, 0, fine);
	put_bytes(&b, DATA, 0, 1, "\0\0\0\0\5abc", 8);
	put_headers(&b, END_STREAM, ok);
	assert_int_equal(told(*state, &b, &e), STATUS_INTERNAL);
	assert_string_equal(e.msg, "the stream ended within a message");
}

static void ends_early(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err e;

	put_headers(&b, 0, fine);
	put_bytes(&b, DATA, 0, 1, "\0\0\0\0\1a", 6);
	put_headers(&b, END_STREAM, ok);
	assert_int_equal(told(*state, &b, &e), STATUS_OK);
}

static void resets(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err e;

	put_bytes(&b, RST_STREAM, 0, 1, "\0\0\0\7", 4); /* REFUSED_STREAM */
	assert_int_equal(told(*state, &b, &e), STATUS_UNAVAILABLE);
}

static void goes_away(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err e;

	put_bytes(&b, GOAWAY, 0, 0, "\0\0\0\0\0\0\0\0", 8); /* took no call */
	assert_int_equal(told(*state, &b, &e), STATUS_UNAVAILABLE);
}

#define TEST(name, f)                                                                              \
	{                                                                                          \
		name, f, world_make, world_end, NULL                                               \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("client: waits for a silent server until the deadline", silent),
		TEST("client: a server that is gone is unavailable", gone),
		TEST("client: so is one that does not speak HTTP/2", not_http2),
		TEST("client: an answer of trailers alone is a status", other_answers),
		TEST("client: an HTTP error is a status of its own", http_errors),
		TEST("client: a compressed answer is an error", compressed_answers),
		TEST("client: an answer without a status is an error", no_status),
		TEST("client: so is one that ends within a message", cut_off),
		TEST("client: a server may end a call whose request goes on", ends_early),
		TEST("client: a call that the server refused has not been made", resets),
		TEST("client: nor has one that a leaving server did not take", goes_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
