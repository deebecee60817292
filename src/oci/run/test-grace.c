/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/run/test-grace.c - the early wait for a grace period does not move this process
 */
#include "oci/run/grace.h"

#include "base/os/file.h"
#include "oci/test.h"

static char *read_text(const char *path)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct hw_err e;

	return file_read(AT_FDCWD, path, 1 << 20, &text, &e) < 0 ? NULL : buf_take(&text);
}

/* In a child process, which is in a cgroup of its own. Return: whether the file is that of this cgroup,
 * and the process is still in it */
static bool stays(const struct cgroup_fs *fs)
{
	autofree char *before = read_text("/proc/self/cgroup"), *after = NULL, *pids = NULL;
	autofree char *file = NULL, *own = str_printf("%d\n", getpid());
	struct grace g;

	grace_start(&g, fs);
	file = str_copy(g.file);
	grace_end(&g);
	after = read_text("/proc/self/cgroup");
	pids = file ? read_text(file) : NULL;
	return pids && strstr(file, TEST_CGROUP "/own/cgroup.procs") && str_equal(pids, own) &&
	       str_equal(before, after);
}

static void the_process_stays(void **state)
{
	AUTO(hw_strings_free) struct hw_strings files = { 0 };
	const struct cgroup_fs *fs = *state;
	int status = -1;
	pid_t pid;

	create_cgroup(fs, TEST_CGROUP "/own");
	cgroup_procs_files(fs, TEST_CGROUP "/own", &files);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		enter_cgroup(&files);
		_exit(stays(fs) ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void a_missing_hierarchy_is_ignored(void **state)
{
	struct cgroup_hierarchy none = { .dir = (char *)"/nonexistent" };
	const struct cgroup_fs fs = { CGROUP_V1, &none, 1 };
	struct grace g;

	(void)state;
	grace_start(&g, &fs);
	grace_end(&g);
	grace_end(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CGROUP_TEST("grace: the process stays in its cgroup", the_process_stays),
		{ "grace: a missing hierarchy is ignored", a_missing_hierarchy_is_ignored },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
