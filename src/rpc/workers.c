/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/workers.c - threads for blocking code
 *
 * Rules: one lock protects the counts and the queue. The lock is not held while a job runs.
 */
#include "rpc/workers.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/os/thread.h"

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

int workers_run_short(struct workers *w, struct worker_job *job, struct hw_err *e)
{
	int r = 0;

	pthread_mutex_lock(&w->lock);
	assert(!w->stop);
	if (w->idle <= w->queued && w->started < w->limits.pool) {
		r = thread_start(pool_main, w, &w->pool[w->started], e);
		w->started += r == 0;
	}
	if (w->started > 0 && w->queued < w->limits.queue) {
		w->queued++;
		list_append(&w->queue, &job->link);
		pthread_cond_signal(&w->work);
		r = 0;
	} else if (w->started > 0) {
		r = err_text(e, -EBUSY, "call queue full: limit %u", w->limits.queue);
	}
	pthread_mutex_unlock(&w->lock);
	return r;
}

int workers_run_long(struct workers *w, struct worker_job *job, struct hw_err *e)
{
	int r;

	pthread_mutex_lock(&w->lock);
	assert(!w->stop);
	job->workers = w;
	r = thread_start(long_main, job, NULL, e);
	w->n_long += r == 0;
	pthread_mutex_unlock(&w->lock);
	return r;
}
