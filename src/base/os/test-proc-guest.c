/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/test-proc-guest.c - programs of ours in hosts of all kinds
 */
#include "base/os/test-proc.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>

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

static void host_handles_signals_meanwhile(void **state)
{
	struct sigaction hear = { .sa_handler = heard }, before;
	struct reaper r = { 0 };

	sigaction(SIGUSR1, &hear, &before);
	assert_int_equal(pthread_create(&r.thread, NULL, wake_often, &r), 0);
	for (int i = 0; i < 20; i++)
		assert_script(state, &(struct script){ .text = "cat; exit 2", .input = "x" }, "x",
			      "", 2 << 8);
	r.stop = true;
	pthread_join(r.thread, NULL);
	sigaction(SIGUSR1, &before, NULL);
}

/* Alone first: once there was a thread, glibc does not call the process single-threaded again. */
#define EACH_WAY(TEST, END)                                                                        \
	TEST("descriptors of the host are not passed on" END, descriptors_of_the_host_stay_here),  \
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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
