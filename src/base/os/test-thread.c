/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/test-thread.c - start threads
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "thread: a thread has all signals blocked and a small stack", blocks_signals },
		{ "thread: a detached thread runs", runs_detached },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
