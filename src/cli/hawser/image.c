/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/image.c - image inspect, image history: show the configuration of an image
 *
 * How:   calls CRI's ImageStatus with "verbose"; cli/spec.c decodes the configuration
 *        in the response.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/cri-v1.pb-c.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/hawser/hawser.h"
#include "cli/json.h"
#include "cli/spec.h"
#include "cli/table.h"
#include "cli/text.h"

/* ---- inspect --------------------------------------------------------------------- */

/* Quotes empty words and words with blanks or quotes, as in a shell. */
static char *join_words(const struct hw_strings *words)
{
	AUTO(buf_done) struct buf b = { 0 };

	for (size_t i = 0; i < words->n; i++)
		buf_printf(&b,
			   strpbrk(words->v[i], " \t\n\"'") || !*words->v[i] ? "%s\"%s\"" : "%s%s",
			   i ? " " : "", words->v[i]);
	return buf_take(&b);
}

/* Prints the keys of a JSON object, such as 80/tcp of {"80/tcp":{}}. */
static void print_keys(const char *name, const char *json)
{
	AUTO(value_free) struct value *object = NULL;
	struct hw_err ignored;
	struct value *v;
	const char *key;

	if (!json || value_parse(json, strlen(json), &object, &ignored) < 0 ||
	    value_kind(object) != VALUE_OBJECT)
		return;
	for (void *i = NULL; value_next(object, &i, &key, &v); name = "")
		print_field(name, key);
}

static void print_spec(const struct spec *spec)
{
	const struct hw_map *labels = &spec->config.labels;
	autofree char *age = spec_age(spec->created);

	if (*age)
		print_field_and_free("created", str_printf("%s (%s ago)", spec->created, age));
	if (!str_empty(spec->os))
		print_field_and_free("platform", str_printf("%s/%s%s%s", spec->os,
							    str_or(spec->architecture, ""),
							    str_empty(spec->variant) ? "" : "/",
							    str_or(spec->variant, "")));
	print_field("user", spec->config.user);
	print_field_and_free("entrypoint", join_words(&spec->config.entrypoint));
	print_field_and_free("command", join_words(&spec->config.cmd));
	print_field("working dir", spec->config.working_dir);
	print_field("stop signal", spec->config.stop_signal);
	print_list("environment", spec->config.env.v, spec->config.env.n);
	print_keys("ports", spec->config.ports);
	print_keys("volumes", spec->config.volumes);
	for (size_t i = 0; i < labels->n; i++)
		print_field_and_free(i ? "" : "labels",
				     str_printf("%s=%s", labels->keys[i], labels->values[i]));
	print_list("layers", spec->rootfs.diff_ids.v, spec->rootfs.diff_ids.n);
}

static int run_inspect(struct cli *cli, char **args, struct hw_err *e)
{
	AUTO(api_free) Runtime__V1__ImageStatusResponse *status = NULL;
	AUTO(spec_done) struct spec spec = { 0 };
	const Runtime__V1__Image *image;
	int r;

	r = image_status(cli, args[0], true, &status, e);
	if (r < 0)
		return r;
	image = status->image;
	if (cli->json) {
		struct value *all = message_to_json(&status->base);

		json_parse_info(all);
		print_json(all);
		return 0;
	}
	r = spec_read(status, &spec, e);
	if (r < 0)
		return err_ctx(e, "image \"%s\"", args[0]);
	print_field("id", image->id);
	print_list("names", image->repo_tags, image->n_repo_tags);
	print_list("digests", image->repo_digests, image->n_repo_digests);
	print_field_and_free("size", text_size(image->size));
	print_field("pinned", image->pinned ? "yes" : "no");
	print_spec(&spec);
	return 0;
}

const struct command image_inspect_command = {
	.name = "image inspect",
	.group = "images",
	.args = "IMAGE",
	.min_args = 1,
	.max_args = 1,
	.run = run_inspect,
	.summary = "show an image and its configuration",
	.help = "--json prints everything that the runtime reports. The configuration of the\n"
		"image is in info.info.imageSpec.\n\n"
		"examples:\n"
		"  hawser image inspect busybox\n"
		"  hawser image inspect --json busybox | jq .info.info.imageSpec.config.Env\n",
};

/* ---- history --------------------------------------------------------------------- */

static const struct table_column history_columns[] = {
	{ "AGE", .right = true },
	{ "LAYER" },
	{ "CREATED BY", .cut = true },
	{ "COMMENT", .cut = true },
};

/* Adds a row for each step of the build, the latest step first. */
static void add_steps(struct table *t, const struct spec *spec)
{
	const struct spec_step *steps = spec->history.v;
	size_t layer = 0;

	for (size_t i = 0; i < spec->history.n; i++)
		layer += !steps[i].empty_layer;
	for (size_t i = spec->history.n; i-- > 0;) {
		const char *diff_id = NULL;

		if (!steps[i].empty_layer && --layer < spec->rootfs.diff_ids.n)
			diff_id = spec->rootfs.diff_ids.v[layer];
		table_add(t, spec_age(steps[i].created));
		table_add(t, diff_id ? text_short_id(diff_id) : str_copy("-"));
		table_add(t, str_copy(steps[i].created_by));
		table_add(t, str_copy(steps[i].comment));
	}
}

/* Lists the steps of the build in the order of the configuration: the oldest step first. */
static struct value *make_history_json(const struct spec *spec)
{
	struct value *all = value_new_object(), *list = value_new_array();
	size_t layer = 0;

	for (size_t i = 0; i < spec->history.n; i++) {
		const struct spec_step *step = (const struct spec_step *)spec->history.v + i;
		struct value *v = value_new_object();
		const char *diff_id = "";

		if (!step->empty_layer && layer < spec->rootfs.diff_ids.n)
			diff_id = spec->rootfs.diff_ids.v[layer++];
		value_set(v, "created", value_new_string(str_or(step->created, "")));
		value_set(v, "createdBy", value_new_string(str_or(step->created_by, "")));
		value_set(v, "comment", value_new_string(str_or(step->comment, "")));
		value_set(v, "diffId", value_new_string(diff_id));
		value_append(list, v);
	}
	value_set(all, "history", list);
	return all;
}

static int run_history(struct cli *cli, char **args, struct hw_err *e)
{
	AUTO(api_free) Runtime__V1__ImageStatusResponse *status = NULL;
	AUTO(table_done) struct table t = TABLE(history_columns);
	AUTO(spec_done) struct spec spec = { 0 };
	int r;

	r = image_status(cli, args[0], true, &status, e);
	if (r < 0)
		return r;
	r = spec_read(status, &spec, e);
	if (r == 0)
		r = err_text(e, -ENODATA, "the runtime does not report the image configuration");
	if (r < 0)
		return err_ctx(e, "image \"%s\"", args[0]);
	if (cli->json) {
		print_json(make_history_json(&spec));
		return 0;
	}
	add_steps(&t, &spec);
	table_print(&t, stdout);
	return 0;
}

const struct command history_command = {
	.name = "image history",
	.group = "images",
	.args = "IMAGE",
	.min_args = 1,
	.max_args = 1,
	.run = run_history,
	.summary = "show the build history of an image",
	.help = "The latest build step is printed first. A step that changed no files has no\n"
		"layer.\n\n"
		"examples:\n"
		"  hawser image history busybox\n",
};
