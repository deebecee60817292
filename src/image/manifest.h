/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/manifest.h - image manifests and indexes
 *
 * What:  parse OCI and Docker manifests (a configuration and layers) and indexes
 *        (one manifest per platform) into one struct.
 * Rules: a parsed manifest contains only well-formed digests and no negative
 *        size. Docker's schema 1 is rejected.
 *        A document that could be read both as a manifest and as an index is
 *        rejected: two programs could get different images for the same digest
 *        (CVE-2021-41190).
 */
#ifndef IMAGE_MANIFEST_H
#define IMAGE_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/field.h>

#include "base/err.h"
#include "base/mem.h"
#include "image/platform.h"

#define MANIFEST_SIZE_MAX                                                                          \
	(4 << 20)		/* bytes; distribution-spec: registries should accept this size */
#define MANIFEST_LAYERS_MAX 500 /* layers that overlayfs can mount: OVL_MAX_STACK */
#define MANIFEST_ENTRIES_MAX                                                                       \
	1024 /* maximum number of layers in a manifest, or manifests in an index */

enum manifest_kind {
	MANIFEST_NONE,
	MANIFEST_IMAGE,
	MANIFEST_INDEX,
};

struct descriptor {
	char *media_type;
	char *digest;
	int64_t size;
	struct hw_strings urls; /* alternative download locations */
	struct hw_map annotations;
	bool has_platform; /* only entries of an index have one */
	struct platform platform;
};

struct manifest {
	enum manifest_kind kind;
	int64_t schema; /* always 2 */
	char *media_type;
	char *artifact_type; /* NULL or "" for images */
	bool has_config, has_layers, has_manifests;
	struct descriptor config;
	struct hw_list layers;	  /* list of struct descriptor, the lowest layer first */
	struct hw_list manifests; /* list of struct descriptor */
	struct hw_map annotations;
};

/* Compression of a layer. */
enum layer_format {
	LAYER_TAR,
	LAYER_GZIP,
	LAYER_ZSTD,
};

extern const char manifest_accept[]; /* value of the Accept header */

/* Return: the kind that a media type stands for; MANIFEST_NONE if NULL or unknown. Parameters after
 * a semicolon are ignored. */
enum manifest_kind manifest_kind_of(const char *media_type);
/*
 * Parse a manifest or an index. @content_type is the Content-Type header that came with it, or
 * NULL. Return: 0; -EBADMSG: malformed or contradictory; -EFBIG: too large; -EOPNOTSUPP: schema 1
 * or an unsupported media type
 */
int manifest_parse(const char *json, size_t len, const char *content_type,
		   struct manifest **ret_manifest, struct hw_err *e);
void manifest_free(struct manifest *m);

/*
 * Choose the entry of an index that matches the platform best; the first one if several match
 * equally well. Entries without a platform match with the lowest priority. Attestations have the
 * platform "unknown/unknown" and never match. *ret_chosen points into @index and may describe
 * another index. Return: 0; -ENODATA: no entry matches
 */
int manifest_choose(const struct manifest *index, const struct platform *wanted,
		    const struct descriptor **ret_chosen, struct hw_err *e);
/*
 * Check that a manifest of kind MANIFEST_IMAGE describes a container image that can be unpacked and
 * mounted. Return: 0; -EOPNOTSUPP: an artifact, or an unsupported layer; -EFBIG: too many layers
 */
int manifest_check_image(const struct manifest *m, struct hw_err *e);
/* Layer @i; 0 is the lowest. */
const struct descriptor *manifest_layer(const struct manifest *m, size_t i);
/* The compression that the media type of a layer stands for. Return: 0; -EOPNOTSUPP: not the media
 * type of a layer, or that of an encrypted layer */
int manifest_layer_format(const struct descriptor *layer, enum layer_format *ret_format,
			  struct hw_err *e);

AUTO_DEFINE(manifest_free, struct manifest);

#endif
