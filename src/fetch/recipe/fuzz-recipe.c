/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/recipe/fuzz-recipe.c - fuzz test: the recipe reader
 *
 * The input is read twice: as records, which are compressed here, and as a file that is already
 * compressed. A disk can corrupt both. Paths must not be empty. The number of pieces, and their
 * offsets and lengths, must be in bounds.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "base/mem.h"
#include "base/os/file.h"
#include "fetch/layer/rebuild.h"
#include "fetch/recipe/recipe.h"
#include "fetch/tar/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_other(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	(void)ctx;
	(void)e;
	assert(data && len <= RECIPE_OTHER_MAX);
	return 0;
}

static int on_file(void *ctx, const struct recipe_file *file, struct hw_err *e)
{
	(void)ctx;
	(void)e;
	assert(file->path[0] && file->n_pieces <= TAR_HOLES_MAX);
	for (size_t i = 0; i < file->n_pieces; i++)
		assert(file->pieces[i].offset >= 0 && file->pieces[i].len >= 0);
	return 0;
}

static int on_end(void *ctx, int64_t size, const uint8_t sum[DIGEST_SIZE], struct hw_err *e)
{
	(void)ctx;
	(void)e;
	assert(size >= 0 && sum);
	return 0;
}

static int on_damaged(void *ctx, const char *path, const char *why, struct hw_err *e)
{
	(void)ctx;
	(void)e;
	assert(path[0] && why[0]);
	return 0;
}

static void read_recipe(const void *data, size_t size)
{
	static const struct recipe_sink sink = { on_other, on_file, on_end };
	autoclose int fd = memfd_create("recipe", MFD_CLOEXEC);
	autoclose int root = open("/proc/self/fdinfo", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct hw_err e = { 0 };
	int r = file_write_fd(fd, data, size, &e);

	assert(r == 0 && lseek(fd, 0, SEEK_SET) == 0);
	r = recipe_read(fd, &sink, NULL, &e);
	assert(r == 0 || (e.code == r && e.msg[0]));
	assert(lseek(fd, 0, SEEK_SET) == 0);
	(void)rebuild_verify(fd, root, 16, on_damaged, NULL, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t room = ZSTD_compressBound(size);
	autofree void *packed = mem_new(room);
	size_t n = ZSTD_compress(packed, room, data, size, 1);

	assert(!ZSTD_isError(n));
	read_recipe(packed, n);
	read_recipe(data, size);
	return 0;
}
