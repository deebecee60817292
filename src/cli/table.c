/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/table.c - tables with headings and aligned columns
 */
#include "cli/table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "cli/terminal.h"
#include "cli/text.h"

#define GAP	  2
#define CUT_LEAST 8 /* minimum width of a shortened column */

void table_add(struct table *t, char *cell)
{
	t->cells = mem_resize(t->cells, t->n_cells + 1, sizeof(*t->cells));
	t->cells[t->n_cells++] = text_clean(cell);
	free(cell);
}

void table_done(struct table *t)
{
	for (size_t i = 0; i < t->n_cells; i++)
		free(t->cells[i]);
	free(t->cells);
	t->cells = NULL;
	t->n_cells = 0;
}

/* Shortens the widest of the columns with .cut, again and again until the table fits. */
static void shorten_columns(const struct table *t, size_t *widths, size_t max)
{
	size_t total = (t->n_columns - 1) * GAP;

	for (size_t i = 0; i < t->n_columns; i++)
		total += widths[i];
	for (; total > max; total--) {
		size_t *widest = NULL;

		for (size_t i = 0; i < t->n_columns; i++)
			if (t->columns[i].cut && widths[i] > CUT_LEAST &&
			    (!widest || widths[i] > *widest))
				widest = &widths[i];
		if (!widest)
			return;
		--*widest;
	}
}

static void add_cell(struct buf *b, const char *text, size_t width, bool right, bool last)
{
	autofree char *cut = text_cut(text, width);
	int padding = (int)(width - text_width(cut));

	if (right)
		buf_printf(b, "%*s%s", padding, "", cut);
	else
		buf_printf(b, "%s%*s", cut, last ? 0 : padding, "");
	buf_printf(b, last ? "\n" : "%*s", GAP, "");
}

char *table_format(const struct table *t, size_t width)
{
	autofree size_t *widths = mem_new(t->n_columns * sizeof(*widths));
	AUTO(buf_done) struct buf b = { 0 };
	size_t n = t->n_columns;

	assert(n && t->n_cells % n == 0);
	for (size_t i = 0; i < n; i++)
		widths[i] = text_width(t->columns[i].heading);
	for (size_t i = 0; i < t->n_cells; i++) {
		size_t cell = text_width(t->cells[i]);

		if (cell > widths[i % n])
			widths[i % n] = cell;
	}
	if (width)
		shorten_columns(t, widths, width);
	for (size_t i = 0; i < n; i++)
		add_cell(&b, t->columns[i].heading, widths[i], t->columns[i].right, i + 1 == n);
	for (size_t i = 0; i < t->n_cells; i++)
		add_cell(&b, t->cells[i], widths[i % n], t->columns[i % n].right, i % n + 1 == n);
	return buf_take(&b);
}

void table_print(const struct table *t, FILE *out)
{
	autofree char *text = table_format(t, terminal_width(fileno(out)));

	fputs(text, out);
}
