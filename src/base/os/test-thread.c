/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/test-thread.c - tests of base/os/thread.c
 */
#include "base/os/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/err.h"
#include "base/time.h"

struct seen {
	sigset_t blocked;
	size_t stack;
	int done_fd;
};

static void *inspect_thread(void *arg)
{
	struct seen *seen = arg;
	pthread_attr_t attr;

	pthread_sigmask(SIG_BLOCK, NULL, &seen->blocked);
	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstacksize(&attr, &seen->stack);
	pthread_attr_destroy(&attr);
	eventfd_write(seen->done_fd, 1);
	return seen;
}

static void blocks_signals(void **state)
{
	struct seen seen = { .done_fd = -1 };
	sigset_t before, after;
	pthread_t thread;
	struct hw_err e;
	void *result;

	(void)state;
	pthread_sigmask(SIG_BLOCK, NULL, &before);
	assert_int_equal(thread_start(inspect_thread, &seen, &thread, &e), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, &seen);
	pthread_sigmask(SIG_BLOCK, NULL, &after);
	assert_true(sigismember(&seen.blocked, SIGTERM) && sigismember(&seen.blocked, SIGCHLD));
	assert_false(sigismember(&before, SIGTERM) || sigismember(&after, SIGTERM));
	/* TSan adds to the stack; the default would be 8 MiB */
	assert_in_range(seen.stack, THREAD_STACK, 1024 * 1024);
}

static void runs_detached(void **state)
{
	struct seen seen = { .done_fd = eventfd(0, EFD_CLOEXEC) };
	struct hw_err e;
	eventfd_t n;

	(void)state;
	assert_int_equal(thread_start(inspect_thread, &seen, NULL, &e), 0);
	assert_int_equal(eventfd_read(seen.done_fd, &n), 0);
	close(seen.done_fd);
}

struct gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool open;
};

static void *open_gate(void *arg)
{
	struct gate *gate = arg;

	pthread_mutex_lock(&gate->lock);
	gate->open = true;
	pthread_cond_signal(&gate->changed);
	pthread_mutex_unlock(&gate->lock);
	return NULL;
}

static void condition(void **state)
{
	struct gate gate = { .lock = PTHREAD_MUTEX_INITIALIZER };
	int64_t deadline = time_deadline(20);
	bool in_time = true;
	pthread_t thread;
	struct hw_err e;

	(void)state;
	cond_init(&gate.changed);
	pthread_mutex_lock(&gate.lock);
	while (in_time)
		in_time = cond_wait_until(&gate.changed, &gate.lock, deadline);
	assert_true(time_has_passed(deadline));
	assert_int_equal(thread_start(open_gate, &gate, &thread, &e), 0);
	while (!gate.open)
		assert_true(cond_wait_until(&gate.changed, &gate.lock, TIME_NEVER));
	pthread_mutex_unlock(&gate.lock);
	pthread_join(thread, NULL);
	pthread_cond_destroy(&gate.changed);
	pthread_mutex_destroy(&gate.lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "thread: a thread has all signals blocked and a small stack", blocks_signals },
		{ "thread: a detached thread runs", runs_detached },
		{ "thread: a condition is waited for until a signal or the deadline", condition },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
