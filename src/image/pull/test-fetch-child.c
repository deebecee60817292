/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/test-fetch-child.c - a process that waits for the next pull; here it is cat
 */
#include "image/pull/fetch-child.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
/* cmocka.h needs the ones above */
#include <cmocka.h>

#include "base/time.h"

#define LONG_MS 600000
#define TRIES	10000

struct keeping {
	struct spare *spare;
	const char *program;
	pthread_t thread;
};

static void *keep(void *arg)
{
	const struct keeping *k = arg;

	spare_keep(k->spare, k->program);
	return NULL;
}

static void start_program(struct keeping *k, const char *program, int keep_ms)
{
	*k = (struct keeping){ .spare = spare_new(keep_ms), .program = program };
	assert_int_equal(pthread_create(&k->thread, NULL, keep, k), 0);
}

static void start(struct keeping *k, int keep_ms)
{
	start_program(k, "/bin/cat", keep_ms);
}

static void end(struct keeping *k)
{
	assert_int_equal(pthread_join(k->thread, NULL), 0);
	assert_null(spare_take(k->spare));
	spare_free(k->spare);
}

static struct fetch_child *take(struct keeping *k)
{
	struct fetch_child *f = NULL;

	for (int i = 0; !f && i < TRIES; i++) {
		f = spare_take(k->spare);
		if (!f)
			time_sleep(1);
	}
	assert_non_null(f);
	return f;
}

static void taken(void **state)
{
	struct fetch_child *f;
	struct keeping k;
	char text[4] = "";

	(void)state;
	start(&k, LONG_MS);
	f = take(&k);
	assert_null(spare_take(k.spare));
	end(&k); /* who kept it has gone */
	assert_int_equal(write(f->socket, "job", 3), 3);
	assert_int_equal(recv(f->socket, text, 3, MSG_WAITALL), 3);
	assert_string_equal(text, "job");
	fetch_child_free(f);
}

static void not_taken(void **state)
{
	struct keeping k;

	(void)state;
	start(&k, 1);
	end(&k);
}

static void stopped(void **state)
{
	struct keeping k;

	(void)state;
	start(&k, LONG_MS);
	time_sleep(200); /* most likely it is kept by then; if not, it will not be */
	spare_stop(k.spare);
	spare_keep(k.spare, k.program); /* from now on there is none */
	end(&k);
}

static void wait_for_keeper(struct keeping *k)
{
	struct fetch_child *f = take(k);

	assert_int_equal(pthread_join(k->thread, NULL), 0);
	fetch_child_free(f);
	assert_int_equal(pthread_create(&k->thread, NULL, keep, k), 0);
}

static void one_after_the_other(void **state)
{
	struct keeping k;

	(void)state;
	start(&k, LONG_MS);
	wait_for_keeper(&k);
	fetch_child_free(take(&k));
	end(&k);
}

static void no_program(void **state)
{
	struct keeping k;

	(void)state;
	start_program(&k, "/nowhere/hawser-fetch", LONG_MS);
	end(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(taken),      cmocka_unit_test(not_taken),
		cmocka_unit_test(stopped),    cmocka_unit_test(one_after_the_other),
		cmocka_unit_test(no_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
