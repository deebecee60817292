/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/archive/save.h - save images to an archive
 *
 * What:  a tar archive that is both an OCI image layout and readable by docker
 *        load: index.json and manifest.json refer to the same blobs. A layer whose
 *        blob was kept is saved as it was received. hawser-layer rebuilds the other
 *        layers from their recipes. They are uncompressed, so their digests are the
 *        diff IDs. Configurations do not change, so the images keep their IDs.
 * Rules: the archive is streamed, and never stored in a file.
 */
#ifndef IMAGE_ARCHIVE_SAVE_H
#define IMAGE_ARCHIVE_SAVE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "image/store/store.h"

struct save_options {
	const char *program; /* path of hawser-layer */
	int cancel_fd;	     /* cancel when readable; or -1 */
	int64_t deadline;    /* see time.h */
	/* Called with each piece of the archive. A negative return value stops the save. */
	int (*write)(void *ctx, const void *data, size_t len, struct hw_err *e);
	void *ctx;
};

/*
 * Write an archive of images. @names: as for store_snapshot_find(). If the call fails, pieces of the
 * archive may already have been written: the receiver must discard them. Return: 0; -ENODATA: an
 * image does not exist or was removed during the call, or one of its layers was lost; -EOPNOTSUPP:
 * a layer cannot be rebuilt; -EBADMSG: a layer is damaged; -ECANCELED; -ETIMEDOUT; or another
 * negative errno
 */
int save_images(struct store *s, const char *const *names, size_t n, const struct save_options *how,
		struct hw_err *e);

#endif
