/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/recipe/recipe.c - recipe of a layer: how to rebuild its archive from the unpacked files
 *
 * How:   the writer collects consecutive bytes of the archive into one 'o' record, until a file
 *        follows or the record has RECIPE_OTHER_MAX bytes.
 */
#include "fetch/recipe/recipe.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/os/file.h"
#include "fetch/tar/path.h"

#define MAGIC	 "hawser recipe 1\n"
#define LEVEL	 1 /* zstd's fastest level compresses tar headers to a tenth */
#define OUT_SIZE (64 << 10)
#define IN_SIZE	 (64 << 10)

enum {
	RECIPE_OTHER = 'o',
	RECIPE_FILE = 'f',
	RECIPE_END = 'e',
};

/* ---- writing --------------------------------------------------------------- */

struct recipe {
	int fd;
	ZSTD_CCtx *zstd;
	struct buf record; /* complete records, not yet compressed */
	struct buf other;  /* bytes of the next 'o' record */
	char out[OUT_SIZE];
};

struct recipe *recipe_new(int fd)
{
	struct recipe *r = mem_new(sizeof(*r));

	r->fd = fd;
	r->zstd = ZSTD_createCCtx();
	if (!r->zstd)
		mem_exhausted();
	ZSTD_CCtx_setParameter(r->zstd, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(r->zstd, ZSTD_c_checksumFlag, 1);
	buf_puts(&r->record, MAGIC);
	return r;
}

void recipe_free(struct recipe *r)
{
	if (!r)
		return;
	ZSTD_freeCCtx(r->zstd);
	buf_done(&r->record);
	buf_done(&r->other);
	free(r);
}

static int write_records(struct recipe *r, ZSTD_EndDirective mode, struct hw_err *e)
{
	ZSTD_inBuffer in = { r->record.data, r->record.len, 0 };
	size_t left;

	do {
		ZSTD_outBuffer out = { r->out, sizeof(r->out), 0 };

		left = ZSTD_compressStream2(r->zstd, &out, &in, mode);
		if (ZSTD_isError(left))
			return err_text(e, -EIO, "compress the recipe: %s",
					ZSTD_getErrorName(left));
		if (out.pos > 0 && file_write_fd(r->fd, r->out, out.pos, e) < 0)
			return err_ctx(e, "write the recipe");
	} while (mode == ZSTD_e_end ? left > 0 : in.pos < in.size);
	r->record.len = 0;
	return 0;
}

static void put_number(struct buf *b, uint64_t n)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(n >> 8 * i);
	buf_add(b, bytes, sizeof(bytes));
}

static int write_other(struct recipe *r, struct hw_err *e)
{
	if (r->other.len == 0)
		return 0;
	buf_putc(&r->record, RECIPE_OTHER);
	put_number(&r->record, r->other.len);
	buf_add(&r->record, r->other.data, r->other.len);
	r->other.len = 0;
	return write_records(r, ZSTD_e_continue, e);
}

int recipe_other(struct recipe *r, const void *data, size_t len, struct hw_err *e)
{
	const char *p = data;

	while (len > 0) {
		size_t room = RECIPE_OTHER_MAX - r->other.len;
		size_t n = len < room ? len : room;

		buf_add(&r->other, p, n);
		p += n;
		len -= n;
		if (r->other.len == RECIPE_OTHER_MAX && write_other(r, e) < 0)
			return e->code;
	}
	return 0;
}

int recipe_file(struct recipe *r, const char *path, const struct tar_piece *pieces, size_t n,
		const uint8_t sum[DIGEST_SIZE], struct hw_err *e)
{
	int ret;

	ret = write_other(r, e);
	if (ret < 0)
		return ret;
	buf_putc(&r->record, RECIPE_FILE);
	buf_add(&r->record, sum, DIGEST_SIZE);
	put_number(&r->record, n);
	for (size_t i = 0; i < n; i++) {
		put_number(&r->record, (uint64_t)pieces[i].offset);
		put_number(&r->record, (uint64_t)pieces[i].len);
	}
	put_number(&r->record, strlen(path));
	buf_puts(&r->record, path);
	return write_records(r, ZSTD_e_continue, e);
}

int recipe_end(struct recipe *r, int64_t size, const uint8_t sum[DIGEST_SIZE], struct hw_err *e)
{
	int ret;

	ret = write_other(r, e);
	if (ret < 0)
		return ret;
	buf_putc(&r->record, RECIPE_END);
	put_number(&r->record, (uint64_t)size);
	buf_add(&r->record, sum, DIGEST_SIZE);
	return write_records(r, ZSTD_e_end, e);
}

/* ---- reading --------------------------------------------------------------- */

struct recipe_reader {
	int fd;
	ZSTD_DCtx *zstd;
	ZSTD_inBuffer in;
	bool at_end; /* at the end of a zstd frame: the file may end here */
	char bytes[IN_SIZE];
	struct buf record;
	struct tar_piece *pieces;
};

static void recipe_reader_done(struct recipe_reader *r)
{
	ZSTD_freeDCtx(r->zstd);
	buf_done(&r->record);
	free(r->pieces);
}
AUTO_VALUE_DEFINE(recipe_reader_done, struct recipe_reader);

static int set_corrupt(struct hw_err *e, const char *why)
{
	return err_text(e, -EBADMSG, "corrupt recipe: %s", why);
}

/* Decompresses once, and reads more input if needed. May add nothing to @out. */
static int decompress_some(struct recipe_reader *r, ZSTD_outBuffer *out, struct hw_err *e)
{
	size_t before = out->pos, left;
	ssize_t n;

	left = ZSTD_decompressStream(r->zstd, out, &r->in);
	if (ZSTD_isError(left))
		return set_corrupt(e, ZSTD_getErrorName(left));
	r->at_end = left == 0;
	if (out->pos > before || r->at_end || r->in.pos < r->in.size)
		return 0;
	do
		n = read(r->fd, r->bytes, sizeof(r->bytes));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_set(e, -errno, "read the recipe");
	if (n == 0)
		return set_corrupt(e, "truncated");
	r->in = (ZSTD_inBuffer){ r->bytes, (size_t)n, 0 };
	return 0;
}

static int read_exactly(struct recipe_reader *r, void *data, size_t len, struct hw_err *e)
{
	ZSTD_outBuffer out = { data, len, 0 };
	int ret = 0;

	while (ret == 0 && out.pos < out.size)
		ret = r->at_end ? set_corrupt(e, "data ends before the end record")
				: decompress_some(r, &out, e);
	return ret;
}

static int read_number(struct recipe_reader *r, int64_t max, int64_t *ret_n, struct hw_err *e)
{
	uint8_t bytes[8] = { 0 };
	uint64_t n = 0;
	int ret;

	ret = read_exactly(r, bytes, sizeof(bytes), e);
	if (ret < 0)
		return ret;
	for (size_t i = 0; i < sizeof(bytes); i++)
		n |= (uint64_t)bytes[i] << 8 * i;
	if (n > (uint64_t)max)
		return set_corrupt(e, "number too large");
	*ret_n = (int64_t)n;
	return 0;
}

/* Reads a length, and then that many bytes into r->record. */
static int read_bytes(struct recipe_reader *r, int64_t max, struct hw_err *e)
{
	int64_t len = 0;
	int ret;

	ret = read_number(r, max, &len, e);
	if (ret < 0)
		return ret;
	r->record.len = 0;
	ret = read_exactly(r, buf_reserve(&r->record, (size_t)len), (size_t)len, e);
	if (ret < 0)
		return ret;
	buf_commit(&r->record, (size_t)len);
	return 0;
}

static int read_file(struct recipe_reader *r, const struct recipe_sink *sink, void *ctx,
		     struct hw_err *e)
{
	struct recipe_file file = { 0 };
	uint8_t sum[DIGEST_SIZE] = { 0 };
	int64_t n = 0;
	int ret;

	ret = read_exactly(r, sum, sizeof(sum), e);
	if (ret < 0)
		return ret;
	ret = read_number(r, TAR_HOLES_MAX, &n, e);
	if (ret < 0)
		return ret;
	r->pieces = mem_resize(r->pieces, (size_t)n + 1, sizeof(*r->pieces));
	for (int64_t i = 0; ret == 0 && i < n; i++) {
		ret = read_number(r, INT64_MAX / 2, &r->pieces[i].offset, e);
		if (ret == 0)
			ret = read_number(r, INT64_MAX / 2, &r->pieces[i].len, e);
	}
	if (ret < 0)
		return ret;
	ret = read_bytes(r, PATH_SIZE - 1, e);
	if (ret < 0)
		return ret;
	if (r->record.len == 0 || memchr(r->record.data, '\0', r->record.len))
		return set_corrupt(e, "malformed path");
	file.path = r->record.data;
	file.pieces = r->pieces;
	file.n_pieces = (size_t)n;
	file.sum = sum;
	return sink->file(ctx, &file, e);
}

/* Only zstd's checksum may follow the end record. */
static int read_end(struct recipe_reader *r, const struct recipe_sink *sink, void *ctx,
		    struct hw_err *e)
{
	uint8_t sum[DIGEST_SIZE] = { 0 };
	char more;
	ZSTD_outBuffer out = { &more, 1, 0 };
	int64_t size = 0;
	int ret;

	ret = read_number(r, INT64_MAX, &size, e);
	if (ret == 0)
		ret = read_exactly(r, sum, sizeof(sum), e);
	while (ret == 0 && !r->at_end && out.pos == 0)
		ret = decompress_some(r, &out, e);
	if (ret < 0)
		return ret;
	if (out.pos > 0)
		return set_corrupt(e, "unexpected data after the end record");
	return sink->end(ctx, size, sum, e);
}

int recipe_read(int fd, const struct recipe_sink *sink, void *ctx, struct hw_err *e)
{
	AUTO(recipe_reader_done) struct recipe_reader r = { .fd = fd, .zstd = ZSTD_createDCtx() };
	char magic[sizeof(MAGIC) - 1] = "", kind;
	int ret;

	if (!r.zstd)
		mem_exhausted();
	r.in.src = r.bytes;
	ret = read_exactly(&r, magic, sizeof(magic), e);
	if (ret < 0)
		return ret;
	if (memcmp(magic, MAGIC, sizeof(magic)) != 0)
		return set_corrupt(e, "unknown version");
	for (;;) {
		kind = 0;
		ret = read_exactly(&r, &kind, 1, e);
		if (ret < 0)
			return ret;
		switch (kind) {
		case RECIPE_OTHER:
			ret = read_bytes(&r, RECIPE_OTHER_MAX, e);
			if (ret == 0)
				ret = sink->other(ctx, r.record.data, r.record.len, e);
			break;
		case RECIPE_FILE:
			ret = read_file(&r, sink, ctx, e);
			break;
		case RECIPE_END:
			return read_end(&r, sink, ctx, e);
		default:
			return set_corrupt(e, "unknown record type");
		}
		if (ret < 0)
			return ret;
	}
}
