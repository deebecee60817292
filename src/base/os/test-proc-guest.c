/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/test-proc-guest.c - running programs from calling programs of different kinds
 */
#include "base/os/test-proc.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>

static void descriptors_are_not_inherited(void **state)
{
	/* descriptor 3 is the directory, which ls itself opens */
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
	/* posix_spawn() does not reset signals 32 and 33, which glibc reserves for itself */
	assert_script(state,
		      &(struct script){ .text = "set -- $(sed -n 's/^Sig[BI][lg][kn]://p' "
						"/proc/self/status); "
						"echo $((0x$1)) $((0x$2 & 0x7fffffff))" },
		      "0 0\n", "", 0);
	/* the signals of the calling program are unchanged */
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

static void ignore_signal(int signal_number)
{
	(void)signal_number;
}

/* Starts a process that sends SIGINT to our process group repeatedly until it is killed. */
static pid_t start_sending_sigint(void)
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

static void sigint_for_our_group_does_not_reach_it(void **state)
{
	const struct sigaction hear = { .sa_handler = ignore_signal, .sa_flags = SA_RESTART };
	struct sigaction before;
	pid_t pid;

	setpgid(0, 0); /* a new group, so that the test runner gets no signal */
	sigaction(SIGINT, &hear, &before);
	pid = start_sending_sigint();
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
	/* at the deadline only the program is killed, not our group */
	assert_script_fails(state,
			    &(struct script){ .text = "exec 9>lock; flock 9; exec sleep 1000",
					      .timeout_ms = 300,
					      .stay = true },
			    -ETIMEDOUT, "/bin/sh: timed out, killed");
	assert_false(is_lock_held(state, LONG));
}

static void caller_has_closed_its_stdio(void **state)
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

/* Restores our disposition of SIGCHLD at the end of a block. */
struct sigchld {
	struct sigaction before;
};

static void sigchld_restore(struct sigchld *s)
{
	sigaction(SIGCHLD, &s->before, NULL);
}
AUTO_VALUE_DEFINE(sigchld_restore, struct sigchld);

static void caller_ignores_sigchld(void **state)
{
	AUTO(sigchld_restore) struct sigchld s;
	struct sigaction ignore = { .sa_handler = SIG_IGN }, now;

	sigaction(SIGCHLD, &ignore, &s.before);
	for (int i = 0; i < 20; i++)
		assert_script(state, &(struct script){ .text = "exit 1" }, "", "", 1 << 8);
	sigaction(SIGCHLD, NULL, &now);
	assert_ptr_equal(now.sa_handler, SIG_IGN);
}

static void caller_sets_nocldwait(void **state)
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

static void caller_reaps_in_a_handler(void **state)
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

static void caller_loops_on_waitpid(void **state)
{
	assert_int_equal(run_beside_reaper(state, 0), 0);
}

static void caller_loops_on_waitpid_for_all(void **state)
{
	run_beside_reaper(state, __WALL);
}

struct worker {
	void **state;
	int number;
	pthread_t thread;
};

/* Return: NULL on success */
static void *run_programs(void *arg)
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
		assert_int_equal(
			pthread_create(&workers[i].thread, NULL, run_programs, &workers[i]), 0);
	}
	for (int i = 0; i < 8; i++) {
		pthread_join(workers[i].thread, &wrong);
		assert_null(wrong);
	}
}

static void *send_signals(void *arg)
{
	struct reaper *r = arg;

	while (!r->stop) {
		kill(getpid(), SIGUSR1);
		time_sleep(1);
	}
	return NULL;
}

static void caller_handles_signals(void **state)
{
	struct sigaction hear = { .sa_handler = ignore_signal }, before;
	struct reaper r = { 0 };

	sigaction(SIGUSR1, &hear, &before);
	assert_int_equal(pthread_create(&r.thread, NULL, send_signals, &r), 0);
	for (int i = 0; i < 20; i++)
		assert_script(state, &(struct script){ .text = "cat; exit 2", .input = "x" }, "x",
			      "", 2 << 8);
	r.stop = true;
	pthread_join(r.thread, NULL);
	sigaction(SIGUSR1, &before, NULL);
}

/* The mode without threads runs first: once a process has created a thread, glibc never treats it
 * as single-threaded again. */
#define IN_EACH_MODE(TEST, END)                                                                    \
	TEST("the caller's descriptors are not inherited" END, descriptors_are_not_inherited),     \
		TEST("signals are reset in the program and unchanged in the caller" END,           \
		     signals_are_at_their_defaults),                                               \
		TEST("the program leads a new process group" END, program_leads_its_own_group),    \
		TEST("a Ctrl-C for the caller's process group does not reach the program" END,     \
		     sigint_for_our_group_does_not_reach_it),                                      \
		TEST("with .stay, the program stays in the process group of the caller" END,       \
		     program_may_stay_in_our_group),                                               \
		TEST("programs run even if the caller has closed descriptors 0 to 2" END,          \
		     caller_has_closed_its_stdio),                                                 \
		TEST("the status is correct if the caller ignores SIGCHLD" END,                    \
		     caller_ignores_sigchld),                                                      \
		TEST("the status is correct if the caller sets SA_NOCLDWAIT" END,                  \
		     caller_sets_nocldwait),                                                       \
		TEST("the status is correct if a signal handler of the caller reaps children" END, \
		     caller_reaps_in_a_handler)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_EACH_MODE(WITHOUT_THREAD, ""),
		IN_EACH_MODE(WITH_THREAD, ", with another thread"),
		WITHOUT_THREAD("the status is correct if the caller loops on waitpid(-1)",
			       caller_loops_on_waitpid),
		WITHOUT_THREAD(
			"the status is correct if the caller loops on waitpid(-1) with __WALL",
			caller_loops_on_waitpid_for_all),
		WITHOUT_THREAD("eight threads can run programs at the same time",
			       many_threads_run_programs),
		WITHOUT_THREAD("programs run correctly while the caller receives many signals",
			       caller_handles_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
