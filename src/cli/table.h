/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/table.h - tables with headings and aligned columns
 *
 *	static const struct table_column columns[] = { { "NAME", .cut = true }, { "SIZE", .right = true } };
 *	AUTO(table_done) struct table t = TABLE(columns);
 *
 *	table_add(&t, str_copy(name));
 *	table_add(&t, text_size(size));
 *	table_print(&t, stdout);
 *
 * Rules: cells are added row by row. The table takes ownership of a cell's text and
 *        replaces control characters in it (cli/text.h). On a terminal, lines that are
 *        too long are shortened in the columns with .cut, the widest column first. If
 *        the output is not a terminal, nothing is shortened.
 */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/mem.h"

struct table_column {
	const char *heading;
	bool right; /* align right, for numbers */
	bool cut;   /* may be shortened on a terminal */
};

struct table {
	const struct table_column *columns;
	size_t n_columns;
	char **cells;
	size_t n_cells;
};

#define TABLE(array)                                                                               \
	{                                                                                          \
		.columns = (array), .n_columns = ARRAY_SIZE(array)                                 \
	}

void table_add(struct table *t, char *cell);		 /* takes ownership; NULL: "" */
char *table_format(const struct table *t, size_t width); /* 0: no limit */
void table_print(const struct table *t, FILE *out);	 /* fits if @out is a terminal */
void table_done(struct table *t);

AUTO_VALUE_DEFINE(table_done, struct table);

#endif
