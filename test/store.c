/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test/store.c - command line of src/image/store, for test/faults and test_store.py
 *
 *	store ROOT put NAME TEXT...   add an image with one layer per TEXT; a layer has one file, with this TEXT
 *	store ROOT remove NAME        remove an image and all unused layers
 *	store ROOT trim               remove all unused layers
 *	store ROOT recover            rebuild the database
 *	store ROOT list               print a line for each image and for each of its layers;
 *	                              fails if an image lacks a layer
 *
 * Prints "done" when the operation is complete. Errors go to standard error, with exit status 1.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/str.h"
#include "image/store/store.h"

/* Takes the digest and the size of the configuration. */
#define MANIFEST                                                                                   \
	"{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\","       \
	"\"config\":{\"mediaType\":\"application/vnd.oci.image.config.v1+json\","                  \
	"\"digest\":\"%s\",\"size\":%zu},\"layers\":[]}"

#define LAYERS_MAX 16

/* ---- put ----------------------------------------------------------------------- */

/* The new layers of an image. */
struct layers {
	struct store_new_layer new[LAYERS_MAX];
	struct unpacked unpacked[LAYERS_MAX];
	char chains[LAYERS_MAX][DIGEST_TEXT], diff_ids[LAYERS_MAX][DIGEST_TEXT];
	size_t n;
};

static void layers_done(struct layers *l)
{
	for (size_t i = 0; i < l->n; i++)
		store_stage_free(l->new[i].stage);
}

AUTO_VALUE_DEFINE(layers_done, struct layers);

static int unpack_layer(struct store *s, const char *text, const char *chain, const char *diff_id,
			struct layers *l, struct hw_err *e)
{
	struct store_new_layer *new = &l->new[l->n];
	int r = store_layer_begin(s, &new->stage, e);

	if (r < 0)
		return r;
	memcpy(l->chains[l->n], chain, DIGEST_TEXT);
	memcpy(l->diff_ids[l->n], diff_id, DIGEST_TEXT);
	l->unpacked[l->n] = (struct unpacked){ .diff_id = l->diff_ids[l->n],
					       .archive = 1024,
					       .disk = 4096,
					       .content = (int64_t)strlen(text),
					       .inodes = 1 };
	new->chain_id = l->chains[l->n];
	new->unpacked = &l->unpacked[l->n];
	new->blob = l->diff_ids[l->n];
	new->blob_size = 100;
	l->n++;
	r = file_replace(new->stage->dir, "root/file", text, strlen(text), 0644, 0, e);
	if (r == 0)
		r = file_replace(new->stage->dir, "recipe", text, strlen(text), 0600, 0, e);
	return r;
}

static int unpack_layers(struct store *s, struct store_hold *hold, char **texts, struct buf *config,
			 struct layers *l, struct hw_err *e)
{
	char chain[DIGEST_TEXT] = "", below[DIGEST_TEXT] = "", diff_id[DIGEST_TEXT];
	int r = 0;

	buf_puts(config, "{\"architecture\":\"amd64\",\"os\":\"linux\","
			 "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[");
	for (size_t i = 0; r >= 0 && texts[i]; i++) {
		digest_of(texts[i], strlen(texts[i]), diff_id);
		digest_chain(i > 0 ? below : NULL, diff_id, chain);
		buf_printf(config, "%s\"%s\"", i > 0 ? "," : "", diff_id);
		r = store_hold_layer(hold, chain, e);
		if (r == 0 && l->n == LAYERS_MAX)
			r = err_text(e, -EFBIG, "more than %d new layers", LAYERS_MAX);
		if (r == 0)
			r = unpack_layer(s, texts[i], chain, diff_id, l, e);
		memcpy(below, chain, sizeof(below));
	}
	buf_puts(config, "]}}");
	return r;
}

static int put_image(struct store *s, char **args, struct hw_err *e)
{
	AUTO(store_hold_free) struct store_hold *hold = store_hold_new(s);
	AUTO(layers_done) struct layers layers = { 0 };
	AUTO(buf_done) struct buf config = { 0 };
	autofree char *tag = str_printf("docker.io/library/%s:latest", args[0]), *manifest = NULL;
	struct store_new_image image = { .names = (const char *const[]){ tag }, .n_names = 1 };
	char id[1][DIGEST_TEXT];
	int r = unpack_layers(s, hold, args + 1, &config, &layers, e);

	if (r < 0)
		return r;
	digest_of(config.data, config.len, id[0]);
	manifest = str_printf(MANIFEST, id[0], config.len);
	image.manifest = manifest;
	image.manifest_len = strlen(manifest);
	image.config = config.data;
	image.config_len = config.len;
	return store_add(s, &(struct store_addition){ layers.new, layers.n, &image, 1 }, id, e);
}

/* ---- remove, trim, recover, list -------------------------------------------------------- */

static int remove_image(struct store *s, char **args, struct hw_err *e)
{
	int r = store_image_remove(s, args[0], e);

	return r < 0 ? r : 0;
}

static int trim_store(struct store *s, char **args, struct hw_err *e)
{
	(void)args;
	return store_trim(s, e);
}

static int recover_store(struct store *s, char **args, struct hw_err *e)
{
	AUTO(store_recovery_done) struct store_recovery result = { 0 };

	(void)args;
	return store_recover(s, &result, e);
}

static int list_image(struct store *s, const struct store_image *image, struct hw_err *e)
{
	autofree struct store_layer *layers = NULL;
	size_t n = 0;
	int r = store_image_layers(s, image->id, &layers, &n, e);

	if (r == 0)
		return err_text(e, -EBADMSG, "image %s is incomplete", image->id);
	printf("image %s %s %lld\n", image->id, image->tags.n > 0 ? image->tags.v[0] : "-",
	       (long long)image->size);
	for (size_t i = 0; i < n; i++)
		printf("layer %s %s\n", layers[i].chain_id, layers[i].diff_id);
	return r;
}

static int list_images(struct store *s, char **args, struct hw_err *e)
{
	AUTO(store_snapshot_put) const struct store_snapshot *snap = store_snapshot_get(s);
	struct store_usage usage;
	int r = 0;

	(void)args;
	for (size_t i = 0; r >= 0 && i < snap->n; i++)
		r = list_image(s, snap->images[i], e);
	store_usage(s, &usage);
	printf("usage %lld %lld %zu\n", (long long)usage.bytes, (long long)usage.inodes,
	       usage.layers);
	return r;
}

static const struct store_command {
	const char *name;
	int args;
	int (*run)(struct store *s, char **args, struct hw_err *e);
} commands[] = {
	{ "put", 2, put_image },	 { "remove", 1, remove_image }, { "trim", 0, trim_store },
	{ "recover", 0, recover_store }, { "list", 0, list_images },
};

static const struct store_command *find_command(int argc, char **argv)
{
	for (size_t i = 0; argc > 2 && i < ARRAY_SIZE(commands); i++)
		if (str_equal(commands[i].name, argv[2]) && argc - 3 >= commands[i].args)
			return &commands[i];
	return NULL;
}

int main(int argc, char **argv)
{
	const struct store_command *command = find_command(argc, argv);
	struct store *s = NULL;
	struct hw_err e;
	int r;

	if (!command) {
		fprintf(stderr,
			"usage: store ROOT put NAME TEXT... | remove NAME | trim | recover | "
			"list\n");
		return 2;
	}
	r = store_open(argv[1], &s, &e);
	if (r == 0)
		r = store_sweep(s, &e);
	if (r == 0)
		r = command->run(s, argv + 3, &e);
	if (r >= 0 && (puts("done") < 0 || fflush(stdout) != 0))
		r = err_set(&e, -EIO, "write to standard output");
	store_close(s);
	if (r < 0)
		fprintf(stderr, "store: %s\n", e.msg);
	return r < 0;
}
