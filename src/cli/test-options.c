/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/test-options.c - parsing of command-line options
 */
#include "cli/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/str.h"

struct test_options {
	bool quiet;
	const char *output;
	struct hw_strings names;
	int timeout;
};

static const struct option_entry common[] = {
	{ "timeout", 0, OPTION_SECONDS, offsetof(struct test_options, timeout), "SECONDS",
	  "how long" },
	{ "quiet", 'q', OPTION_FLAG, offsetof(struct test_options, quiet), NULL, "say less" },
	{ 0 },
};

static const struct option_entry own[] = {
	{ "output", 'o', OPTION_TEXT, offsetof(struct test_options, output), "FILE", "where" },
	{ "name", 0, OPTION_TEXTS, offsetof(struct test_options, names), "NAME", "what" },
	{ 0 },
};

static const struct option_entry *const tables[] = { common, own, NULL };

#define READ(stop_at_word, ...)                                                                    \
	({                                                                                         \
		char *argv_[] = { (char *)"x", __VA_ARGS__, NULL };                                \
		options_read(tables, ARRAY_SIZE(argv_) - 1, argv_, stop_at_word, &given, &next,    \
			     &e);                                                                  \
	})

static void test_all_kinds(void **state)
{
	struct test_options given = { 0 };
	struct hw_err e;
	int next;

	(void)state;
	assert_int_equal(READ(false, (char *)"word", (char *)"-qo", (char *)"f", (char *)"--name=a",
			      (char *)"--timeout", (char *)"7", (char *)"--name", (char *)"b"),
			 0);
	assert_int_equal(next, 8);
	assert_true(given.quiet);
	assert_string_equal(given.output, "f");
	assert_int_equal(given.names.n, 2);
	assert_string_equal(given.names.v[1], "b");
	assert_int_equal(given.timeout, 7);
	options_done(tables, &given);
	assert_int_equal(given.names.n, 0);
}

static void test_stop_at_word(void **state)
{
	struct test_options given = { 0 };
	struct hw_err e;
	int next;

	(void)state;
	assert_int_equal(READ(true, (char *)"-q", (char *)"word", (char *)"-o"), 0);
	assert_int_equal(next, 2);
	assert_true(given.quiet);
	assert_int_equal(READ(false, (char *)"--", (char *)"-o"), 0);
	assert_int_equal(next, 2);
}

static void test_errors(void **state)
{
	struct test_options given = { 0 };
	struct hw_err e;
	int next;

	(void)state;
	assert_true(READ(false, (char *)"--bogus") < 0);
	assert_string_equal(e.msg, "unknown option --bogus");
	assert_true(READ(false, (char *)"-z") < 0);
	assert_string_equal(e.msg, "unknown option -z");
	assert_true(READ(false, (char *)"-o") < 0);
	assert_string_equal(e.msg, "option -o requires a value");
	assert_true(READ(false, (char *)"--output") < 0);
	assert_string_equal(e.msg, "option --output requires a value");
	assert_true(READ(false, (char *)"--timeout", (char *)"soon") < 0);
	assert_string_equal(e.msg,
			    "invalid value \"soon\" for --timeout: want a number of seconds");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "options: flags, texts, lists and seconds are stored in their members",
		  test_all_kinds },
		{ "options: parsing can stop at the first argument that is not an option",
		  test_stop_at_word },
		{ "options: an error names the option that is unknown, incomplete or invalid",
		  test_errors },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
