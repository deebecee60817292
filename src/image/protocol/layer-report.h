/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/protocol/layer-report.h - reports about a layer: after unpacking, after verifying
 *
 * What:  struct unpacked is a part of the LAYER message of hawser-fetch, struct
 *        verify_report is the REPORT message of hawser-layer (job.h).
 */
#ifndef IMAGE_PROTOCOL_LAYER_REPORT_H
#define IMAGE_PROTOCOL_LAYER_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/field.h>

#include "base/err.h"
#include "base/mem.h"

struct unpacked {
	char *diff_id;
	int64_t archive; /* bytes of the uncompressed archive */
	int64_t content; /* bytes of all files */
	int64_t disk;	 /* bytes on disk, approximately */
	int64_t inodes;
	int64_t skipped;  /* extended attributes that were not restored */
	bool rebuildable; /* the recipe is complete: no member of the archive replaced another */
	bool opaque;	  /* hides all layers below; overlayfs ignores the opaque xattr on a root */
	struct hw_strings implied; /* directories that are not in the archive; "": the root */
};

extern const struct hw_field unpacked_fields[];

/*
 * Paths are arbitrary bytes, but JSON is UTF-8. So in the JSON of "implied", bytes outside
 * printable ASCII, and '%', are written as %XX.
 */

/* Return: 0; -EBADMSG: malformed */
int unpacked_decode(const char *json, size_t len, struct unpacked *ret_unpacked, struct hw_err *e);
char *unpacked_encode(const struct unpacked *u); /* to be freed by the caller */
void unpacked_done(struct unpacked *u);

AUTO_VALUE_DEFINE(unpacked_done, struct unpacked);

#define VERIFY_NAMED_MAX 100 /* damaged files that a report names; further ones are only counted */

struct verify_report {
	int64_t files, bytes; /* numbers of files and bytes that were read */
	int64_t n_damaged;
	struct hw_strings damaged; /* "PATH: REASON" of the first VERIFY_NAMED_MAX damaged files */
};

extern const struct hw_field verify_fields[];

void verify_report_done(struct verify_report *report);

AUTO_VALUE_DEFINE(verify_report_done, struct verify_report);

#endif
