/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/recipe/recipe.h - recipe of a layer: how to rebuild its archive from the unpacked files
 *
 * What:  all bytes of the archive that are not file data, and for each file its path and digest.
 *        With it a layer can be verified file by file, and its archive rebuilt byte for byte,
 *        without keeping the archive.
 * How:   one stream of records, compressed with zstd:
 *
 *	"hawser recipe 1\n"
 *	'o' LENGTH BYTES                                bytes of the archive
 *	'f' DIGEST N (OFFSET LENGTH)*N LENGTH PATH      the archive has N pieces of a file here
 *	'e' SIZE DIGEST                                 end; size and digest of the whole archive
 *
 *        Numbers are 64 bits, little endian. A file's digest is that of its concatenated pieces.
 * Rules: the reader checks bounds, since a disk can corrupt a recipe.
 */
#ifndef FETCH_RECIPE_RECIPE_H
#define FETCH_RECIPE_RECIPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "fetch/tar/tar.h"
#include "image/digest.h"

#define RECIPE_OTHER_MAX (64 << 10) /* maximum number of bytes in an 'o' record */

/* ---- writing --------------------------------------------------------------- */

struct recipe;

struct recipe *recipe_new(int fd);  /* writes to @fd, which is borrowed */
void recipe_free(struct recipe *r); /* without recipe_end() the file is incomplete */
/* Add the next bytes of the archive that are not file data. */
int recipe_other(struct recipe *r, const void *data, size_t len, struct hw_err *e);
/* Add a file: the next bytes of the archive are its @n pieces. @path: from path_clean(); @sum:
 * digest of the pieces */
int recipe_file(struct recipe *r, const char *path, const struct tar_piece *pieces, size_t n,
		const uint8_t sum[DIGEST_SIZE], struct hw_err *e);
/* Complete the recipe. @size, @sum: size and digest of the whole archive */
int recipe_end(struct recipe *r, int64_t size, const uint8_t sum[DIGEST_SIZE], struct hw_err *e);

AUTO_DEFINE(recipe_free, struct recipe);

/* ---- reading --------------------------------------------------------------- */

struct recipe_file {
	const char *path;
	const struct tar_piece *pieces;
	size_t n_pieces;
	const uint8_t *sum;
};

/* For each record one of the functions is called; a negative result stops the reader. */
struct recipe_sink {
	int (*other)(void *ctx, const void *data, size_t len, struct hw_err *e);
	int (*file)(void *ctx, const struct recipe_file *file, struct hw_err *e);
	int (*end)(void *ctx, int64_t size, const uint8_t sum[DIGEST_SIZE], struct hw_err *e);
};

/* Read a recipe. @fd: the file, at its beginning. Return: 0; -EBADMSG: corrupt recipe; or the
 * sink's error */
int recipe_read(int fd, const struct recipe_sink *sink, void *ctx, struct hw_err *e);

#endif
