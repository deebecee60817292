/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/test-proc.c - programs of ours in hosts of all kinds
 *
 * How:   every test runs twice, alone and beside an idle thread, because
 *        child.c has a way for each; the ones about other hosts come last. After
 *        each of them no descriptor and no child may be left.
 *        Waiting is bounded by deadlines that only a failure reaches.
 */
#include "base/proc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the ones above */
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/time.h"

#define LONG 60000 /* ms: reached only when something is broken */

/* ---- a place for files, and what must be as before afterwards ---------------------- */

struct place {
	char path[64];
	int dir;
	int n_fds;
	pthread_t thread;
	int thread_end; /* an eventfd; -1: no thread */
};

static int count_entry(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	(void)entry;
	(void)e;
	++*(int *)ctx;
	return 0;
}

static int count_fds(void)
{
	struct hw_err e;
	int n = 0;

	return file_walk(AT_FDCWD, "/proc/self/fd", count_entry, &n, &e) < 0 ? -1 : n;
}

static int place_make(void **state)
{
	struct place *place = mem_new(sizeof(*place));

	place->n_fds = count_fds();
	place->thread_end = -1;
	snprintf(place->path, sizeof(place->path), "%.40s/proc.XXXXXX",
		 str_or(getenv("TMPDIR"), "/tmp"));
	if (!mkdtemp(place->path))
		return -1;
	place->dir = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = place;
	return place->dir < 0 ? -1 : 0;
}

static int remove_entry(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	(void)ctx;
	return file_remove(entry->dir, entry->name, e) < 0 ? e->code : 0;
}

static int place_remove(void **state)
{
	struct place *place = *state;
	struct hw_err e;
	int n_fds = place->n_fds, r = file_walk(place->dir, ".", remove_entry, NULL, &e);

	close(place->dir);
	if (rmdir(place->path) < 0)
		r = -1;
	free(place);
	if (count_fds() != n_fds) {
		print_error("a descriptor is left\n");
		r = -1;
	}
	if (waitpid(-1, NULL, WNOHANG | __WALL) != -1 || errno != ECHILD) {
		print_error("a child is left\n");
		r = -1;
	}
	return r;
}

static void *idle(void *arg)
{
	struct place *place = arg;
	eventfd_t n;

	eventfd_read(place->thread_end, &n);
	return NULL;
}

static int place_make_with_thread(void **state)
{
	struct place *place;

	if (place_make(state) < 0)
		return -1;
	place = *state;
	place->thread_end = eventfd(0, EFD_CLOEXEC);
	return pthread_create(&place->thread, NULL, idle, place) == 0 ? 0 : -1;
}

static int place_remove_with_thread(void **state)
{
	struct place *place = *state;

	eventfd_write(place->thread_end, 1);
	pthread_join(place->thread, NULL);
	close(place->thread_end);
	return place_remove(state);
}

/* ---- running a shell script --------------------------------------------------------- */

struct script {
	const char *text;
	const char *input;
	const char *const *env;
	size_t output_max;
	int cancel_fd; /* 0: none */
	int timeout_ms;
	bool stderr_through, stay;
};

/* Its working directory is the test's place. */
static int run_script(void **state, const struct script *script, struct proc_result *ret,
		      struct hw_err *e)
{
	struct place *place = *state;
	autofree char *text = str_printf("cd %s && %s", place->path, script->text);
	const char *const argv[] = { "sh", "-c", text, NULL };
	struct proc p = {
		.path = "/bin/sh",
		.argv = argv,
		.env = script->env,
		.input = script->input,
		.input_len = script->input ? strlen(script->input) : 0,
		.output_max = script->output_max,
		.stderr_through = script->stderr_through,
		.stay = script->stay,
		.cancel_fd = script->cancel_fd ? script->cancel_fd : -1,
		.deadline = time_deadline(script->timeout_ms ? script->timeout_ms : LONG),
	};

	return proc_run(&p, ret, e);
}

static void assert_script(void **state, const struct script *script, const char *output,
			  const char *errors, int status)
{
	AUTO(proc_result_done) struct proc_result result = { 0 };
	struct hw_err e = { 0 };

	if (run_script(state, script, &result, &e) != 0)
		fail_msg("%s", e.msg);
	assert_string_equal(str_or(result.output.data, ""), output);
	assert_string_equal(str_or(result.errors.data, ""), errors);
	assert_int_equal(result.status, status);
}

static void assert_script_fails(void **state, const struct script *script, int code,
				const char *msg)
{
	AUTO(proc_result_done) struct proc_result result = { 0 };
	struct hw_err e = { 0 };

	assert_int_equal(run_script(state, script, &result, &e), code);
	assert_string_equal(e.msg, msg);
	assert_null(result.output.data);
}

static int run_path(const char *path, struct proc_result *ret, struct hw_err *e)
{
	struct proc p = { .path = path, .cancel_fd = -1, .deadline = time_deadline(LONG) };

	return proc_run(&p, ret, e);
}

/* ---- what goes in and comes out -------------------------------------------------------- */

static void environment_is_just_what_was_given(void **state)
{
	static const char *const env[] = { "A=1", "B=x y", NULL };
	AUTO(proc_result_done) struct proc_result result = { 0 };
	struct proc p = {
		.path = "/usr/bin/env", .env = env, .cancel_fd = -1, .deadline = time_deadline(LONG)
	};
	struct hw_err e;

	assert_int_equal(proc_run(&p, &result, &e), 0);
	assert_string_equal(result.output.data, "A=1\nB=x y\n");
	setenv("PROC_TEST", "ours", 1);
	assert_script(state, &(struct script){ .text = "printf %s $PROC_TEST" }, "ours", "", 0);
}

static void make_file(void **state, const char *name, const char *text, mode_t mode, char **path)
{
	struct place *place = *state;
	struct hw_err e;

	assert_int_equal(file_replace(place->dir, name, text, strlen(text), mode, 0, &e), 0);
	*path = str_printf("%s/%s", place->path, name);
}

static void path_is_the_first_argument(void **state)
{
	AUTO(proc_result_done) struct proc_result result = { 0 };
	autofree char *path = NULL, *want = NULL;
	struct hw_err e;

	make_file(state, "p", "#!/bin/sh\necho \"$0 $#\"\n", 0700, &path);
	assert_int_equal(run_path(path, &result, &e), 0);
	want = str_printf("%s 0\n", path);
	assert_string_equal(result.output.data, want);
}

static void input_arrives_whole(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };

	while (b.len < 300000)
		buf_printf(&b, "line %zu\n", b.len);
	assert_script(state, &(struct script){ .text = "cat", .input = b.data }, b.data, "", 0);
	assert_script(state, &(struct script){ .text = "cat" }, "", "", 0);
}

static void input_need_not_be_read(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };

	while (b.len < 300000)
		buf_puts(&b, "not read\n");
	assert_script(state, &(struct script){ .text = "exit 0", .input = b.data }, "", "", 0);
	assert_script(state, &(struct script){ .text = "exec <&-; echo ok", .input = b.data },
		      "ok\n", "", 0);
}

static void both_outputs_are_kept_apart(void **state)
{
	assert_script(state, &(struct script){ .text = "echo out; echo err >&2; exit 3" }, "out\n",
		      "err\n", 3 << 8);
	assert_script(state, &(struct script){ .text = "exec >&- 2>&-; exit 4" }, "", "", 4 << 8);
}

static void errors_can_pass_through(void **state)
{
	char text[16] = "";
	int fds[2], saved = dup(STDERR_FILENO);

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	dup2(fds[1], STDERR_FILENO);
	assert_script(state,
		      &(struct script){ .text = "echo out; echo err >&2", .stderr_through = true },
		      "out\n", "", 0);
	dup2(saved, STDERR_FILENO);
	assert_int_equal(read(fds[0], text, sizeof(text) - 1), 4);
	assert_string_equal(text, "err\n");
	close(fds[0]);
	close(fds[1]);
	close(saved);
}

static void status_is_the_programs(void **state)
{
	assert_script(state, &(struct script){ .text = "exit 1" }, "", "", 1 << 8);
	assert_script(state, &(struct script){ .text = "kill -9 $$" }, "", "", SIGKILL);
	assert_script(state, &(struct script){ .text = "kill -TERM $$" }, "", "", SIGTERM);
}

/* ---- bounds ---------------------------------------------------------------------------- */

/* The script holds a lock that all its processes share; true when one of them lives. */
static bool is_lock_held(void **state, int wait_ms)
{
	struct place *place = *state;
	autoclose int fd = -1;
	struct hw_err e;

	return file_lock(place->dir, "lock", true, time_deadline(wait_ms), &fd, &e) < 0;
}

static void group_dies_at_the_deadline(void **state)
{
	assert_script_fails(state,
			    &(struct script){ .text = "exec 9>lock; flock 9; sleep 1000 & wait",
					      .timeout_ms = 300 },
			    -ETIMEDOUT, "/bin/sh was killed: it did not end in the time allowed");
	assert_false(is_lock_held(state, LONG));
}

static void output_does_not_stretch_the_deadline(void **state)
{
	assert_script_fails(state,
			    &(struct script){ .text = "while :; do echo x; sleep 0.01; done",
					      .timeout_ms = 200 },
			    -ETIMEDOUT, "/bin/sh was killed: it did not end in the time allowed");
}

static void group_dies_on_cancel(void **state)
{
	struct place *place = *state;
	autoclose int fd = -1;

	/* the script itself says that it is ready to be cancelled */
	assert_int_equal(mkfifoat(place->dir, "ready", 0600), 0);
	fd = openat(place->dir, "ready", O_RDWR | O_CLOEXEC);
	assert_script_fails(state,
			    &(struct script){ .text = "exec 9>lock; flock 9; sleep 1000 & "
						      "echo >ready; wait",
					      .cancel_fd = fd },
			    -ECANCELED, "/bin/sh was killed: cancelled");
	assert_false(is_lock_held(state, LONG));
}

static void nothing_starts_too_late(void **state)
{
	struct place *place = *state;
	const struct script script = { .text = "echo >started",
				       .cancel_fd = eventfd(1, EFD_CLOEXEC) };
	struct proc p = { .path = "/bin/true", .cancel_fd = -1, .deadline = time_now() };
	struct proc_result result;
	struct hw_err e;

	assert_script_fails(state, &script, -ECANCELED, "/bin/sh was not started: cancelled");
	assert_int_equal(faccessat(place->dir, "started", F_OK, 0), -1);
	close(script.cancel_fd);
	assert_int_equal(proc_run(&p, &result, &e), -ETIMEDOUT);
	assert_string_equal(e.msg, "/bin/true was not started: the time allowed is over");
}

static void output_is_bounded(void **state)
{
	assert_script(state, &(struct script){ .text = "printf 12345", .output_max = 5 }, "12345",
		      "", 0);
	assert_script_fails(state, &(struct script){ .text = "printf 123456", .output_max = 5 },
			    -EFBIG, "/bin/sh wrote more than 5 bytes to its standard output");
	assert_script_fails(state, &(struct script){ .text = "yes >&2", .output_max = 5 }, -EFBIG,
			    "/bin/sh wrote more than 5 bytes to its standard error");
}

static void endless_output_is_bounded_in_memory(void **state)
{
	struct rusage before, after;

	getrusage(RUSAGE_SELF, &before);
	assert_script_fails(
		state, &(struct script){ .text = "exec 9>lock; flock 9; head -c 100M /dev/zero" },
		-EFBIG, "/bin/sh wrote more than 4194304 bytes to its standard output");
	getrusage(RUSAGE_SELF, &after);
	assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, 50 << 10); /* KiB */
	assert_false(is_lock_held(state, LONG));
}

/* ---- what a program leaves behind -------------------------------------------------------- */

/* A background process keeps standard output and the lock; its pid is the output. */
static void background_process_survives(void **state)
{
	AUTO(proc_result_done) struct proc_result result = { 0 };
	const struct script script = { .text = "exec 9>lock; flock 9; sleep 1000 & echo $!" };
	long long pid;
	struct hw_err e;

	assert_int_equal(run_script(state, &script, &result, &e), 0);
	assert_int_equal(result.status, 0);
	result.output.data[strcspn(result.output.data, "\n")] = '\0';
	assert_true(str_to_int64(result.output.data, 2, INT32_MAX, &pid));
	assert_true(is_lock_held(state, 1));
	assert_int_equal(kill((pid_t)pid, SIGKILL), 0);
	assert_false(is_lock_held(state, LONG));
}

static void talkative_grandchild_does_not_hold_us(void **state)
{
	AUTO(proc_result_done) struct proc_result result = { 0 };
	const struct script script = { .text = "exec 9>lock; flock 9; yes 2>&- & echo $! >&2" };
	long long pid;
	struct hw_err e;
	int r = run_script(state, &script, &result, &e);

	/* it may have written too much before the shell ended, and is dead then */
	if (r == -EFBIG)
		return;
	assert_int_equal(r, 0);
	result.errors.data[strcspn(result.errors.data, "\n")] = '\0';
	assert_true(str_to_int64(result.errors.data, 2, INT32_MAX, &pid));
	kill((pid_t)pid, SIGKILL);
	assert_false(is_lock_held(state, LONG));
}

/* ---- what cannot be executed --------------------------------------------------------------- */

static void assert_cannot_run(const char *path, int code)
{
	struct proc_result result;
	struct hw_err e;

	assert_int_equal(run_path(path, &result, &e), code);
	assert_true(str_starts(e.msg, "execute "));
	assert_non_null(strstr(e.msg, path));
}

static void failure_to_execute_is_told_exactly(void **state)
{
	autofree char *busy = NULL, *plain = NULL, *garbage = NULL, *no_interpreter = NULL;
	autoclose int writer = -1;

	make_file(state, "busy", "#!/bin/sh\n", 0700, &busy);
	writer = open(busy, O_WRONLY | O_CLOEXEC);
	assert_cannot_run(busy, -ETXTBSY);
	make_file(state, "plain", "#!/bin/sh\n", 0600, &plain);
	assert_cannot_run(plain, -EACCES);
	make_file(state, "garbage", "garbage", 0700, &garbage);
	assert_cannot_run(garbage, -ENOEXEC);
	make_file(state, "no-interpreter", "#!/no/such/program\n", 0700, &no_interpreter);
	assert_cannot_run(no_interpreter, -ENOENT);
	assert_cannot_run("/no/such/program", -ENOENT);
	assert_cannot_run("/tmp", -EACCES);
}

/* ---- a good guest ----------------------------------------------------------------------------- */

static void descriptors_of_the_host_stay_here(void **state)
{
	/* ls itself opens the directory as 3 */
	int a = open("/dev/null", O_RDONLY), b = dup(a);

	assert_script(state, &(struct script){ .text = "exec ls /proc/self/fd" }, "0\n1\n2\n3\n",
		      "", 0);
	close(a);
	close(b);
}

static void signals_are_at_their_defaults(void **state)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before[2], now;
	sigset_t usr2, mask, mask_now;

	sigaction(SIGPIPE, &ignore, &before[0]);
	sigaction(SIGUSR1, &ignore, &before[1]);
	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &usr2, &mask);
	/* of the ones that glibc keeps for itself, 32 and 33, posix_spawn() leaves something */
	assert_script(state,
		      &(struct script){ .text = "set -- $(sed -n 's/^Sig[BI][lg][kn]://p' "
						"/proc/self/status); "
						"echo $((0x$1)) $((0x$2 & 0x7fffffff))" },
		      "0 0\n", "", 0);
	/* and the host's are as they were */
	sigaction(SIGPIPE, &before[0], &now);
	assert_ptr_equal(now.sa_handler, SIG_IGN);
	sigaction(SIGUSR1, &before[1], NULL);
	pthread_sigmask(SIG_SETMASK, &mask, &mask_now);
	assert_true(sigismember(&mask_now, SIGUSR2));
	assert_false(sigismember(&mask_now, SIGCHLD));
}

static void program_leads_its_own_group(void **state)
{
	assert_script(state,
		      &(struct script){ .text = "read -r _ _ _ _ group _ </proc/$$/stat; "
						"test $group = $$ && echo own" },
		      "own\n", "", 0);
}

static void heard(int signal_number)
{
	(void)signal_number;
}

/* Ctrl-C for the whole group, more often than a person can, until it is killed. */
static pid_t press_ctrl_c(void)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGINT, &ignore, NULL);
	for (;;) {
		kill(0, SIGINT);
		usleep(300);
	}
}

static void signal_for_our_group_spares_it(void **state)
{
	const struct sigaction hear = { .sa_handler = heard, .sa_flags = SA_RESTART };
	struct sigaction before;
	pid_t pid;

	setpgid(0, 0); /* not for those who run this test */
	sigaction(SIGINT, &hear, &before);
	pid = press_ctrl_c();
	assert_true(pid > 0);
	for (int i = 0; i < 30; i++)
		assert_script(state, &(struct script){ .text = "echo alive" }, "alive\n", "", 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	sigaction(SIGINT, &before, NULL);
}

static void program_may_stay_in_our_group(void **state)
{
	autofree char *ours = str_printf("%d\n", (int)getpgrp());

	assert_script(state,
		      &(struct script){ .text = "read -r _ _ _ _ group _ </proc/$$/stat; "
						"echo $group",
					.stay = true },
		      ours, "", 0);
	/* and dies alone */
	assert_script_fails(state,
			    &(struct script){ .text = "exec 9>lock; flock 9; exec sleep 1000",
					      .timeout_ms = 300,
					      .stay = true },
			    -ETIMEDOUT, "/bin/sh was killed: it did not end in the time allowed");
	assert_false(is_lock_held(state, LONG));
}

static void host_may_have_closed_its_own(void **state)
{
	AUTO(proc_result_done) struct proc_result result = { 0 };
	const struct script script = { .text = "cat; echo err >&2", .input = "in" };
	int saved[3], r;
	struct hw_err e;

	for (int i = 0; i < 3; i++) {
		saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 3);
		close(i);
	}
	r = run_script(state, &script, &result, &e);
	for (int i = 0; i < 3; i++) {
		dup2(saved[i], i);
		close(saved[i]);
	}
	assert_int_equal(r, 0);
	assert_string_equal(result.output.data, "in");
	assert_string_equal(result.errors.data, "err\n");
}

/* SIGCHLD as the host has it, for the length of a block. */
struct sigchld {
	struct sigaction before;
};

static void sigchld_restore(struct sigchld *s)
{
	sigaction(SIGCHLD, &s->before, NULL);
}
AUTO_VALUE_DEFINE(sigchld_restore, struct sigchld);

static void host_ignores_sigchld(void **state)
{
	AUTO(sigchld_restore) struct sigchld s;
	struct sigaction ignore = { .sa_handler = SIG_IGN }, now;

	sigaction(SIGCHLD, &ignore, &s.before);
	for (int i = 0; i < 20; i++)
		assert_script(state, &(struct script){ .text = "exit 1" }, "", "", 1 << 8);
	sigaction(SIGCHLD, NULL, &now);
	assert_ptr_equal(now.sa_handler, SIG_IGN);
}

static void host_wants_no_zombies(void **state)
{
	AUTO(sigchld_restore) struct sigchld s;
	struct sigaction no_wait = { .sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT };

	sigaction(SIGCHLD, &no_wait, &s.before);
	assert_script(state, &(struct script){ .text = "exit 1" }, "", "", 1 << 8);
}

static void reap_all(int signal)
{
	int saved = errno;

	(void)signal;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	errno = saved;
}

static void host_reaps_in_a_handler(void **state)
{
	AUTO(sigchld_restore) struct sigchld s;
	struct sigaction reap = { .sa_handler = reap_all };

	sigaction(SIGCHLD, &reap, &s.before);
	for (int i = 0; i < 20; i++)
		assert_script(state, &(struct script){ .text = "exit 1" }, "", "", 1 << 8);
}

struct reaper {
	atomic_bool stop;
	int options;
	int reaped;
	pthread_t thread;
};

static void *reap_in_a_loop(void *arg)
{
	struct reaper *r = arg;

	while (!r->stop) {
		if (waitpid(-1, NULL, WNOHANG | r->options) > 0)
			r->reaped++;
		sched_yield();
	}
	return NULL;
}

static int run_beside_reaper(void **state, int options)
{
	struct reaper r = { .options = options };

	assert_int_equal(pthread_create(&r.thread, NULL, reap_in_a_loop, &r), 0);
	for (int i = 0; i < 50; i++)
		assert_script(state, &(struct script){ .text = "exit 1" }, "", "", 1 << 8);
	r.stop = true;
	pthread_join(r.thread, NULL);
	return r.reaped;
}

static void host_loops_on_waitpid(void **state)
{
	assert_int_equal(run_beside_reaper(state, 0), 0);
}

static void host_loops_on_waitpid_for_all(void **state)
{
	run_beside_reaper(state, __WALL);
}

struct worker {
	void **state;
	int number;
	pthread_t thread;
};

/* Return: NULL when all was right. */
static void *work(void *arg)
{
	struct worker *w = arg;
	autofree char *text = str_printf("cat; exit %d", w->number);
	autofree char *input = str_printf("input of %d", w->number);
	const struct script script = { .text = text, .input = input };

	for (int i = 0; i < 10; i++) {
		AUTO(proc_result_done) struct proc_result result = { 0 };
		struct hw_err e;

		if (run_script(w->state, &script, &result, &e) != 0 ||
		    !str_equal(result.output.data, input) || result.status != w->number << 8)
			return w;
	}
	return NULL;
}

static void many_threads_run_programs(void **state)
{
	struct worker workers[8];
	void *wrong;

	for (int i = 0; i < 8; i++) {
		workers[i] = (struct worker){ .state = state, .number = i };
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < 8; i++) {
		pthread_join(workers[i].thread, &wrong);
		assert_null(wrong);
	}
}

static void *wake_often(void *arg)
{
	struct reaper *r = arg;

	while (!r->stop) {
		kill(getpid(), SIGUSR1);
		time_sleep(1);
	}
	return NULL;
}

static void count_signal(int signal)
{
	(void)signal;
}

static void host_handles_signals_meanwhile(void **state)
{
	struct sigaction count = { .sa_handler = count_signal }, before;
	struct reaper r = { 0 };

	sigaction(SIGUSR1, &count, &before);
	assert_int_equal(pthread_create(&r.thread, NULL, wake_often, &r), 0);
	for (int i = 0; i < 20; i++)
		assert_script(state, &(struct script){ .text = "cat; exit 2", .input = "x" }, "x",
			      "", 2 << 8);
	r.stop = true;
	pthread_join(r.thread, NULL);
	sigaction(SIGUSR1, &before, NULL);
}

/* ---- texts ---------------------------------------------------------------------------------- */

static void status_is_told_as_by_go(void **state)
{
	static const struct {
		int status;
		const char *text;
	} table[] = {
		{ 0, "exit status 0" },
		{ 1 << 8, "exit status 1" },
		{ 255 << 8, "exit status 255" },
		{ SIGKILL, "signal: killed" },
		{ SIGTERM, "signal: terminated" },
		{ SIGSEGV | 0x80, "signal: segmentation fault (core dumped)" },
		{ SIGPIPE, "signal: broken pipe" },
		{ 50, "signal: signal 50" },
	};
	char buf[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		assert_string_equal(proc_status_format(table[i].status, buf, sizeof(buf)),
				    table[i].text);
	assert_string_equal(proc_status_format(SIGSEGV | 0x80, buf, 12), "signal: seg");
}

/* Alone first: once there was a thread, glibc does not call the process single-threaded again. */
#define EACH_WAY(TEST, END)                                                                        \
	TEST("the environment is just what was given" END, environment_is_just_what_was_given),    \
		TEST("the path is the first argument" END, path_is_the_first_argument),            \
		TEST("a large input arrives whole, an empty one too" END, input_arrives_whole),    \
		TEST("input need not be read" END, input_need_not_be_read),                        \
		TEST("both outputs are kept apart" END, both_outputs_are_kept_apart),              \
		TEST("standard error can pass through" END, errors_can_pass_through),              \
		TEST("the status is the program's" END, status_is_the_programs),                   \
		TEST("the whole group dies at the deadline" END, group_dies_at_the_deadline),      \
		TEST("steady output does not stretch the deadline" END,                            \
		     output_does_not_stretch_the_deadline),                                        \
		TEST("the whole group dies on cancel" END, group_dies_on_cancel),                  \
		TEST("nothing starts after deadline or cancel" END, nothing_starts_too_late),      \
		TEST("more output than allowed is an error" END, output_is_bounded),               \
		TEST("100 MB of output are bounded in memory" END,                                 \
		     endless_output_is_bounded_in_memory),                                         \
		TEST("a background process survives and does not hold us" END,                     \
		     background_process_survives),                                                 \
		TEST("a grandchild that goes on writing does not hold us" END,                     \
		     talkative_grandchild_does_not_hold_us),                                       \
		TEST("why a program cannot be executed is told exactly" END,                       \
		     failure_to_execute_is_told_exactly),                                          \
		TEST("descriptors of the host are not passed on" END,                              \
		     descriptors_of_the_host_stay_here),                                           \
		TEST("signals are at their defaults, the host's untouched" END,                    \
		     signals_are_at_their_defaults),                                               \
		TEST("the program leads its own group" END, program_leads_its_own_group),          \
		TEST("a Ctrl-C for our group spares it" END, signal_for_our_group_spares_it),      \
		TEST("the program may stay in our group" END, program_may_stay_in_our_group),      \
		TEST("the host may have closed standard input and output" END,                     \
		     host_may_have_closed_its_own),                                                \
		TEST("the status is right when SIGCHLD is ignored" END, host_ignores_sigchld),     \
		TEST("the status is right when zombies are not wanted" END,                        \
		     host_wants_no_zombies),                                                       \
		TEST("the status is right when a handler reaps" END, host_reaps_in_a_handler)

#define ALONE(sentence, function)                                                                  \
	{                                                                                          \
		"proc: " sentence, function, place_make, place_remove, NULL                        \
	}
#define WITH_THREAD(sentence, function)                                                            \
	{                                                                                          \
		"proc: " sentence, function, place_make_with_thread, place_remove_with_thread,     \
			NULL                                                                       \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ALONE("a status is told in Go's words", status_is_told_as_by_go),
		EACH_WAY(ALONE, ""),
		EACH_WAY(WITH_THREAD, ", beside a thread"),
		ALONE("the host may loop on waitpid(-1)", host_loops_on_waitpid),
		ALONE("the host may loop on waitpid(-1) with __WALL",
		      host_loops_on_waitpid_for_all),
		ALONE("eight threads run programs at once", many_threads_run_programs),
		ALONE("signals may arrive all the time", host_handles_signals_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
