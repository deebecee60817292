/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/test-userns.c - tests of base/os/userns.c
 */
#include "base/os/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/str.h"

static ino_t inode_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static void namespaces_belong_to_the_user_namespace(void **state)
{
	AUTO(userns_done) struct userns ns = USERNS_NONE;
	struct hw_err e;

	(void)state;
	assert_int_equal(userns_create(100000, 65536, CLONE_NEWNET | CLONE_NEWIPC, &ns, &e), 0);
	assert_int_equal(ns.uts, -1);
	for (size_t i = 0; i < 2; i++) {
		autoclose int owner = ioctl(i == 0 ? ns.net : ns.ipc, NS_GET_USERNS);

		assert_true(owner >= 0);
		assert_int_equal(inode_of(owner), inode_of(ns.user));
	}
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

/* In a process that has entered the namespace */
static int check_mapping(int fd)
{
	static const char *const files[] = { "/proc/self/uid_map", "/proc/self/gid_map" };
	struct hw_err e;

	if (setns(fd, CLONE_NEWUSER) < 0)
		return 2;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		AUTO(buf_done) struct buf text = { 0 };

		if (file_read(AT_FDCWD, files[i], 4096, &text, &e) < 0 ||
		    !str_equal(text.data, "         0     100000         10\n"))
			return 1;
	}
	return 0;
}

static void users_and_groups_are_mapped(void **state)
{
	AUTO(userns_done) struct userns ns = USERNS_NONE;
	struct hw_err e;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(userns_create(100000, 10, 0, &ns, &e), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(check_mapping(ns.user));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void an_invalid_mapping_leaves_nothing(void **state)
{
	struct userns ns = { 7, 7, 7, 7 };
	struct hw_err e;

	(void)state;
	assert_true(userns_create(100000, 0, CLONE_NEWUTS, &ns, &e) < 0);
	assert_true(strstr(e.msg, "uid_map"));
	assert_int_equal(ns.user, 7);
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "userns: further namespaces belong to the user namespace, and no process is left",
		  namespaces_belong_to_the_user_namespace, NULL, NULL, NULL },
		{ "userns: users and groups are mapped", users_and_groups_are_mapped, NULL, NULL,
		  NULL },
		{ "userns: an invalid mapping is refused, and no process is left",
		  an_invalid_mapping_leaves_nothing, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
