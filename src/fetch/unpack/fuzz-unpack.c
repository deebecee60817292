/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/fuzz-unpack.c - fuzz test: unpacking an archive
 *
 * Next to the root is a directory that links and paths may point to. It must not change. An archive
 * that was unpacked completely and is rebuildable must be rebuilt byte for byte. The root must be
 * removable, whatever it contains.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "fetch/layer/rebuild.h"
#include "fetch/tar/fuzz-sums.h"
#include "fetch/unpack/tree.h"
#include "fetch/unpack/unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int top = -1; /* directory that contains "root" and "outside" */
static struct stat before[2];

static void stat_outside(struct stat ret[2])
{
	assert(fstatat(top, "outside", &ret[0], 0) == 0);
	assert(fstatat(top, "outside/secret", &ret[1], 0) == 0);
}

static void set_up(void)
{
	static char path[] = "/tmp/fuzz-unpack.XXXXXX";

	if (top >= 0)
		return;
	assert(mkdtemp(path));
	top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert(top >= 0 && mkdirat(top, "outside", 0700) == 0);
	close(openat(top, "outside/secret", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	stat_outside(before);
}

static void check_outside(void)
{
	struct stat after[2];

	stat_outside(after);
	for (int i = 0; i < 2; i++)
		assert(after[i].st_ctim.tv_sec == before[i].st_ctim.tv_sec &&
		       after[i].st_ctim.tv_nsec == before[i].st_ctim.tv_nsec &&
		       after[i].st_nlink == before[i].st_nlink);
}

static void check_rebuild(int recipe, int root, const uint8_t *data, size_t size)
{
	autoclose int out = memfd_create("archive", MFD_CLOEXEC);
	AUTO(buf_done) struct buf rebuilt = { 0 };
	struct hw_err e;

	assert(lseek(recipe, 0, SEEK_SET) == 0);
	assert(rebuild_archive(recipe, root, out, &e) == 0);
	assert(lseek(out, 0, SEEK_SET) == 0);
	assert(file_read_fd(out, size + 1, &rebuilt, &e) == 0);
	assert(rebuilt.len == size && (size == 0 || memcmp(rebuilt.data, data, size) == 0));
}

static void unpack_bytes(const uint8_t *data, size_t size, int root)
{
	AUTO(unpacked_done) struct unpacked result = { 0 };
	autoclose int recipe = memfd_create("recipe", MFD_CLOEXEC);
	const struct unpack_options options = {
		.root = root, .recipe = recipe, .bytes = 1 << 20, .entries = 100
	};
	AUTO(unpack_free) struct unpack *u = unpack_new(&options);
	struct hw_err e = { 0 };
	int r = unpack_feed(u, data, size, &e);

	if (r == 0)
		r = unpack_finish(u, NULL, &result, &e);
	assert(r == 0 || (e.code == r && e.msg[0]));
	if (r == 0 && result.rebuildable)
		check_rebuild(recipe, root, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree uint8_t *copy = mem_new(size + 1);
	autoclose int root = -1;
	struct hw_err e;

	set_up();
	if (size > 0)
		memcpy(copy, data, size);
	fix_checksums(copy, size);
	assert(mkdirat(top, "root", 0755) == 0);
	root = openat(top, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert(root >= 0);
	unpack_bytes(copy, size, root);
	check_outside();
	assert(remove_tree(top, "root", &e) == 0);
	return 0;
}
