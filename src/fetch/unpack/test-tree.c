/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/test-tree.c - directories below a root
 */
#include "fetch/unpack/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"

struct fixture {
	char path[64];
	int top, root;
};

static int set_up(void **state)
{
	struct fixture *f = mem_new(sizeof(*f));

	snprintf(f->path, sizeof(f->path), "/tmp/test-tree.XXXXXX");
	assert_non_null(mkdtemp(f->path));
	f->top = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(f->top, "root", 0755), 0);
	f->root = openat(f->top, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->root >= 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	struct hw_err e;

	close(f->root);
	assert_int_equal(remove_tree(f->top, "root", &e), 0);
	/* also succeeds if "root" does not exist */
	assert_int_equal(remove_tree(f->top, "root", &e), 0);
	close(f->top);
	assert_int_equal(rmdir(f->path), 0);
	free(f);
	return 0;
}

static void test_times(void **state)
{
	struct fixture *f = *state;
	const struct timespec old[] = { { .tv_sec = 5 }, { .tv_sec = 5, .tv_nsec = 7 } };
	struct hw_err e;
	struct stat st;
	struct tree t;

	assert_int_equal(mkdirat(f->root, "d", 0755), 0);
	assert_int_equal(utimensat(f->root, "d", old, 0), 0);
	tree_init(&t, f->root);
	assert_int_equal(tree_enter(&t, "d", &e), 0);
	close(openat(t.fd, "new", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(tree_enter(&t, "d/e/f", &e), 0);
	assert_int_equal(tree_leave(&t, &e), 0);
	assert_int_equal(fstatat(f->root, "d", &st, 0), 0);
	assert_int_equal(st.st_mtim.tv_sec, 5);
	assert_int_equal(st.st_mtim.tv_nsec, 7);
	assert_int_equal(fstatat(f->root, "d/e/f", &st, 0), 0);
}

static int count_implied(void *ctx, const char *path, struct hw_err *e)
{
	int *n = ctx;

	(void)e;
	assert_true(str_starts("a/b/c", path));
	(*n)++;
	return 0;
}

static void test_implied(void **state)
{
	struct fixture *f = *state;
	struct hw_err e;
	struct tree t;
	int n = 0;

	tree_init(&t, f->root);
	t.implied = count_implied;
	t.ctx = &n;
	assert_int_equal(tree_enter(&t, "a/b/c", &e), 0);
	assert_int_equal(n, 3);
	assert_int_equal(tree_enter(&t, "a/b", &e), 0);
	assert_int_equal(tree_enter(&t, "", &e), 0);
	assert_int_equal(n, 3);
	tree_done(&t);
}

static void test_links(void **state)
{
	struct fixture *f = *state;
	struct stat here, want;
	struct hw_err e;
	struct tree t;

	assert_int_equal(symlinkat("/../../..", f->root, "up"), 0);
	assert_int_equal(symlinkat("nowhere", f->root, "dangling"), 0);
	tree_init(&t, f->root);
	assert_int_equal(tree_enter(&t, "up", &e), 0);
	assert_int_equal(fstat(t.fd, &here), 0);
	assert_int_equal(fstat(f->root, &want), 0);
	assert_int_equal(here.st_ino, want.st_ino);
	assert_int_equal(tree_enter(&t, "dangling/x", &e), -ENOTDIR);
	assert_string_equal(e.msg, "\"dangling\" is neither a directory nor a link to one");
	assert_true(file_open_in_root(f->root, "up/../../etc/passwd", O_RDONLY) < 0);
	tree_done(&t);
}

static void test_remove(void **state)
{
	struct fixture *f = *state;
	struct hw_err e;
	struct tree t;

	tree_init(&t, f->root);
	assert_int_equal(tree_enter(&t, "d/0/1/2", &e), 0);
	assert_int_equal(tree_enter(&t, "d/1/1/2", &e), 0);
	assert_int_equal(tree_enter(&t, "d/x/0", &e), 0);
	assert_int_equal(symlinkat("/", t.fd, "slash"), 0);
	tree_done(&t);
	assert_int_equal(remove_tree(f->root, "d", &e), 0);
	assert_int_equal(faccessat(f->root, "d", F_OK, 0), -1);
	assert_int_equal(faccessat(AT_FDCWD, "/", F_OK, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "tree: changes in a directory leave its times unchanged", test_times, set_up,
		  tear_down },
		{ "tree: missing directories are created and reported to the callback",
		  test_implied, set_up, tear_down },
		{ "tree: symbolic links do not lead outside the root", test_links, set_up,
		  tear_down },
		{ "tree: a directory is removed with its content", test_remove, set_up, tear_down },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
