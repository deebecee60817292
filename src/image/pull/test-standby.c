/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/test-standby.c - a hawser-fetch process that is ready for the next pull
 */
#include "image/pull/standby.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/time.h"

#define LONG_MS 600000
#define TRIES	10000

/* A thread that runs standby_keep(). */
struct keeper_thread {
	struct standby *standby;
	const char *program;
	pthread_t thread;
};

static void *keep(void *arg)
{
	const struct keeper_thread *k = arg;

	standby_keep(k->standby, k->program);
	return NULL;
}

static void start_keeper(struct keeper_thread *k, const char *program, int keep_ms)
{
	*k = (struct keeper_thread){ .standby = standby_new(keep_ms), .program = program };
	assert_int_equal(pthread_create(&k->thread, NULL, keep, k), 0);
}

static void join_keeper(struct keeper_thread *k)
{
	assert_int_equal(pthread_join(k->thread, NULL), 0);
	assert_null(standby_take(k->standby));
	standby_free(k->standby);
}

/* Wait until there is a standby process, and take it. */
static struct helper *wait_and_take(struct keeper_thread *k)
{
	struct helper *h = NULL;

	for (int i = 0; !h && i < TRIES; i++) {
		h = standby_take(k->standby);
		if (!h)
			time_sleep(1);
	}
	assert_non_null(h);
	return h;
}

static void test_taken(void **state)
{
	struct helper *h;
	struct keeper_thread k;
	char text[4] = "";

	(void)state;
	start_keeper(&k, "/bin/cat", LONG_MS);
	h = wait_and_take(&k);
	assert_null(standby_take(k.standby));
	join_keeper(&k); /* the process outlives the keeper */
	assert_int_equal(write(helper_socket(h), "job", 3), 3);
	assert_int_equal(recv(helper_socket(h), text, 3, MSG_WAITALL), 3);
	assert_string_equal(text, "job");
	helper_free(h);
}

static void test_not_taken(void **state)
{
	struct keeper_thread k;

	(void)state;
	start_keeper(&k, "/bin/cat", 1);
	join_keeper(&k);
}

static void test_stopped(void **state)
{
	struct keeper_thread k;

	(void)state;
	start_keeper(&k, "/bin/cat", LONG_MS);
	time_sleep(200); /* the process is probably running now; if not, the test passes too */
	standby_stop(k.standby);
	standby_keep(k.standby, k.program); /* returns at once */
	join_keeper(&k);
}

static void test_second_keeper(void **state)
{
	struct helper *h;
	struct keeper_thread k;

	(void)state;
	start_keeper(&k, "/bin/cat", LONG_MS);
	h = wait_and_take(&k);
	assert_int_equal(pthread_join(k.thread, NULL), 0);
	helper_free(h);
	assert_int_equal(pthread_create(&k.thread, NULL, keep, &k), 0);
	helper_free(wait_and_take(&k));
	join_keeper(&k);
}

static void test_no_program(void **state)
{
	struct keeper_thread k;

	(void)state;
	start_keeper(&k, "/nowhere/hawser-fetch", LONG_MS);
	join_keeper(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "standby: a process that is taken outlives the thread that kept it", test_taken },
		{ "standby: a process that is not taken in time is stopped", test_not_taken },
		{ "standby: after standby_stop() no process is kept", test_stopped },
		{ "standby: after a process was taken, another one can be kept",
		  test_second_keeper },
		{ "standby: standby_keep() returns if the program does not exist",
		  test_no_program },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
