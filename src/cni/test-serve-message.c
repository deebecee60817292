/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/test-serve-message.c - tests of the messages between a daemon and its serve
 */
#include "cni/serve-message.h"

#include "cni/test.h"

#include <errno.h>
#include <sys/socket.h>

#define LARGE (1 << 20)

static int setup_pair(void **state)
{
	int *pair = mem_new(2 * sizeof(int));

	*state = pair;
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

static int teardown_pair(void **state)
{
	int *pair = *state;

	close(pair[0]);
	close(pair[1]);
	free(pair);
	return 0;
}

/* ---- encoding ---------------------------------------------------------------------- */

static void request_is_unchanged(void **state)
{
	static const char *const env[] = { "A=1", "", "B=\n\377", NULL };
	const struct serve_request sent = { "/bin/x", env, "in\0put", 6, true };
	AUTO(serve_request_done) struct serve_request got = { 0 };
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err e;

	(void)state;
	serve_request_encode(&sent, &b);
	assert_int_equal(serve_request_decode(&b, &got, &e), 0);
	assert_string_equal(got.plugin, sent.plugin);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(got.env[i], env[i]);
	assert_null(got.env[3]);
	assert_int_equal(got.input_len, sent.input_len);
	assert_memory_equal(got.input, sent.input, sent.input_len);
	assert_true(got.stderr_through);
}

static void reply_is_unchanged(void **state)
{
	const struct serve_reply sent = { -EFBIG, 256, "out\0", 4, "errors", 6 };
	AUTO(buf_done) struct buf b = { 0 };
	struct serve_reply got;
	struct hw_err e;

	(void)state;
	serve_reply_encode(&sent, &b);
	assert_int_equal(serve_reply_decode(&b, &got, &e), 0);
	assert_int_equal(got.error, sent.error);
	assert_int_equal(got.status, sent.status);
	assert_int_equal(got.output_len, sent.output_len);
	assert_memory_equal(got.output, sent.output, sent.output_len);
	assert_int_equal(got.errors_len, sent.errors_len);
	assert_memory_equal(got.errors, sent.errors, sent.errors_len);
}

static void malformed_requests(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} cases[] = {
		{ "", 0 },
		{ "\0\0\0\0\0\0\0", 7 },			 /* truncated header */
		{ "\0\0\0\0\0\0\0\0", 8 },			 /* no plugin */
		{ "\0\0\0\0\0\0\0\0/bin/x", 14 },		 /* plugin without NUL */
		{ "\1\0\0\0\0\0\0\0/bin/x\0", 15 },		 /* no variable */
		{ "\2\0\0\0\0\0\0\0/bin/x\0A=1\0", 19 },	 /* one variable is missing */
		{ "\1\0\0\0\0\0\0\0/bin/x\0A=1", 18 },		 /* variable without NUL */
		{ "\377\377\377\377\0\0\0\0/bin/x\0A=1\0", 19 }, /* too many variables */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(buf_done) struct buf b = { 0 };
		struct serve_request request;
		struct hw_err e;

		buf_add(&b, cases[i].bytes, cases[i].len);
		assert_int_equal(serve_request_decode(&b, &request, &e), -EBADMSG);
		assert_string_equal(e.msg, "malformed message");
	}
}

static void malformed_replies(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} cases[] = {
		{ "", 0 },
		{ "\0\0\0\0\0\0\0\0\0\0\0", 11 },	     /* truncated header */
		{ "\0\0\0\0\0\0\0\0\1\0\0\0", 12 },	     /* output is missing */
		{ "\0\0\0\0\0\0\0\0\377\377\377\377x", 13 }, /* output is larger than the message */
		{ "\1\0\0\0\0\0\0\0\0\0\0\0", 12 },	     /* positive error */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(buf_done) struct buf b = { 0 };
		struct serve_reply reply;
		struct hw_err e;

		buf_add(&b, cases[i].bytes, cases[i].len);
		assert_int_equal(serve_reply_decode(&b, &reply, &e), -EBADMSG);
	}
}

/* A compromised process could send more than hw_exec_run() would return. */
static void reply_with_too_much_output(void **state)
{
	autofree char *text = mem_new(PROC_OUTPUT_MAX + 1);
	const struct serve_reply replies[] = {
		{ 0, 0, text, PROC_OUTPUT_MAX + 1, NULL, 0 },
		{ 0, 0, NULL, 0, text, PROC_OUTPUT_MAX + 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(replies); i++) {
		AUTO(buf_done) struct buf b = { 0 };
		struct serve_reply got;
		struct hw_err e;

		serve_reply_encode(&replies[i], &b);
		assert_int_equal(serve_reply_decode(&b, &got, &e), -EBADMSG);
	}
}

/* ---- packets ----------------------------------------------------------------------- */

static void large_message_arrives_in_pieces(void **state)
{
	AUTO(buf_done) struct buf sent = { 0 }, got = { 0 };
	size_t offset = 0, pauses = 0;
	int *pair = *state, done = 0;
	struct hw_err e;

	memset(buf_reserve(&sent, LARGE), 'x', LARGE);
	buf_commit(&sent, LARGE);
	while (done == 0) {
		int r = serve_send(pair[0], &sent, &offset, MSG_DONTWAIT, &e);

		assert_true(r >= 0);
		pauses += r == 0;
		do {
			done = serve_receive(pair[1], &got, 0, &e);
		} while (done == 0 && got.len < offset);
		assert_true(done >= 0);
	}
	assert_true(pauses > 0); /* the socket was full */
	assert_int_equal(got.len, sent.len);
	assert_memory_equal(got.data, sent.data, sent.len);
}

static void report_replaces_an_incomplete_reply(void **state)
{
	AUTO(buf_done) struct buf report = { 0 }, got = { 0 };
	int *pair = *state;
	struct hw_err e;

	buf_puts(&report, "killed");
	assert_int_equal(send(pair[0], "mincomplete", 11, 0), 11);
	assert_int_equal(serve_send_died(pair[0], &report, &e), 0);
	assert_int_equal(serve_receive(pair[1], &got, 0, &e), 0);
	assert_int_equal(serve_receive(pair[1], &got, 0, &e), 1);
	assert_string_equal(got.data, "killed");
}

static void invalid_packets(void **state)
{
	autofree char *large = mem_new(LARGE);
	int *pair = *state, size = LARGE;
	struct hw_err e;

	AUTO(buf_done) struct buf got = { 0 };
	assert_int_equal(send(pair[0], "?", 1, 0), 1);
	assert_int_equal(serve_receive(pair[1], &got, 0, &e), -EBADMSG);
	assert_string_equal(e.msg, "unknown packet type 63");
	assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)), 0);
	large[0] = 'l';
	assert_int_equal(send(pair[0], large, LARGE / 2, 0), LARGE / 2);
	assert_int_equal(serve_receive(pair[1], &got, 0, &e), -EBADMSG);
	assert_string_equal(e.msg, "message too large");
}

static void endless_message_is_refused(void **state)
{
	AUTO(buf_done) struct buf got = { 0 };
	autofree char *packet = mem_new(32 << 10);
	int *pair = *state, r = 0;
	struct hw_err e;

	packet[0] = 'm';
	while (r == 0) {
		assert_true(send(pair[0], packet, 32 << 10, 0) > 0);
		r = serve_receive(pair[1], &got, 0, &e);
	}
	assert_int_equal(r, -EBADMSG);
	assert_true(got.len <= SERVE_MESSAGE_MAX);
}

/* plugin-server.c starts a call again only after the second of these errors. */
static void eof_and_unread_message_differ(void **state)
{
	AUTO(buf_done) struct buf message = { 0 }, got = { 0 };
	size_t offset = 0;
	int *pair = *state;
	struct hw_err e;

	buf_puts(&message, "request");
	for (int read_it = 1; read_it >= 0; read_it--) {
		int two[2];

		offset = 0;
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, two), 0);
		assert_int_equal(serve_send(two[0], &message, &offset, 0, &e), 1);
		if (read_it)
			assert_int_equal(serve_receive(two[1], &got, 0, &e), 1);
		close(two[1]);
		assert_int_equal(serve_receive(two[0], &got, 0, &e),
				 read_it ? -EPIPE : -ECONNRESET);
		close(two[0]);
	}
	shutdown(pair[0], SHUT_WR);
	assert_int_equal(serve_receive(pair[1], &got, 0, &e), -EPIPE);
}

#define PAIR_TEST(sentence, f)                                                                     \
	{                                                                                          \
		sentence, f, setup_pair, teardown_pair, NULL                                       \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "serve-message: a request is the same after encoding and decoding",
		  request_is_unchanged },
		{ "serve-message: a reply is the same after encoding and decoding",
		  reply_is_unchanged },
		{ "serve-message: malformed requests are refused", malformed_requests },
		{ "serve-message: malformed replies are refused", malformed_replies },
		{ "serve-message: a reply with too much output is refused",
		  reply_with_too_much_output },
		PAIR_TEST("serve-message: a large message arrives in pieces",
			  large_message_arrives_in_pieces),
		PAIR_TEST("serve-message: serve's report replaces an incomplete reply",
			  report_replaces_an_incomplete_reply),
		PAIR_TEST("serve-message: invalid packets are refused", invalid_packets),
		PAIR_TEST("serve-message: a message without end is refused",
			  endless_message_is_refused),
		PAIR_TEST("serve-message: EOF differs from a message that was not read",
			  eof_and_unread_message_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
