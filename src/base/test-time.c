/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/test-time.c - clocks and deadlines
 *
 * Rules: no assertion depends on the speed of the machine.
 */
#include "base/time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <limits.h>

static void clocks_advance(void **state)
{
	int64_t before = time_now(), boot = time_boot();

	(void)state;
	time_sleep(2);
	assert_true(time_now() - before >= 2000000);
	assert_true(time_boot() > boot);
	assert_true(boot >= before);
}

static void never_is_never_over(void **state)
{
	(void)state;
	assert_true(time_deadline(0) == TIME_NEVER);
	assert_true(time_deadline(-1) == TIME_NEVER);
	assert_false(time_has_passed(TIME_NEVER));
	assert_int_equal(time_left_ms(TIME_NEVER), -1);
}

static void deadline_passes(void **state)
{
	int64_t soon = time_deadline(1), late = time_deadline(INT_MAX);

	(void)state;
	time_sleep(1);
	assert_true(time_has_passed(soon));
	assert_int_equal(time_left_ms(soon), 0);
	assert_false(time_has_passed(late));
	assert_true(time_left_ms(late) > INT_MAX / 2);
	assert_true(time_earlier(soon, late) == soon && time_earlier(TIME_NEVER, soon) == soon);
}

static void rounds_up_and_clamps(void **state)
{
	(void)state;
	/* the deadline is half a second from now: at most 500 ms are left */
	assert_in_range(time_left_ms(time_now() + 500000000), 0, 500);
	assert_int_equal(time_left_ms(TIME_NEVER - 1), INT_MAX);
	assert_int_equal(time_left_ms(0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "time: the clocks advance", clocks_advance },
		{ "time: the deadline TIME_NEVER never passes", never_is_never_over },
		{ "time: a short deadline passes, a long one has not passed yet", deadline_passes },
		{ "time: the time left is rounded up and is a valid timeout for poll()",
		  rounds_up_and_clamps },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
