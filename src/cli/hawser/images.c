/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/images.c - images: list images
 *
 * What:  prints a row for each name of an image. An image without a tag is shown by its
 *        name and digest. An image without any name is shown as <none>, with its ID.
 * How:   CRI's ListImages does not return creation times. --long therefore requests the
 *        configuration of each image.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/cri-v1.pb-c.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/hawser/hawser.h"
#include "cli/json.h"
#include "cli/spec.h"
#include "cli/table.h"
#include "cli/text.h"

static struct {
	bool long_format, quiet, names;
} given;

static const struct option_entry options[] = {
	{ "long", 'l', .help = "also show age, user, and whether the image is pinned",
	  .flag = &given.long_format },
	{ "quiet", 'q', .help = "print only image IDs", .flag = &given.quiet },
	{ "names", .help = "print only names", .flag = &given.names },
	{ 0 },
};

static const struct table_column columns[] = {
	{ "IMAGE", .cut = true }, { "ID" },   { "SIZE", .right = true },
	{ "AGE", .right = true }, { "USER" }, { "PINNED" },
};

#define COLUMNS_SHORT 3

struct row {
	char *name;
	const Runtime__V1__Image *image;
};

struct rows {
	struct row *v;
	size_t n;
};

static void rows_done(struct rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		free(rows->v[i].name);
	free(rows->v);
}

AUTO_VALUE_DEFINE(rows_done, struct rows);

static void add_row(struct rows *rows, const Runtime__V1__Image *image, char *name)
{
	rows->v = mem_resize(rows->v, rows->n + 1, sizeof(*rows->v));
	rows->v[rows->n++] = (struct row){ name, image };
}

static void add_image(struct rows *rows, const Runtime__V1__Image *image)
{
	if (!image->n_repo_tags && !image->n_repo_digests)
		add_row(rows, image, str_copy(""));
	for (size_t i = 0; i < image->n_repo_tags; i++)
		add_row(rows, image, str_copy(image->repo_tags[i]));
	for (size_t i = 0; i < image->n_repo_digests && !image->n_repo_tags; i++)
		add_row(rows, image, str_copy(image->repo_digests[i]));
}

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : strcmp(x->image->id, y->image->id);
}

/* The rows point into @list. */
static struct rows get_rows(const Runtime__V1__ListImagesResponse *list)
{
	struct rows rows = { 0 };

	for (size_t i = 0; i < list->n_images; i++)
		add_image(&rows, list->images[i]);
	if (rows.n)
		qsort(rows.v, rows.n, sizeof(*rows.v), compare_rows);
	return rows;
}

/* ---- output ---------------------------------------------------------------------- */

/* Shortens a digest: "NAME@sha256:0123456789ab". */
static char *format_name(const char *name)
{
	const char *digest = strchr(name, '@');
	const char *colon = digest ? strchr(digest, ':') : NULL;
	autofree char *id = NULL;

	if (!*name)
		return str_copy("<none>");
	if (!colon)
		return str_copy(name);
	id = text_short_id(digest + 1);
	return str_printf("%.*s%s", (int)(colon + 1 - name), name, id);
}

/* Return: "" if the age is unknown, for example because the image has been removed meanwhile */
static char *get_age(struct cli *cli, const Runtime__V1__Image *image)
{
	AUTO(api_free) Runtime__V1__ImageStatusResponse *status = NULL;
	AUTO(spec_done) struct spec spec = { 0 };
	struct hw_err ignored;

	if (image_status(cli, image->id, true, &status, &ignored) < 0 ||
	    spec_read(status, &spec, &ignored) <= 0)
		return str_copy("");
	return spec_age(spec.created);
}

static void print_rows(struct cli *cli, const struct rows *rows)
{
	AUTO(table_done) struct table t = TABLE(columns);

	if (!given.long_format)
		t.n_columns = COLUMNS_SHORT;
	for (size_t i = 0; i < rows->n; i++) {
		const Runtime__V1__Image *image = rows->v[i].image;

		table_add(&t, format_name(rows->v[i].name));
		table_add(&t, text_short_id(image->id));
		table_add(&t, text_size(image->size));
		if (!given.long_format)
			continue;
		table_add(&t, get_age(cli, image));
		table_add(&t, image->uid ? str_printf("%lld", (long long)image->uid->value)
					 : str_copy(image->username));
		table_add(&t, str_copy(image->pinned ? "yes" : ""));
	}
	table_print(&t, stdout);
}

static void print_ids(const Runtime__V1__ListImagesResponse *list)
{
	for (size_t i = 0; i < list->n_images; i++) {
		autofree char *id = text_clean(list->images[i]->id);

		printf("%s\n", id);
	}
}

static void print_names(const struct rows *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		autofree char *name = text_clean(rows->v[i].name);

		if (*name)
			printf("%s\n", name);
	}
}

/* ---- command --------------------------------------------------------------------- */

int list_images(struct cli *cli, char *name, Runtime__V1__ListImagesResponse **ret_list,
		struct hw_err *e)
{
	Runtime__V1__ListImagesRequest request = RUNTIME__V1__LIST_IMAGES_REQUEST__INIT;
	Runtime__V1__ImageFilter filter = RUNTIME__V1__IMAGE_FILTER__INIT;
	Runtime__V1__ImageSpec spec = RUNTIME__V1__IMAGE_SPEC__INIT;

	if (name) {
		spec.image = name;
		filter.image = &spec;
		request.filter = &filter;
	}
	if (image_call(cli, "ListImages", &request.base, ret_list, e) < 0)
		return err_ctx(e, "list images");
	return 0;
}

static int run_images(struct cli *cli, char **args, struct hw_err *e)
{
	AUTO(api_free) Runtime__V1__ListImagesResponse *list = NULL;
	AUTO(rows_done) struct rows rows = { 0 };
	int r;

	r = list_images(cli, args[0], &list, e);
	if (r < 0)
		return r;
	rows = get_rows(list);
	if (cli->json)
		print_json(message_to_json(&list->base));
	else if (given.quiet)
		print_ids(list);
	else if (given.names)
		print_names(&rows);
	else
		print_rows(cli, &rows);
	return 0;
}

int complete_images(struct cli *cli, const char *word, struct hw_strings *words, struct hw_err *e)
{
	AUTO(api_free) Runtime__V1__ListImagesResponse *list = NULL;
	AUTO(rows_done) struct rows rows = { 0 };
	int r;

	(void)word;
	r = runtime_complete(cli, e);
	if (r < 0)
		return r;
	r = list_images(cli, NULL, &list, e);
	if (r < 0)
		return r;
	rows = get_rows(list);
	for (size_t i = 0; i < rows.n; i++) {
		autofree char *name = text_clean(rows.v[i].name);

		if (*name)
			strings_add(words, name);
	}
	return 0;
}

const struct command images_command = {
	.name = "images",
	.alias = "image ls",
	.group = "images",
	.args = "[IMAGE]",
	.max_args = 1,
	.run = run_images,
	.summary = "list images",
	.help = "Prints a row for each name of an image. With IMAGE, only that image is listed.\n\n"
		"examples:\n"
		"  hawser images\n"
		"  hawser images --json | jq '.images[] | select(.size > 1e8) | .id'\n",
	.options = options,
};
