/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/test-tar-number.c - numbers and times in tar archives
 */
#include "fetch/tar/number.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/mem.h"

#define FIELD(text) (const uint8_t *)(text), sizeof(text) - 1

static void test_octal(void **state)
{
	static const struct {
		const uint8_t *field;
		size_t len;
		int64_t want; /* -1: rejected */
	} v[] = {
		{ FIELD("0000644\0"), 0644 },
		{ FIELD("644"), 0644 },
		{ FIELD("   644 \0"), 0644 },
		{ FIELD("644\0junk"), 0644 },
		{ FIELD("\0\0\0\0"), 0 },
		{ FIELD("    "), 0 },
		{ FIELD(""), 0 },
		{ FIELD("\0 17"), 017 },
		{ FIELD("77777777777\0"), 077777777777 },
		{ FIELD("777777777777777777777"), INT64_MAX },
		{ FIELD("1000000000000000000000"), -1 },
		{ FIELD("648"), -1 },
		{ FIELD("-1"), -1 },
		{ FIELD("0x1"), -1 },
		{ FIELD("a"), -1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		int64_t n = -1;
		bool ok = tar_number(v[i].field, v[i].len, &n);

		if (ok != (v[i].want >= 0) || n != v[i].want)
			fail_msg("%zu: %s, %lld", i, ok ? "accepted" : "rejected", (long long)n);
	}
}

static void test_base256(void **state)
{
	static const struct {
		const uint8_t *field;
		size_t len;
		bool ok;
		int64_t want;
	} v[] = {
		{ FIELD("\x80\0\0\0\0\0\0\1"), true, 1 },
		{ FIELD("\x80\0\0\0\xff\xff\xff\xff"), true, 0xffffffff },
		{ FIELD("\xff\xff\xff\xff\xff\xff\xff\xff"), true, -1 },
		{ FIELD("\xff\xff\xff\xff\xff\xff\xff\xfe"), true, -2 },
		{ FIELD("\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff"), true, INT64_MAX },
		{ FIELD("\xff\xff\xff\xff\x80\0\0\0\0\0\0\0"), true, INT64_MIN },
		{ FIELD("\x80\0\0\0\x80\0\0\0\0\0\0\0"), false, 0 },
		{ FIELD("\x80\0\0\1\0\0\0\0\0\0\0\0"), false, 0 },
		{ FIELD("\xbf\0\0\0\0\0\0\0\0\0\0\0"), false, 0 },
		{ FIELD("\xff\xff\xff\xfe\0\0\0\0\0\0\0\0"), false, 0 },
		{ FIELD("\xc0\0\0\0\0\0\0\0\0\0\0\0"), false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		int64_t n = 0;
		bool ok = tar_number(v[i].field, v[i].len, &n);

		if (ok != v[i].ok || n != v[i].want)
			fail_msg("%zu: %s, %lld", i, ok ? "accepted" : "rejected", (long long)n);
	}
}

static void test_times(void **state)
{
	static const struct {
		const char *text;
		bool ok;
		time_t s;
		long ns;
	} v[] = {
		{ "0", true, 0, 0 },
		{ "1700000000", true, 1700000000, 0 },
		{ "1.5", true, 1, 500000000 },
		{ "1.", true, 1, 0 },
		{ "1.123456789999", true, 1, 123456789 },
		{ "1.000000001", true, 1, 1 },
		{ "-1", true, -1, 0 },
		{ "-1.25", true, -2, 750000000 },
		{ "-0.5", true, -1, 500000000 },
		{ "", false, 0, 0 },
		{ "-", false, 0, 0 },
		{ ".5", false, 0, 0 },
		{ "1.5x", false, 0, 0 },
		{ "1e5", false, 0, 0 },
		{ "--1", false, 0, 0 },
		{ "9223372036854775808", false, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		struct timespec t = { 0 };
		bool ok = tar_time(v[i].text, strlen(v[i].text), &t);

		if (ok != v[i].ok || t.tv_sec != v[i].s || t.tv_nsec != v[i].ns)
			fail_msg("%s: %s, %lld.%09ld", v[i].text, ok ? "accepted" : "rejected",
				 (long long)t.tv_sec, t.tv_nsec);
	}
}

static void test_decimals(void **state)
{
	int64_t n = 0;

	(void)state;
	assert_true(tar_decimal("9223372036854775807", 19, &n));
	assert_int_equal(n, INT64_MAX);
	assert_false(tar_decimal("9223372036854775808", 19, &n));
	assert_false(tar_decimal("", 0, &n));
	assert_false(tar_decimal("+1", 2, &n));
	assert_false(tar_decimal("1 ", 2, &n));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "tar-number: octal digits with blanks around them are parsed", test_octal },
		{ "tar-number: numbers in base 256 of up to 64 bits are parsed, also negative ones",
		  test_base256 },
		{ "tar-number: times with a sign and a fraction are parsed", test_times },
		{ "tar-number: a decimal number with characters other than digits is rejected",
		  test_decimals },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
