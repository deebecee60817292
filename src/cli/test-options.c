/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/test-options.c - command lines read by tables
 */
#include "cli/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the ones above */
#include <cmocka.h>

#include "base/str.h"

struct given {
	bool quiet;
	const char *output;
	struct hw_strings names;
	int timeout;
};

static const struct option_entry common[] = {
	{ "timeout", 0, OPTION_SECONDS, offsetof(struct given, timeout), "SECONDS", "how long" },
	{ "quiet", 'q', OPTION_FLAG, offsetof(struct given, quiet), NULL, "say less" },
	{ 0 },
};

static const struct option_entry own[] = {
	{ "output", 'o', OPTION_TEXT, offsetof(struct given, output), "FILE", "where" },
	{ "name", 0, OPTION_TEXTS, offsetof(struct given, names), "NAME", "what" },
	{ 0 },
};

static const struct option_entry *const tables[] = { common, own, NULL };

#define READ(first_word, ...)                                                                      \
	({                                                                                         \
		char *argv_[] = { (char *)"x", __VA_ARGS__, NULL };                                \
		options_read(tables, ARRAY_SIZE(argv_) - 1, argv_, first_word, &given, &next, &e); \
	})

static void reads_all_kinds(void **state)
{
	struct given given = { 0 };
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

static void stops_at_a_word(void **state)
{
	struct given given = { 0 };
	struct hw_err e;
	int next;

	(void)state;
	assert_int_equal(READ(true, (char *)"-q", (char *)"word", (char *)"-o"), 0);
	assert_int_equal(next, 2);
	assert_true(given.quiet);
	assert_int_equal(READ(false, (char *)"--", (char *)"-o"), 0);
	assert_int_equal(next, 2);
}

static void refuses(void **state)
{
	struct given given = { 0 };
	struct hw_err e;
	int next;

	(void)state;
	assert_true(READ(false, (char *)"--bogus") < 0);
	assert_string_equal(e.msg, "--bogus is no option here");
	assert_true(READ(false, (char *)"-z") < 0);
	assert_string_equal(e.msg, "-z is no option here");
	assert_true(READ(false, (char *)"-o") < 0);
	assert_string_equal(e.msg, "-o wants a value");
	assert_true(READ(false, (char *)"--output") < 0);
	assert_string_equal(e.msg, "--output wants a value");
	assert_true(READ(false, (char *)"--timeout", (char *)"soon") < 0);
	assert_string_equal(e.msg, "--timeout wants seconds, not \"soon\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "options: flags, texts, lists and seconds go to their members", reads_all_kinds },
		{ "options: reading can stop at the first word", stops_at_a_word },
		{ "options: what is unknown, unfinished or no number is named", refuses },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
