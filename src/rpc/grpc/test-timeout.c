/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/test-timeout.c - parsing and formatting grpc-timeout
 */
#include "rpc/grpc/timeout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/mem.h"
#include "base/time.h"

static void parses(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} good[] = {
		{ "1n", 1 },
		{ "20u", 20000 },
		{ "300m", 300000000 },
		{ "00000002S", 2000000000 },
		{ "3M", 180000000000 },
		{ "1H", 3600000000000 },
		{ "0S", 0 },
		{ "99999999H", TIME_NEVER },
	};
	int64_t ns;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_true(timeout_parse(good[i].text, &ns));
		assert_true(ns == good[i].ns);
	}
}

static void refuses(void **state)
{
	static const char *const bad[] = { "",	  "S",	 "1",	 "1s",	 "1 S",	      "-1S",
					   "+1S", "1SS", "1.5S", "0x1S", "123456789S" };
	int64_t ns;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(timeout_parse(bad[i], &ns));
}

static void formats(void **state)
{
	static const struct {
		int64_t ns;
		const char *text;
	} cases[] = {
		{ -5, "1n" },
		{ 0, "1n" },
		{ 99999999, "99999999n" },
		{ 100000000, "100000u" },
		{ 100000001, "100001u" },
		{ 120000000000, "120000m" },
		{ TIME_NEVER - 1, "2562048H" },
	};
	char buf[TIMEOUT_TEXT];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(timeout_format(cases[i].ns, buf), cases[i].text);
}

static void never_shorter(void **state)
{
	char buf[TIMEOUT_TEXT];
	int64_t back;

	(void)state;
	for (int64_t ns = 1; ns < TIME_NEVER / 3; ns = ns * 3 + 1) {
		assert_true(timeout_parse(timeout_format(ns, buf), &back));
		assert_true(back >= ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "timeout: values in every unit are parsed", parses },
		{ "timeout: malformed values are refused", refuses },
		{ "timeout: a value is formatted in the finest unit in which it has at most eight "
		  "digits",
		  formats },
		{ "timeout: a value is never rounded down", never_shorter },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
