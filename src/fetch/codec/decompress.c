/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/codec/decompress.c - streaming decompression of a layer's blob: gzip, zstd or uncompressed
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
	bool (*matches)(const uint8_t magic[MAGIC]);
	void (*begin)(struct decompress *d);
	int (*feed)(struct decompress *d, const uint8_t *data, size_t len, struct hw_err *e);
};

struct decompress {
	int (*write)(void *ctx, const void *data, size_t len, struct hw_err *e);
	void *ctx;
	const struct format *format; /* NULL: not known yet, fewer than MAGIC bytes were received */
	uint8_t magic[MAGIC];
	size_t n_magic;
	bool inside; /* a gzip member or zstd frame has begun and not ended */
	bool has_z;  /* z is initialized */
	z_stream z;
	ZSTD_DStream *zstd;
	uint8_t out[OUT_SIZE];
};

static int write_out(struct decompress *d, size_t len, struct hw_err *e)
{
	return len > 0 ? d->write(d->ctx, d->out, len, e) : 0;
}

/* ---- gzip ------------------------------------------------------------------ */

static bool is_gzip(const uint8_t magic[MAGIC])
{
	return magic[0] == 0x1f && magic[1] == 0x8b && magic[2] == 8;
}

static void begin_gzip(struct decompress *d)
{
	if (inflateInit2(&d->z, 16 + MAX_WBITS) != Z_OK)
		mem_exhausted();
	d->has_z = true;
}

static int feed_gzip(struct decompress *d, const uint8_t *data, size_t len, struct hw_err *e)
{
	bool more = false; /* the output buffer was too small for all the output */

	while (len > 0 || more) {
		int z, r;

		if (!d->inside)
			inflateReset(&d->z);
		d->inside = true;
		d->z.next_in = (uint8_t *)data;
		d->z.avail_in = (unsigned int)len;
		d->z.next_out = d->out;
		d->z.avail_out = sizeof(d->out);
		z = inflate(&d->z, Z_NO_FLUSH);
		if (z != Z_OK && z != Z_STREAM_END && z != Z_BUF_ERROR)
			return err_text(e, -EBADMSG, "corrupt gzip stream: %s",
					d->z.msg ? d->z.msg : "unknown zlib error");
		d->inside = z != Z_STREAM_END;
		more = d->inside && d->z.avail_out == 0;
		data += len - d->z.avail_in;
		len = d->z.avail_in;
		r = write_out(d, sizeof(d->out) - d->z.avail_out, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- zstd ------------------------------------------------------------------ */

/* A zstd frame or a skippable frame. */
static bool is_zstd(const uint8_t magic[MAGIC])
{
	return memcmp(magic, "\x28\xb5\x2f\xfd", MAGIC) == 0 ||
	       ((magic[0] & 0xf0) == 0x50 && memcmp(magic + 1, "\x2a\x4d\x18", 3) == 0);
}

static void begin_zstd(struct decompress *d)
{
	d->zstd = ZSTD_createDStream();
	if (!d->zstd)
		mem_exhausted();
	ZSTD_DCtx_setParameter(d->zstd, ZSTD_d_windowLogMax, WINDOW_LOG);
}

static int feed_zstd(struct decompress *d, const uint8_t *data, size_t len, struct hw_err *e)
{
	ZSTD_inBuffer in = { data, len, 0 };
	bool more = false;

	while (in.pos < in.size || more) {
		ZSTD_outBuffer out = { d->out, sizeof(d->out), 0 };
		size_t left = ZSTD_decompressStream(d->zstd, &out, &in);
		int r;

		if (ZSTD_isError(left))
			return err_text(e, -EBADMSG, "corrupt zstd stream: %s",
					ZSTD_getErrorName(left));
		d->inside = left != 0;
		more = d->inside && out.pos == out.size;
		r = write_out(d, out.pos, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- not compressed -------------------------------------------------------- */

static bool is_plain(const uint8_t magic[MAGIC])
{
	(void)magic;
	return true;
}

static void begin_plain(struct decompress *d)
{
	(void)d;
}

static int feed_plain(struct decompress *d, const uint8_t *data, size_t len, struct hw_err *e)
{
	return len > 0 ? d->write(d->ctx, data, len, e) : 0;
}

/* The first format that matches is used. The last one always matches. */
static const struct format formats[] = {
	{ "gzip", is_gzip, begin_gzip, feed_gzip },
	{ "zstd", is_zstd, begin_zstd, feed_zstd },
	{ "plain", is_plain, begin_plain, feed_plain },
};

/* ---- interface ------------------------------------------------------------- */

struct decompress *decompress_new(int (*write)(void *ctx, const void *data, size_t len,
					       struct hw_err *e),
				  void *ctx)
{
	struct decompress *d = mem_new(sizeof(*d));

	d->write = write;
	d->ctx = ctx;
	return d;
}

void decompress_free(struct decompress *d)
{
	if (!d)
		return;
	if (d->has_z)
		inflateEnd(&d->z);
	ZSTD_freeDStream(d->zstd);
	free(d);
}

/* Selects the format by the collected magic bytes, then feeds these bytes to it. */
static int begin(struct decompress *d, struct hw_err *e)
{
	for (size_t i = 0; !d->format; i++)
		if (formats[i].matches(d->magic))
			d->format = &formats[i];
	d->format->begin(d);
	return d->format->feed(d, d->magic, d->n_magic, e);
}

int decompress_feed(struct decompress *d, const void *data, size_t len, struct hw_err *e)
{
	const uint8_t *bytes = data;
	int r = 0;

	while (!d->format && len > 0) {
		d->magic[d->n_magic++] = *bytes++;
		len--;
		if (d->n_magic == MAGIC)
			r = begin(d, e);
	}
	if (r < 0 || !d->format || len == 0)
		return r;
	return d->format->feed(d, bytes, len, e);
}

int decompress_finish(struct decompress *d, struct hw_err *e)
{
	int r;

	r = d->format ? 0 : begin(d, e);
	if (r == 0 && d->inside)
		return err_text(e, -EBADMSG, "truncated %s stream", d->format->name);
	return r;
}
