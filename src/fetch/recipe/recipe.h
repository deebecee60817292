/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/recipe/recipe.h - how to make a layer's archive again from its unpacked files
 *
 * What:  everything of the archive that is not in the files, and for each file
 *        where it is and its digest. With it a layer can be checked file by file,
 *        and its archive be written again byte for byte, while the archive itself
 *        is thrown away.
 * How:   one stream of records, compressed with zstd:
 *
 *	"hawser recipe 1\n"
 *	'o' LENGTH BYTES                                bytes of the archive
 *	'f' DIGEST N (OFFSET LENGTH)*N LENGTH PATH      N pieces of a file come here
 *	'e' SIZE DIGEST                                 the end; of the whole archive
 *
 *        Numbers are 64 bits, little endian. A file's digest is over those
 *        pieces, one after the other.
 * Rules: what is read is checked against bounds: a disk can be damaged.
 */
#ifndef FETCH_RECIPE_RECIPE_H
#define FETCH_RECIPE_RECIPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "fetch/tar/tar.h"
#include "image/digest.h"

#define RECIPE_OTHER_MAX (64 << 10) /* bytes in one record */

/* ---- writing --------------------------------------------------------------- */

struct recipe;

struct recipe *recipe_new(int fd); /* fd is borrowed */
void recipe_free(struct recipe *r);
int recipe_other(struct recipe *r, const void *data, size_t len, struct hw_err *e);
int recipe_file(struct recipe *r, const char *path, const struct tar_piece *pieces, size_t n,
		const uint8_t sum[DIGEST_SIZE], struct hw_err *e);
int recipe_end(struct recipe *r, int64_t size, const uint8_t sum[DIGEST_SIZE], struct hw_err *e);

AUTO_DEFINE(recipe_free, struct recipe);

/* ---- reading --------------------------------------------------------------- */

struct recipe_file {
	const char *path;
	const struct tar_piece *pieces;
	size_t n_pieces;
	const uint8_t *sum;
};

struct recipe_sink {
	int (*other)(void *ctx, const void *data, size_t len, struct hw_err *e);
	int (*file)(void *ctx, const struct recipe_file *file, struct hw_err *e);
	int (*end)(void *ctx, int64_t size, const uint8_t sum[DIGEST_SIZE], struct hw_err *e);
};

int recipe_read(int fd, const struct recipe_sink *sink, void *ctx, struct hw_err *e);

#endif
