/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/test-socket.c - sockets in a folder
 */
#include "rpc/socket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the ones above */
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

struct place {
	char dir[64];
	char path[80];
};

static const struct socket_owner owner = { .mode = 0600, .uid = (uid_t)-1, .gid = (gid_t)-1 };

static int place_make(void **state)
{
	struct place *p = mem_new(sizeof(*p));

	snprintf(p->dir, sizeof(p->dir), "%.40s/socket.XXXXXX", str_or(getenv("TMPDIR"), "/tmp"));
	if (!mkdtemp(p->dir))
		return -1;
	snprintf(p->path, sizeof(p->path), "%s/s", p->dir);
	*state = p;
	return 0;
}

static int place_end(void **state)
{
	struct place *p = *state;

	unlink(p->path);
	assert_int_equal(rmdir(p->dir), 0); /* nothing else was left */
	free(p);
	return 0;
}

static void has_its_mode(void **state)
{
	struct socket_owner group = { .mode = 0660, .uid = getuid(), .gid = getgid() };
	struct place *p = *state;
	autoclose int fd = -1;
	struct hw_err e;
	struct stat st;
	mode_t before = umask(0);

	assert_int_equal(socket_listen(p->path, &owner, &fd, &e), 0);
	umask(before);
	assert_int_equal(stat(p->path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0600);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(take_fd(fd));
	assert_int_equal(socket_listen(p->path, &group, &fd, &e), 0);
	assert_int_equal(stat(p->path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0660);
}

static void replaces_the_dead_only(void **state)
{
	struct place *p = *state;
	autoclose int first = -1, second = -1, client = -1;
	struct hw_err e;

	assert_int_equal(socket_listen(p->path, &owner, &first, &e), 0);
	assert_int_equal(socket_listen(p->path, &owner, &second, &e), -EADDRINUSE);
	assert_int_equal(socket_connect(p->path, &client, &e), 0);
	close(take_fd(client));
	close(take_fd(first));
	assert_int_equal(socket_connect(p->path, &client, &e), -ECONNREFUSED);
	assert_int_equal(socket_listen(p->path, &owner, &second, &e), 0);
	assert_int_equal(socket_connect(p->path, &client, &e), 0);
}

static void keeps_other_files(void **state)
{
	struct place *p = *state;
	struct hw_err e;
	struct stat st;
	int fd;

	assert_int_equal(file_replace(AT_FDCWD, p->path, "x", 1, 0600, 0, &e), 0);
	assert_int_equal(socket_listen(p->path, &owner, &fd, &e), -EEXIST);
	assert_int_equal(stat(p->path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
}

static void long_paths(void **state)
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
		name, f, place_make, place_end, NULL                                               \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("socket: has its mode and owner, whatever the umask", has_its_mode),
		TEST("socket: a dead server's is replaced, a living one's is not",
		     replaces_the_dead_only),
		TEST("socket: a file that is no socket is left alone", keeps_other_files),
		TEST("socket: a path that is too long, or leads nowhere, is said so", long_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
