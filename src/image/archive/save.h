/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/archive/save.h - images as one archive
 *
 * What:  a tar that is an OCI image layout and what docker load takes, both at
 *        once: index.json and manifest.json name the same blobs. A layer whose
 *        blob was kept is in it as it came. Others are made again from their
 *        recipes by hawser-layer, not compressed, so their digests are the diff
 *        ids. Configurations, and with them the ids of images, are what they were.
 * Rules: the archive is written as it is made, once, from front to end.
 */
#ifndef IMAGE_ARCHIVE_SAVE_H
#define IMAGE_ARCHIVE_SAVE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "image/store/store.h"

struct save_how {
	const char *program; /* hawser-layer; a path */
	int cancel_fd;	     /* readable: give up; -1: none */
	int64_t deadline;    /* of time.h */
	/* takes the archive, piece by piece; a negative answer ends it */
	int (*write)(void *ctx, const void *data, size_t len, struct hw_err *e);
	void *ctx;
};

/* The images are a snapshot's. -ENODATA: one has gone, or has lost a layer; -ENOTSUP: a layer
 * cannot be made again. */
int save_images(struct store *s, const struct store_image *const *images, size_t n,
		const struct save_how *how, struct hw_err *e);

#endif
