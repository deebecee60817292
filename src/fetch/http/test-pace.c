/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/test-pace.c - the minimum speed of a transfer
 */
#include "fetch/http/pace.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#define SECOND	INT64_C(1000000000)
#define SLOW_MS 30000
#define START	(5 * SECOND)

static int check(struct pace *p, int64_t seconds, struct hw_err *e)
{
	return pace_check(p, START + seconds * SECOND, SLOW_MS, e);
}

static void test_minimum(void **state)
{
	struct pace p = { .expected = 1000000 };
	struct hw_err e;

	(void)state;
	assert_int_equal(check(&p, 1000, &e), 0); /* no byte yet */
	pace_receive(&p, 10000, START);
	assert_int_equal(check(&p, 29, &e), 0);
	assert_int_equal(check(&p, 30, &e), -ETIMEDOUT);
	assert_true(p.is_too_slow);
	assert_string_equal(e.msg, "transfer too slow: received 10000 bytes in 30 s, expected at "
				   "least 1024 bytes per second");
	pace_receive(&p, 30 * 1024 - 10000, START + 30 * SECOND);
	assert_int_equal(check(&p, 30, &e), 0);
	assert_int_equal(check(&p, 31, &e), -ETIMEDOUT);
}

/* The required speed falls as the transfer continues. */
static void test_hour(void **state)
{
	const int64_t size = INT64_C(3600) * 1000000;
	struct pace p = { .expected = size };
	struct hw_err e;

	(void)state;
	pace_receive(&p, 29000000, START);
	assert_int_equal(check(&p, 30, &e), -ETIMEDOUT);
	pace_receive(&p, 1000000, START);
	assert_int_equal(check(&p, 30, &e), 0);
	pace_receive(&p, (size_t)size / 2, START);
	assert_int_equal(check(&p, 3600, &e), 0);
	assert_int_equal(check(&p, 3800, &e), -ETIMEDOUT);
	p.expected = INT64_MAX;
	assert_int_equal(check(&p, 100, &e), -ETIMEDOUT);
}

static void test_away(void **state)
{
	struct pace p = { .away = 100 * SECOND };
	struct hw_err e;

	(void)state;
	pace_receive(&p, 1, START);
	assert_int_equal(check(&p, 129, &e), 0);
	assert_int_equal(check(&p, 130, &e), -ETIMEDOUT);
}

static void test_wait(void **state)
{
	struct pace p = { 0 };
	struct hw_err e;

	(void)state;
	pace_wait(&p, 100 * SECOND); /* before the transfer */
	pace_receive(&p, 1, START);
	pace_wait(&p, 60 * SECOND);
	pace_wait(&p, 40 * SECOND);
	assert_int_equal(check(&p, 129, &e), 0);
	assert_int_equal(check(&p, 130, &e), -ETIMEDOUT);
	pace_wait(&p, 3600 * SECOND);
	assert_int_equal(check(&p, 3629, &e), 0);
	assert_int_equal(check(&p, 3630, &e), -ETIMEDOUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "pace: less than 1 KiB/s is too slow, after half a minute", test_minimum, NULL,
		  NULL, NULL },
		{ "pace: a transfer whose rest would take more than an hour is too slow", test_hour,
		  NULL, NULL, NULL },
		{ "pace: the time in which the receiver works does not count", test_away, NULL,
		  NULL, NULL },
		{ "pace: up to an hour of waiting before repeated requests does not count",
		  test_wait, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
