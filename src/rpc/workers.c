/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/workers.c - threads for blocking code
 *
 * Rules: one lock protects the counts and the queue. The lock is not held while a job runs.
 */
#include "rpc/workers.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>

#include "base/mem.h"

#define STACK (256 << 10) /* enough for a handler with several struct hw_err */

struct workers {
	struct workers_limits limits;
	pthread_mutex_t lock;
	pthread_cond_t work;	  /* the queue is not empty, or stop is set */
	pthread_cond_t long_done; /* n_long has become 0 */
	struct list queue;
	unsigned queued;
	unsigned idle;	  /* threads of the pool that wait for a job */
	unsigned started; /* threads of the pool that were started */
	unsigned n_long;  /* running long jobs */
	bool stop;
	pthread_t pool[];
};

struct workers *workers_new(const struct workers_limits *limits)
{
	struct workers *w = mem_new(sizeof(*w) + limits->pool * sizeof(w->pool[0]));

	w->limits = *limits;
	list_init(&w->queue);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->work, NULL);
	pthread_cond_init(&w->long_done, NULL);
	return w;
}

void workers_free(struct workers *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_broadcast(&w->work);
	while (w->n_long > 0)
		pthread_cond_wait(&w->long_done, &w->lock);
	pthread_mutex_unlock(&w->lock);
	for (unsigned i = 0; i < w->started; i++)
		pthread_join(w->pool[i], NULL);
	pthread_cond_destroy(&w->long_done);
	pthread_cond_destroy(&w->work);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

/* The new thread blocks all signals, so that the main thread receives them. */
static bool start_thread(void *(*entry)(void *), void *arg, bool detached, pthread_t *ret_thread)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	if (detached)
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(ret_thread, &attr, entry, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return r == 0;
}

static void *pool_main(void *arg)
{
	struct workers *w = arg;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		struct worker_job *job;

		while (list_is_empty(&w->queue) && !w->stop) {
			w->idle++;
			pthread_cond_wait(&w->work, &w->lock);
			w->idle--;
		}
		if (list_is_empty(&w->queue))
			break;
		job = list_entry(w->queue.next, struct worker_job, link);
		list_remove(&job->link);
		w->queued--;
		pthread_mutex_unlock(&w->lock);
		job->run(job);
		pthread_mutex_lock(&w->lock);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static void *long_main(void *arg)
{
	struct worker_job *job = arg;
	struct workers *w = job->workers;

	job->run(job);
	pthread_mutex_lock(&w->lock);
	if (--w->n_long == 0)
		pthread_cond_signal(&w->long_done);
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

bool workers_run_short(struct workers *w, struct worker_job *job)
{
	bool accepted;

	pthread_mutex_lock(&w->lock);
	assert(!w->stop);
	if (w->idle <= w->queued && w->started < w->limits.pool &&
	    start_thread(pool_main, w, false, &w->pool[w->started]))
		w->started++;
	accepted = w->started > 0 && w->queued < w->limits.queue;
	if (accepted) {
		w->queued++;
		list_append(&w->queue, &job->link);
	}
	pthread_mutex_unlock(&w->lock);
	if (accepted)
		pthread_cond_signal(&w->work);
	return accepted;
}

bool workers_run_long(struct workers *w, struct worker_job *job)
{
	pthread_t thread;
	bool accepted;

	pthread_mutex_lock(&w->lock);
	assert(!w->stop);
	job->workers = w;
	accepted = start_thread(long_main, job, true, &thread);
	if (accepted)
		w->n_long++;
	pthread_mutex_unlock(&w->lock);
	return accepted;
}
