/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/finish.c - stop and remove pods in the background
 *
 * What:  finishes what a failed operation or a killed process has left: pods in the states stopping
 *        and removing. A pod whose plugins fail is tried again, at growing intervals.
 * How:   a few threads, so that a plugin that hangs does not delay all other pods. They start with
 *        the first pod.
 */
#include <errno.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/os/thread.h"
#include "base/time.h"
#include "pod/pod.h"

#define THREADS	     4
#define DELAY_MIN_MS 1000
#define DELAY_MAX_MS 60000
#define BUSY_MS	     1000 /* how long a thread waits for another operation on the pod */

/* ---- one pod ------------------------------------------------------------------------ */

static int finish(struct pod *pod, struct hw_err *e)
{
	int r;

	r = object_begin(&pod->o, time_deadline(BUSY_MS), e);
	if (r < 0)
		finisher_add(pod, DELAY_MIN_MS);
	if (r != 0)
		return 0;
	if (pod->state == POD_STOPPING)
		r = pod_stop(pod, 0, e);
	else if (pod->state == POD_REMOVING)
		r = pod_remove(pod, 0, e);
	object_end(&pod->o);
	return r;
}

/* ---- threads ------------------------------------------------------------------------ */

static struct pod *find_first(const struct finisher *f)
{
	struct pod *first = NULL;

	list_for_each(struct pod, pod, &f->pods, finish_link)
		if (!first || pod->finish_at < first->finish_at)
			first = pod;
	return first;
}

/* Return: the next pod to finish, with a reference; NULL: the threads are to stop */
static struct pod *wait_for_pod(struct finisher *f)
{
	struct pod *pod = NULL;

	pthread_mutex_lock(&f->lock);
	while (!f->stopping) {
		pod = find_first(f);
		if (pod && time_has_passed(pod->finish_at))
			break;
		if (pod) {
			struct timespec until = { .tv_sec = pod->finish_at / 1000000000,
						  .tv_nsec = pod->finish_at % 1000000000 };

			pthread_cond_timedwait(&f->changed, &f->lock, &until);
		} else {
			pthread_cond_wait(&f->changed, &f->lock);
		}
		pod = NULL;
	}
	if (pod)
		list_remove(&pod->finish_link);
	pthread_mutex_unlock(&f->lock);
	return pod;
}

static void *finisher_thread(void *arg)
{
	struct finisher *f = arg;
	struct hw_err e;

	for (;;) {
		AUTO(shared_unref) struct pod *pod = NULL;

		pod = wait_for_pod(f);
		if (!pod)
			return NULL;
		if (finish(pod, &e) < 0)
			log_event(LOG_WARN, "pod not cleaned up, trying again later", "pod",
				  pod->o.id, "error", e.msg, NULL);
	}
}

/* The caller holds the lock. */
static void start_threads(struct finisher *f)
{
	struct hw_err e;

	if (f->threads)
		return;
	f->threads = mem_new(THREADS * sizeof(*f->threads));
	while (f->n_threads < THREADS) {
		if (thread_start(finisher_thread, f, &f->threads[f->n_threads], &e) < 0) {
			log_error("clean up pods: %s", e.msg);
			break;
		}
		f->n_threads++;
	}
}

/* ---- interface ---------------------------------------------------------------------- */

void finisher_init(struct finisher *f)
{
	pthread_condattr_t attr;

	*f = (struct finisher){ .lock = PTHREAD_MUTEX_INITIALIZER };
	list_init(&f->pods);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&f->changed, &attr);
	pthread_condattr_destroy(&attr);
}

void finisher_add(struct pod *pod, int delay_ms)
{
	struct finisher *f = &pod->pods->finisher;

	pthread_mutex_lock(&f->lock);
	if (!f->stopping && list_is_empty(&pod->finish_link)) {
		pod->finish_at = time_now() + (int64_t)delay_ms * 1000000;
		list_append(&f->pods, &pod->finish_link);
		shared_ref(pod);
		start_threads(f);
		pthread_cond_signal(&f->changed);
	}
	pthread_mutex_unlock(&f->lock);
}

void finisher_add_failed(struct pod *pod)
{
	int next = pod->finish_delay_ms * 2;

	if (next < DELAY_MIN_MS)
		next = DELAY_MIN_MS;
	if (next > DELAY_MAX_MS)
		next = DELAY_MAX_MS;
	pod->finish_delay_ms = next;
	finisher_add(pod, next);
}

void finisher_done(struct finisher *f)
{
	pthread_mutex_lock(&f->lock);
	f->stopping = true;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	for (size_t i = 0; i < f->n_threads; i++)
		pthread_join(f->threads[i], NULL);
	list_for_each_safe(struct pod, pod, &f->pods, finish_link) {
		list_remove(&pod->finish_link);
		shared_unref(pod);
	}
	free(f->threads);
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
}
