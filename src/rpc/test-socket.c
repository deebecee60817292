/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/test-socket.c - unix sockets in a temporary directory
 */
#include "rpc/socket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"

struct fixture {
	char dir[64];
	char path[80];
};

static const struct socket_owner owner = { .mode = 0600, .uid = (uid_t)-1, .gid = (gid_t)-1 };

static int fixture_setup(void **state)
{
	struct fixture *f = mem_new(sizeof(*f));

	snprintf(f->dir, sizeof(f->dir), "%.40s/socket.XXXXXX", str_or(getenv("TMPDIR"), "/tmp"));
	if (!mkdtemp(f->dir))
		return -1;
	snprintf(f->path, sizeof(f->path), "%s/s", f->dir);
	*state = f;
	return 0;
}

static int fixture_teardown(void **state)
{
	struct fixture *f = *state;

	unlink(f->path);
	assert_int_equal(rmdir(f->dir), 0); /* fails if the directory contains another file */
	free(f);
	return 0;
}

static void sets_mode_and_owner(void **state)
{
	struct socket_owner group = { .mode = 0660, .uid = getuid(), .gid = getgid() };
	struct fixture *f = *state;
	autoclose int fd = -1;
	struct hw_err e;
	struct stat st;
	mode_t before = umask(0);

	assert_int_equal(socket_listen(f->path, &owner, &fd, &e), 0);
	umask(before);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0600);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(take_fd(fd));
	assert_int_equal(socket_listen(f->path, &group, &fd, &e), 0);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0660);
}

static void replaces_unused_socket_only(void **state)
{
	struct fixture *f = *state;
	autoclose int first = -1, second = -1, client = -1;
	struct hw_err e;

	assert_int_equal(socket_listen(f->path, &owner, &first, &e), 0);
	assert_int_equal(socket_listen(f->path, &owner, &second, &e), -EADDRINUSE);
	assert_int_equal(socket_connect(f->path, &client, &e), 0);
	close(take_fd(client));
	close(take_fd(first));
	assert_int_equal(socket_connect(f->path, &client, &e), -ECONNREFUSED);
	assert_int_equal(socket_listen(f->path, &owner, &second, &e), 0);
	assert_int_equal(socket_connect(f->path, &client, &e), 0);
}

static void keeps_other_files(void **state)
{
	struct fixture *f = *state;
	struct hw_err e;
	struct stat st;
	int fd;

	assert_int_equal(file_replace(AT_FDCWD, f->path, "x", 1, 0600, 0, &e), 0);
	assert_int_equal(socket_listen(f->path, &owner, &fd, &e), -EEXIST);
	assert_int_equal(stat(f->path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
}

static void invalid_paths(void **state)
{
	char path[200] = { 0 };
	struct hw_err e;
	int fd;

	(void)state;
	memset(path, 'p', sizeof(path) - 1);
	assert_int_equal(socket_connect(path, &fd, &e), -ENAMETOOLONG);
	assert_int_equal(socket_listen(path, &owner, &fd, &e), -ENAMETOOLONG);
	assert_int_equal(socket_connect("/nowhere/s", &fd, &e), -ENOENT);
	assert_string_equal(e.msg, "connect to /nowhere/s: No such file or directory");
}

#define TEST(name, f)                                                                              \
	{                                                                                          \
		name, f, fixture_setup, fixture_teardown, NULL                                     \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("socket: mode and owner do not depend on the umask", sets_mode_and_owner),
		TEST("socket: an unused socket is replaced, a socket in use is not",
		     replaces_unused_socket_only),
		TEST("socket: a file that is not a socket is not replaced", keeps_other_files),
		TEST("socket: a path that is too long or does not exist is rejected",
		     invalid_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
