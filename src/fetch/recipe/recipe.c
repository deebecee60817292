/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/recipe/recipe.c - how to make a layer's archive again: writing it down
 *
 * How:   bytes of the archive that follow each other become one record: they
 *        are gathered until a file comes, or there are RECIPE_OTHER_MAX of them.
 */
#include "fetch/recipe/recipe.h"

#include <errno.h>
#include <string.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/os/file.h"
#include "fetch/recipe/format.h"

#define LEVEL	 1 /* zstd's fastest: headers shrink to a tenth already */
#define OUT_SIZE (64 << 10)

struct recipe {
	int fd;
	ZSTD_CCtx *zstd;
	struct buf record; /* complete ones, to be compressed */
	struct buf other;  /* gathered */
	char out[OUT_SIZE];
};

/** recipe_new() - begin a recipe, to be written to @fd, which is borrowed */
struct recipe *recipe_new(int fd)
{
	struct recipe *r = mem_new(sizeof(*r));

	r->fd = fd;
	r->zstd = ZSTD_createCCtx();
	if (!r->zstd)
		mem_exhausted();
	ZSTD_CCtx_setParameter(r->zstd, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(r->zstd, ZSTD_c_checksumFlag, 1);
	buf_puts(&r->record, RECIPE_MAGIC);
	return r;
}

/** recipe_free() - free the writer; what recipe_end() has not ended is of no use */
void recipe_free(struct recipe *r)
{
	if (!r)
		return;
	ZSTD_freeCCtx(r->zstd);
	buf_done(&r->record);
	buf_done(&r->other);
	free(r);
}

/* The records so far go out. */
static int flush(struct recipe *r, ZSTD_EndDirective how, struct hw_err *e)
{
	ZSTD_inBuffer in = { r->record.data, r->record.len, 0 };
	size_t left;

	do {
		ZSTD_outBuffer out = { r->out, sizeof(r->out), 0 };

		left = ZSTD_compressStream2(r->zstd, &out, &in, how);
		if (ZSTD_isError(left))
			return err_text(e, -EIO, "compress a recipe: %s", ZSTD_getErrorName(left));
		if (out.pos > 0 && file_write_fd(r->fd, r->out, out.pos, e) < 0)
			return err_ctx(e, "write a recipe");
	} while (how == ZSTD_e_end ? left > 0 : in.pos < in.size);
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

static int end_other(struct recipe *r, struct hw_err *e)
{
	if (r->other.len == 0)
		return 0;
	buf_putc(&r->record, RECIPE_OTHER);
	put_number(&r->record, r->other.len);
	buf_add(&r->record, r->other.data, r->other.len);
	r->other.len = 0;
	return flush(r, ZSTD_e_continue, e);
}

/** recipe_other() - the next bytes of the archive, which are in no file */
int recipe_other(struct recipe *r, const void *data, size_t len, struct hw_err *e)
{
	const char *p = data;

	while (len > 0) {
		size_t room = RECIPE_OTHER_MAX - r->other.len;
		size_t n = len < room ? len : room;

		buf_add(&r->other, p, n);
		p += n;
		len -= n;
		if (r->other.len == RECIPE_OTHER_MAX && end_other(r, e) < 0)
			return e->code;
	}
	return 0;
}

/**
 * recipe_file() - the next bytes of the archive are those of a file
 * @path:   of the file, from path_clean()
 * @pieces: of it, @n of them, that the archive has here
 * @sum:    of those
 */
int recipe_file(struct recipe *r, const char *path, const struct tar_piece *pieces, size_t n,
		const uint8_t sum[DIGEST_SIZE], struct hw_err *e)
{
	int ret = end_other(r, e);

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
	return flush(r, ZSTD_e_continue, e);
}

/**
 * recipe_end() - the archive ends
 * @size: of all of it
 * @sum:  of all of it
 */
int recipe_end(struct recipe *r, int64_t size, const uint8_t sum[DIGEST_SIZE], struct hw_err *e)
{
	int ret = end_other(r, e);

	if (ret < 0)
		return ret;
	buf_putc(&r->record, RECIPE_END);
	put_number(&r->record, (uint64_t)size);
	buf_add(&r->record, sum, DIGEST_SIZE);
	return flush(r, ZSTD_e_end, e);
}
