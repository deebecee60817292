/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/verify.h - verify a stored layer against its recipe
 *
 * What:  runs hawser-layer, which hashes every file of a layer and compares digests
 *        and metadata with the recipe. If the blob was kept, its digest is checked too.
 *        A missing directory, recipe or blob is reported as damage.
 * Rules: the files of a layer that is not rebuildable are not verified: members of
 *        its archive replaced each other, so its recipe lists files that no longer
 *        exist. An empty report about such a layer does not mean that its files
 *        are undamaged.
 */
#ifndef IMAGE_STORE_VERIFY_H
#define IMAGE_STORE_VERIFY_H

#include <stdint.h>

#include "base/err.h"
#include "image/protocol/layer-report.h"
#include "image/store/store.h"

struct verify_options {
	const char *program; /* path of hawser-layer */
	int cancel_fd;	     /* cancel when readable; or -1 */
	int64_t deadline;    /* see time.h */
};

/* The caller holds the layer. Return: 0 and a report, to be released with
 * verify_report_done(); -ECANCELED; -ETIMEDOUT; or another error if the layer could not be read */
int verify_layer(struct store *s, const struct store_layer *layer, const struct verify_options *how,
		 struct verify_report *ret_report, struct hw_err *e);

#endif
