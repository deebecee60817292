/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/test-userns.c - tests of base/os/userns.c
 */
#include "base/os/userns.h"

#include <errno.h>
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

#include "base/os/proc.h"
#include "base/str.h"
#include "base/time.h"

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

/* A program enters the namespace: under TSan, a child of this process has several threads. */
static void assert_mapping(int fd, const char *file)
{
	autofree char *user = str_printf("--user=/proc/%d/fd/%d", (int)getpid(), fd);
	const char *const argv[] = { "nsenter", user, "--preserve-credentials", "cat", file, NULL };
	AUTO(proc_result_done) struct proc_result result = { 0 };
	const struct proc p = { .path = "/usr/bin/nsenter",
				.argv = argv,
				.output_max = 4096,
				.cancel_fd = -1,
				.deadline = time_deadline(10000) };
	struct hw_err e;

	assert_int_equal(proc_run(&p, &result, &e), 0);
	assert_int_equal(result.status, 0);
	assert_string_equal(result.output.data, "         0     100000         10\n");
}

static void users_and_groups_are_mapped(void **state)
{
	AUTO(userns_done) struct userns ns = USERNS_NONE;
	struct hw_err e;

	(void)state;
	assert_int_equal(userns_create(100000, 10, 0, &ns, &e), 0);
	assert_mapping(ns.user, "/proc/self/uid_map");
	assert_mapping(ns.user, "/proc/self/gid_map");
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
