/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/test-text.c - human-readable sizes, ages and IDs, and text that is safe to print
 */
#include "cli/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <string.h>

#include "base/mem.h"

static void test_sizes(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{ 0, "0 B" },
		{ 999, "999 B" },
		{ 1000, "1.0 kB" },
		{ 1234567, "1.2 MB" },
		{ 999949, "999.9 kB" },
		{ 999950, "1.0 MB" },
		{ 5000000000, "5.0 GB" },
		{ UINT64_MAX, "18.4 EB" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *text = text_size(cases[i].bytes);

		assert_string_equal(text, cases[i].text);
	}
}

static void test_ages(void **state)
{
	static const struct {
		int64_t seconds;
		const char *text;
	} cases[] = {
		{ -5, "0s" },	    { 0, "0s" },
		{ 119, "119s" },    { 120, "2m" },
		{ 7199, "119m" },   { 7200, "2h" },
		{ 172800, "2d" },   { 63071999, "729d" },
		{ 63072000, "2y" }, { INT64_MAX, "292471208677y" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *text = text_age(cases[i].seconds);

		assert_string_equal(text, cases[i].text);
	}
}

static void test_times(void **state)
{
	static const struct {
		const char *text;
		int64_t seconds;
	} good[] = {
		{ "1970-01-01T00:00:00Z", 0 },
		{ "2026-11-15T12:30:00Z", 1794745800 },
		{ "2026-11-15T12:30:00.123456789Z", 1794745800 },
		{ "2026-11-15T13:30:00+01:00", 1794745800 },
		{ "2026-11-15T11:00:00-01:30", 1794745800 },
		{ "0001-01-01T00:00:00Z", -62135596800 },
	};
	static const char *const bad[] = { "",
					   "yesterday",
					   "2026-11-15",
					   "2026-11-15T12:30:00",
					   "2026-11-15T12:30:00Zx",
					   "2026-11-15T12:30:00+0100",
					   "2026-11-15T12:30:00+aa:bb" };
	int64_t seconds;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_true(text_time(good[i].text, &seconds));
		assert_int_equal(seconds, good[i].seconds);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(text_time(bad[i], &seconds));
	assert_false(text_time(NULL, &seconds));
}

static void test_clean(void **state)
{
	static const struct {
		const char *dirty, *clean;
	} cases[] = {
		{ NULL, "" },
		{ "plain", "plain" },
		{ "größe 図", "größe 図" },
		{ "\033[31mred", "?[31mred" },
		{ "two\nlines\tand", "two lines and" },
		{ "bell\a\x7f", "bell??" },
		{ "c1\xc2\x9b"
		  "31m",
		  "c1?31m" },
		{ "\xff\xc3", "??" },
		{ "a\xe2\x80\xae"
		  "b",
		  "a?b" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *text = text_clean(cases[i].dirty);

		assert_string_equal(text, cases[i].clean);
	}
}

static void test_json_safe(void **state)
{
	autofree char *text = text_json_safe("{\n \"a\": \"\xc2\x9bx\x7f\xe2\x80\xae ü\"}");

	(void)state;
	assert_string_equal(text, "{\n \"a\": \"\\u009bx\\u007f\\u202e ü\"}");
}

static void test_short_ids(void **state)
{
	autofree char *full = text_short_id("sha256:0123456789abcdef0123");
	autofree char *bare = text_short_id("0123456789abcdef"), *little = text_short_id("ab");
	autofree char *evil = text_short_id("sha256:\033[2Jabc");

	(void)state;
	assert_string_equal(full, "0123456789ab");
	assert_string_equal(bare, "0123456789ab");
	assert_string_equal(little, "ab");
	assert_string_equal(evil, "?[2Jabc");
}

static void test_cut(void **state)
{
	autofree char *fits = text_cut("größe", 5), *cut = text_cut("größer als", 7);
	autofree char *tiny = text_cut("abcdef", 2), *none = text_cut("abcdef", 0);

	(void)state;
	assert_int_equal(text_width("größe"), 5);
	assert_string_equal(fits, "größe");
	assert_string_equal(cut, "größ...");
	assert_string_equal(tiny, "ab");
	assert_string_equal(none, "");
}

static void test_typos(void **state)
{
	static const char *const typos[] = { "imagse", "image",	 "imagess",
					     "iamges", "images", "emagos" };
	static const char *const others[] = { "rmi", "", "timeout", "emigos" };
	char large[100] = "";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(typos); i++)
		assert_true(text_is_typo(typos[i], "images"));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(text_is_typo(others[i], "images"));
	assert_true(text_is_typo("rm", "rmi"));
	assert_true(text_is_typo("plul", "pull"));
	assert_false(text_is_typo("xm", "rmi"));
	assert_false(text_is_typo("lx", "ls"));
	memset(large, 'a', sizeof(large) - 1);
	assert_false(text_is_typo(large, large));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "text: a size is rounded to one decimal and has one unit", test_sizes },
		{ "text: an age has one unit, and a negative age is 0s", test_ages },
		{ "text: RFC 3339 times are parsed, others are rejected", test_times },
		{ "text: control characters and invalid UTF-8 are replaced", test_clean },
		{ "text: control characters in JSON are escaped", test_json_safe },
		{ "text: a short ID is 12 digits without the algorithm", test_short_ids },
		{ "text: a text is cut between characters, never inside one", test_cut },
		{ "text: a misspelling has at most one edit for each three characters",
		  test_typos },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
