/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/run/test-monitor.c - conmon, with real containers
 */
#include "oci/run/monitor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "oci/run/test.h"

#define LOG   RUN_DIR "/log"
#define EXITS RUN_DIR "/exits"

/* ---- helpers ------------------------------------------------------------------------------------- */

static struct monitor_create creation(void)
{
	make_dir(EXITS);
	return (struct monitor_create){
		.program = "/usr/bin/conmon",
		.runtime = &test_runtime,
		.id = BOX,
		.bundle = RUN_BUNDLE,
		.log = LOG,
		.exits = EXITS,
		.cancel_fd = -1,
		.deadline = SOON,
	};
}

static void write_script(const char *script, bool terminal)
{
	AUTO(spec_done) struct oci_spec s = { 0 };

	init_spec(&s, script);
	s.process.terminal = terminal;
	write_spec(&s);
}

static void create(const struct monitor_create *c, struct monitor *ret)
{
	struct hw_err e;

	assert_ok(monitor_create(c, ret, &e), &e);
	assert_true(ret->pidfd >= 0 && ret->pid > 0 && ret->container > 0);
}

static void start(void)
{
	struct hw_err e;

	assert_ok(runtime_start(&test_runtime, BOX, SOON, &e), &e);
}

static void wait_for_end(const struct monitor *m)
{
	struct pollfd fd = { .fd = m->pidfd, .events = POLLIN };

	assert_int_equal(poll(&fd, 1, TEST_MS), 1);
	assert_int_equal(fd.revents & POLLNVAL, 0);
}

static struct monitor_exit get_exit(void)
{
	struct monitor_exit result = { 0 };
	struct hw_err e;
	int r;

	r = monitor_get_exit(RUN_BUNDLE, &result, &e);
	assert_ok(r, &e);
	assert_int_equal(r, 1);
	return result;
}

/* The lock is free, and crun knows no container. */
static void assert_nothing_lives(void)
{
	struct runtime_state s;
	struct hw_err e;

	assert_int_equal(monitor_is_alive(RUN_BUNDLE, &e), 0);
	assert_int_equal(runtime_get_state(&test_runtime, BOX, SOON, &s, &e), 0);
}

static bool log_has(const char *text)
{
	autofree char *log = file_exists(LOG) ? read_text(LOG) : NULL;

	return strstr(str_or(log, ""), text);
}

/* ---- creation ------------------------------------------------------------------------------------ */

static void output_is_logged_and_the_exit_recorded(void **state)
{
	struct run_fixture *f = *state;
	AUTO(monitor_done) struct monitor m = { .pidfd = -1 };
	struct monitor_create c = creation();
	struct monitor_exit result;
	struct monitor_exit none;
	autofree char *exit_file = NULL;
	struct timespec now;
	struct hw_err e;

	c.fs = f->fs;
	write_script("echo out; echo error >&2; exit 7", false);
	create(&c, &m);
	assert_int_equal(monitor_is_alive(RUN_BUNDLE, &e), 1);
	assert_int_equal(monitor_get_exit(RUN_BUNDLE, &none, &e), 0);
	assert_int_not_equal(getsid(m.pid), getsid(0));
	assert_int_not_equal(getpgid(m.pid), getpgrp());
	start();
	wait_for_end(&m);
	assert_int_equal(monitor_is_alive(RUN_BUNDLE, &e), 0);
	assert_true(log_has(" stdout F out\n"));
	assert_true(log_has(" stderr F error\n"));
	result = get_exit();
	clock_gettime(CLOCK_REALTIME, &now);
	assert_int_equal(result.code, 7);
	assert_false(result.oom);
	assert_true(result.time / 1000000000 - now.tv_sec < 60 &&
		    now.tv_sec - result.time / 1000000000 < 60);
	exit_file = read_text(EXITS "/" BOX);
	assert_string_equal(exit_file, "7");
}

static void a_failed_creation_leaves_nothing(void **state)
{
	AUTO(spec_done) struct oci_spec s = { 0 };
	struct monitor_create c = creation();
	struct monitor m;
	struct hw_err e;

	(void)state;
	init_spec(&s, "true");
	free(s.process.args.v[0]);
	s.process.args.v[0] = str_copy("/bin/missing");
	write_spec(&s);
	assert_int_equal(monitor_create(&c, &m, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "/usr/bin/crun create: "));
	assert_non_null(strstr(e.msg, "/bin/missing"));
	assert_nothing_lives();
	assert_false(file_exists(LOG));
}

/* crun's place is taken by a script; conmon is real. */
static struct runtime fake_runtime(const char *script)
{
	autofree char *text = str_printf("#!/bin/sh\ncase \"$*\" in *create*) %s;; esac\n", script);
	struct hw_err e;

	assert_ok(file_replace(AT_FDCWD, RUN_DIR "/fake", text, strlen(text), 0755, 0, &e), &e);
	return (struct runtime){ .program = RUN_DIR "/fake", .root = RUN_DIR "/state" };
}

static void a_slow_runtime_is_killed(void **state)
{
	struct runtime rt =
		fake_runtime("touch " RUN_DIR "/started; setsid sleep 1000 & sleep 1000");
	struct monitor_create c = creation();
	autoclose int cancel = eventfd(1, EFD_CLOEXEC);
	struct monitor m;
	struct hw_err e;

	(void)state;
	write_script("true", false);
	c.runtime = &rt;
	c.deadline = time_deadline(300);
	assert_int_equal(monitor_create(&c, &m, &e), -ETIMEDOUT);
	assert_string_equal(e.msg, "/usr/bin/conmon: timed out, killed");
	assert_true(file_exists(RUN_DIR "/started"));
	assert_nothing_lives();
	c.deadline = SOON;
	c.cancel_fd = cancel;
	assert_int_equal(monitor_create(&c, &m, &e), -ECANCELED);
	assert_nothing_lives();
}

static void errors_of_conmon_are_reported(void **state)
{
	struct monitor_create c = creation();
	struct runtime rt;
	struct monitor m;
	struct hw_err e;

	(void)state;
	write_script("true", false);
	c.program = "/nonexistent/conmon";
	assert_int_equal(monitor_create(&c, &m, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "/nonexistent/conmon"));
	c.program = "/bin/false";
	assert_int_equal(monitor_create(&c, &m, &e), -EIO);
	assert_string_equal(e.msg, "/bin/false: exit status 1");
	c.program = "/bin/true";
	assert_int_equal(monitor_create(&c, &m, &e), -EIO);
	assert_string_equal(e.msg, "/bin/true: exited unexpectedly");
	c = creation();
	c.log = RUN_DIR "/no/such/directory/log";
	assert_int_equal(monitor_create(&c, &m, &e), -EIO);
	assert_non_null(strstr(e.msg, "Failed to open log file"));
	rt = fake_runtime("echo \"first\" >&2; echo second >&2; exit 1");
	c = creation();
	c.runtime = &rt;
	assert_int_equal(monitor_create(&c, &m, &e), -EIO);
	assert_string_equal(e.msg, RUN_DIR "/fake create: first; second");
	assert_nothing_lives();
	/* a conmon that answers nonsense */
	rt = fake_runtime("");
	assert_ok(file_replace(AT_FDCWD, RUN_DIR "/conmon", "#!/bin/sh\necho nonsense >&4\n", 27,
			       0755, 0, &e),
		  &e);
	c.program = RUN_DIR "/conmon";
	assert_int_equal(monitor_create(&c, &m, &e), -EBADMSG);
}

static void a_container_may_discard_its_output(void **state)
{
	AUTO(monitor_done) struct monitor m = { .pidfd = -1 };
	struct monitor_create c = creation();

	(void)state;
	c.log = NULL;
	write_script("echo x", false);
	create(&c, &m);
	start();
	wait_for_end(&m);
	assert_int_equal(get_exit().code, 0);
	assert_false(file_exists(LOG));
}

/* fsync() of a long log on a slow disk takes longer than a stop waits for the exit code. */
static void the_exit_does_not_wait_for_the_log(void **state)
{
	static const char script[] = "#!/bin/sh\nexec strace -D -f -o " RUN_DIR
				     "/trace -e trace=fsync,fdatasync,sync,syncfs,rename "
				     "/usr/bin/conmon \"$@\"\n";
	AUTO(monitor_done) struct monitor m = { .pidfd = -1 };
	struct monitor_create c = creation();
	autofree char *trace = NULL;
	struct hw_err e;

	(void)state;
	assert_ok(file_replace(AT_FDCWD, RUN_DIR "/conmon", script, strlen(script), 0755, 0, &e),
		  &e);
	c.program = RUN_DIR "/conmon";
	write_script("echo x", false);
	create(&c, &m);
	start();
	wait_for_end(&m);
	wait_until(monitor_is_alive(RUN_BUNDLE, &e) == 0); /* strace has the lock, too */
	trace = read_text(RUN_DIR "/trace");
	assert_non_null(strstr(trace, "rename(\"" EXITS));
	assert_null(strstr(trace, "sync"));
}

static void a_process_killed_for_memory_is_reported(void **state)
{
	AUTO(monitor_done) struct monitor m = { .pidfd = -1 };
	AUTO(spec_done) struct oci_spec s = { 0 };
	struct monitor_create c = creation();
	struct monitor_exit result;

	(void)state;
	make_dir(RUN_DIR "/cwd");
	assert_int_equal(chdir(RUN_DIR "/cwd"), 0);
	init_spec(&s, "exec dd if=/dev/zero of=/dev/null bs=40M");
	s.limits.memory = s.limits.swap = 16 << 20;
	write_spec(&s);
	create(&c, &m);
	start();
	wait_for_end(&m);
	result = get_exit();
	assert_int_equal(result.code, 137);
	assert_true(result.oom);
	assert_false(file_exists("oom"));
	assert_int_equal(chdir("/"), 0);
}

/* ---- after a restart ----------------------------------------------------------------------------- */

static void a_monitor_is_found_again(void **state)
{
	AUTO(monitor_done) struct monitor m = { .pidfd = -1 }, again = { .pidfd = -1 };
	struct monitor_create c = creation();
	struct monitor none;
	struct hw_err e;
	int r;

	(void)state;
	assert_int_equal(monitor_adopt(RUN_BUNDLE, &none, &e), 0);
	write_script("sleep 1000", false);
	create(&c, &m);
	start();
	r = monitor_adopt(RUN_BUNDLE, &again, &e);
	assert_ok(r, &e);
	assert_int_equal(r, 1);
	assert_int_equal(again.pid, m.pid);
	assert_int_equal(again.container, m.container);
	assert_int_equal(runtime_kill(&test_runtime, BOX, SIGKILL, false, SOON, &e), 0);
	wait_for_end(&again);
	assert_int_equal(monitor_adopt(RUN_BUNDLE, &none, &e), 0);
	assert_int_equal(get_exit().code, 137);
}

static void write_pid(const char *path, pid_t pid)
{
	autofree char *text = str_printf("%d", pid);
	struct hw_err e;

	assert_ok(file_replace(AT_FDCWD, path, text, strlen(text), 0644, 0, &e), &e);
}

static void another_process_is_not_taken_for_it(void **state)
{
	AUTO(monitor_done) struct monitor m = { .pidfd = -1 }, again = { .pidfd = -1 };
	struct monitor_create c = creation();
	struct hw_err e;
	int r;

	(void)state;
	write_script("sleep 1000", false);
	create(&c, &m);
	start();
	/* the number of the container now belongs to another process */
	write_pid(RUN_BUNDLE "/pidfile", getpid());
	r = monitor_adopt(RUN_BUNDLE, &again, &e);
	assert_ok(r, &e);
	assert_int_equal(r, 1);
	assert_int_equal(again.container, 0);
	/* that of conmon, too */
	write_pid(RUN_BUNDLE "/conmon.pid", getpid());
	assert_int_equal(monitor_adopt(RUN_BUNDLE, &again, &e), -EBUSY);
	assert_ok(file_replace(AT_FDCWD, RUN_BUNDLE "/conmon.pid", "1x", 2, 0644, 0, &e), &e);
	assert_int_equal(monitor_adopt(RUN_BUNDLE, &again, &e), -EBADMSG);
	/* ending is exact, too: this process is not killed */
	assert_ok(monitor_end(RUN_BUNDLE, SOON, &e), &e);
	assert_int_equal(monitor_adopt(RUN_BUNDLE, &again, &e), 0);
}

/* The call fails in another place with each limit. */
static void a_lack_of_descriptors_is_not_taken_for_an_end(void **state)
{
	AUTO(monitor_done) struct monitor m = { .pidfd = -1 };
	struct monitor_create c = creation();
	struct rlimit limit;
	struct hw_err e;
	int r = -EMFILE;

	(void)state;
	write_script("sleep 1000", false);
	create(&c, &m);
	start();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	for (rlim_t n = 0; r != 1; n++) {
		AUTO(monitor_done) struct monitor again = { .pidfd = -1 };

		assert_true(n < 100);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ n, limit.rlim_max }),
				 0);
		r = monitor_adopt(RUN_BUNDLE, &again, &e);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		if (r != 1)
			assert_int_equal(r, -EMFILE);
		else
			assert_int_equal(again.container, m.container);
	}
}

static void a_killed_monitor_leaves_its_container(void **state)
{
	AUTO(monitor_done) struct monitor m = { .pidfd = -1 };
	struct monitor_create c = creation();
	struct monitor_exit result;
	struct runtime_state s;
	struct hw_err e;

	(void)state;
	write_script("echo ready; sleep 1000", false);
	create(&c, &m);
	start();
	wait_until(log_has("ready")); /* until then it is a process of crun */
	assert_ok(monitor_end(RUN_BUNDLE, SOON, &e), &e);
	assert_ok(monitor_end(RUN_BUNDLE, SOON, &e), &e);
	wait_for_end(&m);
	assert_int_equal(monitor_is_alive(RUN_BUNDLE, &e), 0);
	assert_int_equal(monitor_get_exit(RUN_BUNDLE, &result, &e), 0);
	assert_int_equal(runtime_get_state(&test_runtime, BOX, SOON, &s, &e), 1);
	assert_int_equal(s.status, RUNTIME_RUNNING);
}

/* as a process that another thread is just starting */
static void ending_kills_no_process_of_this_program(void **state)
{
	AUTO(monitor_done) struct monitor m = { .pidfd = -1 };
	struct monitor_create c = creation();
	struct hw_err e;
	int status;
	pid_t pid;

	(void)state;
	write_script("sleep 1000", false);
	create(&c, &m);
	pid = fork();
	if (pid == 0) {
		if (open(RUN_BUNDLE "/lock", O_RDWR) >= 0)
			kill(getpid(), SIGSTOP);
		_exit(3);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	assert_ok(monitor_end(RUN_BUNDLE, SOON, &e), &e);
	assert_int_equal(kill(pid, SIGCONT), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 3);
	wait_for_end(&m);
}

static void a_malformed_exit_file_is_rejected(void **state)
{
	struct monitor_exit result;
	struct hw_err e;

	(void)state;
	assert_ok(file_replace(AT_FDCWD, RUN_BUNDLE "/exit", "1 2", 3, 0644, 0, &e), &e);
	assert_int_equal(monitor_get_exit(RUN_BUNDLE, &result, &e), -EBADMSG);
	assert_string_equal(e.msg, RUN_BUNDLE ": malformed file exit");
	assert_int_equal(monitor_get_exit(RUN_DIR "/none", &result, &e), 0);
}

/* ---- log ----------------------------------------------------------------------------------------- */

static void the_log_is_reopened(void **state)
{
	AUTO(monitor_done) struct monitor m = { .pidfd = -1 };
	struct monitor_create c = creation();
	struct hw_err e;

	(void)state;
	write_script("echo one; while ! test -e /tmp/go; do sleep 0.01; done; echo two; sleep 1000",
		     false);
	create(&c, &m);
	start();
	wait_until(log_has(" F one\n"));
	assert_int_equal(rename(LOG, LOG ".old"), 0);
	assert_ok(monitor_reopen_log(RUN_BUNDLE, LOG, SOON, &e), &e);
	assert_true(file_exists(LOG));
	assert_false(log_has("one"));
	write_pid(RUN_ROOTFS "/tmp/go", 1);
	wait_until(log_has(" F two\n"));
	/* a file that was not renamed is replaced, too */
	assert_ok(monitor_reopen_log(RUN_BUNDLE, LOG, SOON, &e), &e);
	assert_false(log_has("two"));

	assert_int_equal(runtime_kill(&test_runtime, BOX, SIGKILL, false, SOON, &e), 0);
	wait_for_end(&m);
	unlink(LOG);
	assert_int_equal(monitor_reopen_log(RUN_BUNDLE, LOG, SOON, &e), -ESRCH);
	assert_int_equal(monitor_reopen_log(RUN_DIR "/none", LOG, SOON, &e), -ESRCH);
	assert_false(file_exists(LOG));
}

static void reopening_ends_at_its_deadline(void **state)
{
	AUTO(monitor_done) struct monitor m = { .pidfd = -1 };
	struct monitor_create c = creation();
	struct hw_err e;

	(void)state;
	write_script("sleep 1000", false);
	create(&c, &m);
	pidfd_send_signal(m.pidfd, SIGSTOP, NULL, 0);
	assert_int_equal(monitor_reopen_log(RUN_BUNDLE, LOG, time_deadline(50), &e), -ETIMEDOUT);
	assert_string_equal(e.msg, "reopen the log of " RUN_BUNDLE ": no new log file at " LOG);
}

/* ---- attach -------------------------------------------------------------------------------------- */

/* Reads packets until @wanted was received on @stream; NULL: until EOF. */
static void read_until(int fd, int stream, const char *wanted)
{
	AUTO(buf_done) struct buf text = { 0 };
	char packet[1 + MONITOR_PACKET];

	for (;;) {
		struct pollfd poller = { .fd = fd, .events = POLLIN };
		ssize_t n;

		assert_int_equal(poll(&poller, 1, TEST_MS), 1);
		n = recv(fd, packet, sizeof(packet), 0);
		if (n == 0 && !wanted)
			return;
		if (n <= 0)
			fail_msg("got \"%s\", want \"%s\"", str_or(text.data, ""), wanted);
		if (wanted) {
			assert_int_equal(packet[0], stream);
			buf_add(&text, packet + 1, (size_t)n - 1);
			if (strstr(text.data, wanted))
				return;
		}
	}
}

static void a_client_sees_output_and_writes_input(void **state)
{
	AUTO(monitor_done) struct monitor m = { .pidfd = -1 };
	struct monitor_create c = creation();
	autoclose int fd = -1;
	struct hw_err e;

	(void)state;
	c.open_stdin = c.stdin_once = true;
	write_script("echo first; read line; echo got $line >&2; cat; exit 3", false);
	create(&c, &m);
	assert_ok(monitor_attach(RUN_BUNDLE, &fd, &e), &e);
	start();
	read_until(fd, 2, "first\n");
	assert_int_equal(send(fd, "x y\n", 4, 0), 4);
	read_until(fd, 3, "got x y\n");
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	wait_for_end(&m);
	read_until(fd, 0, NULL);
	assert_int_equal(get_exit().code, 3);
	mem_close_fd(&fd);
	assert_int_equal(monitor_attach(RUN_BUNDLE, &fd, &e), -ESRCH);
}

static void input_may_stay_open(void **state)
{
	AUTO(monitor_done) struct monitor m = { .pidfd = -1 };
	struct monitor_create c = creation();
	struct hw_err e;

	(void)state;
	c.open_stdin = true;
	write_script("read a; echo $a; read b; echo $b; exit 4", false);
	create(&c, &m);
	start();
	for (int i = 0; i < 2; i++) {
		autoclose int fd = -1;

		assert_ok(monitor_attach(RUN_BUNDLE, &fd, &e), &e);
		assert_int_equal(send(fd, i ? "two\n" : "one\n", 4, 0), 4);
		read_until(fd, 2, i ? "two\n" : "one\n");
	}
	wait_for_end(&m);
	assert_int_equal(get_exit().code, 4);
}

static void a_terminal_has_a_size(void **state)
{
	AUTO(monitor_done) struct monitor m = { .pidfd = -1 };
	struct monitor_create c = creation();
	autoclose int fd = -1;
	struct hw_err e;

	(void)state;
	c.terminal = c.open_stdin = true;
	write_script("tty; while ! stty size | grep -q '33 77'; do sleep 0.01; done; echo done",
		     true);
	create(&c, &m);
	assert_ok(monitor_attach(RUN_BUNDLE, &fd, &e), &e);
	start();
	read_until(fd, 2, "/dev/pts/0");
	assert_ok(monitor_resize(RUN_BUNDLE, 33, 77, &e), &e);
	read_until(fd, 2, "done");
	wait_for_end(&m);
	assert_int_equal(monitor_resize(RUN_BUNDLE, 1, 1, &e), -ESRCH);
}

/* The path of a socket is limited to 107 bytes. */
static void a_bundle_may_have_a_long_path(void **state)
{
	AUTO(monitor_done) struct monitor m = { .pidfd = -1 };
	struct monitor_create c = creation();
	char name[151] = "", *path = NULL;
	autoclose int fd = -1;
	struct hw_err e;

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	write_script("cat", false);
	path = str_printf(RUN_DIR "/%s", name);
	assert_int_equal(rename(RUN_BUNDLE, path), 0);
	c.bundle = path;
	c.open_stdin = c.stdin_once = true;
	create(&c, &m);
	assert_ok(monitor_attach(path, &fd, &e), &e);
	start();
	assert_int_equal(send(fd, "x\n", 2, 0), 2);
	read_until(fd, 2, "x\n");
	mem_close_fd(&fd);
	wait_for_end(&m);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RUN_TEST("monitor: output is logged, and the exit recorded",
			 output_is_logged_and_the_exit_recorded),
		RUN_TEST("monitor: a failed creation has crun's text and leaves nothing",
			 a_failed_creation_leaves_nothing),
		RUN_TEST("monitor: a slow runtime is killed at the deadline or on cancel",
			 a_slow_runtime_is_killed),
		RUN_TEST("monitor: errors of conmon are reported", errors_of_conmon_are_reported),
		RUN_TEST("monitor: output may be discarded", a_container_may_discard_its_output),
		RUN_TEST("monitor: the exit code does not wait until the log is on the disk",
			 the_exit_does_not_wait_for_the_log),
		RUN_TEST("monitor: a process killed for lack of memory is reported",
			 a_process_killed_for_memory_is_reported),
		RUN_TEST("monitor: it is found again", a_monitor_is_found_again),
		RUN_TEST("monitor: another process with its number is not taken for it",
			 another_process_is_not_taken_for_it),
		RUN_TEST("monitor: a lack of descriptors is not taken for its end",
			 a_lack_of_descriptors_is_not_taken_for_an_end),
		RUN_TEST("monitor: if it is killed, the container continues",
			 a_killed_monitor_leaves_its_container),
		RUN_TEST("monitor: ending it kills no process of this program",
			 ending_kills_no_process_of_this_program),
		RUN_TEST("monitor: a malformed exit file is rejected",
			 a_malformed_exit_file_is_rejected),
		RUN_TEST("monitor: the log is reopened, unless the container has ended",
			 the_log_is_reopened),
		RUN_TEST("monitor: reopening the log ends at its deadline",
			 reopening_ends_at_its_deadline),
		RUN_TEST("monitor: a client sees output and writes input",
			 a_client_sees_output_and_writes_input),
		RUN_TEST("monitor: input stays open after a client has left", input_may_stay_open),
		RUN_TEST("monitor: a terminal can be resized", a_terminal_has_a_size),
		RUN_TEST("monitor: a bundle may have a long path", a_bundle_may_have_a_long_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
