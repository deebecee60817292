/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/protocol/test-job.c - messages between the daemon and its helpers
 */
#include "image/protocol/job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/os/thread.h"
#include "base/str.h"
#include "base/time.h"

#define WAIT_MS 20000

static int setup(void **state)
{
	int *pair = mem_new(2 * sizeof(*pair));

	*state = pair;
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
}

static int teardown(void **state)
{
	int *pair = *state;

	close(pair[0]);
	close(pair[1]);
	free(pair);
	return 0;
}

static void test_round_trip(void **state)
{
	AUTO(job_message_done) struct job_message m = { .fd = -1 };
	AUTO(job_step_done) struct job_step received = { 0 };
	struct job_step step = { .layer = 7, .bytes = 1, .size = INT64_MAX };
	int *pair = *state;
	struct hw_err e;

	assert_int_equal(
		job_send_table(pair[0], JOB_PROGRESS, job_step_fields, &step, -1, WAIT_MS, &e), 0);
	assert_int_equal(job_receive(pair[1], WAIT_MS, &m, &e), 1);
	assert_int_equal(m.type, JOB_PROGRESS);
	assert_int_equal(m.fd, -1);
	assert_int_equal(job_decode(&m, job_step_fields, &received, &e), 0);
	assert_int_equal(received.layer, 7);
	assert_true(received.size == INT64_MAX);
}

static void test_malformed_payloads(void **state)
{
	static const char *const cases[] = { "", "{}", "[]", "{\"layer\":-1}", "{\"layer\":1" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct job_message m = { .data = { (char *)cases[i], strlen(cases[i]), 0 } };
		AUTO(job_step_done) struct job_step step = { 0 };
		struct hw_err e;

		assert_int_equal(job_decode(&m, job_step_fields, &step, &e), -EBADMSG);
	}
}

static void test_descriptor(void **state)
{
	AUTO(job_message_done) struct job_message m = { .fd = -1 };
	int *pair = *state, ends[2];
	struct hw_err e;
	char byte;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(job_send(pair[0], JOB_FETCH, "{}", 2, ends[1], WAIT_MS, &e), 0);
	close(ends[1]);
	assert_int_equal(job_receive(pair[1], WAIT_MS, &m, &e), 1);
	assert_true(m.fd >= 0);
	assert_int_equal(write(m.fd, "x", 1), 1);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(byte, 'x');
	close(ends[0]);
}

static size_t count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void send_byte(int fd, char byte, const int along[2])
{
	union {
		char space[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.space,
			      .msg_controllen = CMSG_SPACE(2 * sizeof(int)) };

	*CMSG_FIRSTHDR(&msg) = (struct cmsghdr){ .cmsg_len = CMSG_LEN(2 * sizeof(int)),
						 .cmsg_level = SOL_SOCKET,
						 .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), along, 2 * sizeof(int));
	assert_int_equal(sendmsg(fd, &msg, 0), 1);
}

static void test_many_descriptors(void **state)
{
	static const char bytes[] = { 2, 0, 0, 0, JOB_CONFIG, '{', '}' };
	struct job_message m = { .fd = -1 };
	size_t before = count_descriptors();
	int *pair = *state;
	struct hw_err e;

	for (size_t i = 0; i < sizeof(bytes); i++)
		send_byte(pair[0], bytes[i], pair);
	assert_int_equal(job_receive(pair[1], WAIT_MS, &m, &e), 1);
	assert_int_equal(count_descriptors(), before + 1);
	job_message_done(&m);
	assert_int_equal(count_descriptors(), before);
}

static void test_timeout_and_eof(void **state)
{
	AUTO(job_message_done) struct job_message m = { .fd = -1 };
	int *pair = *state;
	struct hw_err e;

	assert_int_equal(job_receive(pair[1], 1, &m, &e), -ETIMEDOUT);
	shutdown(pair[0], SHUT_WR);
	assert_int_equal(job_receive(pair[1], WAIT_MS, &m, &e), 0);
}

/* The receiver does not read: only a part of the message fits into the socket. */
static void test_send_aborted(void **state)
{
	AUTO(job_message_done) struct job_message m = { .fd = -1 };
	autofree char *data = mem_new(JOB_MESSAGE_MAX);
	int *pair = *state;
	struct hw_err e;

	assert_int_equal(job_send(pair[0], JOB_CONFIG, data, JOB_MESSAGE_MAX, -1, 1, &e),
			 -ETIMEDOUT);
	assert_int_equal(job_receive(pair[1], WAIT_MS, &m, &e), -EPIPE);
	assert_int_equal(job_send(pair[0], JOB_DONE, "", 0, -1, WAIT_MS, &e), -EPIPE);
}

static void test_malformed_messages(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		int code;
	} cases[] = {
		{ "\x01", 1, -EPIPE },			 /* truncated header */
		{ "\x05\0\0\0\x04", 5, -EPIPE },	 /* missing payload */
		{ "\x05\0\0\0\x04xy", 7, -EPIPE },	 /* truncated payload */
		{ "\0\0\0\0\0", 5, -EBADMSG },		 /* type 0 */
		{ "\0\0\0\0\x7f", 5, -EBADMSG },	 /* unknown type */
		{ "\x01\0\x40\0\x04", 5, -EBADMSG },	 /* one byte too long */
		{ "\xff\xff\xff\xff\x04", 5, -EBADMSG }, /* maximum length */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(job_message_done) struct job_message m = { .fd = -1 };
		struct hw_err e;
		int pair[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		assert_int_equal(write(pair[0], cases[i].bytes, cases[i].len), cases[i].len);
		close(pair[0]);
		assert_int_equal(job_receive(pair[1], WAIT_MS, &m, &e), cases[i].code);
		close(pair[1]);
	}
}

static void test_error(void **state)
{
	AUTO(job_message_done) struct job_message m = { .fd = -1 };
	int *pair = *state;
	struct hw_err why, e;

	err_text(&why, -ENODATA, "no\nsuch \x1b[1mimage");
	assert_int_equal(job_send_failed(pair[0], &why, WAIT_MS, &e), 0);
	assert_int_equal(job_receive(pair[1], WAIT_MS, &m, &e), 1);
	assert_int_equal(job_decode_failed(&m, &e), -ENODATA);
	assert_string_equal(e.msg, "no such  [1mimage");
}

static void test_malformed_errors(void **state)
{
	static const char *const cases[] = {
		"",
		"{}",
		"[]",
		"{\"code\":0,\"message\":\"x\"}",
		"{\"code\":4096,\"message\":\"x\"}",
		"{\"code\":2}",
		"{\"code\":\x1b[1m}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct job_message m = { .data = { (char *)cases[i], strlen(cases[i]), 0 } };
		struct hw_err e;

		assert_int_equal(job_decode_failed(&m, &e), -EBADMSG);
		assert_int_equal(e.code, -EBADMSG);
		assert_non_null(strstr(e.msg, "malformed FAILED message"));
		assert_null(strpbrk(e.msg, "\x1b\n"));
	}
}

static void test_secrets(void **state)
{
	AUTO(job_done) struct fetch_job job = { 0 };
	struct hw_err e;
	const char *text = "{\"reference\":\"a\",\"password\":[\"secret word\"]}";

	(void)state;
	assert_int_equal(hw_field_decode(job_fields, text, strlen(text), &job, &e), -EINVAL);
	assert_null(strstr(e.msg, "secret word"));
}

static struct helper *start_script(const char *text)
{
	const char *const argv[] = { "/bin/sh", "-c", text, NULL };
	struct helper *h;
	struct hw_err e;

	assert_int_equal(helper_start(&(struct helper_start){ .argv = argv }, &h, &e), 0);
	return h;
}

static const struct job_answer a_report = {
	.name = "helper", .type = JOB_REPORT, .failed = -EPERM, .cancel_fd = -1
};

static int receive_answer(const char *script, struct job_message *ret_message, struct hw_err *e)
{
	AUTO(helper_free) struct helper *h = start_script(script);
	struct job_answer answer = a_report;

	answer.deadline = time_deadline(WAIT_MS);
	return job_receive_answer(h, &answer, ret_message, e);
}

static void test_answer(void **state)
{
	AUTO(job_message_done) struct job_message m = { .fd = -1 };
	struct hw_err e;

	(void)state;
	assert_int_equal(receive_answer("printf '\\003\\0\\0\\0\\015abc'", &m, &e), 0);
	assert_int_equal(m.type, JOB_REPORT);
	assert_int_equal(m.data.len, 3);
	assert_memory_equal(m.data.data, "abc", 3);
}

static void test_no_answer(void **state)
{
	struct job_message m = { .fd = -1 };
	struct hw_err e;

	(void)state;
	assert_int_equal(receive_answer("exit 3", &m, &e), -EIO);
	assert_string_equal(e.msg, "helper exited unexpectedly: exit status 3");
	assert_int_equal(receive_answer("printf GET/1", &m, &e), -EBADMSG);
	assert_string_equal(e.msg, "helper: protocol error: unknown message type 49");
	assert_int_equal(receive_answer("printf '\\0\\0\\0\\0\\012'", &m, &e), -EBADMSG);
	assert_string_equal(e.msg, "helper: unexpected message of type 10");
	assert_int_equal(receive_answer("printf '\\046\\0\\0\\0\\013'; "
					"printf '{\"code\":2,\"wire\":13,\"message\":\"why\"}   '",
					&m, &e),
			 -EPERM);
	assert_string_equal(e.msg, "helper: why");
}

/* Return: a helper that has sent a part of its answer and sends nothing more */
static struct helper *start_stalled(const char *part)
{
	autofree char *script = str_printf("printf '%s'; read -r line", part);
	struct helper *h = start_script(script);
	struct hw_err e;

	assert_int_equal(helper_wait(h, helper_socket(h), -1, time_deadline(WAIT_MS), &e), 0);
	return h;
}

static const char *const parts[] = { "\\003", "\\003\\0\\0\\0\\015", "\\003\\0\\0\\0\\015ab" };

static void test_stalled_answer(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		AUTO(helper_free) struct helper *h = start_stalled(parts[i]);
		struct job_message m = { .fd = -1 };
		struct job_answer answer = a_report;
		struct hw_err e;

		answer.deadline = time_deadline(1);
		assert_int_equal(job_receive_answer(h, &answer, &m, &e), -ETIMEDOUT);
		assert_string_equal(e.msg, "deadline exceeded");
	}
}

struct canceller {
	int socket, cancel_fd;
};

/* Cancels when all bytes have been read from the socket. */
static void *cancel_after_read(void *arg)
{
	const struct canceller *c = arg;
	int waiting = 1;

	while (ioctl(c->socket, FIONREAD, &waiting) == 0 && waiting > 0)
		time_sleep(1);
	eventfd_write(c->cancel_fd, 1);
	return NULL;
}

static void test_cancelled_answer(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		AUTO(helper_free) struct helper *h = start_stalled(parts[i]);
		struct job_message m = { .fd = -1 };
		struct job_answer answer = a_report;
		struct canceller c = { helper_socket(h), eventfd(0, EFD_CLOEXEC) };
		pthread_t thread;
		struct hw_err e;

		answer.cancel_fd = c.cancel_fd;
		answer.deadline = TIME_NEVER;
		assert_int_equal(thread_start(cancel_after_read, &c, &thread, &e), 0);
		assert_int_equal(job_receive_answer(h, &answer, &m, &e), -ECANCELED);
		pthread_join(thread, NULL);
		close(c.cancel_fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "job: a message is received as it was sent", test_round_trip, setup, teardown,
		  NULL },
		{ "job: a file descriptor is passed with a message", test_descriptor, setup,
		  teardown, NULL },
		{ "job: all but the first file descriptor of a message are closed",
		  test_many_descriptors, setup, teardown, NULL },
		{ "job: receiving reports a timeout and EOF", test_timeout_and_eof, setup, teardown,
		  NULL },
		{ "job: if a message is sent only partly, later sends fail", test_send_aborted,
		  setup, teardown, NULL },
		{ "job: a malformed message is rejected", test_malformed_messages, NULL, NULL,
		  NULL },
		{ "job: a malformed payload is not an error of the client",
		  test_malformed_payloads },
		{ "job: an error is received as one line with its code", test_error, setup,
		  teardown, NULL },
		{ "job: a malformed FAILED message is rejected", test_malformed_errors, NULL, NULL,
		  NULL },
		{ "job: the answer of a helper is received", test_answer },
		{ "job: a helper without an answer, or with a malformed one, is an error",
		  test_no_answer },
		{ "job: a helper that stops within its answer is given up at the deadline",
		  test_stalled_answer },
		{ "job: a helper that stops within its answer can be cancelled",
		  test_cancelled_answer },
		{ "job: the message of a decoding error contains no password", test_secrets, NULL,
		  NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
