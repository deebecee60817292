/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/archive/docker.c - the images of an archive as docker save writes it
 *
 * What:  manifest.json has, for each image, the files of its configuration and of its
 *        layers, and its names. A manifest with digests is made of that.
 * How:   the digest of a layer that is not compressed is its diff id, and that is in
 *        the configuration: whether it is right is seen when it is read. Of others it
 *        is computed.
 */
#include <errno.h>
#include <string.h>

#include "base/json/value.h"
#include "base/str.h"
#include "fetch/archive/archive.h"
#include "fetch/codec/sha256.h"
#include "image/config.h"

#define OCI "application/vnd.oci.image."

struct image {
	char *config; /* a file */
	struct hw_strings names;
	struct hw_strings layers; /* files, the lowest first */
};

struct list {
	struct hw_list images; /* of struct image */
};

static const struct hw_field image_fields[] = {
	{ "Config", HW_STRING, HW_AT(struct image, config), .flags = HW_REQUIRED,
	  .help = "the file of its configuration" },
	{ "RepoTags", HW_STRINGS, HW_AT(struct image, names), .help = "its names" },
	{ "Layers", HW_STRINGS, HW_AT(struct image, layers), .help = "the files of its layers" },
	{ 0 },
};

static const struct hw_field list_fields[] = {
	{ "images", HW_LIST, HW_AT(struct list, images), .sub = image_fields,
	  .size = sizeof(struct image), .help = "what manifest.json is" },
	{ 0 },
};

static void list_done(struct list *l)
{
	hw_field_clear(list_fields, l);
}
AUTO_VALUE_DEFINE(list_done, struct list);

static int read_list(const struct archive *a, struct list *ret, struct hw_err *e)
{
	AUTO(buf_done) struct buf json = { 0 }, object = { 0 };
	int r = archive_read(a, "manifest.json", &json, e);

	if (r < 0)
		return r;
	buf_printf(&object, "{\"images\":%.*s}", (int)json.len, str_or(json.data, ""));
	r = hw_field_decode(list_fields, object.data, object.len, ret, e);
	return r < 0 ? err_ctx(e, "manifest.json") : 0;
}

/* ---- layers ---------------------------------------------------------------- */

struct look {
	struct sha256 *hash;
	uint8_t first[4];
	size_t n;
};

static int look_at(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	struct look *l = ctx;

	(void)e;
	for (; l->n < sizeof(l->first) && l->n < len; l->n++)
		l->first[l->n] = ((const uint8_t *)data)[l->n];
	sha256_add(l->hash, data, len);
	return 0;
}

/* Return: the end of its media type */
static const char *packing(const struct look *l)
{
	static const uint8_t gzip[] = { 0x1f, 0x8b }, zstd[] = { 0x28, 0xb5, 0x2f, 0xfd };

	if (memcmp(l->first, gzip, sizeof(gzip)) == 0)
		return "+gzip";
	return memcmp(l->first, zstd, sizeof(zstd)) == 0 ? "+zstd" : "";
}

static int find_layer(struct archive *a, const char *path, const char *diff_id,
		      struct value **ret_layer, struct hw_err *e)
{
	AUTO(sha256_free) struct sha256 *hash = sha256_new();
	const struct archive_file *file = archive_find(a, path);
	struct archive_file head;
	struct look l = { .hash = hash };
	autofree char *type = NULL;
	uint8_t sum[DIGEST_SIZE];
	char digest[DIGEST_TEXT];
	int r;

	if (!file)
		return err_text(e, -EBADMSG, "layer %.300s is missing", path);
	head = (struct archive_file){ file->at, file->size < 4 ? file->size : 4 };
	r = archive_stream(a, &head, look_at, &l, e);
	memcpy(digest, diff_id, sizeof(digest));
	if (r == 0 && *packing(&l)) {
		sha256_begin(hash);
		r = archive_stream(a, file, look_at, &l, e);
		sha256_end(hash, sum);
		digest_format(sum, digest);
	}
	if (r < 0)
		return err_ctx(e, "layer %.300s", path);
	type = str_printf(OCI "layer.v1.tar%s", packing(&l));
	archive_name_blob(a, digest, path);
	*ret_layer = value_new_object();
	value_set(*ret_layer, "mediaType", value_new_string(type));
	value_set(*ret_layer, "digest", value_new_string(digest));
	value_set(*ret_layer, "size", value_new_int(file->size));
	return 0;
}

/* ---- the manifest ---------------------------------------------------------- */

/* What is made here, as documents that one can get. */
struct made {
	struct buf manifest, config;
};

static void made_done(struct made *m)
{
	buf_done(&m->manifest);
	buf_done(&m->config);
}
AUTO_VALUE_DEFINE(made_done, struct made);

static int get(void *ctx, const char *kind, const char *name, struct buf *ret_body, char **ret_type,
	       struct hw_err *e)
{
	const struct made *made = ctx;
	const struct buf *b = str_equal(kind, "manifests") ? &made->manifest : &made->config;

	(void)name;
	(void)ret_type;
	(void)e;
	buf_add(ret_body, b->data, b->len);
	return 0;
}

static int find_layers(struct archive *a, const struct image *image, const struct image_config *c,
		       struct value *layers, struct hw_err *e)
{
	int r = 0;

	if (image->layers.n != c->diff_ids.n || c->diff_ids.n > MANIFEST_ENTRIES_MAX)
		return err_text(e, -EBADMSG, "manifest.json has %zu layers, the configuration %zu",
				image->layers.n, c->diff_ids.n);
	for (size_t i = 0; r == 0 && i < c->diff_ids.n; i++) {
		struct value *layer = NULL;

		r = find_layer(a, image->layers.v[i], c->diff_ids.v[i], &layer, e);
		if (r == 0)
			value_append(layers, layer);
	}
	return r;
}

static int make(struct archive *a, const struct image *image, struct made *ret, struct hw_err *e)
{
	AUTO(image_config_free) struct image_config *c = NULL;
	AUTO(value_free) struct value *manifest = value_new_object();
	struct value *config = value_new_object(), *layers = value_new_array();
	autofree char *text = NULL;
	int r = archive_read(a, image->config, &ret->config, e);

	value_set(manifest, "schemaVersion", value_new_int(2));
	value_set(manifest, "mediaType", value_new_string(OCI "manifest.v1+json"));
	value_set(manifest, "config", config);
	value_set(manifest, "layers", layers);
	if (r == 0)
		r = image_config_parse(str_or(ret->config.data, ""), ret->config.len, &c, e);
	if (r == 0)
		r = find_layers(a, image, c, layers, e);
	if (r < 0)
		return r;
	value_set(config, "mediaType", value_new_string(OCI "config.v1+json"));
	value_set(config, "digest", value_new_string(c->id));
	value_set(config, "size", value_new_int((int64_t)ret->config.len));
	text = value_format(manifest, 0);
	buf_puts(&ret->manifest, text);
	return 0;
}

/** archive_resolve_docker() - what an image of docker's archive consists of */
int archive_resolve_docker(struct archive *a, const struct job *job, struct resolved_image *f,
			   struct hw_err *e)
{
	AUTO(list_done) struct list list = { 0 };
	AUTO(made_done) struct made made = { 0 };
	struct document_source from = { get, &made };
	char digest[DIGEST_TEXT];
	const struct image *image;
	int r = read_list(a, &list, e);

	if (r < 0)
		return r;
	if (list.images.n > MANIFEST_ENTRIES_MAX || (size_t)job->image > list.images.n)
		return err_text(e, -EBADMSG, "manifest.json has %zu images", list.images.n);
	f->images = (int)list.images.n;
	image = (const struct image *)list.images.v + job->image - 1;
	for (size_t i = 0; i < image->names.n; i++)
		strings_add(&f->names, image->names.v[i]);
	r = make(a, image, &made, e);
	if (r < 0)
		return r;
	digest_of(made.manifest.data, made.manifest.len, digest);
	return resolve_image(f, &from, digest, -1, &job->platform, e);
}
