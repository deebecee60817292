/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/protocol/unpacked.h - what is known of a layer once it is unpacked
 *
 * It goes from hawser-fetch, which finds it out, to the daemon, which keeps it:
 * as JSON, by a field table. Bytes of paths that JSON has no form for are %XX there.
 */
#ifndef IMAGE_PROTOCOL_UNPACKED_H
#define IMAGE_PROTOCOL_UNPACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/field.h>

#include "base/err.h"
#include "base/mem.h"

struct unpacked {
	char *diff_id;
	int64_t archive; /* its bytes */
	int64_t content; /* bytes of its files */
	int64_t disk;	 /* that they take, about */
	int64_t inodes;
	int64_t skipped;  /* extended attributes that were left out */
	bool rebuildable; /* from the recipe: no member took another one's place */
	bool opaque;	  /* nothing of below is to be seen; overlayfs does not know of a root */
	struct hw_strings implied; /* folders that no member spoke of; "": the root */
};

extern const struct hw_field unpacked_fields[];

int unpacked_decode(const char *json, size_t len, struct unpacked *ret_unpacked, struct hw_err *e);
char *unpacked_encode(const struct unpacked *u); /* to be freed by the caller */
void unpacked_done(struct unpacked *u);

AUTO_VALUE_DEFINE(unpacked_done, struct unpacked);

#endif
