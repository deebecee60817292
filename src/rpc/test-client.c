/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/test-client.c - the client with servers that are silent, exit or send invalid responses
 *
 * How:   the test itself is the server: it accepts the client's connection and writes bytes of its
 *        choice. test-server.c and test/cri/test_rpc.py test the client with correct servers.
 */
#include "rpc/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
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

#define LONG 60000 /* ms; reached only if a test fails */

struct fixture {
	char dir[64], path[80];
	int listener, peer;
	struct rpc_client *client;
};

static int fixture_setup(void **state)
{
	const struct socket_owner owner = { .mode = 0600, .uid = (uid_t)-1, .gid = (gid_t)-1 };
	struct fixture *f = mem_new(sizeof(*f));
	struct hw_err e;

	snprintf(f->dir, sizeof(f->dir), "%.40s/client.XXXXXX", str_or(getenv("TMPDIR"), "/tmp"));
	if (!mkdtemp(f->dir))
		return -1;
	snprintf(f->path, sizeof(f->path), "%s/s", f->dir);
	if (socket_listen(f->path, &owner, &f->listener, &e) < 0 ||
	    rpc_client_open(f->path, &f->client, &e) < 0)
		return -1;
	f->peer = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
	*state = f;
	return f->peer < 0 ? -1 : 0;
}

static int fixture_teardown(void **state)
{
	struct fixture *f = *state;

	rpc_client_close(f->client);
	close(f->peer);
	close(f->listener);
	unlink(f->path);
	rmdir(f->dir);
	free(f);
	return 0;
}

/* Makes a unary call. The test has already written the server's bytes. */
static enum status_code call_unary(struct fixture *f, int ms, struct hw_err *e)
{
	AUTO(buf_done) struct buf response = { 0 };
	struct buf request = { 0 };
	int r = rpc_client_call(f->client, "/a.B/C", &request, time_deadline(ms), &response, e);

	return r < 0 ? status_from_err(e) : STATUS_OK;
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

/* Writes a literal header field, RFC 7541 section 6.2.2. */
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

static void send_bytes(struct fixture *f, struct buf *b)
{
	assert_int_equal(send(f->peer, b->data, b->len, MSG_NOSIGNAL), b->len);
}

static const char *const fine[] = { ":status", "200", "content-type", "application/grpc", NULL };
static const char *const ok[] = { "grpc-status", "0", NULL };

/* Makes a call to which the server responds only with SETTINGS and these headers. */
static enum status_code call_with_headers(struct fixture *f, const char *const *fields,
					  struct hw_err *e)
{
	AUTO(buf_done) struct buf b = { 0 };
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	AUTO(buf_done) struct buf none = { 0 };
	struct buf request = { 0 };
	int r;

	/* the stream must exist before the server responds to it */
	assert_int_equal(
		rpc_stream_open(f->client, "/a.B/C", &request, time_deadline(LONG), &stream, e), 0);
	put_bytes(&b, SETTINGS, 0, 0, NULL, 0);
	put_headers(&b, END_STREAM, fields);
	send_bytes(f, &b);
	r = rpc_stream_receive(stream, &none, e);
	return r < 0 ? status_from_err(e) : STATUS_OK;
}

/* ---- tests -------------------------------------------------------------------------- */

static void silent_server(void **state)
{
	struct hw_err e;

	assert_int_equal(call_unary(*state, 50, &e), STATUS_DEADLINE_EXCEEDED);
}

static void lost_server(void **state)
{
	struct fixture *f = *state;
	struct hw_err e;

	shutdown(f->peer, SHUT_RDWR);
	assert_int_equal(call_unary(f, LONG, &e), STATUS_UNAVAILABLE);
	assert_string_equal(e.msg, "connection lost");
}

static void not_http2(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct fixture *f = *state;
	struct hw_err e;

	buf_puts(&b, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
	send_bytes(f, &b);
	assert_int_equal(call_unary(f, LONG, &e), STATUS_UNAVAILABLE);
}

static void trailers_only(void **state)
{
	static const char *const failed[] = { ":status",	  "200",	 "content-type",
					      "application/grpc", "grpc-status", "7",
					      "grpc-message",	  "not%20you",	 NULL };
	struct hw_err e;

	assert_int_equal(call_with_headers(*state, failed, &e), STATUS_PERMISSION_DENIED);
	assert_string_equal(e.msg, "not you");
}

static void http_errors(void **state)
{
	static const char *const busy[] = { ":status", "503", "content-type", "text/html", NULL };
	struct hw_err e;

	assert_int_equal(call_with_headers(*state, busy, &e), STATUS_UNAVAILABLE);
	assert_string_equal(e.msg, "not a gRPC response: HTTP status 503");
}

static void compressed_response(void **state)
{
	static const char *const gzip[] = {
		":status", "200", "content-type", "application/grpc", "grpc-encoding", "gzip", NULL
	};
	struct hw_err e;

	assert_int_equal(call_with_headers(*state, gzip, &e), STATUS_INTERNAL);
}

static void missing_status(void **state)
{
	struct hw_err e;

	assert_int_equal(call_with_headers(*state, fine, &e), STATUS_INTERNAL);
	assert_string_equal(e.msg, "server closed the stream without a grpc-status");
}

/* Makes a call to which the server responds with SETTINGS and these frames. */
static enum status_code call_with_frames(struct fixture *f, struct buf *frames, struct hw_err *e)
{
	AUTO(buf_done) struct buf b = { 0 };
	AUTO(buf_done) struct buf response = { 0 };
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	int r;

	assert_int_equal(
		rpc_stream_open(f->client, "/a.B/C", NULL, time_deadline(LONG), &stream, e), 0);
	put_bytes(&b, SETTINGS, 0, 0, NULL, 0);
	buf_add(&b, frames->data, frames->len);
	send_bytes(f, &b);
	do {
		buf_done(&response);
		r = rpc_stream_receive(stream, &response, e);
	} while (r == 1);
	return r < 0 ? status_from_err(e) : STATUS_OK;
}

static void truncated_message(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err e;

	put_headers(&b, 0, fine);
	put_bytes(&b, DATA, 0, 1, "\0\0\0\0\5abc", 8);
	put_headers(&b, END_STREAM, ok);
	assert_int_equal(call_with_frames(*state, &b, &e), STATUS_INTERNAL);
	assert_string_equal(e.msg, "stream ended in the middle of a message");
}

static void ends_early(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err e;

	put_headers(&b, 0, fine);
	put_bytes(&b, DATA, 0, 1, "\0\0\0\0\1a", 6);
	put_headers(&b, END_STREAM, ok);
	assert_int_equal(call_with_frames(*state, &b, &e), STATUS_OK);
}

static void refused_stream(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err e;

	put_bytes(&b, RST_STREAM, 0, 1, "\0\0\0\7", 4); /* REFUSED_STREAM */
	assert_int_equal(call_with_frames(*state, &b, &e), STATUS_UNAVAILABLE);
}

static void goaway(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err e;

	put_bytes(&b, GOAWAY, 0, 0, "\0\0\0\0\0\0\0\0", 8); /* no call was accepted */
	assert_int_equal(call_with_frames(*state, &b, &e), STATUS_UNAVAILABLE);
}

#define TEST(name, f)                                                                              \
	{                                                                                          \
		name, f, fixture_setup, fixture_teardown, NULL                                     \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("client: a call to a silent server fails at the deadline", silent_server),
		TEST("client: a call fails with UNAVAILABLE if the server closes the connection",
		     lost_server),
		TEST("client: a call to a server without HTTP/2 fails with UNAVAILABLE", not_http2),
		TEST("client: the status of a Trailers-Only response is returned", trailers_only),
		TEST("client: an HTTP error is converted to a status", http_errors),
		TEST("client: a compressed response is rejected", compressed_response),
		TEST("client: a response without a status is rejected", missing_status),
		TEST("client: a response that ends in the middle of a message is rejected",
		     truncated_message),
		TEST("client: a server can end a call before the request has ended", ends_early),
		TEST("client: a call that the server refuses fails with UNAVAILABLE",
		     refused_stream),
		TEST("client: a call that a stopping server did not accept fails with UNAVAILABLE",
		     goaway),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
