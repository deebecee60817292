/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/test-workers.c - short and long jobs on threads
 */
#include "rpc/workers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/time.h"

#define LONG 60000 /* ms; reached only if a test fails */

static atomic_uint running, done;
static atomic_bool gate;

/* Runs until the gate is opened. */
static void wait_at_gate(struct worker_job *job)
{
	int64_t deadline = time_deadline(LONG);

	(void)job;
	running++;
	while (!gate && !time_has_passed(deadline))
		time_sleep(1);
	done++;
}

static void wait_for(atomic_uint *count, unsigned n)
{
	int64_t deadline = time_deadline(LONG);

	while (*count < n && !time_has_passed(deadline))
		time_sleep(1);
	assert_int_equal(*count, n);
}

static int reset(void **state)
{
	(void)state;
	running = done = 0;
	gate = false;
	return 0;
}

static void pool_and_queue(void **state)
{
	const struct workers_limits limits = { .pool = 3, .queue = 5 };
	struct workers *w = workers_new(&limits);
	struct hw_err e;
	struct worker_job jobs[9];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++)
		jobs[i].run = wait_at_gate;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(workers_run_short(w, &jobs[i], &e), 0);
		wait_for(&running, i + 1);
	}
	for (size_t i = 3; i < 8; i++)
		assert_int_equal(workers_run_short(w, &jobs[i], &e), 0);
	assert_int_equal(workers_run_short(w, &jobs[8], &e), -EBUSY);
	assert_int_equal(running, 3);
	gate = true;
	wait_for(&done, 8);
	assert_int_equal(workers_run_short(w, &jobs[8], &e), 0);
	workers_free(w);
	assert_int_equal(done, 9);
}

static void long_jobs_beside_pool(void **state)
{
	const struct workers_limits limits = { .pool = 1, .queue = 1 };
	struct workers *w = workers_new(&limits);
	struct hw_err e;
	struct worker_job jobs[20], last = { .run = wait_at_gate };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
		jobs[i].run = wait_at_gate;
		assert_int_equal(workers_run_long(w, &jobs[i], &e), 0);
	}
	wait_for(&running, 20);
	assert_int_equal(workers_run_short(w, &last, &e), 0);
	wait_for(&running, 21);
	gate = true;
	workers_free(w); /* waits for the jobs */
	assert_int_equal(done, 21);
}

static void check_signal_mask(struct worker_job *job)
{
	sigset_t mask;

	(void)job;
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	if (sigismember(&mask, SIGTERM) && sigismember(&mask, SIGCHLD))
		done++;
}

static void blocks_signals(void **state)
{
	const struct workers_limits limits = { .pool = 1, .queue = 1 };
	struct worker_job a = { .run = check_signal_mask }, b = { .run = check_signal_mask };
	struct workers *w = workers_new(&limits);
	struct hw_err e;
	sigset_t mask;

	(void)state;
	assert_int_equal(workers_run_short(w, &a, &e), 0);
	assert_int_equal(workers_run_long(w, &b, &e), 0);
	workers_free(w);
	assert_int_equal(done, 2);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	assert_false(sigismember(&mask, SIGTERM));
}

#define TEST(name, f)                                                                              \
	{                                                                                          \
		name, f, reset, NULL, NULL                                                         \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("workers: short jobs share the threads of the pool, and the number of waiting "
		     "jobs is limited",
		     pool_and_queue),
		TEST("workers: each long job has a thread, and workers_free() waits for them",
		     long_jobs_beside_pool),
		TEST("workers: threads block all signals", blocks_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
