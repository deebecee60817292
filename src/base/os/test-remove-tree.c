/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/test-remove-tree.c - remove directories with their contents
 */
#include "base/os/remove-tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/thread.h"
#include "base/str.h"

#define DEEP	20 /* more levels than the function descends */
#define ROUNDS	300
#define THREADS 4

static int open_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static int setup(void **state)
{
	*state = mkdtemp(str_copy("/tmp/remove-tree.XXXXXX"));
	return *state && chdir(*state) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	autofree char *path = *state;

	return rmdir(path); /* the tests leave nothing */
}

static void make_file(int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

/* A directory with files, and a chain of directories with files. */
static void make_tree(const char *name)
{
	int dir;

	assert_int_equal(mkdir(name, 0755), 0);
	dir = open_directory(name);
	for (int i = 0; i < DEEP; i++) {
		autoclose int upper = dir;

		make_file(upper, "a");
		make_file(upper, "z");
		assert_int_equal(mkdirat(upper, "m", 0755), 0);
		dir = openat(upper, "m", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(dir >= 0);
	}
	close(dir);
}

static void removes_everything_below(void **state)
{
	struct hw_err e;

	(void)state;
	make_tree("tree");
	assert_int_equal(symlink("/", "tree/link"), 0);
	assert_int_equal(remove_tree(AT_FDCWD, "tree", &e), 0);
	assert_int_equal(access("tree", F_OK), -1);
	assert_int_equal(access("/etc/passwd", F_OK), 0);
	assert_int_equal(remove_tree(AT_FDCWD, "tree", &e), 0);
	make_file(AT_FDCWD, "file");
	assert_int_equal(remove_tree(AT_FDCWD, "file", &e), 0);
}

static void *remove_it(void *arg)
{
	struct hw_err e = { 0 };

	if (remove_tree(AT_FDCWD, "tree", &e) < 0)
		snprintf(arg, sizeof(e.msg), "%s", e.msg);
	return NULL;
}

static void may_be_called_for_one_directory_at_the_same_time(void **state)
{
	static char errors[THREADS][sizeof(((struct hw_err *)NULL)->msg)];

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		pthread_t threads[THREADS];
		struct hw_err e;

		make_tree("tree");
		for (int i = 0; i < THREADS; i++)
			assert_int_equal(thread_start(remove_it, errors[i], &threads[i], &e), 0);
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		for (int i = 0; i < THREADS; i++)
			assert_string_equal(errors[i], "");
		assert_int_equal(access("tree", F_OK), -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "remove-tree: everything below a directory is removed", removes_everything_below,
		  setup, teardown, NULL },
		{ "remove-tree: several threads may remove one directory",
		  may_be_called_for_one_directory_at_the_same_time, setup, teardown, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
