/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/test.h - helpers for unit tests of cgroups: real cgroups, and processes in them
 *
 * Each test with CGROUP_TEST() has the hierarchies of this host, in which /hawser-test is empty, and
 * removes it afterwards with all its processes. The tests run in test/sandbox, which has its own
 * cgroups.
 */
#ifndef OCI_TEST_H
#define OCI_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/proc.h"
#include "base/time.h"
#include "oci/cgroup.h"

#define TEST_CGROUP "/hawser-test"
#define TEST_MS	    20000

#define CGROUP_TEST(sentence, f)                                                                   \
	{                                                                                          \
		sentence, f, cgroup_setup, cgroup_teardown, NULL                                   \
	}

static inline int cgroup_setup(void **state)
{
	struct cgroup_fs *fs = NULL;
	struct hw_err e;

	if (cgroup_fs_new("", &fs, &e) < 0) {
		print_message("%s\n", e.msg);
		return -1;
	}
	*state = fs;
	return 0;
}

static inline int cgroup_teardown(void **state)
{
	struct cgroup_fs *fs = *state;
	struct hw_err e;
	int r;

	r = cgroup_kill(fs, TEST_CGROUP, time_deadline(TEST_MS), &e);
	if (r == 0)
		r = cgroup_remove(fs, TEST_CGROUP, time_deadline(TEST_MS), &e);
	if (r < 0)
		print_message("%s\n", e.msg);
	cgroup_fs_free(fs);
	while (waitpid(-1, NULL, 0) > 0)
		;
	return r;
}

static inline void assert_ok(int r, const struct hw_err *e)
{
	if (r < 0)
		fail_msg("%s", e->msg);
}

static inline void create_cgroup(const struct cgroup_fs *fs, const char *path)
{
	struct hw_err e;

	assert_ok(cgroup_create(fs, path, &e), &e);
}

/* In a child process: exits if it cannot enter the cgroup. */
static inline void enter_cgroup(const struct hw_strings *files)
{
	for (size_t i = 0; i < files->n; i++) {
		int fd = open(files->v[i], O_WRONLY | O_CLOEXEC);

		if (fd < 0 || write(fd, "0", 1) != 1)
			_exit(1);
		close(fd);
	}
}

/* Starts a process that enters the cgroup and calls @run there. */
static inline pid_t start_in(const struct cgroup_fs *fs, const char *path, void (*run)(void))
{
	AUTO(hw_strings_free) struct hw_strings files = { 0 };
	char byte = 0;
	int ready[2];
	pid_t pid;

	cgroup_procs_files(fs, path, &files);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(ready[0]);
		enter_cgroup(&files);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		close(ready[1]);
		run();
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static inline void run_forever(void)
{
	for (;;)
		pause();
}

/* Runs commands of a shell, which must succeed. */
static inline void run_shell(const char *commands)
{
	const char *const argv[] = { "/bin/sh", "-ec", commands, NULL };
	AUTO(proc_result_done) struct proc_result result = { 0 };
	struct hw_err e;

	assert_ok(proc_run(
			  &(struct proc){
				  .path = argv[0],
				  .argv = argv,
				  .stderr_through = true,
				  .cancel_fd = -1,
				  .deadline = time_deadline(TEST_MS),
			  },
			  &result, &e),
		  &e);
	assert_int_equal(result.status, 0);
}

#endif
