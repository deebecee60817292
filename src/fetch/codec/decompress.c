/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/codec/decompress.c - the archive of a layer out of its blob: gzip, zstd or plain
 */
#include "fetch/codec/decompress.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#define OUT_SIZE   (128 << 10)
#define MAGIC	   4
#define WINDOW_LOG 27

struct format {
	const char *name;
	bool (*is)(const uint8_t magic[MAGIC]);
	void (*begin)(struct decompress *x);
	int (*feed)(struct decompress *x, const uint8_t *data, size_t len, struct hw_err *e);
};

struct decompress {
	int (*out)(void *ctx, const void *data, size_t len, struct hw_err *e);
	void *ctx;
	const struct format *format; /* NULL: too few bytes so far to tell */
	uint8_t magic[MAGIC];
	size_t n_magic;
	bool inside; /* a member or frame has begun and not ended */
	bool gzip;   /* z is to be ended */
	z_stream z;
	ZSTD_DStream *zstd;
	uint8_t bytes[OUT_SIZE];
};

static int emit(struct decompress *x, size_t len, struct hw_err *e)
{
	return len > 0 ? x->out(x->ctx, x->bytes, len, e) : 0;
}

/* ---- gzip ------------------------------------------------------------------ */

static bool is_gzip(const uint8_t magic[MAGIC])
{
	return magic[0] == 0x1f && magic[1] == 0x8b && magic[2] == 8;
}

static void begin_gzip(struct decompress *x)
{
	if (inflateInit2(&x->z, 16 + MAX_WBITS) != Z_OK)
		mem_exhausted();
	x->gzip = true;
}

/* Return: bytes taken of @data, or negative errno */
static int step_gzip(struct decompress *x, const uint8_t *data, size_t len, struct hw_err *e)
{
	int z, r;

	if (!x->inside)
		inflateReset(&x->z);
	x->inside = true;
	x->z.next_in = (uint8_t *)data;
	x->z.avail_in = (unsigned int)len;
	x->z.next_out = x->bytes;
	x->z.avail_out = sizeof(x->bytes);
	z = inflate(&x->z, Z_NO_FLUSH);
	if (z != Z_OK && z != Z_STREAM_END && z != Z_BUF_ERROR)
		return err_text(e, -EBADMSG, "its gzip stream is damaged: %s",
				x->z.msg ? x->z.msg : "no reason known");
	x->inside = z != Z_STREAM_END;
	r = emit(x, sizeof(x->bytes) - x->z.avail_out, e);
	return r < 0 ? r : (int)(len - x->z.avail_in);
}

static int feed_gzip(struct decompress *x, const uint8_t *data, size_t len, struct hw_err *e)
{
	bool full = false;

	while (len > 0 || full) {
		int n = step_gzip(x, data, len, e);

		if (n < 0)
			return n;
		data += n;
		len -= (size_t)n;
		full = x->inside && x->z.avail_out == 0;
	}
	return 0;
}

/* ---- zstd ------------------------------------------------------------------ */

/* A frame, or one to be skipped. */
static bool is_zstd(const uint8_t magic[MAGIC])
{
	return memcmp(magic, "\x28\xb5\x2f\xfd", MAGIC) == 0 ||
	       ((magic[0] & 0xf0) == 0x50 && memcmp(magic + 1, "\x2a\x4d\x18", 3) == 0);
}

static void begin_zstd(struct decompress *x)
{
	x->zstd = ZSTD_createDStream();
	if (!x->zstd)
		mem_exhausted();
	ZSTD_DCtx_setParameter(x->zstd, ZSTD_d_windowLogMax, WINDOW_LOG);
}

static int feed_zstd(struct decompress *x, const uint8_t *data, size_t len, struct hw_err *e)
{
	ZSTD_inBuffer in = { data, len, 0 };
	bool full = false;

	while (in.pos < in.size || full) {
		ZSTD_outBuffer out = { x->bytes, sizeof(x->bytes), 0 };
		size_t left = ZSTD_decompressStream(x->zstd, &out, &in);
		int r;

		if (ZSTD_isError(left))
			return err_text(e, -EBADMSG, "its zstd stream is damaged: %s",
					ZSTD_getErrorName(left));
		x->inside = left != 0;
		full = x->inside && out.pos == out.size;
		r = emit(x, out.pos, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- plain ----------------------------------------------------------------- */

static bool is_any(const uint8_t magic[MAGIC])
{
	(void)magic;
	return true;
}

static void begin_plain(struct decompress *x)
{
	(void)x;
}

static int feed_plain(struct decompress *x, const uint8_t *data, size_t len, struct hw_err *e)
{
	return len > 0 ? x->out(x->ctx, data, len, e) : 0;
}

static const struct format formats[] = {
	{ "gzip", is_gzip, begin_gzip, feed_gzip },
	{ "zstd", is_zstd, begin_zstd, feed_zstd },
	{ "plain", is_any, begin_plain, feed_plain },
};

/* ---- all of them ----------------------------------------------------------- */

/** decompress_new() - @out is called with the archive's bytes, in order */
struct decompress *decompress_new(int (*out)(void *ctx, const void *data, size_t len,
					     struct hw_err *e),
				  void *ctx)
{
	struct decompress *x = mem_new(sizeof(*x));

	x->out = out;
	x->ctx = ctx;
	return x;
}

/** decompress_free() - free it */
void decompress_free(struct decompress *x)
{
	if (!x)
		return;
	if (x->gzip)
		inflateEnd(&x->z);
	ZSTD_freeDStream(x->zstd);
	free(x);
}

/* The first bytes decide, and are then fed like the others. */
static int begin(struct decompress *x, struct hw_err *e)
{
	for (size_t i = 0; !x->format; i++)
		if (formats[i].is(x->magic))
			x->format = &formats[i];
	x->format->begin(x);
	return x->format->feed(x, x->magic, x->n_magic, e);
}

/**
 * decompress_feed() - take bytes of the blob
 *
 * Return: 0; -EBADMSG: they are damaged; or what @out said
 */
int decompress_feed(struct decompress *x, const void *data, size_t len, struct hw_err *e)
{
	const uint8_t *bytes = data;
	int r = 0;

	while (!x->format && len > 0) {
		x->magic[x->n_magic++] = *bytes++;
		len--;
		if (x->n_magic == MAGIC)
			r = begin(x, e);
	}
	if (r < 0 || !x->format || len == 0)
		return r;
	return x->format->feed(x, bytes, len, e);
}

/**
 * decompress_finish() - there are no more bytes
 *
 * Return: 0, or -EBADMSG: some are missing
 */
int decompress_finish(struct decompress *x, struct hw_err *e)
{
	int r = x->format ? 0 : begin(x, e);

	if (r == 0 && x->inside)
		return err_text(e, -EBADMSG, "its %s stream has no end", x->format->name);
	return r;
}
