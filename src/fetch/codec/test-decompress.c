/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/codec/test-decompress.c - decompression of blobs that arrive in pieces of different sizes
 */
#include "fetch/codec/decompress.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/buf.h"

#define SIZE (300 << 10) /* larger than the output buffer */

static void fill(struct buf *b)
{
	for (uint32_t i = 0, x = 1; i < SIZE; i++) {
		x = x * 1103515245 + 12345;
		buf_putc(b, (char)(i % 3 ? x >> 24 : 'a'));
	}
}

static void add_gzip(struct buf *b, const char *data, size_t len)
{
	z_stream z = { 0 };

	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY),
			 Z_OK);
	z.next_in = (unsigned char *)data;
	z.avail_in = (unsigned int)len;
	z.avail_out = (unsigned int)deflateBound(&z, len);
	z.next_out = (unsigned char *)buf_reserve(b, z.avail_out);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	buf_commit(b, z.total_out);
	deflateEnd(&z);
}

static void add_zstd(struct buf *b, const char *data, size_t len)
{
	size_t room = ZSTD_compressBound(len);
	size_t n = ZSTD_compress(buf_reserve(b, room), room, data, len, 3);

	assert_false(ZSTD_isError(n));
	buf_commit(b, n);
}

static void add_plain(struct buf *b, const char *data, size_t len)
{
	buf_add(b, data, len);
}

static int collect(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	(void)e;
	buf_add(ctx, data, len);
	return 0;
}

/* Return: the first error, or the result of decompress_finish() */
static int decompress_all(const struct buf *blob, size_t piece, struct buf *out)
{
	AUTO(decompress_free) struct decompress *d = decompress_new(collect, out);
	struct hw_err e;

	for (size_t at = 0; at < blob->len; at += piece) {
		size_t n = blob->len - at < piece ? blob->len - at : piece;
		int r = decompress_feed(d, blob->data + at, n, &e);

		if (r < 0)
			return r;
	}
	return decompress_finish(d, &e);
}

static void (*const adds[])(struct buf *b, const char *data, size_t len) = { add_gzip, add_zstd,
									     add_plain };

static void test_pieces(void **state)
{
	static const size_t sizes[] = { 1, 3, 4, 5, 1000, 1 << 20 };
	AUTO(buf_done) struct buf plain = { 0 };

	(void)state;
	fill(&plain);
	for (size_t i = 0; i < ARRAY_SIZE(adds); i++) {
		AUTO(buf_done) struct buf blob = { 0 };

		adds[i](&blob, plain.data, 1000);
		adds[i](&blob, plain.data + 1000, plain.len - 1000);
		for (size_t k = 0; k < ARRAY_SIZE(sizes); k++) {
			AUTO(buf_done) struct buf out = { 0 };

			assert_int_equal(decompress_all(&blob, sizes[k], &out), 0);
			assert_int_equal(out.len, plain.len);
			assert_memory_equal(out.data, plain.data, plain.len);
		}
	}
}

static void test_truncated(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		AUTO(buf_done) struct buf blob = { 0 };

		adds[i](&blob, "hello, this is a layer", 22);
		for (size_t cut = 4; cut < blob.len; cut++) {
			AUTO(buf_done) struct buf out = { 0 };
			struct buf part = { blob.data, cut, 0 };

			assert_int_equal(decompress_all(&part, 7, &out), -EBADMSG);
		}
	}
}

static void test_short(void **state)
{
	(void)state;
	for (size_t len = 0; len < 4; len++) {
		AUTO(buf_done) struct buf out = { 0 };
		struct buf blob = { (char[]){ 'a', 'b', 'c', 0 }, len, 0 };

		assert_int_equal(decompress_all(&blob, 1, &out), 0);
		assert_int_equal(out.len, len);
	}
}

static int fail_write(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	(void)ctx;
	(void)data;
	(void)len;
	return err_text(e, -EPIPE, "write failed");
}

static void test_write_fails(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(adds); i++) {
		AUTO(buf_done) struct buf plain = { 0 }, blob = { 0 };
		AUTO(decompress_free) struct decompress *d = decompress_new(fail_write, NULL);
		struct hw_err e;

		fill(&plain);
		adds[i](&blob, plain.data, plain.len);
		assert_int_equal(decompress_feed(d, blob.data, blob.len, &e), -EPIPE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "decompress: all formats work, in pieces of any size and with two streams in a "
		  "blob",
		  test_pieces, NULL, NULL, NULL },
		{ "decompress: a stream truncated at any byte is rejected", test_truncated, NULL,
		  NULL, NULL },
		{ "decompress: a blob shorter than the magic bytes is passed on unchanged",
		  test_short, NULL, NULL, NULL },
		{ "decompress: an error of write() is returned", test_write_fails, NULL, NULL,
		  NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
