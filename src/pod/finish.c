/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/finish.c - stop and remove pods and containers in the background
 *
 * What:  finishes what a failed operation or a killed process has left: objects in the states stopping
 *        and removing. What fails is tried again, at growing intervals.
 * How:   a few threads, which start with the first object. Not all of them may run plugins at once: when
 *        many DELs hang, a pod whose hawser-pause has ended is still stopped, and containers are
 *        removed. A DEL has less time than with a client, and more after each failure.
 */
#include <errno.h>
#include <sys/eventfd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/os/thread.h"
#include "base/time.h"
#include "pod/container.h"

#define THREADS	      8
#define DETACHING_MAX 6 /* threads that run plugins */
#define DELAY_MIN_MS  1000
#define DELAY_MAX_MS  60000
#define DEL_MIN_MS    10000 /* timeout of the plugins of a pod; it grows up to DELAY_MAX_MS */
#define BUSY_MS	      1000  /* how long a thread waits for another operation on the object */

/* ---- one object --------------------------------------------------------------------- */

/* A plugin that needs long gets the time after some failures. */
static int64_t del_deadline(struct object *o)
{
	struct finisher *f = &o->table->pods->finisher;
	int ms;

	pthread_mutex_lock(&f->lock);
	ms = o->finish_delay_ms > DEL_MIN_MS ? o->finish_delay_ms : DEL_MIN_MS;
	pthread_mutex_unlock(&f->lock);
	return time_deadline(ms);
}

static int finish_pod(struct pod *pod, struct hw_err *e)
{
	if (pod->state == POD_READY) /* its hawser-pause has ended */
		return recover_pod(pod, e);
	if (pod->state == POD_STOPPING)
		return pod_stop(pod, POD_BACKGROUND, del_deadline(&pod->o), e);
	if (pod->state == POD_REMOVING)
		return pod_remove(pod, POD_BACKGROUND, del_deadline(&pod->o), e);
	if (pod->state == POD_LOST) /* only after a forced removal has failed */
		return pod_remove(pod, POD_BACKGROUND | PODS_FORCE, del_deadline(&pod->o), e);
	return 0;
}

/* A start that was interrupted is repeated once: if it fails, the container has ended. */
static void finish_start(struct container *c)
{
	struct hw_err e;

	if (container_start(c, &e) < 0)
		log_event(LOG_WARN, "container not started", "container", c->o.id, "error", e.msg,
			  NULL);
}

/* Processes may outlive a container that has ended: in a PID namespace that it shares, or if its monitor was
 * killed. */
static int kill_rest(struct container *c, struct hw_err *e)
{
	int r;

	r = container_kill(c, time_deadline(POD_BACKGROUND_KILL_MS), e);
	if (r < 0)
		finisher_add_failed(&c->o);
	return r;
}

static int finish_container(struct container *c, struct hw_err *e)
{
	enum container_state state = container_get_state(c);

	if (state == CONTAINER_REMOVING)
		return container_remove(c, POD_BACKGROUND, e);
	if (container_is_starting(c))
		finish_start(c);
	else if (state == CONTAINER_EXITED)
		return kill_rest(c, e);
	return 0;
}

static int finish(struct object *o, struct hw_err *e)
{
	int r;

	r = object_begin(o, time_deadline(BUSY_MS), e);
	if (r < 0)
		finisher_add(o, DELAY_MIN_MS);
	if (r != 0)
		return 0;
	if (o->table == &o->table->pods->pods)
		r = finish_pod((struct pod *)o, e);
	else
		r = finish_container((struct container *)o, e);
	if (r < 0)
		finisher_add_failed(o);
	object_end(o);
	return r;
}

/* ---- threads ------------------------------------------------------------------------ */

/* Whether finish() will run plugins. */
static bool is_detached(struct object *o)
{
	const struct pod_view *view;
	bool detached;

	if (o->table != &o->table->pods->pods)
		return false;
	pthread_mutex_lock(&o->table->lock);
	view = (const void *)o->view;
	detached = view->state == POD_STOPPING || view->state == POD_REMOVING ||
		   view->state == POD_LOST;
	pthread_mutex_unlock(&o->table->lock);
	return detached;
}

/* Return: the next object that a thread may finish; NULL: none */
static struct object *find_first(const struct finisher *f)
{
	bool full = f->n_detaching >= DETACHING_MAX;
	struct object *first = NULL;

	list_for_each(struct object, o, &f->objects, finish_link)
		if ((!first || o->finish_at < first->finish_at) && !(full && is_detached(o)))
			first = o;
	return first;
}

/* @ret_detaches: whether it runs plugins; end_object() must be called. Return: the next object to finish, with a
 * reference; NULL: the threads are to stop */
static struct object *wait_for_object(struct finisher *f, bool *ret_detaches)
{
	struct object *o = NULL;

	pthread_mutex_lock(&f->lock);
	while (!f->stopping) {
		o = find_first(f);
		if (o && time_has_passed(o->finish_at))
			break;
		if (o) {
			struct timespec until = { .tv_sec = o->finish_at / 1000000000,
						  .tv_nsec = o->finish_at % 1000000000 };

			pthread_cond_timedwait(&f->changed, &f->lock, &until);
		} else {
			pthread_cond_wait(&f->changed, &f->lock);
		}
		o = NULL;
	}
	if (o) {
		list_remove(&o->finish_link);
		*ret_detaches = is_detached(o);
		f->n_detaching += *ret_detaches;
	}
	pthread_mutex_unlock(&f->lock);
	return o;
}

static void end_object(struct finisher *f, bool detached)
{
	pthread_mutex_lock(&f->lock);
	f->n_detaching -= detached;
	pthread_mutex_unlock(&f->lock);
}

static void *finisher_thread(void *arg)
{
	struct finisher *f = arg;
	struct hw_err e;

	for (;;) {
		AUTO(shared_unref) struct object *o = NULL;
		bool detaches;

		o = wait_for_object(f, &detaches);
		if (!o)
			return NULL;
		if (finish(o, &e) < 0 && e.code != -ECANCELED)
			log_event(LOG_WARN, "not cleaned up, trying again later", "id", o->id,
				  "error", e.msg, NULL);
		end_object(f, detaches);
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

	*f = (struct finisher){ .lock = PTHREAD_MUTEX_INITIALIZER,
				.cancel_fd = eventfd(0, EFD_CLOEXEC) };
	list_init(&f->objects);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&f->changed, &attr);
	pthread_condattr_destroy(&attr);
}

/* The caller holds the lock; the object is not in the list. */
static void add(struct finisher *f, struct object *o, int delay_ms)
{
	o->finish_at = time_now() + (int64_t)delay_ms * 1000000;
	list_append(&f->objects, &o->finish_link);
	shared_ref(o);
	start_threads(f);
	pthread_cond_signal(&f->changed);
}

void finisher_add(struct object *o, int delay_ms)
{
	struct finisher *f = &o->table->pods->finisher;

	pthread_mutex_lock(&f->lock);
	if (!f->stopping && list_is_empty(&o->finish_link))
		add(f, o, delay_ms);
	pthread_mutex_unlock(&f->lock);
}

void finisher_add_failed(struct object *o)
{
	struct finisher *f = &o->table->pods->finisher;
	int next;

	pthread_mutex_lock(&f->lock);
	if (!f->stopping && list_is_empty(&o->finish_link)) {
		next = o->finish_delay_ms * 2;
		if (next < DELAY_MIN_MS)
			next = DELAY_MIN_MS;
		if (next > DELAY_MAX_MS)
			next = DELAY_MAX_MS;
		o->finish_delay_ms = next;
		add(f, o, next);
	}
	pthread_mutex_unlock(&f->lock);
}

void finisher_done(struct finisher *f)
{
	pthread_mutex_lock(&f->lock);
	f->stopping = true;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	eventfd_write(f->cancel_fd, 1);
	for (size_t i = 0; i < f->n_threads; i++)
		pthread_join(f->threads[i], NULL);
	list_for_each_safe(struct object, o, &f->objects, finish_link) {
		list_remove(&o->finish_link);
		shared_unref(o);
	}
	free(f->threads);
	mem_close_fd(&f->cancel_fd);
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
}
