/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/test-str.c - string helpers and struct hw_strings
 */
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <limits.h>
#include <string.h>

static void copies(void **state)
{
	autofree char *all = str_copy("abc"), *some = str_ncopy("abc", 2);
	autofree char *short_one = str_ncopy("abc", 10), *printed = str_printf("%s-%d", "a", 5);
	autofree char *empty = str_ncopy(NULL, 0);

	(void)state;
	assert_string_equal(all, "abc");
	assert_string_equal(some, "ab");
	assert_string_equal(short_one, "abc");
	assert_string_equal(printed, "a-5");
	assert_string_equal(empty, "");
	assert_null(str_copy(NULL));
}

static void compares(void **state)
{
	(void)state;
	assert_true(str_equal("a", "a"));
	assert_true(str_equal(NULL, NULL));
	assert_false(str_equal("", NULL));
	assert_false(str_equal("a", "A"));
	assert_true(str_empty(NULL) && str_empty("") && !str_empty(" "));
	assert_string_equal(str_or(NULL, "x"), "x");
	assert_string_equal(str_or("", "x"), "");
}

static void finds_prefix_and_suffix(void **state)
{
	(void)state;
	assert_true(str_starts("abc", "ab") && str_starts("abc", ""));
	assert_false(str_starts("a", "ab"));
	assert_true(str_ends("a.conf", ".conf") && str_ends("abc", ""));
	assert_false(str_ends("onf", ".conf"));
	assert_false(str_ends("a.conflist", ".conf"));
}

static void parses_numbers(void **state)
{
	static const struct {
		const char *text;
		long long n;
	} good[] = {
		{ "0", 0 },
		{ "-0", 0 },
		{ "007", 7 },
		{ "-12", -12 },
		{ "9223372036854775807", LLONG_MAX },
		{ "-9223372036854775808", LLONG_MIN },
	};
	long long n;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_true(str_to_int64(good[i].text, LLONG_MIN, LLONG_MAX, &n));
		assert_true(n == good[i].n);
	}
}

static void rejects_invalid_numbers(void **state)
{
	static const char *const bad[] = {
		NULL,
		"",
		"-",
		" 1",
		"1 ",
		"+1",
		"1x",
		"0x1",
		"1.0",
		"1e3",
		"--1",
		"٣",
		"9223372036854775808",
		"-9223372036854775809",
		"99999999999999999999999999",
	};
	long long n = 42;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(str_to_int64(bad[i], LLONG_MIN, LLONG_MAX, &n));
	assert_false(str_to_int64("10", 0, 9, &n));
	assert_false(str_to_int64("-1", 0, 9, &n));
	assert_true(n == 42);
	assert_true(str_to_int64("9", 0, 9, &n) && n == 9);
}

static void splits(void **state)
{
	AUTO(hw_strings_free) struct hw_strings list = { 0 }, one = { 0 };

	(void)state;
	strings_split("/a::/b:", ':', &list);
	assert_int_equal(list.n, 4);
	assert_string_equal(list.v[0], "/a");
	assert_string_equal(list.v[1], "");
	assert_string_equal(list.v[2], "/b");
	assert_string_equal(list.v[3], "");
	strings_split("", ':', &one);
	assert_int_equal(one.n, 1);
	assert_string_equal(one.v[0], "");
}

static void holds_strings(void **state)
{
	char word[] = "abc";
	struct hw_strings list = { 0 };

	(void)state;
	strings_add(&list, word);
	word[0] = 'x';
	strings_add(&list, word);
	assert_int_equal(list.n, 2);
	assert_true(strings_has(&list, "abc") && strings_has(&list, "xbc"));
	assert_false(strings_has(&list, "ab"));
	hw_strings_free(&list);
	assert_int_equal(list.n, 0);
	assert_null(list.v);
	hw_strings_free(&list);
	hw_strings_free(NULL);
}

static void recognises_utf8(void **state)
{
	static const struct {
		const char *s;
		size_t len;
	} cases[] = {
		{ "", 1 },
		{ "a", 1 },
		{ "\x7f", 1 },
		{ "ö", 2 },
		{ "\xe2\x82\xac", 3 },
		{ "\xf0\x9f\x98\x80", 4 },
		{ "\x80", 0 },
		{ "\xc0\xaf", 0 },
		{ "\xc3", 0 },
		{ "\xe0\x80\x80", 0 },
		{ "\xed\xa0\x80", 0 },
		{ "\xf4\x90\x80\x80", 0 },
		{ "\xf8", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(str_utf8_len(cases[i].s), cases[i].len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "str: copies are NUL-terminated, the copy of NULL is NULL", copies },
		{ "str: NULL is equal to NULL only", compares },
		{ "str: prefix and suffix may be empty or the whole string",
		  finds_prefix_and_suffix },
		{ "str: decimal numbers are parsed up to the limits of 64 bits", parses_numbers },
		{ "str: blanks, plus signs, trailing text and overflows are rejected",
		  rejects_invalid_numbers },
		{ "str: valid UTF-8 characters are recognised", recognises_utf8 },
		{ "str: splitting keeps empty parts", splits },
		{ "str: a list of strings copies its entries", holds_strings },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
