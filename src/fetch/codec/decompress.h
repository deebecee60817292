/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/codec/decompress.h - the archive of a layer out of its blob: gzip, zstd or plain
 *
 * What:  bytes in, bytes out. What they are is seen from the first of them, as
 *        every runtime does: media types are wrong too often.
 * Rules: several gzip members or zstd frames are one stream. A stream that does
 *        not end, or has something else behind it, is an error.
 *        Memory is bounded: a zstd window of 128 MiB (as zstd's own default) is
 *        the most that a blob can ask for.
 */
#ifndef FETCH_CODEC_DECOMPRESS_H
#define FETCH_CODEC_DECOMPRESS_H

#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"

struct decompress;

struct decompress *decompress_new(int (*out)(void *ctx, const void *data, size_t len,
					     struct hw_err *e),
				  void *ctx);
void decompress_free(struct decompress *x);
int decompress_feed(struct decompress *x, const void *data, size_t len, struct hw_err *e);
int decompress_finish(struct decompress *x, struct hw_err *e);

AUTO_DEFINE(decompress_free, struct decompress);

#endif
