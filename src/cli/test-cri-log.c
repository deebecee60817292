/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/test-cri-log.c - parse lines of a container's log
 */
#include "cli/cri-log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define TIME "2026-11-15T12:00:00.123456789Z"

static void test_valid(void **state)
{
	static const struct {
		const char *line, *text;
		bool is_stderr, is_part;
	} cases[] = {
		{ TIME " stdout F text", "text" },
		{ TIME " stderr F  two  words ", " two  words ", .is_stderr = true },
		{ TIME " stdout P part", "part", .is_part = true },
		{ TIME " stderr P:x:F part", "part", .is_stderr = true, .is_part = true },
		{ TIME " stdout F:P text", "text" },
		{ TIME " stdout F ", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *text = NULL, *time = NULL;
		struct log_entry entry;

		assert_true(log_parse(cases[i].line, strlen(cases[i].line), &entry));
		text = str_ncopy(entry.text, entry.len);
		time = str_ncopy(entry.time, entry.time_len);
		assert_string_equal(text, cases[i].text);
		assert_string_equal(time, TIME);
		assert_int_equal(entry.is_stderr, cases[i].is_stderr);
		assert_int_equal(entry.is_part, cases[i].is_part);
	}
}

static void test_malformed(void **state)
{
	static const char *const lines[] = {
		"",
		"text",
		TIME,
		TIME " ",
		TIME " stdout",
		TIME " stdout ",
		TIME " stdout F", /* no space before the text */
		TIME " stdin F text",
		TIME " stdout  text",
		TIME " stdout X text",
		TIME " stdout FP text",
		" stdout F text",
		TIME "  F text",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct log_entry entry;

		assert_false(log_parse(lines[i], strlen(lines[i]), &entry));
	}
}

static void test_length(void **state)
{
	const char line[] = TIME " stdout F a\0b|c";
	struct log_entry entry;

	(void)state;
	assert_true(log_parse(line, strlen(TIME " stdout F ") + 3, &entry));
	assert_int_equal(entry.len, 3);
	assert_memory_equal(entry.text, "a\0b", 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "log: a line has a time, a stream, tags and a text", test_valid },
		{ "log: a malformed line is refused", test_malformed },
		{ "log: a line ends at its length, not at a NUL", test_length },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
