/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/test-helper.c - helper processes
 */
#include "base/os/helper.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/child.h"
#include "base/str.h"
#include "base/time.h"

#define LONG_MS	   60000 /* reached only if a test fails */
#define OTHER_USER 65534

static struct helper *start_script(const char *text, const int *keep, size_t n_keep)
{
	const char *const argv[] = { "/bin/sh", "-c", text, NULL };
	const struct helper_start start = { .argv = argv, .keep = keep, .n_keep = n_keep };
	struct helper *h;
	struct hw_err e;

	if (helper_start(&start, &h, &e) < 0)
		fail_msg("%s", e.msg);
	return h;
}

static void assert_reads(struct helper *h, int fd, const char *want)
{
	char got[256] = "";
	size_t len = 0;
	struct hw_err e;
	ssize_t n = 1;

	while (n > 0 && len < strlen(want)) {
		if (helper_wait(h, fd, -1, time_deadline(LONG_MS), &e) < 0)
			fail_msg("%s", e.msg);
		n = read(fd, got + len, sizeof(got) - 1 - len);
		assert_true(n >= 0);
		len += (size_t)n;
	}
	assert_string_equal(got, want);
}

static void assert_socket_closed(struct helper *h)
{
	struct hw_err e;
	char byte;

	if (helper_wait(h, helper_socket(h), -1, time_deadline(LONG_MS), &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(recv(helper_socket(h), &byte, 1, 0), 0);
}

/* A pipe whose write end is known to the helper only: EOF says that the helper has ended. */
static void assert_eof(int fd)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };
	char byte;

	assert_int_equal(poll(&poller, 1, LONG_MS), 1);
	assert_int_equal(read(fd, &byte, 1), 0);
}

/* ---- programs ------------------------------------------------------------------------------ */

static void program_talks_on_its_socket(void **state)
{
	AUTO(helper_free) struct helper *h = start_script("read x; echo \"got $x\"", NULL, 0);

	(void)state;
	assert_int_equal(write(helper_socket(h), "job\n", 4), 4);
	assert_reads(h, helper_socket(h), "got job\n");
}

static void end_of_a_program(void **state)
{
	AUTO(helper_free) struct helper *h = start_script("read x", NULL, 0);
	struct pollfd ended = { .fd = helper_exit_fd(h), .events = POLLIN };

	(void)state;
	assert_true(helper_is_running(h));
	assert_int_equal(write(helper_socket(h), "\n", 1), 1);
	assert_int_equal(poll(&ended, 1, LONG_MS), 1);
	assert_false(helper_is_running(h));
}

static void program_has_the_kept_descriptors(void **state)
{
	int a[2], b[2];

	(void)state;
	assert_int_equal(pipe2(a, O_CLOEXEC) | pipe2(b, O_CLOEXEC), 0);
	const int keep[] = { b[1], a[1] }; /* not in the order of their numbers */
	AUTO(helper_free)
	struct helper *h = start_script("echo three >&3; echo four >&4; "
					"for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do "
					"[ ! -e /proc/$$/fd/$i ] || printf ' %s' $i; done",
					keep, 2);
	close(a[1]);
	close(b[1]);
	assert_reads(h, b[0], "three\n");
	assert_reads(h, a[0], "four\n");
	assert_reads(h, helper_socket(h), " 0 1 2 3 4");
	assert_eof(a[0]);
	close(a[0]);
	close(b[0]);
}

static void program_has_the_passed_variables_only(void **state)
{
	static const char *const env[] = { "TEST_UNSET", "TEST_PASSED", "TEST_EMPTY", "TEST_SET=1",
					   NULL };
	const char *const argv[] = { "/bin/sh", "-c",
				     "tr '\\0' '\\n' </proc/$$/environ | grep -v SAN_OPTIONS",
				     NULL };
	AUTO(helper_free) struct helper *h = NULL;
	struct hw_err e;

	(void)state;
	setenv("TEST_SECRET", "x", 1);
	setenv("TEST_PASSED_NOT", "x", 1);
	setenv("TEST_PASSED", "a=b", 1);
	setenv("TEST_EMPTY", "", 1);
	if (helper_start(&(struct helper_start){ .argv = argv, .env = env }, &h, &e) < 0)
		fail_msg("%s", e.msg);
	assert_reads(h, helper_socket(h), "TEST_PASSED=a=b\nTEST_EMPTY=\nTEST_SET=1\n");
	assert_socket_closed(h);
	helper_free(take_ptr(h));
	h = start_script("tr '\\0' '\\n' </proc/$$/environ | grep -v SAN_OPTIONS; echo end", NULL,
			 0);
	assert_reads(h, helper_socket(h), "end\n");
}

static void wait_can_be_cancelled(void **state)
{
	AUTO(helper_free) struct helper *h = start_script("exec sleep 1000", NULL, 0);
	autoclose int cancel = -1;
	struct hw_err e;

	(void)state;
	cancel = eventfd(1, EFD_CLOEXEC);
	assert_int_equal(helper_wait(h, helper_socket(h), cancel, TIME_NEVER, &e), -ECANCELED);
	assert_int_equal(helper_wait(h, helper_socket(h), -1, time_deadline(1), &e), -ETIMEDOUT);
}

static void exit_is_reported(void **state)
{
	AUTO(helper_free) struct helper *h = start_script("exit 3", NULL, 0);
	struct hw_err e;

	(void)state;
	assert_socket_closed(h);
	assert_int_equal(helper_exit_error(h, "sh", &e), -EIO);
	assert_string_equal(e.msg, "sh exited unexpectedly: exit status 3");
}

/* The program closes its socket, but does not exit. */
static void program_that_stays_is_killed(void **state)
{
	AUTO(helper_free)
	struct helper *h = start_script("echo x; exec sleep 1000 <&- >&-", NULL, 0);
	struct hw_err e;

	(void)state;
	assert_reads(h, helper_socket(h), "x\n");
	assert_socket_closed(h);
	assert_int_equal(helper_exit_error(h, "sleep", &e), -EIO);
	assert_string_equal(e.msg, "sleep exited unexpectedly: signal: killed");
}

/* child_start() reports the error in a process without threads, helper_exit_error() otherwise. */
static void missing_program_is_reported(void **state)
{
	const char *const argv[] = { "/nowhere/program", NULL };
	AUTO(helper_free) struct helper *h = NULL;
	struct hw_err e;
	int r;

	(void)state;
	r = helper_start(&(struct helper_start){ .argv = argv }, &h, &e);
	if (r == 0) {
		assert_socket_closed(h);
		r = helper_exit_error(h, "program", &e);
	}
	assert_int_equal(r, -ENOENT);
	assert_string_equal(e.msg, "execute /nowhere/program: No such file or directory");
}

/* ---- the limit of open files --------------------------------------------------------------- */

static void assert_limit(const char *want)
{
	AUTO(helper_free) struct helper *h = start_script("ulimit -Sn", NULL, 0);

	assert_reads(h, helper_socket(h), want);
}

static void *check_limit(void *unused)
{
	(void)unused;
	assert_limit("300\n");
	return NULL;
}

static void programs_get_the_limit_from_before(void **state)
{
	struct rlimit limit;
	pthread_t thread;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = 300;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	child_raise_files(400);
	assert_limit("300\n"); /* a direct child, if this is the first test of the process */
	assert_int_equal(pthread_create(&thread, NULL, check_limit, NULL), 0);
	pthread_join(thread, NULL);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(limit.rlim_cur, 400);
}

/* ---- the end ------------------------------------------------------------------------------- */

static int compute_forever(void *arg)
{
	volatile unsigned *n = arg;

	if (write(HELPER_SOCKET, "x", 1) != 1) /* the parent waits for it */
		return 1;
	for (;;)
		++*n;
}

static int sleep_forever(void *arg)
{
	if (write(HELPER_SOCKET, "x", 1) != 1)
		return 1;
	for (;;)
		time_sleep(*(int *)arg);
}

/* Like a compromised helper, which can block SIGIO. */
static int block_and_sleep(void *arg)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return 1;
	return sleep_forever(arg);
}

static int block_and_sleep_as_nobody(void *arg)
{
	pid_t parent = getppid();
	struct hw_err e;

	if (geteuid() == 0 && setresuid(OTHER_USER, OTHER_USER, OTHER_USER) < 0)
		return 1;
	if (helper_end_with_parent(parent, &e) < 0)
		return 1;
	return block_and_sleep(arg);
}

struct parent {
	int (*run)(void *arg);
	int end[2]; /* a pipe; the write end is kept by the helper */
	int ready[2];
};

/* The process between the test and the helper. It never returns. */
static void run_parent(struct parent *p)
{
	struct helper *h;
	struct hw_err e;
	int n = LONG_MS;
	char byte;

	close(p->end[0]);
	if (helper_fork(p->run, &n, &p->end[1], 1, &h, &e) < 0 ||
	    read(helper_socket(h), &byte, 1) != 1)
		_exit(EXIT_FAILURE);
	close(p->end[1]);
	/* the helper gets a signal for each message, and must survive it */
	for (int i = 0; i < 100; i++)
		if (write(helper_socket(h), "m", 1) != 1)
			_exit(EXIT_FAILURE);
	if (write(p->ready[1], "x", 1) != 1)
		_exit(EXIT_FAILURE);
	for (;;)
		pause();
}

static void helper_ends_with_killed_parent(int (*run)(void *arg))
{
	struct parent p = { .run = run };
	struct pollfd poller = { .events = POLLIN };
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(p.end, O_CLOEXEC) | pipe2(p.ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0)
		run_parent(&p);
	close(p.end[1]);
	close(p.ready[1]);
	assert_int_equal(read(p.ready[0], &byte, 1), 1);
	poller.fd = p.end[0];
	assert_int_equal(poll(&poller, 1, 100), 0); /* it runs */
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_eof(p.end[0]);
	close(p.end[0]);
	close(p.ready[0]);
}

static void computing_helper_ends(void **state)
{
	(void)state;
	helper_ends_with_killed_parent(compute_forever);
}

static void sleeping_helper_ends(void **state)
{
	(void)state;
	helper_ends_with_killed_parent(sleep_forever);
}

static void helper_that_blocks_signals_ends(void **state)
{
	(void)state;
	helper_ends_with_killed_parent(block_and_sleep);
	helper_ends_with_killed_parent(block_and_sleep_as_nobody);
}

static void *start_in_thread(void *arg)
{
	*(struct helper **)arg = start_script("read x; echo \"got $x\"", NULL, 0);
	return NULL;
}

static void helper_outlives_the_thread(void **state)
{
	AUTO(helper_free) struct helper *h = NULL;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, start_in_thread, &h), 0);
	pthread_join(thread, NULL);
	assert_int_equal(write(helper_socket(h), "job\n", 4), 4);
	assert_reads(h, helper_socket(h), "got job\n");
}

static void freed_helper_has_ended(void **state)
{
	AUTO(helper_free) struct helper *h = NULL;
	int end[2], n = 0;
	struct hw_err e;

	(void)state;
	assert_int_equal(pipe2(end, O_CLOEXEC), 0);
	assert_int_equal(helper_fork(compute_forever, &n, &end[1], 1, &h, &e), 0);
	close(end[1]);
	helper_free(take_ptr(h));
	assert_eof(end[0]);
	close(end[0]);
}

static void closed_socket_is_noticed_at_once(void **state)
{
	pid_t pid;
	int status;

	(void)state;
	pid = fork();
	if (pid == 0) {
		struct hw_err e;
		int pair[2];

		socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
		close(pair[0]);
		helper_end_on_eof(pair[1], &e);
		_exit(EXIT_FAILURE);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Runs body() in a process of its own. Return: its exit status */
static int run_forked(int (*body)(void))
{
	int status = -1;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(body());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void exit_with_42(void)
{
	_exit(42);
}

/* A shutdown of the other end, which stays open, is also EOF. */
static int watches_for_shutdown(void)
{
	struct hw_err e;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
	    helper_watch_eof(pair[1], exit_with_42, &e) < 0 || send(pair[0], "m", 1, 0) != 1)
		return 1;
	shutdown(pair[0], SHUT_WR);
	poll(NULL, 0, LONG_MS); /* TSan delivers a signal only in certain calls */
	return 2;
}

static void shutdown_calls_the_function(void **state)
{
	(void)state;
	assert_int_equal(run_forked(watches_for_shutdown), 42);
}

static void write_oom_score(const char *text)
{
	autoclose int fd = -1;

	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		_exit(2);
}

/* Return: 0: helper_init() changes the score to @after */
static int check_score(const char *before, const char *after)
{
	autoclose int fd = -1;
	char text[16] = "";
	struct hw_err e;
	int pair[2];

	write_oom_score(before);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 ||
	    dup2(pair[0], HELPER_SOCKET) < 0 || helper_init((size_t)1 << 40, &e) < 0)
		_exit(3);
	fd = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		_exit(4);
	text[strcspn(text, "\n")] = '\0';
	return !str_equal(text, after);
}

static int keeps_positive_score(void)
{
	return check_score("500", "500");
}

static int raises_negative_score(void)
{
	return check_score("-999", "0");
}

static void helper_is_killed_before_the_daemon(void **state)
{
	int status;

	(void)state;
	assert_int_equal(run_forked(keeps_positive_score), 0);
	status = run_forked(raises_negative_score);
	if (status == 2) {
		print_message("lowering oom_score_adj needs CAP_SYS_RESOURCE\n");
		skip();
	}
	assert_int_equal(status, 0);
}

static int exceed_memory_limit(void)
{
	struct hw_err e;

	if (helper_limit_memory((size_t)64 << 20, &e) < 0 ||
	    helper_limit_memory((size_t)128 << 20, &e) < 0) /* not raised again */
		return 1;
	/* no limit is set in a build with a sanitizer, which reserves terabytes */
	return !MEM_SANITIZED && malloc((size_t)96 << 20) ? 2 : 0;
}

static void memory_is_limited(void **state)
{
	(void)state;
	assert_int_equal(run_forked(exceed_memory_limit), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "helper: programs are started with the limit of open files from before",
		  programs_get_the_limit_from_before },
		{ "helper: a program talks on its socket", program_talks_on_its_socket },
		{ "helper: a program runs until it ends", end_of_a_program },
		{ "helper: a program has those of our environment variables that are passed on",
		  program_has_the_passed_variables_only },
		{ "helper: a program has the kept descriptors as 3, 4, ..., and no others",
		  program_has_the_kept_descriptors },
		{ "helper: a wait ends at its deadline or if it is cancelled",
		  wait_can_be_cancelled },
		{ "helper: a program that exits becomes an error with its status",
		  exit_is_reported },
		{ "helper: a program that closes its socket and does not exit is killed",
		  program_that_stays_is_killed },
		{ "helper: a program that does not exist is reported",
		  missing_program_is_reported },
		{ "helper: a helper that computes ends when its parent is killed",
		  computing_helper_ends },
		{ "helper: a helper that sleeps ends when its parent is killed",
		  sleeping_helper_ends },
		{ "helper: a helper that blocks signals ends when its parent is killed",
		  helper_that_blocks_signals_ends },
		{ "helper: a helper continues when the thread ends that started it",
		  helper_outlives_the_thread },
		{ "helper: helper_free() ends the process", freed_helper_has_ended },
		{ "helper: a program does not inherit a negative oom_score_adj",
		  helper_is_killed_before_the_daemon },
		{ "helper: a process cannot exceed its memory limit", memory_is_limited },
		{ "helper: a socket that is already closed ends the helper at once",
		  closed_socket_is_noticed_at_once },
		{ "helper: a function can be called when the socket is shut down",
		  shutdown_calls_the_function },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
