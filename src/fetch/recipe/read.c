/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/recipe/read.c - how to make a layer's archive again: reading it
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/buf.h"
#include "fetch/recipe/format.h"
#include "fetch/recipe/recipe.h"
#include "fetch/tar/path.h"

#define IN_SIZE (64 << 10)

struct reader {
	int fd;
	ZSTD_DCtx *zstd;
	ZSTD_inBuffer in;
	bool at_end; /* of a frame: there need not be more */
	char bytes[IN_SIZE];
	struct buf record;
	struct tar_piece *pieces;
};

static void reader_done(struct reader *r)
{
	ZSTD_freeDCtx(r->zstd);
	buf_done(&r->record);
	free(r->pieces);
}

AUTO_VALUE_DEFINE(reader_done, struct reader);

static int damaged(struct hw_err *e, const char *why)
{
	return err_text(e, -EBADMSG, "the recipe is damaged: %s", why);
}

static int refill(struct reader *r, struct hw_err *e)
{
	ssize_t n;

	do
		n = read(r->fd, r->bytes, sizeof(r->bytes));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_set(e, -errno, "read a recipe");
	if (n == 0)
		return damaged(e, "it stops in the middle");
	r->in = (ZSTD_inBuffer){ r->bytes, (size_t)n, 0 };
	return 0;
}

/* Some of the bytes that out has room for; none when it is full, or at the end of it all. */
static int get_some(struct reader *r, ZSTD_outBuffer *out, struct hw_err *e)
{
	size_t before = out->pos, left;

	left = ZSTD_decompressStream(r->zstd, out, &r->in);
	if (ZSTD_isError(left))
		return damaged(e, ZSTD_getErrorName(left));
	r->at_end = left == 0;
	if (out->pos == before && !r->at_end && r->in.pos == r->in.size)
		return refill(r, e);
	return 0;
}

/* Exactly so many bytes. */
static int get(struct reader *r, void *data, size_t len, struct hw_err *e)
{
	ZSTD_outBuffer out = { data, len, 0 };
	int ret = 0;

	while (ret == 0 && out.pos < out.size)
		ret = r->at_end ? damaged(e, "it ends too early") : get_some(r, &out, e);
	return ret;
}

/* Nothing follows but zstd's own sum. */
static int get_end(struct reader *r, struct hw_err *e)
{
	char more;
	ZSTD_outBuffer out = { &more, 1, 0 };
	int ret = 0;

	while (ret == 0 && !r->at_end && out.pos == 0)
		ret = get_some(r, &out, e);
	if (ret == 0 && out.pos > 0)
		return damaged(e, "it goes on after its end");
	return ret;
}

static int get_number(struct reader *r, int64_t max, int64_t *ret_n, struct hw_err *e)
{
	uint8_t bytes[8] = { 0 };
	uint64_t n = 0;
	int ret = get(r, bytes, sizeof(bytes), e);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < sizeof(bytes); i++)
		n |= (uint64_t)bytes[i] << 8 * i;
	if (n > (uint64_t)max)
		return damaged(e, "a number is too large");
	*ret_n = (int64_t)n;
	return 0;
}

/* A number, and as many bytes into r->record. */
static int get_bytes(struct reader *r, int64_t max, struct hw_err *e)
{
	int64_t len = 0;
	int ret = get_number(r, max, &len, e);

	if (ret < 0)
		return ret;
	r->record.len = 0;
	ret = get(r, buf_reserve(&r->record, (size_t)len), (size_t)len, e);
	if (ret == 0)
		buf_added(&r->record, (size_t)len);
	return ret;
}

static int read_other(struct reader *r, const struct recipe_sink *sink, void *ctx, struct hw_err *e)
{
	int ret = get_bytes(r, RECIPE_OTHER_MAX, e);

	return ret < 0 ? ret : sink->other(ctx, r->record.data, r->record.len, e);
}

static int read_pieces(struct reader *r, size_t *ret_n, struct hw_err *e)
{
	int64_t n = 0;
	int ret = get_number(r, TAR_HOLES_MAX, &n, e);

	if (ret < 0)
		return ret;
	r->pieces = mem_resize(r->pieces, (size_t)n + 1, sizeof(*r->pieces));
	for (int64_t i = 0; ret == 0 && i < n; i++) {
		ret = get_number(r, INT64_MAX / 2, &r->pieces[i].offset, e);
		if (ret == 0)
			ret = get_number(r, INT64_MAX / 2, &r->pieces[i].len, e);
	}
	*ret_n = (size_t)n;
	return ret;
}

static int read_file(struct reader *r, const struct recipe_sink *sink, void *ctx, struct hw_err *e)
{
	struct recipe_file file = { 0 };
	uint8_t sum[DIGEST_SIZE] = { 0 };
	int ret = get(r, sum, sizeof(sum), e);

	if (ret == 0)
		ret = read_pieces(r, &file.n_pieces, e);
	if (ret == 0)
		ret = get_bytes(r, PATH_SIZE - 1, e);
	if (ret < 0)
		return ret;
	if (r->record.len == 0 || memchr(r->record.data, '\0', r->record.len))
		return damaged(e, "a path is none");
	file.path = r->record.data;
	file.pieces = r->pieces;
	file.sum = sum;
	return sink->file(ctx, &file, e);
}

static int read_end(struct reader *r, const struct recipe_sink *sink, void *ctx, struct hw_err *e)
{
	uint8_t sum[DIGEST_SIZE] = { 0 };
	int64_t size = 0;
	int ret = get_number(r, INT64_MAX, &size, e);

	if (ret == 0)
		ret = get(r, sum, sizeof(sum), e);
	if (ret == 0)
		ret = get_end(r, e);
	return ret < 0 ? ret : sink->end(ctx, size, sum, e);
}

static int read_records(struct reader *r, const struct recipe_sink *sink, void *ctx,
			struct hw_err *e)
{
	for (;;) {
		char kind = 0;
		int ret = get(r, &kind, 1, e);

		if (ret < 0)
			return ret;
		if (kind == RECIPE_END)
			return read_end(r, sink, ctx, e);
		if (kind == RECIPE_OTHER)
			ret = read_other(r, sink, ctx, e);
		else if (kind == RECIPE_FILE)
			ret = read_file(r, sink, ctx, e);
		else
			return damaged(e, "a record is of no known kind");
		if (ret < 0)
			return ret;
	}
}

/**
 * recipe_read() - read a recipe from its beginning
 *
 * Return: 0; -EBADMSG: it is damaged; or what the sink returned
 */
int recipe_read(int fd, const struct recipe_sink *sink, void *ctx, struct hw_err *e)
{
	AUTO(reader_done) struct reader r = { .fd = fd, .zstd = ZSTD_createDCtx() };
	char magic[sizeof(RECIPE_MAGIC) - 1] = "";
	int ret;

	if (!r.zstd)
		mem_exhausted();
	r.in.src = r.bytes;
	ret = get(&r, magic, sizeof(magic), e);
	if (ret < 0)
		return ret;
	if (memcmp(magic, RECIPE_MAGIC, sizeof(magic)) != 0)
		return damaged(e, "it is none of this version");
	return read_records(&r, sink, ctx, e);
}
