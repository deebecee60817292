/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/workers.c - threads for straight-line blocking code
 *
 * Rules: one lock for all counts and the queue; nothing is called with it held.
 */
#include "rpc/workers.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>

#include "base/mem.h"

#define STACK (256 << 10) /* virtual; a handler has a few struct hw_err on it */

struct workers {
	struct workers_limits limits;
	pthread_mutex_t lock;
	pthread_cond_t work;  /* the queue has something, or stop */
	pthread_cond_t ended; /* the last long job has */
	struct list queue;
	unsigned queued;
	unsigned idle;	  /* threads of the pool that wait */
	unsigned started; /* threads of the pool */
	unsigned longs;
	bool stop;
	pthread_t pool[];
};

/**
 * workers_new() - no thread yet
 */
struct workers *workers_new(const struct workers_limits *limits)
{
	struct workers *w = mem_new(sizeof(*w) + limits->pool * sizeof(w->pool[0]));

	w->limits = *limits;
	list_init(&w->queue);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->work, NULL);
	pthread_cond_init(&w->ended, NULL);
	return w;
}

/**
 * workers_free() - let every job end
 */
void workers_free(struct workers *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_broadcast(&w->work);
	while (w->longs > 0)
		pthread_cond_wait(&w->ended, &w->lock);
	pthread_mutex_unlock(&w->lock);
	for (unsigned i = 0; i < w->started; i++)
		pthread_join(w->pool[i], NULL);
	pthread_cond_destroy(&w->ended);
	pthread_cond_destroy(&w->work);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

/* Signals are for the thread that called us first: the new one blocks them all. */
static bool start_thread(void *(*run)(void *), void *arg, bool detached, pthread_t *ret_thread)
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
	r = pthread_create(ret_thread, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return r == 0;
}

static void *run_pool(void *arg)
{
	struct workers *w = arg;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		struct job *job;

		while (list_is_empty(&w->queue) && !w->stop) {
			w->idle++;
			pthread_cond_wait(&w->work, &w->lock);
			w->idle--;
		}
		if (list_is_empty(&w->queue))
			break;
		job = list_entry(w->queue.next, struct job, link);
		list_remove(&job->link);
		w->queued--;
		pthread_mutex_unlock(&w->lock);
		job->run(job);
		pthread_mutex_lock(&w->lock);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static void *run_long(void *arg)
{
	struct job *job = arg;
	struct workers *w = job->workers;

	job->run(job);
	pthread_mutex_lock(&w->lock);
	if (--w->longs == 0)
		pthread_cond_signal(&w->ended);
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/**
 * workers_short() - run a job on the pool, in its turn
 *
 * Where no thread can be started the ones that are there do the work.
 */
bool workers_short(struct workers *w, struct job *job)
{
	bool taken;

	pthread_mutex_lock(&w->lock);
	assert(!w->stop);
	if (w->idle <= w->queued && w->started < w->limits.pool &&
	    start_thread(run_pool, w, false, &w->pool[w->started]))
		w->started++;
	taken = w->started > 0 && w->queued < w->limits.queue;
	if (taken) {
		w->queued++;
		list_append(&w->queue, &job->link);
	}
	pthread_mutex_unlock(&w->lock);
	if (taken)
		pthread_cond_signal(&w->work);
	return taken;
}

/**
 * workers_long() - run a job on a thread of its own
 */
bool workers_long(struct workers *w, struct job *job)
{
	pthread_t thread;
	bool taken;

	pthread_mutex_lock(&w->lock);
	assert(!w->stop);
	job->workers = w;
	taken = start_thread(run_long, job, true, &thread);
	if (taken)
		w->longs++;
	pthread_mutex_unlock(&w->lock);
	return taken;
}
