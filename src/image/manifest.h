/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/manifest.h - what a registry says that an image consists of
 *
 * What:  OCI and Docker manifests (a configuration and layers), and indexes
 *        (manifests for several platforms), from bytes into one struct.
 * Rules: every digest in it has been checked as text and every size is not
 *        negative; schema 1 is refused.
 *        A document that could be read both as manifest and as index is refused:
 *        two readers would take one digest for two images (CVE-2021-41190).
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

#define MANIFEST_SIZE_MAX    (4 << 20) /* as distribution-spec has registries take at least */
#define MANIFEST_LAYERS_MAX  500       /* that overlayfs can mount: OVL_MAX_STACK */
#define MANIFEST_ENTRIES_MAX 1024      /* layers, or manifests of an index */

enum manifest_kind {
	MANIFEST_NONE,
	MANIFEST_IMAGE,
	MANIFEST_INDEX,
};

struct descriptor {
	char *media_type;
	char *digest;
	int64_t size;
	struct hw_strings urls; /* where else to find it */
	struct hw_map annotations;
	bool has_platform; /* in an index only */
	struct platform platform;
};

struct manifest {
	enum manifest_kind kind;
	int64_t schema; /* 2 */
	char *media_type;
	char *artifact_type; /* NULL or "": it is an image */
	bool has_config, has_layers, has_manifests;
	struct descriptor config;
	struct hw_list layers;	  /* of struct descriptor, the lowest first */
	struct hw_list manifests; /* of struct descriptor */
	struct hw_map annotations;
};

/* What the bytes of a layer are. */
enum layer_format {
	LAYER_TAR,
	LAYER_GZIP,
	LAYER_ZSTD,
};

extern const char manifest_accept[]; /* for the Accept header of a request */

enum manifest_kind manifest_kind_of(const char *media_type);
int manifest_parse(const char *json, size_t len, const char *content_type,
		   struct manifest **ret_manifest, struct hw_err *e);
void manifest_free(struct manifest *m);

int manifest_choose(const struct manifest *index, const struct platform *wanted,
		    const struct descriptor **ret_chosen, struct hw_err *e);
int manifest_check_image(const struct manifest *m, struct hw_err *e);
const struct descriptor *manifest_layer(const struct manifest *m, size_t i);
int manifest_layer_format(const struct descriptor *layer, enum layer_format *ret_format,
			  struct hw_err *e);

AUTO_DEFINE(manifest_free, struct manifest);

#endif
