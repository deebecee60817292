/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/test-pause.c - hawser-pause: start, work, rights and end
 *
 * How:   the program of the build tree ($HAWSER_BUILD), in real namespaces and cgroups
 */
#include "oci/pause.h"

#include "oci/test.h"

#include <linux/capability.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "base/os/file.h"
#include "base/os/namespace.h"
#include "base/os/thread.h"
#include "base/os/userns.h"

/* ---- helpers --------------------------------------------------------------------------------- */

static int pause_setup(void **state)
{
	autofree char *program =
		str_printf("%s/bin/hawser-pause", str_or(getenv("HAWSER_BUILD"), "build"));
	struct pause_host *host = NULL;
	struct hw_err e;

	if (pause_host_new(program, &host, &e) < 0) {
		print_message("%s\n", e.msg);
		return -1;
	}
	*state = host;
	return 0;
}

static int pause_teardown(void **state)
{
	pause_host_free(*state);
	return 0;
}

static struct pause_process start_waiting(const struct pause_host *host,
					  const struct hw_strings *files)
{
	static const struct hw_strings none;
	struct pause_process p;
	struct hw_err e;

	assert_ok(pause_start(host, files ? files : &none, -1, &p, &e), &e);
	assert_true(p.pid > 1 && p.pidfd >= 0 && p.go >= 0);
	return p;
}

static struct pause_process start(const struct pause_host *host, const struct hw_strings *files)
{
	struct pause_process p = start_waiting(host, files);
	struct hw_err e;

	assert_ok(pause_go(&p, &e), &e);
	assert_int_equal(p.go, -1);
	return p;
}

static struct namespace_id ns_of(pid_t pid)
{
	autofree char *path = str_printf("/proc/%d/ns/pid", (int)pid);
	struct namespace_id ns = { 0 };
	struct hw_err e;

	assert_int_equal(namespace_get(path, &ns, &e), 1);
	return ns;
}

static void stop(struct pause_process *p)
{
	struct namespace_id ns = ns_of(p->pid);
	struct hw_err e;

	assert_ok(pause_kill(p->pid, &ns, time_deadline(TEST_MS), &e), &e);
	pause_process_done(p);
}

static bool has_ended(const struct pause_process *p, int ms)
{
	struct pollfd ended = { .fd = p->pidfd, .events = POLLIN };

	return poll(&ended, 1, ms) == 1;
}

/* Return: the first line of /proc/PID/NAME that starts with this text, without the text; else "" */
static char *proc_line(pid_t pid, const char *name, const char *start_text)
{
	autofree char *path = str_printf("/proc/%d/%s", (int)pid, name);
	AUTO(buf_done) struct buf text = { 0 };
	AUTO(hw_strings_free) struct hw_strings lines = { 0 };
	struct hw_err e;

	assert_ok(file_read(AT_FDCWD, path, 1 << 20, &text, &e), &e);
	strings_split(text.len ? text.data : "", '\n', &lines);
	for (size_t i = 0; i < lines.n; i++)
		if (str_starts(lines.v[i], start_text))
			return str_copy(lines.v[i] + strlen(start_text));
	return str_copy("");
}

static void assert_line(pid_t pid, const char *name, const char *start_text, const char *want)
{
	autofree char *got = proc_line(pid, name, start_text);

	assert_string_equal(got, want);
}

/* Waits until hawser-pause has its final rights, which it takes after pause_go(). */
static void wait_until_confined(pid_t pid)
{
	int64_t deadline = time_deadline(TEST_MS);

	for (;;) {
		autofree char *mode = proc_line(pid, "status", "Seccomp:\t");

		if (str_equal(mode, "2"))
			return;
		assert_false(time_has_passed(deadline));
		time_sleep(1);
	}
}

static int count_entry(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	(void)entry, (void)e;
	++*(int *)ctx;
	return 0;
}

static int count_entries(pid_t pid, const char *name)
{
	autofree char *path = str_printf("/proc/%d/%s", (int)pid, name);
	struct hw_err e;
	int n = 0;

	assert_ok(file_walk(AT_FDCWD, path, count_entry, &n, &e), &e);
	return n;
}

/* ---- start and end --------------------------------------------------------------------------- */

static void is_process_1(void **state)
{
	struct pause_process p = start(*state, NULL);
	struct namespace_id own = ns_of(getpid()), ns = ns_of(p.pid);
	autofree char *ids = proc_line(p.pid, "status", "NSpid:\t");

	assert_true(own.ino != ns.ino);
	assert_true(str_ends(ids, "\t1"));
	stop(&p);
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1); /* reaped */
}

static void missing_program(void **state)
{
	AUTO(pause_host_free) struct pause_host *host = NULL;
	static const struct hw_strings none;
	struct pause_process p = { .pid = 7 };
	struct hw_err e;

	(void)state;
	assert_ok(pause_host_new("/proc/none", &host, &e), &e);
	assert_int_equal(pause_start(host, &none, -1, &p, &e), -ENOENT);
	assert_string_equal(e.msg, "execute /proc/none: No such file or directory");
	assert_int_equal(p.pid, 7);
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
}

static void ends_with_its_starter(void **state)
{
	struct pause_process p = start_waiting(*state, NULL);

	assert_false(has_ended(&p, 20));
	close(take_fd(p.go)); /* as if this process had died */
	assert_true(has_ended(&p, TEST_MS));
	assert_int_equal(waitpid(p.pid, NULL, __WALL), p.pid);
	pause_process_done(&p);
}

static void not_started_is_undone(void **state)
{
	struct pause_process p = start_waiting(*state, NULL);

	pause_process_done(&p);
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
	pause_process_done(&p);
}

static void go_after_its_death(void **state)
{
	struct pause_process p = start_waiting(*state, NULL);
	struct hw_err e;

	kill(p.pid, SIGKILL);
	assert_true(has_ended(&p, TEST_MS));
	assert_int_equal(pause_go(&p, &e), -EPIPE);
	pause_process_done(&p);
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
}

static void ends_on_signals(void **state)
{
	static const int numbers[] = { SIGTERM, SIGINT };

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		struct pause_process p = start(*state, NULL);
		struct namespace_id ns = ns_of(p.pid);
		struct hw_err e;

		wait_until_confined(p.pid);
		for (int number = 1; number < NSIG; number++)
			if (number != SIGKILL && number != SIGSTOP && number != SIGTERM &&
			    number != SIGINT)
				kill(p.pid, number);
		kill(p.pid, SIGSTOP); /* interrupts a system call */
		kill(p.pid, SIGCONT);
		assert_false(has_ended(&p, 20));
		kill(p.pid, numbers[i]);
		assert_true(has_ended(&p, TEST_MS));
		assert_ok(pause_kill(p.pid, &ns, time_deadline(TEST_MS), &e), &e);
		assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
		pause_process_done(&p);
	}
}

/* ---- work ------------------------------------------------------------------------------------ */

/* In a child that is in the namespace: leaves an orphan that ends. */
static int leave_orphan(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return pid < 0;
}

static void reaps_orphans(void **state)
{
	struct pause_process p = start(*state, NULL);
	autofree char *path = str_printf("/proc/%d/ns/pid", (int)p.pid);
	int64_t deadline = time_deadline(TEST_MS);
	pid_t helper, inner;
	int status;

	helper = fork(); /* setns() changes the namespace of children, forever */
	assert_true(helper >= 0);
	if (helper == 0) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		if (fd < 0 || setns(fd, CLONE_NEWPID) < 0)
			_exit(1);
		inner = fork();
		if (inner == 0)
			_exit(leave_orphan());
		_exit(inner < 0 || waitpid(inner, &status, 0) != inner || status != 0);
	}
	assert_int_equal(waitpid(helper, &status, 0), helper);
	assert_int_equal(status, 0);
	for (;;) {
		autofree char *children = str_printf("task/%d/children", (int)p.pid);
		autofree char *list = proc_line(p.pid, children, "");

		if (str_empty(list))
			break;
		assert_false(time_has_passed(deadline));
		time_sleep(1);
	}
	stop(&p);
}

static void enters_cgroups(void **state)
{
	AUTO(cgroup_fs_free) struct cgroup_fs *fs = NULL;
	AUTO(hw_strings_free) struct hw_strings files = { 0 };
	struct cgroup_pids pids = { 0 };
	struct pause_process p;
	struct hw_err e;

	assert_ok(cgroup_fs_new("", &fs, &e), &e);
	create_cgroup(fs, TEST_CGROUP);
	cgroup_procs_files(fs, TEST_CGROUP, &files);
	strings_add(&files, "/proc/none"); /* it continues after an error */
	p = start(*state, &files);
	wait_until_confined(p.pid);
	for (size_t i = 0; i < fs->n; i++) {
		struct cgroup_fs one = { fs->mode, &fs->v[i], 1 };

		assert_ok(cgroup_list(&one, TEST_CGROUP, &pids, &e), &e);
		assert_int_equal(pids.n, 1);
		assert_int_equal(pids.v[0], p.pid);
		free(pids.v);
	}
	stop(&p);
	assert_ok(cgroup_remove(fs, TEST_CGROUP, time_deadline(TEST_MS), &e), &e);
}

/* ---- rights ---------------------------------------------------------------------------------- */

static void has_no_rights(void **state)
{
	struct pause_process p = start(*state, NULL);

	wait_until_confined(p.pid);
	assert_line(p.pid, "status", "CapPrm:\t", "0000000000000000");
	assert_line(p.pid, "status", "CapEff:\t", "0000000000000000");
	assert_line(p.pid, "status", "NoNewPrivs:\t", "1");
	assert_line(p.pid, "environ", "", "");
	assert_int_equal(count_entries(p.pid, "fd"), 0);
	assert_int_equal(count_entries(p.pid, "root"), 0);
	assert_int_equal(count_entries(p.pid, "cwd"), 0);
	assert_true(getsid(p.pid) != getsid(0));
	stop(&p);
}

/* A container has the same user, and fewer capabilities than the daemon. */
static void cannot_be_traced(void **state)
{
	struct pause_process p = start(*state, NULL);
	int status;
	pid_t pid;

	wait_until_confined(p.pid);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
		struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

		if (syscall(SYS_capset, &head, none) < 0)
			_exit(2);
		_exit(ptrace(PTRACE_SEIZE, p.pid, NULL, NULL) == 0 || errno != EPERM);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	stop(&p);
}

static void mounts_are_empty(void **state)
{
	struct pause_process p = start(*state, NULL);
	autofree char *first = NULL;

	wait_until_confined(p.pid);
	first = proc_line(p.pid, "mounts", "hawser-pause / tmpfs ro,");
	assert_false(str_empty(first));
	assert_line(p.pid, "mounts", "/", "");
	stop(&p);
}

static void memory_is_small(void **state)
{
	struct pause_process p = start(*state, NULL);
	autofree char *rss = NULL, *private = NULL;

	wait_until_confined(p.pid);
	rss = proc_line(p.pid, "smaps_rollup", "Rss:");
	private = proc_line(p.pid, "smaps_rollup", "Private_Dirty:");
	print_message("hawser-pause: RSS %s, private %s\n", rss, private);
	assert_true(strtol(rss, NULL, 10) <= 64 && strtol(private, NULL, 10) <= 32);
	stop(&p);
}

static void oom_score_is_low(void **state)
{
	struct pause_process p = start(*state, NULL);
	autofree char *score = proc_line(p.pid, "oom_score_adj", "");
	autofree char *own = proc_line(getpid(), "oom_score_adj", "");

	assert_true(str_equal(score, "-998") ||
		    str_equal(score, own)); /* without CAP_SYS_RESOURCE */
	stop(&p);
}

/* ---- kill ------------------------------------------------------------------------------------ */

static void another_namespace_is_left_alone(void **state)
{
	struct pause_process p = start(*state, NULL);
	struct namespace_id own = ns_of(getpid());
	struct hw_err e;

	assert_ok(pause_kill(p.pid, &own, time_deadline(TEST_MS), &e), &e);
	assert_false(has_ended(&p, 20));
	stop(&p);
}

static void missing_process(void **state)
{
	struct pause_process p = start(*state, NULL);
	struct namespace_id ns = ns_of(p.pid);
	struct hw_err e;

	assert_ok(pause_kill(p.pid, &ns, time_deadline(TEST_MS), &e), &e);
	assert_ok(pause_kill(p.pid, &ns, time_deadline(TEST_MS), &e), &e);
	pause_process_done(&p);
}

/* The process of an earlier daemon: started by a process that has ended */
static void orphan_is_killed(void **state)
{
	struct pause_process p = { .pidfd = -1, .go = -1 };
	struct namespace_id ns;
	int answer[2], status;
	struct hw_err e;
	pid_t daemon;

	assert_int_equal(pipe2(answer, O_CLOEXEC), 0);
	daemon = fork();
	assert_true(daemon >= 0);
	if (daemon == 0) {
		static const struct hw_strings none;

		if (pause_start(*state, &none, -1, &p, &e) < 0 || pause_go(&p, &e) < 0 ||
		    write(answer[1], &p.pid, sizeof(p.pid)) != sizeof(p.pid))
			_exit(1);
		_exit(0);
	}
	assert_int_equal(read(answer[0], &p.pid, sizeof(p.pid)), sizeof(p.pid));
	assert_int_equal(waitpid(daemon, &status, 0), daemon);
	assert_int_equal(status, 0);
	p.pidfd = pidfd_open(p.pid, 0);
	ns = ns_of(p.pid);
	assert_false(has_ended(&p, 20));
	assert_ok(pause_kill(p.pid, &ns, time_deadline(TEST_MS), &e), &e);
	assert_true(has_ended(&p, 0));
	pause_process_done(&p);
	close(answer[0]);
	close(answer[1]);
}

static void *start_and_stop(void *arg)
{
	for (int i = 0; i < 20; i++) {
		struct pause_process p = start(arg, NULL);

		stop(&p);
	}
	return NULL;
}

static void several_threads(void **state)
{
	pthread_t threads[4];
	struct hw_err e;

	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_ok(thread_start(start_and_stop, *state, &threads[i], &e), &e);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
}

static void is_in_the_user_namespace(void **state)
{
	AUTO(userns_done) struct userns ns = USERNS_NONE;
	static const struct hw_strings none;
	struct pause_process p;
	struct hw_err e;

	assert_ok(userns_create(100000, 1000, 0, &ns, &e), &e);
	assert_ok(pause_start(*state, &none, ns.user, &p, &e), &e);
	assert_ok(pause_go(&p, &e), &e);
	wait_until_confined(p.pid);
	for (size_t i = 0; i < 2; i++) {
		autofree char *path = str_printf("/proc/%d/ns/%s", (int)p.pid, i ? "user" : "pid");
		autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
		autoclose int owner = i ? -1 : ioctl(fd, NS_GET_USERNS);
		struct stat found, want;

		assert_int_equal(fstat(i ? fd : owner, &found), 0);
		assert_int_equal(fstat(ns.user, &want), 0);
		assert_int_equal(found.st_ino, want.st_ino);
	}
	assert_line(p.pid, "status", "Uid:\t", "100000\t100000\t100000\t100000");
	assert_line(p.pid, "status", "Groups:\t", " ");
	assert_line(p.pid, "status", "CapEff:\t", "0000000000000000");
	assert_line(p.pid, "mounts", "/", "");
	stop(&p);
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
}

static void missing_program_in_a_user_namespace(void **state)
{
	AUTO(pause_host_free) struct pause_host *host = NULL;
	AUTO(userns_done) struct userns ns = USERNS_NONE;
	static const struct hw_strings none;
	struct pause_process p;
	struct hw_err e;

	(void)state;
	assert_ok(userns_create(100000, 1000, 0, &ns, &e), &e);
	assert_ok(pause_host_new("/etc/passwd", &host, &e), &e); /* not executable */
	assert_int_equal(pause_start(host, &none, ns.user, &p, &e), -EACCES);
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
}

#define PAUSE_TEST(sentence, f)                                                                    \
	{                                                                                          \
		sentence, f, NULL, NULL, NULL                                                      \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PAUSE_TEST("pause: it is process 1 of a new PID namespace", is_process_1),
		PAUSE_TEST("pause: a missing program is an error", missing_program),
		PAUSE_TEST("pause: it ends if its starter dies before it records the pod",
			   ends_with_its_starter),
		PAUSE_TEST("pause: a process without pause_go() is killed and reaped",
			   not_started_is_undone),
		PAUSE_TEST("pause: pause_go() fails if the process was killed", go_after_its_death),
		PAUSE_TEST("pause: only SIGTERM and SIGINT end it", ends_on_signals),
		PAUSE_TEST("pause: orphans are reaped", reaps_orphans),
		PAUSE_TEST("pause: it enters the cgroups that it is given", enters_cgroups),
		PAUSE_TEST("pause: it has no capability, descriptor, environment or directory",
			   has_no_rights),
		PAUSE_TEST("pause: it cannot be traced without CAP_SYS_PTRACE", cannot_be_traced),
		PAUSE_TEST("pause: its mount namespace is empty", mounts_are_empty),
		PAUSE_TEST("pause: in a user namespace it is root without rights, and its PID "
			   "namespace belongs to it",
			   is_in_the_user_namespace),
		PAUSE_TEST(
			"pause: in a user namespace, a program that cannot be executed is an error",
			missing_program_in_a_user_namespace),
		PAUSE_TEST("pause: it needs little memory", memory_is_small),
		PAUSE_TEST("pause: oom_score_adj is -998, or ours", oom_score_is_low),
		PAUSE_TEST("pause: a process in another namespace is not killed",
			   another_namespace_is_left_alone),
		PAUSE_TEST("pause: killing it twice succeeds", missing_process),
		PAUSE_TEST("pause: the process of an earlier daemon is killed", orphan_is_killed),
		PAUSE_TEST("pause: several threads start and kill processes", several_threads),
	};

	return cmocka_run_group_tests(tests, pause_setup, pause_teardown);
}
