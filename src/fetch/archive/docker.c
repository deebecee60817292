/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/archive/docker.c - images in a docker save archive
 *
 * What:  manifest.json lists the names of each image and the files that contain its configuration
 *        and its layers. A manifest with digests is built from this list.
 * How:   the digest of an uncompressed layer is its diff ID, which the configuration contains; it
 *        is verified when the layer is read. For a compressed layer the digest is computed here.
 */
#include <errno.h>
#include <string.h>

#include "base/json/value.h"
#include "base/str.h"
#include "fetch/archive/archive.h"
#include "fetch/codec/sha256.h"
#include "image/config.h"

#define OCI "application/vnd.oci.image."

struct docker_image {
	char *config; /* path of a member */
	struct hw_strings names;
	struct hw_strings layers; /* paths of members, lowest layer first */
};

struct docker_manifest {
	struct hw_list images; /* list of struct docker_image */
};

static const struct hw_field image_fields[] = {
	{ "Config", HW_STRING, HW_AT(struct docker_image, config), .flags = HW_REQUIRED,
	  .help = "path of the configuration file" },
	{ "RepoTags", HW_STRINGS, HW_AT(struct docker_image, names), .help = "names of the image" },
	{ "Layers", HW_STRINGS, HW_AT(struct docker_image, layers),
	  .help = "paths of the layer files" },
	{ 0 },
};

/* The content of manifest.json is an array. read_manifest() puts it into an object with this one
 * key. */
static const struct hw_field manifest_fields[] = {
	{ "images", HW_LIST, HW_AT(struct docker_manifest, images), .sub = image_fields,
	  .size = sizeof(struct docker_image), .help = "content of manifest.json" },
	{ 0 },
};

static void docker_manifest_done(struct docker_manifest *m)
{
	hw_field_clear(manifest_fields, m);
}
AUTO_VALUE_DEFINE(docker_manifest_done, struct docker_manifest);

static int read_manifest(const struct archive *a, struct docker_manifest *ret, struct hw_err *e)
{
	AUTO(buf_done) struct buf json = { 0 }, object = { 0 };
	int r;

	r = archive_read(a, "manifest.json", &json, e);
	if (r < 0)
		return r;
	buf_printf(&object, "{\"images\":%.*s}", (int)json.len, str_or(json.data, ""));
	r = hw_field_decode(manifest_fields, object.data, object.len, ret, e);
	if (r < 0) {
		err_replace(e, -EINVAL, -EBADMSG);
		return err_ctx(e, "manifest.json");
	}
	return 0;
}

/* ---- layers ---------------------------------------------------------------- */

struct probe {
	struct sha256 *hash;
	uint8_t first[4];
	size_t n;
};

static int on_layer_data(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	struct probe *p = ctx;

	(void)e;
	for (; p->n < sizeof(p->first) && p->n < len; p->n++)
		p->first[p->n] = ((const uint8_t *)data)[p->n];
	sha256_add(p->hash, data, len);
	return 0;
}

/* Return: suffix of the media type; "": not compressed */
static const char *compression_suffix(const struct probe *p)
{
	static const uint8_t gzip[] = { 0x1f, 0x8b }, zstd[] = { 0x28, 0xb5, 0x2f, 0xfd };

	if (memcmp(p->first, gzip, sizeof(gzip)) == 0)
		return "+gzip";
	return memcmp(p->first, zstd, sizeof(zstd)) == 0 ? "+zstd" : "";
}

/* Builds the OCI descriptor of a layer. */
static int describe_layer(struct archive *a, const char *path, const char *diff_id,
			  struct value **ret_layer, struct hw_err *e)
{
	AUTO(sha256_free) struct sha256 *hash = sha256_new();
	const struct archive_file *file;
	struct archive_file head;
	struct probe probe = { .hash = hash };
	autofree char *type = NULL;
	uint8_t sum[DIGEST_SIZE];
	char digest[DIGEST_TEXT];
	int r;

	file = archive_find(a, path);
	if (!file)
		return err_text(e, -EBADMSG, "layer %.300s is missing", path);
	head = (struct archive_file){ file->at, file->size < 4 ? file->size : 4 };
	r = archive_stream(a, &head, on_layer_data, &probe, e);
	memcpy(digest, diff_id, sizeof(digest));
	if (r == 0 && *compression_suffix(&probe)) {
		sha256_begin(hash);
		r = archive_stream(a, file, on_layer_data, &probe, e);
		sha256_end(hash, sum);
		digest_format(sum, digest);
	}
	if (r < 0)
		return err_ctx(e, "layer %.300s", path);
	type = str_printf(OCI "layer.v1.tar%s", compression_suffix(&probe));
	archive_set_blob_path(a, digest, path);
	*ret_layer = value_new_object();
	value_set(*ret_layer, "mediaType", value_new_string(type));
	value_set(*ret_layer, "digest", value_new_string(digest));
	value_set(*ret_layer, "size", value_new_int(file->size));
	return 0;
}

/* ---- the manifest ---------------------------------------------------------- */

struct docker_documents {
	struct buf manifest, config;
};

static void docker_documents_done(struct docker_documents *d)
{
	buf_done(&d->manifest);
	buf_done(&d->config);
}
AUTO_VALUE_DEFINE(docker_documents_done, struct docker_documents);

static int get_document(void *ctx, const char *kind, const char *name, struct buf *ret_body,
			struct document_head *ret_head, struct hw_err *e)
{
	const struct docker_documents *d = ctx;
	const struct buf *b = str_equal(kind, "manifests") ? &d->manifest : &d->config;

	(void)name;
	(void)ret_head;
	(void)e;
	buf_add(ret_body, b->data, b->len);
	return 0;
}

static int build_documents(struct archive *a, const struct docker_image *image,
			   struct docker_documents *ret, struct hw_err *e)
{
	AUTO(image_config_free) struct image_config *c = NULL;
	AUTO(value_free) struct value *manifest = value_new_object();
	struct value *config = value_new_object(), *layers = value_new_array();
	autofree char *text = NULL;
	int r;

	value_set(manifest, "schemaVersion", value_new_int(2));
	value_set(manifest, "mediaType", value_new_string(OCI "manifest.v1+json"));
	value_set(manifest, "config", config);
	value_set(manifest, "layers", layers);
	r = archive_read(a, image->config, &ret->config, e);
	if (r < 0)
		return r;
	r = image_config_parse(str_or(ret->config.data, ""), ret->config.len, &c, e);
	if (r < 0)
		return r;
	value_set(config, "mediaType", value_new_string(OCI "config.v1+json"));
	value_set(config, "digest", value_new_string(c->id));
	value_set(config, "size", value_new_int((int64_t)ret->config.len));

	if (image->layers.n != c->diff_ids.n)
		return err_text(e, -EBADMSG,
				"layer count mismatch: manifest.json has %zu layers, the "
				"configuration has %zu",
				image->layers.n, c->diff_ids.n);
	if (c->diff_ids.n > MANIFEST_ENTRIES_MAX)
		return err_text(e, -EBADMSG, "image has %zu layers, at most %d are supported",
				c->diff_ids.n, MANIFEST_ENTRIES_MAX);
	for (size_t i = 0; i < c->diff_ids.n; i++) {
		struct value *layer = NULL;

		r = describe_layer(a, image->layers.v[i], c->diff_ids.v[i], &layer, e);
		if (r < 0)
			return r;
		value_append(layers, layer);
	}
	text = value_format(manifest, 0);
	buf_puts(&ret->manifest, text);
	return 0;
}

int archive_resolve_docker(struct archive *a, const struct fetch_job *job,
			   struct resolved_image *image, struct hw_err *e)
{
	AUTO(docker_manifest_done) struct docker_manifest manifest = { 0 };
	AUTO(docker_documents_done) struct docker_documents documents = { 0 };
	struct document_source from = { .get = get_document, .ctx = &documents };
	char digest[DIGEST_TEXT];
	const struct docker_image *chosen;
	int r;

	r = read_manifest(a, &manifest, e);
	if (r < 0)
		return r;
	if (manifest.images.n > MANIFEST_ENTRIES_MAX)
		return err_text(e, -EBADMSG,
				"manifest.json has %zu images, at most %d are supported",
				manifest.images.n, MANIFEST_ENTRIES_MAX);
	if ((size_t)job->image > manifest.images.n)
		return err_text(e, -EBADMSG, "image %d not found: manifest.json has %zu images",
				job->image, manifest.images.n);
	image->images = (int)manifest.images.n;
	chosen = (const struct docker_image *)manifest.images.v + job->image - 1;
	for (size_t i = 0; i < chosen->names.n; i++)
		strings_add(&image->names, chosen->names.v[i]);
	r = build_documents(a, chosen, &documents, e);
	if (r < 0)
		return r;
	digest_of(documents.manifest.data, documents.manifest.len, digest);
	return resolve_image(image, &from, digest, -1, &job->platform, e);
}
