/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/progress.c - progress of pulls and archives as text
 */
#include "cli/progress.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/text.h"

#define BAR_MAX 30
#define BAR_MIN 8

#define CURSOR_UP  "\033[%zuA"
#define CLEAR_LINE "\033[K"
#define CLEAR_DOWN "\033[J"

static const char *const states[] = {
	[PROGRESS_WAITING] = "waiting",	    [PROGRESS_DOWNLOADING] = "downloading",
	[PROGRESS_UNPACKING] = "unpacking", [PROGRESS_DONE] = "done",
	[PROGRESS_PRESENT] = "present",
};

static bool is_finished(const struct progress_layer *layer)
{
	return layer->state == PROGRESS_DONE || layer->state == PROGRESS_PRESENT;
}

/* ---- state ----------------------------------------------------------------------- */

int progress_update(struct progress *p, const struct progress_layer *layer, struct hw_err *e)
{
	struct progress_layer *known;
	bool changed;
	size_t i = 0;

	while (i < p->n && !str_equal(p->layers[i].digest, layer->digest))
		i++;
	if (i == PROGRESS_LAYERS_MAX)
		return err_text(e, -E2BIG, "too many layers: the runtime reported more than %d",
				PROGRESS_LAYERS_MAX);
	changed = i == p->n || p->layers[i].state != layer->state;
	if (i == p->n) {
		p->layers = mem_resize(p->layers, p->n + 1, sizeof(*p->layers));
		p->layers[p->n++] = (struct progress_layer){ .digest = str_copy(layer->digest) };
	}
	known = &p->layers[i];
	known->state = layer->state;
	known->done = layer->done;
	known->total = layer->total;
	return changed;
}

void progress_done(struct progress *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->layers[i].digest);
	free(p->layers);
	*p = (struct progress){ 0 };
}

/* ---- text ------------------------------------------------------------------------ */

static char *format_bytes(const struct progress_layer *layer)
{
	autofree char *done = text_size(layer->done);
	autofree char *total = text_size(layer->total);

	if (!layer->total)
		return layer->done ? str_copy(done) : str_copy("");
	if (is_finished(layer) || layer->state == PROGRESS_WAITING)
		return str_copy(total);
	return str_printf("%s / %s", done, total);
}

/* "[====>     ]", @width characters */
static void add_bar(struct buf *b, const struct progress_layer *layer, size_t width)
{
	double part = layer->done < layer->total ? (double)layer->done / (double)layer->total : 1;
	size_t inner = width - 2, full = (size_t)(part * (double)inner);

	buf_putc(b, '[');
	for (size_t i = 0; i < inner; i++)
		buf_putc(b, i < full ? '=' : i == full ? '>' : ' ');
	buf_putc(b, ']');
}

/* @head and the number of bytes, with a bar between them if there is space */
static char *format_line(const char *head, const struct progress_layer *layer, size_t width)
{
	bool has_bar = layer->total && !is_finished(layer) && layer->state != PROGRESS_WAITING;
	autofree char *bytes = format_bytes(layer);
	size_t taken = strlen(head) + strlen(bytes) + 4;
	size_t room = width > taken ? width - taken : 0;
	AUTO(buf_done) struct buf b = { 0 };

	buf_puts(&b, head);
	if (has_bar && room >= BAR_MIN) {
		buf_puts(&b, "  ");
		add_bar(&b, layer, room < BAR_MAX ? room : BAR_MAX);
	}
	if (*bytes)
		buf_printf(&b, "  %s", bytes);
	return width ? text_cut(b.data, width) : buf_take(&b);
}

char *progress_line(const struct progress_layer *layer, size_t width)
{
	bool is_known = (size_t)layer->state < ARRAY_SIZE(states);
	autofree char *id = text_short_id(layer->digest);
	autofree char *head = str_printf("%s  %-11s", id, is_known ? states[layer->state] : "busy");

	return format_line(head, layer, width);
}

char *progress_bytes(const char *what, uint64_t done, uint64_t total, size_t width)
{
	const struct progress_layer all = { .state = PROGRESS_DOWNLOADING,
					    .done = done,
					    .total = total };

	return format_line(what, &all, width);
}

char *progress_summary(const struct progress *p)
{
	struct progress_layer sum = { .state = PROGRESS_DOWNLOADING };
	autofree char *bytes = NULL;
	size_t finished = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct progress_layer *layer = &p->layers[i];

		finished += is_finished(layer);
		if (layer->state == PROGRESS_PRESENT)
			continue;
		sum.done += is_finished(layer) ? layer->total : layer->done;
		sum.total += layer->total;
	}
	bytes = format_bytes(&sum);
	return str_printf("%zu of %zu layers%s%s", finished, p->n, *bytes ? ", " : "", bytes);
}

/* ---- frames ---------------------------------------------------------------------- */

void progress_frame(struct progress *p, size_t width, size_t height, struct buf *out)
{
	size_t max = height > 3 ? height - 2 : 1; /* two lines are for the summary and the cursor */
	autofree char *summary = progress_summary(p);
	autofree char *cut = text_cut(summary, width);

	if (p->drawn)
		buf_printf(out, "\r" CURSOR_UP, p->drawn);
	p->drawn = 0;
	for (size_t i = 0; i < p->n && p->drawn < max; i++) {
		autofree char *line = NULL;

		if (p->n > max && is_finished(&p->layers[i]))
			continue;
		line = progress_line(&p->layers[i], width);
		buf_printf(out, "%s" CLEAR_LINE "\n", line);
		p->drawn++;
	}
	buf_printf(out, "%s" CLEAR_LINE "\n" CLEAR_DOWN, cut);
	p->drawn++;
}
