/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/test-tree-usage.c - how much disk space a directory with all its contents uses
 */
#include "base/os/tree-usage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/remove-tree.h"
#include "base/str.h"

#define TREE "tree"

static int setup(void **state)
{
	*state = mkdtemp(str_copy("/tmp/tree-usage.XXXXXX"));
	return *state && chdir(*state) == 0 && mkdir(TREE, 0755) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	autofree char *path = *state;
	struct hw_err e;

	return remove_tree(AT_FDCWD, TREE, &e) < 0 || rmdir(path) < 0 ? -1 : 0;
}

static void make_file(const char *path, size_t size)
{
	autofree char *data = mem_new(size);
	autoclose int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
	assert_int_equal(fsync(fd), 0); /* some file systems allocate blocks late */
}

static uint64_t blocks(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static bool always(void *ctx)
{
	(void)ctx;
	return true;
}

static struct tree_usage count(void)
{
	struct tree_usage usage = { 0 };
	struct hw_err e;

	if (tree_usage(TREE, always, NULL, &usage, &e) < 0)
		fail_msg("%s", e.msg);
	return usage;
}

static void contents_are_counted(void **state)
{
	struct tree_usage before = count(), after;

	(void)state;
	assert_int_equal(before.inodes, 1);
	make_file(TREE "/a", 100000);
	assert_int_equal(mkdir(TREE "/sub", 0755), 0);
	make_file(TREE "/sub/b", 5000);
	assert_int_equal(symlink("/", TREE "/link"), 0);
	after = count();
	assert_int_equal(after.inodes, 5);
	assert_int_equal(after.bytes, blocks(TREE) + blocks(TREE "/a") + blocks(TREE "/sub") +
					      blocks(TREE "/sub/b") + blocks(TREE "/link"));
	assert_true(after.bytes >= before.bytes + 105000);
}

static void several_names_count_once(void **state)
{
	struct tree_usage before, after;

	(void)state;
	make_file(TREE "/a", 100000);
	before = count();
	for (int i = 0; i < 7; i++) {
		autofree char *name = str_printf(TREE "/n%d", i);

		assert_int_equal(link(TREE "/a", name), 0);
	}
	after = count();
	assert_int_equal(after.inodes, before.inodes);
	assert_int_equal(after.bytes, before.bytes);
}

static void holes_use_no_space(void **state)
{
	struct tree_usage before, after;

	(void)state;
	make_file(TREE "/a", 1);
	before = count();
	assert_int_equal(truncate(TREE "/a", 1 << 30), 0);
	after = count();
	assert_true(after.bytes < before.bytes + (1 << 20));
}

static void nested_directories(void **state)
{
	autoclose int dir = open(TREE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	for (int i = 0; i < TREE_USAGE_DEPTH + 50; i++) {
		int sub;

		assert_int_equal(mkdirat(dir, "d", 0755), 0);
		sub = openat(dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(sub >= 0);
		close(dir);
		dir = sub;
	}
	assert_int_equal(count().inodes, 1 + TREE_USAGE_DEPTH + 1);
}

static void other_file_systems(void **state)
{
	(void)state;
	assert_int_equal(mkdir(TREE "/m", 0755), 0);
	if (mount("tmpfs", TREE "/m", "tmpfs", 0, NULL) < 0) {
		print_message("not permitted to mount a tmpfs\n");
		skip();
	}
	make_file(TREE "/m/a", 100000);
	assert_int_equal(count().inodes, 1);
	assert_int_equal(umount(TREE "/m"), 0);
}

static bool twice(void *ctx)
{
	return --*(int *)ctx >= 0;
}

static void can_be_cancelled(void **state)
{
	struct tree_usage usage = { 0 };
	struct hw_err e;
	int left = 2;

	(void)state;
	make_file(TREE "/a", 1);
	make_file(TREE "/b", 1);
	assert_int_equal(tree_usage(TREE, twice, &left, &usage, &e), 0);
	assert_int_equal(usage.inodes, 3);
	left = 2;
	make_file(TREE "/c", 1);
	assert_int_equal(tree_usage(TREE, twice, &left, &usage, &e), -ECANCELED);
}

static void what_is_not_a_directory(void **state)
{
	struct tree_usage usage;
	struct hw_err e;

	(void)state;
	assert_int_equal(symlink("/", TREE "/link"), 0);
	assert_int_equal(tree_usage("missing", always, NULL, &usage, &e), -ENOENT);
	assert_int_equal(tree_usage(TREE "/link", always, NULL, &usage, &e), -ENOTDIR);
}

#define TREE_TEST(sentence, f)                                                                     \
	{                                                                                          \
		sentence, f, setup, teardown, NULL                                                 \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST("usage: files and directories are counted, links are not followed",
			  contents_are_counted),
		TREE_TEST("usage: a file with several names counts once", several_names_count_once),
		TREE_TEST("usage: holes of files use no space", holes_use_no_space),
		TREE_TEST("usage: directories below the deepest level are not counted",
			  nested_directories),
		TREE_TEST("usage: other file systems are not entered", other_file_systems),
		TREE_TEST("usage: the count can be cancelled", can_be_cancelled),
		TREE_TEST("usage: a missing directory and a symbolic link are refused",
			  what_is_not_a_directory),
	};

	return cmocka_run_group_tests_name("tree-usage", tests, NULL, NULL);
}
