/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/verify-images.h - verify stored images, and repair them
 *
 * What:  verifies the layers of images (image/store/verify.h) and reports the state of
 *        each. To repair an image, it is pulled again by its digest, and the pulled layers
 *        replace the damaged ones.
 * Rules: a layer is verified once for all images that share it. Damaged layers are not
 *        removed before a repair has replaced them.
 *        Images are repaired by digest only, because a tag may have moved to another image
 *        since the first pull.
 */
#ifndef IMAGE_PULL_VERIFY_IMAGES_H
#define IMAGE_PULL_VERIFY_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "image/pull/pull.h"
#include "image/store/verify.h"

enum verify_state {
	VERIFY_GOOD,
	VERIFY_DAMAGED,
	VERIFY_REPAIRED,
	VERIFY_NOT_CHECKED, /* without known damage, but its files cannot be verified */
};

/* The state of a layer of an image. */
struct verify_result {
	const char *image_id;
	const char *diff_id; /* "": the image is damaged, because it lacks a layer */
	enum verify_state state;
	const struct verify_report *report;
};

struct verify_request {
	struct store *store;
	struct puller *puller;	   /* for repairs */
	const char *const *images; /* as for store_snapshot_find_any(); n_images 0: all images */
	size_t n_images;
	bool repair;
	struct verify_options how;
	/* Called for each layer of each image. A negative return value ends the verification. */
	int (*report)(void *ctx, const struct verify_result *result, struct hw_err *e);
	void *ctx;
};

/* All images are tried; the error is that of the first one that failed. Return: 0, with or without
 * damaged layers; -ENODATA: no such image; -EOPNOTSUPP: an image cannot be repaired, because no digest
 * is known or the digest stands for another image; the error of the pull; -ECANCELED; -ETIMEDOUT; or
 * another negative errno */
int verify_images(const struct verify_request *request, struct hw_err *e);

#endif
