/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/test-table.c - rows under headings
 */
#include "cli/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the ones above */
#include <cmocka.h>

#include "base/str.h"

static const struct table_column columns[] = {
	{ "NAME", .cut = true },
	{ "SIZE", .right = true },
	{ "NOTE" },
};

static void add(struct table *t, const char *a, const char *b, const char *c)
{
	table_add(t, str_copy(a));
	table_add(t, str_copy(b));
	table_add(t, str_copy(c));
}

static void aligns(void **state)
{
	AUTO(table_done) struct table t = TABLE(columns);
	autofree char *text = NULL;

	(void)state;
	add(&t, "größe", "1", "x");
	add(&t, "a", "12345", NULL);
	text = table_format(&t, 0);
	assert_string_equal(text, "NAME    SIZE  NOTE\n"
				  "größe      1  x\n"
				  "a      12345  \n");
}

static void is_empty(void **state)
{
	AUTO(table_done) struct table t = TABLE(columns);
	autofree char *text = table_format(&t, 10);

	(void)state;
	assert_string_equal(text, "NAME  SIZE  NOTE\n");
}

static void fits(void **state)
{
	AUTO(table_done) struct table t = TABLE(columns);
	autofree char *narrow = NULL, *hopeless = NULL, *wide = NULL;

	(void)state;
	add(&t, "0123456789abcdef", "1", "x");
	narrow = table_format(&t, 22);
	hopeless = table_format(&t, 5);
	wide = table_format(&t, 200);
	assert_string_equal(narrow, "NAME        SIZE  NOTE\n"
				    "0123456...     1  x\n");
	assert_string_equal(hopeless, "NAME      SIZE  NOTE\n"
				      "01234...     1  x\n");
	assert_string_equal(wide, "NAME              SIZE  NOTE\n"
				  "0123456789abcdef     1  x\n");
}

static void cleans(void **state)
{
	AUTO(table_done) struct table t = TABLE(columns);
	autofree char *text = NULL;

	(void)state;
	add(&t, "a\033[31m", "1\n2", "x");
	text = table_format(&t, 0);
	assert_string_equal(text, "NAME    SIZE  NOTE\n"
				  "a?[31m   1 2  x\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "table: columns are as wide as their widest cell, counted in characters",
		  aligns },
		{ "table: without rows there are headings", is_empty },
		{ "table: a column that may be cut makes room, and not more than it can", fits },
		{ "table: a cell cannot leave its place", cleans },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
