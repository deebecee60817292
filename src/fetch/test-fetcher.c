/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/test-fetcher.c - the job of hawser-fetch
 */
#include "fetch/fetcher.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/mem.h"

#define WAIT_MS 20000

/* Such a job is a defect of the daemon. -EINVAL would tell the client that its request is wrong. */
static void test_descriptors(void **state)
{
	static const struct {
		const char *job;
		bool along;
		int code;
		const char *text;
	} cases[] = {
		{ "{\"reference\":\"a\"}", false, 0, NULL },
		{ "{\"reference\":\"a\",\"image\":1}", true, 0, NULL },
		{ "{\"reference\":\"a\",\"image\":1}", false, -EBADMSG,
		  "job: missing file descriptor of the archive" },
		{ "{\"reference\":\"a\"}", true, -EBADMSG,
		  "job: unexpected file descriptor: the image is not in an archive" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(job_message_done) struct job_message m = { .fd = -1 };
		AUTO(job_done) struct fetch_job job = { 0 };
		struct hw_err e = { 0 };
		int pair[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		assert_int_equal(job_send(pair[0], JOB_JOB, cases[i].job, strlen(cases[i].job),
					  cases[i].along ? pair[0] : -1, WAIT_MS, &e),
				 0);
		assert_int_equal(receive_job(pair[1], &m, &job, &e), cases[i].code);
		if (cases[i].text)
			assert_string_equal(e.msg, cases[i].text);
		close(pair[0]);
		close(pair[1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "fetcher: a job with a wrong descriptor is not an error of the client",
		  test_descriptors },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
