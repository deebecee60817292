/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/manifest.c - what a registry says that an image consists of
 *
 * How:   one field table for both kinds; which kind it is the document's own
 *        media type says, else the Content-Type that it came with, else what it
 *        has in it. Then each descriptor is checked.
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

/* Equal up to parameters: "TYPE; charset=utf-8". Media types have no upper and lower case. */
static bool same_type(const char *a, const char *b)
{
	size_t n = strcspn(a, "; \t");

	return strncasecmp(a, b, n) == 0 && b[n] == '\0';
}

static bool is_schema1(const char *media_type)
{
	return same_type(media_type, DOCKER "distribution.manifest.v1+json") ||
	       same_type(media_type, DOCKER "distribution.manifest.v1+prettyjws");
}

/** manifest_kind_of() - what a media type says; MANIFEST_NONE: nothing that we know */
enum manifest_kind manifest_kind_of(const char *media_type)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (same_type(str_or(media_type, ""), kinds[i].media_type))
			return kinds[i].kind;
	return MANIFEST_NONE;
}

/* ---- the tables ------------------------------------------------------------ */

static const struct hw_field descriptor_fields[] = {
	{ "mediaType", HW_STRING, HW_AT(struct descriptor, media_type),
	  .help = "what the content is" },
	{ "digest", HW_STRING, HW_AT(struct descriptor, digest), .flags = HW_REQUIRED,
	  .help = "its address" },
	{ "size", HW_INT64, HW_AT(struct descriptor, size), .flags = HW_REQUIRED, .min = 0,
	  .max = INT64_MAX, .help = "in bytes" },
	{ "urls", HW_STRINGS, HW_AT(struct descriptor, urls), .help = "where else to find it" },
	{ "annotations", HW_MAP, HW_AT(struct descriptor, annotations), .help = "notes" },
	{ "platform", HW_OBJECT, HW_AT(struct descriptor, platform),
	  .has = HW_HAS(struct descriptor, has_platform), .sub = platform_fields,
	  .help = "what an image runs on" },
	{ 0 },
};

static const struct hw_field manifest_fields[] = {
	{ "schemaVersion", HW_INT64, HW_AT(struct manifest, schema), .help = "2" },
	{ "mediaType", HW_STRING, HW_AT(struct manifest, media_type), .help = "what it is" },
	{ "artifactType", HW_STRING, HW_AT(struct manifest, artifact_type),
	  .help = "what it is when it is not an image" },
	{ "config", HW_OBJECT, HW_AT(struct manifest, config),
	  .has = HW_HAS(struct manifest, has_config), .sub = descriptor_fields,
	  .help = "the image's configuration" },
	{ "layers", HW_LIST, HW_AT(struct manifest, layers),
	  .has = HW_HAS(struct manifest, has_layers), .sub = descriptor_fields,
	  .size = sizeof(struct descriptor), .help = "the lowest first" },
	{ "manifests", HW_LIST, HW_AT(struct manifest, manifests),
	  .has = HW_HAS(struct manifest, has_manifests), .sub = descriptor_fields,
	  .size = sizeof(struct descriptor), .help = "one for each platform" },
	{ "annotations", HW_MAP, HW_AT(struct manifest, annotations), .help = "notes" },
	{ 0 },
};

/* ---- parsing --------------------------------------------------------------- */

static int refuse_schema1(struct hw_err *e)
{
	return err_text(e, -EOPNOTSUPP,
			"it is in Docker's old schema 1, which is not supported: push the image "
			"again with a tool of today");
}

static enum manifest_kind kind_by_content(const struct manifest *m)
{
	if (m->has_manifests)
		return MANIFEST_INDEX;
	return m->has_config && m->has_layers ? MANIFEST_IMAGE : MANIFEST_NONE;
}

/* Its own media type, the Content-Type and what is in it must not contradict each other. */
static int find_kind(struct manifest *m, const char *content_type, struct hw_err *e)
{
	enum manifest_kind own = manifest_kind_of(m->media_type);
	enum manifest_kind sent = manifest_kind_of(content_type);

	m->kind = kind_by_content(m);
	if (!str_empty(m->media_type) && own == MANIFEST_NONE)
		return err_text(e, -EOPNOTSUPP, "media type \"%.256s\" is not supported",
				m->media_type);
	if (m->has_manifests && (m->has_config || m->has_layers))
		return err_text(e, -EINVAL, "it has both manifests and layers");
	if (m->kind == MANIFEST_NONE)
		return err_text(e, -EINVAL, "it has neither manifests nor config and layers");
	if (own != MANIFEST_NONE && own != m->kind)
		return err_text(e, -EINVAL, "it says that it is %s, and is not", m->media_type);
	if (sent != MANIFEST_NONE && sent != m->kind)
		return err_text(e, -EINVAL, "it was sent as %s, and is not", content_type);
	return 0;
}

static int check_list(const struct hw_list *list, const char *name, struct hw_err *e)
{
	const struct descriptor *v = list->v;

	if (list->n > MANIFEST_ENTRIES_MAX)
		return err_text(e, -EFBIG, "%zu %s are more than %d", list->n, name,
				MANIFEST_ENTRIES_MAX);
	for (size_t i = 0; i < list->n; i++)
		if (digest_check(v[i].digest, e) < 0)
			return err_ctx(e, "%s[%zu]", name, i);
	return 0;
}

static int check_digests(const struct manifest *m, struct hw_err *e)
{
	int r;

	if (m->has_config && digest_check(m->config.digest, e) < 0)
		return err_ctx(e, "config");
	r = check_list(&m->layers, "layers", e);
	return r < 0 ? r : check_list(&m->manifests, "manifests", e);
}

static int parse(struct manifest *m, const char *json, size_t len, const char *content_type,
		 struct hw_err *e)
{
	int r;

	if (len > MANIFEST_SIZE_MAX)
		return err_text(e, -EFBIG, "%zu bytes are more than %d", len, MANIFEST_SIZE_MAX);
	if (content_type && is_schema1(content_type))
		return refuse_schema1(e);
	r = hw_field_decode(manifest_fields, json, len, m, e);
	if (r < 0)
		return r;
	if (m->schema == 1 || (m->media_type && is_schema1(m->media_type)))
		return refuse_schema1(e);
	if (m->schema != 2)
		return err_text(e, -EOPNOTSUPP, "schemaVersion %lld is not supported",
				(long long)m->schema);
	r = find_kind(m, content_type, e);
	return r < 0 ? r : check_digests(m, e);
}

/**
 * manifest_parse() - read a manifest or an index
 * @json:         the bytes, @len of them
 * @content_type: what the registry said that it is; NULL: not known
 *
 * Return: 0; -EINVAL: it is none; -EFBIG: too large; -EOPNOTSUPP: of another kind
 */
int manifest_parse(const char *json, size_t len, const char *content_type,
		   struct manifest **ret_manifest, struct hw_err *e)
{
	AUTO(manifest_free) struct manifest *m = mem_new(sizeof(*m));

	if (parse(m, json, len, content_type, e) < 0)
		return err_ctx(e, "manifest");
	*ret_manifest = take_ptr(m);
	return 0;
}

/** manifest_free() - free a manifest */
void manifest_free(struct manifest *m)
{
	if (m)
		hw_field_clear(manifest_fields, m);
	free(m);
}

/* ---- choosing -------------------------------------------------------------- */

/* An entry without a platform may be for any: taken when there is no better one. */
static int rank(const struct descriptor *d, const struct platform *wanted)
{
	if (manifest_kind_of(d->media_type) == MANIFEST_NONE)
		return PLATFORM_NONE;
	return d->has_platform ? platform_rank(wanted, &d->platform) : INT16_MAX;
}

static int refuse_platforms(const struct manifest *index, const struct platform *wanted,
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
	return err_text(e, -ENODATA, "no image for %s in the index, which has: %s", want, offered);
}

/**
 * manifest_choose() - the manifest of an index that fits a machine best
 * @index:      of kind MANIFEST_INDEX
 * @ret_chosen: part of @index; may be an index again
 *
 * Of equals the first is taken. Attestations, whose platform is
 * "unknown/unknown", fit nothing.
 *
 * Return: 0, or -ENODATA
 */
int manifest_choose(const struct manifest *index, const struct platform *wanted,
		    const struct descriptor **ret_chosen, struct hw_err *e)
{
	const struct descriptor *v = index->manifests.v, *best = NULL;
	int best_rank = 0;

	for (size_t i = 0; i < index->manifests.n; i++) {
		int r = rank(&v[i], wanted);

		if (r == PLATFORM_NONE || (best && r >= best_rank))
			continue;
		best = &v[i];
		best_rank = r;
	}
	if (!best)
		return refuse_platforms(index, wanted, e);
	*ret_chosen = best;
	return 0;
}

/* ---- layers ---------------------------------------------------------------- */

/** manifest_layer() - a layer; 0 is the lowest */
const struct descriptor *manifest_layer(const struct manifest *m, size_t i)
{
	return (const struct descriptor *)m->layers.v + i;
}

/**
 * manifest_layer_format() - how a layer is packed, by its media type
 *
 * Return: 0, or -EOPNOTSUPP (an encrypted one, or something else than a layer)
 */
int manifest_layer_format(const struct descriptor *layer, enum layer_format *ret_format,
			  struct hw_err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (same_type(str_or(layer->media_type, ""), formats[i].media_type)) {
			*ret_format = formats[i].format;
			return 0;
		}
	return err_text(e, -EOPNOTSUPP, "layer %s: media type \"%.256s\" is not supported",
			layer->digest, str_or(layer->media_type, ""));
}

static bool is_config(const struct descriptor *config)
{
	for (size_t i = 0; i < ARRAY_SIZE(config_types); i++)
		if (same_type(str_or(config->media_type, ""), config_types[i]))
			return true;
	return false;
}

/**
 * manifest_check_image() - is it an image that can be unpacked, and not an artifact?
 * @m: of kind MANIFEST_IMAGE
 *
 * Return: 0; -EOPNOTSUPP; or -EFBIG: it has more layers than can be mounted
 */
int manifest_check_image(const struct manifest *m, struct hw_err *e)
{
	enum layer_format format;

	if (!is_config(&m->config))
		return err_text(
			e, -EOPNOTSUPP,
			"it is an artifact and not an image: its configuration is \"%.256s\"",
			str_or(m->config.media_type, ""));
	if (m->layers.n > MANIFEST_LAYERS_MAX)
		return err_text(e, -EFBIG, "it has %zu layers, and at most %d can be mounted",
				m->layers.n, MANIFEST_LAYERS_MAX);
	for (size_t i = 0; i < m->layers.n; i++) {
		int r = manifest_layer_format(manifest_layer(m, i), &format, e);

		if (r < 0)
			return r;
	}
	return 0;
}
