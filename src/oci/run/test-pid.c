/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/run/test-pid.c - the open files of a process
 */
#include "oci/run/pid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/str.h"

static void files_and_sockets_are_counted(void **state)
{
	uint64_t before = 0, old_sockets = 0, files = 7, sockets = 1;
	int pair[2], other;

	(void)state;
	assert_int_equal(pid_count_files(getpid(), UINT64_MAX, &before, &old_sockets), 0);
	assert_true(before > 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	other = dup(STDERR_FILENO);
	assert_true(other >= 0);
	assert_int_equal(pid_count_files(getpid(), UINT64_MAX, &files, &sockets), 0);
	assert_int_equal(files, 7 + before + 3);
	assert_int_equal(sockets, 1 + old_sockets + 2);
	close(pair[0]);
	close(pair[1]);
	close(other);
}

static void the_count_is_limited(void **state)
{
	uint64_t files = 0, sockets = 0;

	(void)state;
	assert_int_equal(pid_count_files(getpid(), 1, &files, &sockets), -E2BIG);
	assert_int_equal(files, 1);
}

static void a_process_that_does_not_exist_has_no_files(void **state)
{
	uint64_t files = 0, sockets = 0;

	(void)state;
	assert_int_equal(pid_count_files(INT_MAX, 1, &files, &sockets), 0);
	assert_int_equal(files, 0);
	assert_int_equal(pid_has_open(INT_MAX, str_equal, "/"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "pid: open files and sockets are counted", files_and_sockets_are_counted, NULL,
		  NULL, NULL },
		{ "pid: the count of open files is limited", the_count_is_limited, NULL, NULL,
		  NULL },
		{ "pid: a process that does not exist has no files",
		  a_process_that_does_not_exist_has_no_files, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests_name("pid", tests, NULL, NULL);
}
