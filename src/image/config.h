/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/config.h - OCI image configuration
 *
 * What:  how the image's containers start, and the diff IDs of its layers. Docker
 *        uses the same format. The digest of the document is the image ID.
 */
#ifndef IMAGE_CONFIG_H
#define IMAGE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/field.h>

#include "base/err.h"
#include "base/mem.h"
#include "image/digest.h"
#include "image/manifest.h"
#include "image/platform.h"

/* An entry of the build history. */
struct image_step {
	char *created, *created_by, *author, *comment;
	bool empty_layer;
};

struct image_config {
	char id[DIGEST_TEXT];
	char *created; /* RFC 3339 */
	char *author;
	struct platform platform;
	/* how a container starts */
	char *user; /* USER or UID, optionally followed by :GROUP or :GID; "": root */
	char *working_dir;
	char *stop_signal;
	struct hw_strings env; /* NAME=VALUE */
	struct hw_strings entrypoint, cmd;
	struct hw_strings volumes; /* paths */
	struct hw_strings ports;   /* "80/tcp" */
	struct hw_map labels;
	/* layers */
	struct hw_strings diff_ids; /* SHA-256, the lowest layer first */
	struct hw_list history;	    /* list of struct image_step */
};

/*
 * Parse a configuration. @json must be the document exactly as received: its digest becomes the
 * image ID. Return: 0; -EBADMSG: malformed; -EFBIG: too large; -EOPNOTSUPP: a diff ID is not SHA-256
 */
int image_config_parse(const char *json, size_t len, struct image_config **ret_config,
		       struct hw_err *e);
void image_config_free(struct image_config *c);
/* Check that the configuration has as many layers as the manifest. Return: 0 or -EBADMSG */
int image_config_check(const struct image_config *c, const struct manifest *m, struct hw_err *e);

/* In the functions below, the user is the part of "User" before the colon: 1003 in "1003:www". */

/* Return: true if the user is a number */
bool image_config_uid(const struct image_config *c, int64_t *ret_uid);
/* Return: the user name, to be freed by the caller; NULL if the user is a number or not set */
char *image_config_username(const struct image_config *c);

AUTO_DEFINE(image_config_free, struct image_config);

#endif
