/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/fetch/layer-main.c - hawser-layer: what the daemon wants to know of a stored layer
 *
 * What:  hawser-layer verify DIR   hashes the files again, prints a report (image/verify-report.h)
 *        hawser-layer archive DIR  prints the layer's archive, byte for byte
 *        DIR has root/ and recipe, as image/store.h says. It is not for people.
 * Rules: exit status 0, or 1 with the reason on standard error.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "image/fetch/rebuild.h"
#include "image/fetch/recipe.h"
#include "image/verify-report.h"

struct layer {
	int root, recipe;
};

static int open_layer(const char *dir, struct layer *ret, struct hw_err *e)
{
	autofree char *root = str_printf("%s/root", dir), *recipe = str_printf("%s/recipe", dir);

	ret->recipe = -1;
	ret->root = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (ret->root < 0)
		return err_set(e, -errno, "open %s", root);
	ret->recipe = open(recipe, O_RDONLY | O_CLOEXEC);
	return ret->recipe < 0 ? err_set(e, -errno, "open %s", recipe) : 0;
}

/* ---- verify ------------------------------------------------------------------------- */

/* Names come from archives and may be any bytes, a report is UTF-8. */
static char *clean(const char *text)
{
	AUTO(buf_done) struct buf b = { 0 };

	while (*text) {
		size_t n = str_utf8(text);

		if (n > 0)
			buf_add(&b, text, n);
		else
			buf_printf(&b, "\\x%02x", (unsigned char)*text);
		text += n ? n : 1;
	}
	return buf_take(&b);
}

static void note(struct verify_report *report, const char *path, const char *why)
{
	autofree char *text = str_printf("%s: %s", path, why);
	autofree char *cleaned = clean(text);

	report->n_damaged++;
	if (report->damaged.n < VERIFY_NAMED_MAX)
		strings_add(&report->damaged, cleaned);
}

static int on_damaged(void *ctx, const char *path, const char *why, struct hw_err *e)
{
	(void)e;
	note(ctx, path, why);
	return 0;
}

static int count_other(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	(void)ctx;
	(void)data;
	(void)len;
	(void)e;
	return 0;
}

static int count_file(void *ctx, const struct recipe_file *file, struct hw_err *e)
{
	struct verify_report *report = ctx;

	(void)e;
	report->files++;
	for (size_t i = 0; i < file->n_pieces; i++)
		report->bytes += file->pieces[i].len;
	return 0;
}

static int count_end(void *ctx, int64_t size, const uint8_t sum[DIGEST_SIZE], struct hw_err *e)
{
	(void)ctx;
	(void)size;
	(void)sum;
	(void)e;
	return 0;
}

/* A recipe that cannot be read is damage too. */
static void look(const struct layer *layer, struct verify_report *report)
{
	static const struct recipe_sink counter = { count_other, count_file, count_end };
	struct hw_err e;

	if (recipe_read(layer->recipe, &counter, report, &e) < 0 ||
	    lseek(layer->recipe, 0, SEEK_SET) < 0 ||
	    rebuild_verify(layer->recipe, layer->root, on_damaged, report, &e) < 0)
		note(report, "the recipe", e.msg);
}

static int verify(const struct layer *layer, struct hw_err *e)
{
	AUTO(verify_report_done) struct verify_report report = { 0 };
	autofree char *json = NULL;

	look(layer, &report);
	json = hw_field_encode(verify_fields, &report, 0);
	return file_write_fd(STDOUT_FILENO, json, strlen(json), e);
}

/* ---- archive ------------------------------------------------------------------------ */

static int archive(const struct layer *layer, struct hw_err *e)
{
	return rebuild_archive(layer->recipe, layer->root, STDOUT_FILENO, e);
}

static const struct {
	const char *name;
	int (*run)(const struct layer *layer, struct hw_err *e);
} commands[] = {
	{ "verify", verify },
	{ "archive", archive },
};

int main(int argc, char **argv)
{
	struct layer layer;
	struct hw_err e;

	file_fill_standard(O_PATH);
	for (size_t i = 0; argc == 3 && i < ARRAY_SIZE(commands); i++) {
		if (!str_equal(argv[1], commands[i].name))
			continue;
		if (open_layer(argv[2], &layer, &e) == 0 && commands[i].run(&layer, &e) == 0)
			return EXIT_SUCCESS;
		fprintf(stderr, "hawser-layer: %s\n", e.msg);
		return EXIT_FAILURE;
	}
	fprintf(stderr, "usage: hawser-layer verify|archive DIR; it is for hawser-cri to start\n");
	return EXIT_FAILURE;
}
