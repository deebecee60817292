/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/recipe/test-recipe.c - writing and reading recipes
 */
#include "fetch/recipe/recipe.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/buf.h"

static const uint8_t sum[DIGEST_SIZE] = "0123456789abcdef0123456789abcde";

static int on_other(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	(void)data;
	(void)e;
	buf_printf(ctx, "other %zu\n", len);
	return 0;
}

static int on_file(void *ctx, const struct recipe_file *file, struct hw_err *e)
{
	(void)e;
	buf_printf(ctx, "file %s", file->path);
	for (size_t i = 0; i < file->n_pieces; i++)
		buf_printf(ctx, " %lld+%lld", (long long)file->pieces[i].offset,
			   (long long)file->pieces[i].len);
	assert_memory_equal(file->sum, sum, sizeof(sum));
	buf_putc(ctx, '\n');
	return 0;
}

static int on_end(void *ctx, int64_t size, const uint8_t got[DIGEST_SIZE], struct hw_err *e)
{
	(void)e;
	assert_memory_equal(got, sum, sizeof(sum));
	buf_printf(ctx, "end %lld\n", (long long)size);
	return 0;
}

static const struct recipe_sink sink = { on_other, on_file, on_end };

static void write_sample(int fd)
{
	static const struct tar_piece whole[] = { { 0, 7 } }, pieces[] = { { 0, 1 }, { 4096, 2 } };
	AUTO(recipe_free) struct recipe *r = recipe_new(fd);
	static char large[150000];
	struct hw_err e;

	assert_int_equal(recipe_other(r, "ab", 2, &e), 0);
	assert_int_equal(recipe_other(r, "cde", 3, &e), 0);
	assert_int_equal(recipe_file(r, "some/file", whole, 1, sum, &e), 0);
	assert_int_equal(recipe_file(r, "sparse", pieces, 2, sum, &e), 0);
	assert_int_equal(recipe_other(r, large, sizeof(large), &e), 0);
	assert_int_equal(recipe_end(r, 1 << 20, sum, &e), 0);
}

static void test_round_trip(void **state)
{
	AUTO(buf_done) struct buf got = { 0 };
	autoclose int fd = memfd_create("recipe", MFD_CLOEXEC);
	struct hw_err e;

	(void)state;
	write_sample(fd);
	assert_true(lseek(fd, 0, SEEK_CUR) < 1000); /* zeros compress to almost nothing */
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(recipe_read(fd, &sink, &got, &e), 0);
	assert_string_equal(got.data, "other 5\nfile some/file 0+7\nfile sparse 0+1 4096+2\n"
				      "other 65536\nother 65536\nother 18928\nend 1048576\n");
}

static void test_truncated(void **state)
{
	autoclose int fd = memfd_create("recipe", MFD_CLOEXEC);
	off_t size;

	(void)state;
	write_sample(fd);
	size = lseek(fd, 0, SEEK_CUR);
	for (off_t n = size - 1; n >= 0; n--) {
		AUTO(buf_done) struct buf got = { 0 };
		struct hw_err e;

		assert_int_equal(ftruncate(fd, n), 0);
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		assert_int_equal(recipe_read(fd, &sink, &got, &e), -EBADMSG);
		assert_null(got.data ? strstr(got.data, "end") : NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "recipe: records are read as written, and consecutive bytes become one record",
		  test_round_trip },
		{ "recipe: a recipe truncated at any byte is rejected as corrupt", test_truncated },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
