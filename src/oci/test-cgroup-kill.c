/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/test-cgroup-kill.c - list and kill the processes of a cgroup
 *
 * How:   with the cgroups of this host; test/uml/oci.bats runs it with cgroup v2.
 */
#include "oci/test.h"

#include <stdio.h>
#include <stdlib.h>

static void kill_cgroup(const struct cgroup_fs *fs, const char *path)
{
	struct hw_err e;

	assert_ok(cgroup_kill(fs, path, time_deadline(TEST_MS), &e), &e);
}

static void assert_killed(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static size_t count_processes(const struct cgroup_fs *fs, const char *path)
{
	struct cgroup_pids pids = { 0 };
	struct hw_err e;

	assert_ok(cgroup_list(fs, path, &pids, &e), &e);
	free(pids.v);
	return pids.n;
}

static bool has_pid(const struct cgroup_pids *pids, pid_t pid)
{
	for (size_t i = 0; i < pids->n; i++)
		if (pids->v[i] == pid)
			return true;
	return false;
}

static void lists_each_process_once(void **state)
{
	struct cgroup_fs *fs = *state;
	struct cgroup_pids pids = { 0 };
	struct hw_err e;
	pid_t one, two;

	create_cgroup(fs, TEST_CGROUP "/a/b");
	create_cgroup(fs, TEST_CGROUP "/c");
	assert_int_equal(count_processes(fs, TEST_CGROUP), 0);
	one = start_in(fs, TEST_CGROUP "/a/b", run_forever);
	two = start_in(fs, TEST_CGROUP "/c", run_forever);
	assert_ok(cgroup_list(fs, TEST_CGROUP, &pids, &e), &e);
	assert_int_equal(pids.n, 2);
	assert_true(has_pid(&pids, one) && has_pid(&pids, two));
	free(pids.v);
}

static void missing_cgroup(void **state)
{
	struct cgroup_fs *fs = *state;
	struct hw_err e;

	assert_int_equal(count_processes(fs, TEST_CGROUP "/none"), 0);
	assert_ok(cgroup_kill(fs, TEST_CGROUP "/none", 0, &e), &e);
}

static void kills_all_below(void **state)
{
	struct cgroup_fs *fs = *state;
	pid_t one, two, outside;

	create_cgroup(fs, TEST_CGROUP "/a/b");
	create_cgroup(fs, TEST_CGROUP "/a/d/e");
	create_cgroup(fs, TEST_CGROUP "/c");
	one = start_in(fs, TEST_CGROUP "/a/b", run_forever);
	two = start_in(fs, TEST_CGROUP "/a/d/e", run_forever);
	outside = start_in(fs, TEST_CGROUP "/c", run_forever);
	kill_cgroup(fs, TEST_CGROUP "/a");
	assert_killed(one);
	assert_killed(two);
	assert_int_equal(waitpid(outside, NULL, WNOHANG), 0);
}

/* More than one batch */
static void kills_many(void **state)
{
	struct cgroup_fs *fs = *state;
	pid_t pids[150];

	create_cgroup(fs, TEST_CGROUP);
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		pids[i] = start_in(fs, TEST_CGROUP, run_forever);
	kill_cgroup(fs, TEST_CGROUP);
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		assert_killed(pids[i]);
}

static void write_file(const struct cgroup_hierarchy *h, const char *path, const char *file,
		       const char *value)
{
	autofree char *name = str_printf("%s%s/%s", h->dir, path, file);
	autoclose int fd = open(name, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, value, strlen(value)), strlen(value));
}

/* Each process forks all the time; the caller has limited their number. */
static void fork_bomb(void)
{
	for (;;)
		fork();
}

static void kills_forking_processes(void **state)
{
	struct cgroup_fs *fs = *state;
	const struct cgroup_hierarchy *h = cgroup_find_hierarchy(fs, "pids");

	if (!h) {
		print_message("there is no pids controller\n");
		skip();
		return;
	}
	create_cgroup(fs, TEST_CGROUP);
	write_file(h, TEST_CGROUP, "pids.max", "50");
	start_in(fs, TEST_CGROUP, fork_bomb);
	while (count_processes(fs, TEST_CGROUP) < 50)
		;
	kill_cgroup(fs, TEST_CGROUP);
}

static void kills_frozen_processes(void **state)
{
	struct cgroup_fs *fs = *state;
	const struct cgroup_hierarchy *h = cgroup_find_hierarchy(fs, "freezer");
	pid_t pid;

	create_cgroup(fs, TEST_CGROUP "/a/b");
	pid = start_in(fs, TEST_CGROUP "/a/b", run_forever);
	if (h)
		write_file(h, TEST_CGROUP "/a/b", "freezer.state", "FROZEN");
	else
		write_file(&fs->v[0], TEST_CGROUP "/a/b", "cgroup.freeze", "1");
	kill_cgroup(fs, TEST_CGROUP "/a");
	assert_killed(pid);
}

static void thaws_a_cgroup(void **state)
{
	struct cgroup_fs *fs = *state;
	const struct cgroup_hierarchy *h = cgroup_find_hierarchy(fs, "freezer");
	struct hw_err e;
	pid_t pid;

	create_cgroup(fs, TEST_CGROUP "/a/b");
	assert_ok(cgroup_thaw(fs, TEST_CGROUP "/none", &e), &e);
	if (!h || h->v2) /* nothing is frozen there */
		return;
	pid = start_in(fs, TEST_CGROUP "/a/b", run_forever);
	write_file(h, TEST_CGROUP "/a/b", "freezer.state", "FROZEN");
	write_file(h, TEST_CGROUP "/a", "freezer.state", "FROZEN");
	assert_ok(cgroup_thaw(fs, TEST_CGROUP "/a", &e), &e);
	assert_int_equal(kill(pid, SIGKILL), 0); /* a frozen process would not die */
	assert_killed(pid);
}

/* A process that has moved into the cgroup of one hierarchy */
static void kills_in_each_hierarchy(void **state)
{
	struct cgroup_fs *fs = *state;
	struct cgroup_fs one = { fs->v[0].v2 ? CGROUP_V2 : CGROUP_V1, fs->v, 1 };

	create_cgroup(fs, TEST_CGROUP);
	for (size_t i = 0; i < fs->n; i++) {
		pid_t pid;

		one.v = &fs->v[i];
		pid = start_in(&one, TEST_CGROUP, run_forever);
		kill_cgroup(fs, TEST_CGROUP);
		assert_killed(pid);
	}
}

static void deadline_has_passed(void **state)
{
	struct cgroup_fs *fs = *state;
	struct hw_err e;
	pid_t pid;

	create_cgroup(fs, TEST_CGROUP);
	pid = start_in(fs, TEST_CGROUP, run_forever);
	assert_int_equal(cgroup_kill(fs, TEST_CGROUP, 0, &e), -ETIMEDOUT);
	assert_string_equal(e.msg, "kill cgroup " TEST_CGROUP ": timed out, 1 processes left");
	assert_killed(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CGROUP_TEST("cgroup-kill: a process is listed once, also in a cgroup below",
			    lists_each_process_once),
		CGROUP_TEST("cgroup-kill: a missing cgroup has no processes", missing_cgroup),
		CGROUP_TEST(
			"cgroup-kill: the processes of a cgroup and of those below it are killed",
			kills_all_below),
		CGROUP_TEST("cgroup-kill: many processes are killed", kills_many),
		CGROUP_TEST("cgroup-kill: processes that fork all the time are killed",
			    kills_forking_processes),
		CGROUP_TEST("cgroup-kill: frozen processes are killed", kills_frozen_processes),
		CGROUP_TEST("cgroup-kill: a frozen cgroup of v1 is thawed with those below it",
			    thaws_a_cgroup),
		CGROUP_TEST("cgroup-kill: a process in only one hierarchy is killed",
			    kills_in_each_hierarchy),
		CGROUP_TEST("cgroup-kill: processes are killed even if the deadline has passed",
			    deadline_has_passed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
