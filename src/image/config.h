/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/config.h - an image's configuration: how its containers start, what its layers are
 *
 * What:  the OCI image configuration, which Docker's is too. The digest of its
 *        bytes is the image's id.
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

/* A step in the making of an image. */
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
	char *user; /* USER or UID, and :GROUP or :GID; "": root */
	char *working_dir;
	char *stop_signal;
	struct hw_strings env; /* NAME=VALUE */
	struct hw_strings entrypoint, cmd;
	struct hw_strings volumes; /* paths */
	struct hw_strings ports;   /* "80/tcp" */
	struct hw_map labels;
	/* what it is made of */
	struct hw_strings diff_ids; /* the lowest first */
	struct hw_list history;	    /* of struct image_step */
};

int image_config_parse(const char *json, size_t len, struct image_config **ret_config,
		       struct hw_err *e);
void image_config_free(struct image_config *c);
int image_config_check(const struct image_config *c, const struct manifest *m, struct hw_err *e);
bool image_config_uid(const struct image_config *c, int64_t *ret_uid);
char *image_config_username(const struct image_config *c);

AUTO_DEFINE(image_config_free, struct image_config);

#endif
