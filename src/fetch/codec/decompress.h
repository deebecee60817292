/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/codec/decompress.h - streaming decompression of a layer's blob: gzip, zstd or uncompressed
 *
 * What:  compressed bytes in, archive bytes out. The format is detected from the first bytes
 *        and not from the media type, as in other runtimes: media types are wrong too often.
 * Rules: consecutive gzip members or zstd frames are one stream. A truncated stream, or data of
 *        another kind after the stream, is an error.
 *        Memory is bounded: a blob can require a zstd window of at most 128 MiB, the limit of
 *        the zstd program.
 */
#ifndef FETCH_CODEC_DECOMPRESS_H
#define FETCH_CODEC_DECOMPRESS_H

#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"

struct decompress;

/* write() is called with the decompressed bytes, in order. A negative result stops the
 * decompression. */
struct decompress *decompress_new(int (*write)(void *ctx, const void *data, size_t len,
					       struct hw_err *e),
				  void *ctx);
void decompress_free(struct decompress *d);
/* Feed the next bytes of the blob. Return: 0; -EBADMSG: corrupt data; or the error of write() */
int decompress_feed(struct decompress *d, const void *data, size_t len, struct hw_err *e);
/* Call this at the end of the blob. Return: 0; -EBADMSG: truncated; or the error of write() */
int decompress_finish(struct decompress *d, struct hw_err *e);

AUTO_DEFINE(decompress_free, struct decompress);

#endif
