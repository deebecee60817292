/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/test-table.c - tables with headings and aligned columns
 */
#include "cli/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/str.h"

static const struct table_column columns[] = {
	{ "NAME", .cut = true },
	{ "SIZE", .right = true },
	{ "NOTE" },
};

static void add_row(struct table *t, const char *a, const char *b, const char *c)
{
	table_add(t, str_copy(a));
	table_add(t, str_copy(b));
	table_add(t, str_copy(c));
}

static void test_alignment(void **state)
{
	AUTO(table_done) struct table t = TABLE(columns);
	autofree char *text = NULL;

	(void)state;
	add_row(&t, "größe", "1", "x");
	add_row(&t, "a", "12345", NULL);
	text = table_format(&t, 0);
	assert_string_equal(text, "NAME    SIZE  NOTE\n"
				  "größe      1  x\n"
				  "a      12345  \n");
}

static void test_no_rows(void **state)
{
	AUTO(table_done) struct table t = TABLE(columns);
	autofree char *text = table_format(&t, 10);

	(void)state;
	assert_string_equal(text, "NAME  SIZE  NOTE\n");
}

static void test_width(void **state)
{
	AUTO(table_done) struct table t = TABLE(columns);
	autofree char *narrow = NULL, *tiny = NULL, *wide = NULL;

	(void)state;
	add_row(&t, "0123456789abcdef", "1", "x");
	narrow = table_format(&t, 22);
	tiny = table_format(&t, 5);
	wide = table_format(&t, 200);
	assert_string_equal(narrow, "NAME        SIZE  NOTE\n"
				    "0123456...     1  x\n");
	assert_string_equal(tiny, "NAME      SIZE  NOTE\n"
				  "01234...     1  x\n");
	assert_string_equal(wide, "NAME              SIZE  NOTE\n"
				  "0123456789abcdef     1  x\n");
}

static void test_control_characters(void **state)
{
	AUTO(table_done) struct table t = TABLE(columns);
	autofree char *text = NULL;

	(void)state;
	add_row(&t, "a\033[31m", "1\n2", "x");
	text = table_format(&t, 0);
	assert_string_equal(text, "NAME    SIZE  NOTE\n"
				  "a?[31m   1 2  x\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "table: a column is as wide as its widest cell, in characters", test_alignment },
		{ "table: a table without rows is printed as its headings", test_no_rows },
		{ "table: columns are shortened to fit the width, down to a minimum", test_width },
		{ "table: control characters in a cell are replaced", test_control_characters },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
