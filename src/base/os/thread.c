/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/thread.c - start threads; condition variables with deadlines
 *
 * How:   a thread inherits the signal mask of its creator, so all signals are blocked while it is
 *        created. A mask that the thread sets itself would be too late.
 */
#include "base/os/thread.h"

#include <signal.h>
#include <time.h>

#include "base/err.h"
#include "base/time.h"

int thread_start(void *(*entry)(void *arg), void *arg, pthread_t *ret_thread, struct hw_err *e)
{
	pthread_attr_t attr;
	sigset_t all, before;
	pthread_t thread;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, THREAD_STACK);
	if (!ret_thread)
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&thread, &attr, entry, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (r < 0)
		return err_set(e, r, "create a thread");
	if (ret_thread)
		*ret_thread = thread;
	return 0;
}

void cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t deadline)
{
	struct timespec until = { .tv_sec = deadline / 1000000000,
				  .tv_nsec = deadline % 1000000000 };

	if (deadline == TIME_NEVER)
		return pthread_cond_wait(cond, lock) == 0;
	return pthread_cond_timedwait(cond, lock, &until) == 0;
}
