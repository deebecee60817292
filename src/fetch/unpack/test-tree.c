/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/test-tree.c - folders below a root
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
/* cmocka.h needs the ones above */
#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"

struct fixture {
	char path[64];
	int top, root;
};

static int set_up(void **state)
{
	struct fixture *p = mem_new(sizeof(*p));

	snprintf(p->path, sizeof(p->path), "/tmp/test-tree.XXXXXX");
	assert_non_null(mkdtemp(p->path));
	p->top = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(p->top, "root", 0755), 0);
	p->root = openat(p->top, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(p->root >= 0);
	*state = p;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *p = *state;
	struct hw_err e;

	close(p->root);
	assert_int_equal(remove_tree(p->top, "root", &e), 0);
	assert_int_equal(remove_tree(p->top, "root", &e), 0); /* there is nothing */
	close(p->top);
	assert_int_equal(rmdir(p->path), 0);
	free(p);
	return 0;
}

static void times(void **state)
{
	struct fixture *p = *state;
	const struct timespec old[] = { { .tv_sec = 5 }, { .tv_sec = 5, .tv_nsec = 7 } };
	struct hw_err e;
	struct stat st;
	struct tree t;

	assert_int_equal(mkdirat(p->root, "d", 0755), 0);
	assert_int_equal(utimensat(p->root, "d", old, 0), 0);
	tree_init(&t, p->root);
	assert_int_equal(tree_enter(&t, "d", &e), 0);
	close(openat(t.fd, "new", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(tree_enter(&t, "d/e/f", &e), 0);
	assert_int_equal(tree_leave(&t, &e), 0);
	assert_int_equal(fstatat(p->root, "d", &st, 0), 0);
	assert_int_equal(st.st_mtim.tv_sec, 5);
	assert_int_equal(st.st_mtim.tv_nsec, 7);
	assert_int_equal(fstatat(p->root, "d/e/f", &st, 0), 0);
}

static int count(void *ctx, const char *path, struct hw_err *e)
{
	int *n = ctx;

	(void)e;
	assert_true(str_starts("a/b/c", path));
	(*n)++;
	return 0;
}

static void implied(void **state)
{
	struct fixture *p = *state;
	struct hw_err e;
	struct tree t;
	int n = 0;

	tree_init(&t, p->root);
	t.implied = count;
	t.ctx = &n;
	assert_int_equal(tree_enter(&t, "a/b/c", &e), 0);
	assert_int_equal(n, 3);
	assert_int_equal(tree_enter(&t, "a/b", &e), 0);
	assert_int_equal(tree_enter(&t, "", &e), 0);
	assert_int_equal(n, 3);
	tree_done(&t);
}

static void links(void **state)
{
	struct fixture *p = *state;
	struct stat here, want;
	struct hw_err e;
	struct tree t;

	assert_int_equal(symlinkat("/../../..", p->root, "up"), 0);
	assert_int_equal(symlinkat("nowhere", p->root, "dangling"), 0);
	tree_init(&t, p->root);
	assert_int_equal(tree_enter(&t, "up", &e), 0);
	assert_int_equal(fstat(t.fd, &here), 0);
	assert_int_equal(fstat(p->root, &want), 0);
	assert_int_equal(here.st_ino, want.st_ino);
	assert_int_equal(tree_enter(&t, "dangling/x", &e), -ENOTDIR);
	assert_string_equal(e.msg, "\"dangling\" is not a folder, nor a link to one");
	assert_true(tree_open(p->root, "up/../../etc/passwd", O_RDONLY) < 0);
	tree_done(&t);
}

static void removal(void **state)
{
	struct fixture *p = *state;
	struct hw_err e;
	struct tree t;

	tree_init(&t, p->root);
	assert_int_equal(tree_enter(&t, "d/0/1/2", &e), 0);
	assert_int_equal(tree_enter(&t, "d/1/1/2", &e), 0);
	assert_int_equal(tree_enter(&t, "d/x/0", &e), 0);
	assert_int_equal(symlinkat("/", t.fd, "slash"), 0);
	tree_done(&t);
	assert_int_equal(remove_tree(p->root, "d", &e), 0);
	assert_int_equal(faccessat(p->root, "d", F_OK, 0), -1);
	assert_int_equal(faccessat(AT_FDCWD, "/", F_OK, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "tree: work in a folder leaves its times as they were", times, set_up,
		  tear_down },
		{ "tree: folders that are not there are made, and told of", implied, set_up,
		  tear_down },
		{ "tree: links lead no further than the root", links, set_up, tear_down },
		{ "tree: a folder goes with all that is in it", removal, set_up, tear_down },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
