/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/manifest.c - image manifests and indexes
 *
 * How:   one field table decodes both kinds. The fields that are present determine
 *        the kind; the document's media type and the Content-Type must agree with it.
 *        Then the digest of each OCI descriptor is checked.
 */
#include "image/manifest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "image/digest.h"

#define OCI    "application/vnd.oci.image."
#define DOCKER "application/vnd.docker."

/* ---- media types ----------------------------------------------------------- */

static const struct {
	const char *media_type;
	enum manifest_kind kind;
} kinds[] = {
	{ OCI "manifest.v1+json", MANIFEST_IMAGE },
	{ OCI "index.v1+json", MANIFEST_INDEX },
	{ DOCKER "distribution.manifest.v2+json", MANIFEST_IMAGE },
	{ DOCKER "distribution.manifest.list.v2+json", MANIFEST_INDEX },
};

const char manifest_accept[] =
	OCI "index.v1+json, " DOCKER "distribution.manifest.list.v2+json, " OCI
	    "manifest.v1+json, " DOCKER "distribution.manifest.v2+json";

static const struct {
	const char *media_type;
	enum layer_format format;
} formats[] = {
	{ OCI "layer.v1.tar", LAYER_TAR },
	{ OCI "layer.v1.tar+gzip", LAYER_GZIP },
	{ OCI "layer.v1.tar+zstd", LAYER_ZSTD },
	{ OCI "layer.nondistributable.v1.tar", LAYER_TAR },
	{ OCI "layer.nondistributable.v1.tar+gzip", LAYER_GZIP },
	{ OCI "layer.nondistributable.v1.tar+zstd", LAYER_ZSTD },
	{ DOCKER "image.rootfs.diff.tar", LAYER_TAR },
	{ DOCKER "image.rootfs.diff.tar.gzip", LAYER_GZIP },
	{ DOCKER "image.rootfs.diff.tar.zstd", LAYER_ZSTD },
	{ DOCKER "image.rootfs.foreign.diff.tar", LAYER_TAR },
	{ DOCKER "image.rootfs.foreign.diff.tar.gzip", LAYER_GZIP },
};

static const char *const config_types[] = {
	OCI "config.v1+json",
	DOCKER "container.image.v1+json",
};

/* Ignores parameters of @a ("TYPE; charset=utf-8") and case. */
static bool media_type_equal(const char *a, const char *b)
{
	size_t n = strcspn(a, "; \t");

	return strncasecmp(a, b, n) == 0 && b[n] == '\0';
}

static bool is_schema1(const char *media_type)
{
	return media_type_equal(media_type, DOCKER "distribution.manifest.v1+json") ||
	       media_type_equal(media_type, DOCKER "distribution.manifest.v1+prettyjws");
}

enum manifest_kind manifest_kind_of(const char *media_type)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (media_type_equal(str_or(media_type, ""), kinds[i].media_type))
			return kinds[i].kind;
	return MANIFEST_NONE;
}

/* ---- field tables ---------------------------------------------------------- */

static const struct hw_field descriptor_fields[] = {
	{ "mediaType", HW_STRING, HW_AT(struct descriptor, media_type),
	  .help = "type of the content" },
	{ "digest", HW_STRING, HW_AT(struct descriptor, digest), .flags = HW_REQUIRED,
	  .help = "digest of the content" },
	{ "size", HW_INT64, HW_AT(struct descriptor, size), .flags = HW_REQUIRED, .min = 0,
	  .max = INT64_MAX, .help = "size of the content in bytes" },
	{ "urls", HW_STRINGS, HW_AT(struct descriptor, urls),
	  .help = "alternative download locations" },
	{ "annotations", HW_MAP, HW_AT(struct descriptor, annotations), .help = "annotations" },
	{ "platform", HW_OBJECT, HW_AT(struct descriptor, platform),
	  .has = HW_HAS(struct descriptor, has_platform), .sub = platform_fields,
	  .help = "platform of the image" },
	{ 0 },
};

static const struct hw_field manifest_fields[] = {
	{ "schemaVersion", HW_INT64, HW_AT(struct manifest, schema), .help = "must be 2" },
	{ "mediaType", HW_STRING, HW_AT(struct manifest, media_type),
	  .help = "type of this document" },
	{ "artifactType", HW_STRING, HW_AT(struct manifest, artifact_type),
	  .help = "type of an artifact that is not an image" },
	{ "config", HW_OBJECT, HW_AT(struct manifest, config),
	  .has = HW_HAS(struct manifest, has_config), .sub = descriptor_fields,
	  .help = "image configuration" },
	{ "layers", HW_LIST, HW_AT(struct manifest, layers),
	  .has = HW_HAS(struct manifest, has_layers), .sub = descriptor_fields,
	  .size = sizeof(struct descriptor), .help = "layers, the lowest first" },
	{ "manifests", HW_LIST, HW_AT(struct manifest, manifests),
	  .has = HW_HAS(struct manifest, has_manifests), .sub = descriptor_fields,
	  .size = sizeof(struct descriptor), .help = "manifests of an index, one per platform" },
	{ "annotations", HW_MAP, HW_AT(struct manifest, annotations), .help = "annotations" },
	{ 0 },
};

/* ---- parsing --------------------------------------------------------------- */

static int error_schema1(struct hw_err *e)
{
	return err_text(e, -EOPNOTSUPP,
			"Docker schema 1 is not supported: push the image again with a current "
			"tool");
}

static int find_kind(struct manifest *m, const char *content_type, struct hw_err *e)
{
	enum manifest_kind own = manifest_kind_of(m->media_type);
	enum manifest_kind sent = manifest_kind_of(content_type);

	if (m->has_manifests)
		m->kind = MANIFEST_INDEX;
	else if (m->has_config && m->has_layers)
		m->kind = MANIFEST_IMAGE;
	if (!str_empty(m->media_type) && own == MANIFEST_NONE)
		return err_text(e, -EOPNOTSUPP, "unsupported media type \"%.256s\"", m->media_type);
	if (m->has_manifests && (m->has_config || m->has_layers))
		return err_text(e, -EINVAL, "contains both manifests and layers");
	if (m->kind == MANIFEST_NONE)
		return err_text(e, -EINVAL, "contains neither manifests nor config and layers");
	if (own != MANIFEST_NONE && own != m->kind)
		return err_text(e, -EINVAL, "content does not match its media type %s",
				m->media_type);
	if (sent != MANIFEST_NONE && sent != m->kind)
		return err_text(e, -EINVAL, "content does not match its Content-Type %s",
				content_type);
	return 0;
}

static int check_descriptors(const struct hw_list *list, const char *name, struct hw_err *e)
{
	const struct descriptor *v = list->v;

	if (list->n > MANIFEST_ENTRIES_MAX)
		return err_text(e, -EFBIG, "too many %s: got %zu, want at most %d", name, list->n,
				MANIFEST_ENTRIES_MAX);
	for (size_t i = 0; i < list->n; i++)
		if (digest_check(v[i].digest, e) < 0)
			return err_ctx(e, "%s[%zu]", name, i);
	return 0;
}

static int parse_manifest(struct manifest *m, const char *json, size_t len,
			  const char *content_type, struct hw_err *e)
{
	int r;

	if (len > MANIFEST_SIZE_MAX)
		return err_text(e, -EFBIG, "size is %zu bytes, want at most %d", len,
				MANIFEST_SIZE_MAX);
	if (content_type && is_schema1(content_type))
		return error_schema1(e);
	r = hw_field_decode(manifest_fields, json, len, m, e);
	if (r < 0)
		return r;
	if (m->schema == 1 || (m->media_type && is_schema1(m->media_type)))
		return error_schema1(e);
	if (m->schema != 2)
		return err_text(e, -EOPNOTSUPP, "unsupported schemaVersion %lld",
				(long long)m->schema);
	r = find_kind(m, content_type, e);
	if (r < 0)
		return r;
	if (m->has_config && digest_check(m->config.digest, e) < 0)
		return err_ctx(e, "config");
	r = check_descriptors(&m->layers, "layers", e);
	return r < 0 ? r : check_descriptors(&m->manifests, "manifests", e);
}

int manifest_parse(const char *json, size_t len, const char *content_type,
		   struct manifest **ret_manifest, struct hw_err *e)
{
	AUTO(manifest_free) struct manifest *m = mem_new(sizeof(*m));
	int r;

	r = parse_manifest(m, json, len, content_type, e);
	if (r < 0) {
		err_replace(e, -EINVAL, -EBADMSG);
		return err_ctx(e, "manifest");
	}
	*ret_manifest = take_ptr(m);
	return 0;
}

void manifest_free(struct manifest *m)
{
	if (m)
		hw_field_clear(manifest_fields, m);
	free(m);
}

/* ---- choosing -------------------------------------------------------------- */

static int error_no_platform(const struct manifest *index, const struct platform *wanted,
			     struct hw_err *e)
{
	autofree char *want = platform_format(wanted);
	const struct descriptor *v = index->manifests.v;
	char offered[512] = "none";
	size_t at = 0;

	for (size_t i = 0; i < index->manifests.n && at < sizeof(offered); i++) {
		autofree char *one = platform_format(&v[i].platform);

		if (v[i].has_platform && !str_starts(one, "unknown/"))
			at += (size_t)snprintf(offered + at, sizeof(offered) - at, "%s%.64s",
					       at ? ", " : "", one);
	}
	return err_text(e, -ENODATA, "no image for %s, available: %s", want, offered);
}

int manifest_choose(const struct manifest *index, const struct platform *wanted,
		    const struct descriptor **ret_chosen, struct hw_err *e)
{
	const struct descriptor *v = index->manifests.v, *best = NULL;
	int best_rank = 0;

	for (size_t i = 0; i < index->manifests.n; i++) {
		/* an entry without a platform may be for any platform, so it ranks last */
		int rank = v[i].has_platform ? platform_rank(wanted, &v[i].platform) : INT16_MAX;

		if (manifest_kind_of(v[i].media_type) == MANIFEST_NONE || rank == PLATFORM_NONE)
			continue;
		if (!best || rank < best_rank) {
			best = &v[i];
			best_rank = rank;
		}
	}
	if (!best)
		return error_no_platform(index, wanted, e);
	*ret_chosen = best;
	return 0;
}

/* ---- layers ---------------------------------------------------------------- */

const struct descriptor *manifest_layer(const struct manifest *m, size_t i)
{
	return (const struct descriptor *)m->layers.v + i;
}

int manifest_layer_format(const struct descriptor *layer, enum layer_format *ret_format,
			  struct hw_err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (media_type_equal(str_or(layer->media_type, ""), formats[i].media_type)) {
			*ret_format = formats[i].format;
			return 0;
		}
	return err_text(e, -EOPNOTSUPP, "layer %s: unsupported media type \"%.256s\"",
			layer->digest, str_or(layer->media_type, ""));
}

static bool is_image_config(const struct descriptor *config)
{
	for (size_t i = 0; i < ARRAY_SIZE(config_types); i++)
		if (media_type_equal(str_or(config->media_type, ""), config_types[i]))
			return true;
	return false;
}

int manifest_check_image(const struct manifest *m, struct hw_err *e)
{
	enum layer_format format;

	if (!is_image_config(&m->config))
		return err_text(e, -EOPNOTSUPP,
				"artifact, not a container image: config has media type \"%.256s\"",
				str_or(m->config.media_type, ""));
	if (m->layers.n > MANIFEST_LAYERS_MAX)
		return err_text(e, -EFBIG, "too many layers to mount: got %zu, want at most %d",
				m->layers.n, MANIFEST_LAYERS_MAX);
	for (size_t i = 0; i < m->layers.n; i++) {
		int r;

		r = manifest_layer_format(manifest_layer(m, i), &format, e);
		if (r < 0)
			return r;
	}
	return 0;
}
