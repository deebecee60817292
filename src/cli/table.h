/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/table.h - rows under headings, each column as wide as it needs
 *
 *	static const struct table_column columns[] = { { "NAME", .cut = true }, { "SIZE", .right = true } };
 *	AUTO(table_done) struct table t = TABLE(columns);
 *
 *	table_add(&t, str_copy(name));
 *	table_add(&t, text_size(size));
 *	table_print(&t, stdout);
 *
 * Rules: cells are added row by row and are taken; they are cleaned (cli/text.h).
 *        On a terminal a line that is too long loses characters in the columns that
 *        may be cut, the widest first; elsewhere nothing is cut.
 */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/mem.h"

struct table_column {
	const char *heading;
	bool right; /* numbers */
	bool cut;
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

void table_add(struct table *t, char *cell);		 /* NULL: "" */
char *table_format(const struct table *t, size_t width); /* 0: as wide as it is */
void table_print(const struct table *t, FILE *out);
void table_done(struct table *t);

AUTO_VALUE_DEFINE(table_done, struct table);

#endif
