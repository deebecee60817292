/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/finish.c - stop and remove pods and containers in the background
 *
 * What:  finishes what a failed operation or a killed process has left: objects in the states stopping
 *        and removing, and containers whose monitor or exit code could not be read. What fails is tried
 *        again, at growing intervals.
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

#define THREADS	     8
#define PLUGINS_MAX  6 /* threads that run plugins */
#define DELAY_MIN_MS 1000
#define DELAY_MAX_MS 60000
#define DEL_MIN_MS   10000 /* timeout of the plugins of a pod; it grows up to DELAY_MAX_MS */
#define BUSY_MS	     1000  /* how long a thread waits for another operation on the object */

/* ---- one object --------------------------------------------------------------------- */

/* The timeout grows with each failure, for plugins that are slow. */
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
	int r;

	if (state == CONTAINER_REMOVING)
		return container_remove(c, POD_BACKGROUND, e);
	/* its monitor, or its exit code, could not be read earlier */
	if ((state == CONTAINER_CREATED || state == CONTAINER_RUNNING) && !exits_is_watched(c)) {
		r = container_adopt(c, e);
		if (r < 0)
			return r;
	}
	if (container_is_starting(c))
		finish_start(c);
	else if (container_get_state(c) == CONTAINER_EXITED)
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
static bool runs_plugins(struct object *o)
{
	const struct pod_view *view;
	bool runs;

	if (o->table != &o->table->pods->pods)
		return false;
	pthread_mutex_lock(&o->table->lock);
	view = (const void *)o->view;
	runs = view->state == POD_STOPPING || view->state == POD_REMOVING ||
	       view->state == POD_LOST;
	pthread_mutex_unlock(&o->table->lock);
	return runs;
}

/* Return: the next object that a thread may finish; NULL: none */
static struct object *find_first(const struct finisher *f)
{
	bool full = f->n_plugins >= PLUGINS_MAX;
	struct object *first = NULL;

	list_for_each(struct object, o, &f->objects, finish_link)
		if ((!first || o->finish_at < first->finish_at) && !(full && runs_plugins(o)))
			first = o;
	return first;
}

/* @ret_plugins: whether finish() will run plugins; end_object() must be called. Return: the next
 * object to finish, with a reference; NULL: the threads must stop */
static struct object *wait_for_object(struct finisher *f, bool *ret_plugins)
{
	struct object *o = NULL;

	pthread_mutex_lock(&f->lock);
	while (!f->stopping) {
		o = find_first(f);
		if (o && time_has_passed(o->finish_at))
			break;
		cond_wait_until(&f->changed, &f->lock, o ? o->finish_at : TIME_NEVER);
		o = NULL;
	}
	if (o) {
		list_remove(&o->finish_link);
		*ret_plugins = runs_plugins(o);
		f->n_plugins += *ret_plugins;
	}
	pthread_mutex_unlock(&f->lock);
	return o;
}

static void end_object(struct finisher *f, bool plugins)
{
	pthread_mutex_lock(&f->lock);
	f->n_plugins -= plugins;
	pthread_mutex_unlock(&f->lock);
}

static void *finisher_thread(void *arg)
{
	struct finisher *f = arg;
	struct hw_err e;

	for (;;) {
		AUTO(shared_unref) struct object *o = NULL;
		bool plugins;

		o = wait_for_object(f, &plugins);
		if (!o)
			return NULL;
		if (finish(o, &e) < 0 && e.code != -ECANCELED)
			log_event(LOG_WARN, "not cleaned up, trying again later", "id", o->id,
				  "error", e.msg, NULL);
		end_object(f, plugins);
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

int finisher_init(struct finisher *f, struct hw_err *e)
{
	*f = (struct finisher){ .lock = PTHREAD_MUTEX_INITIALIZER };
	list_init(&f->objects);
	cond_init(&f->changed);
	f->cancel_fd = eventfd(0, EFD_CLOEXEC);
	if (f->cancel_fd < 0)
		return err_set(e, -errno, "clean up pods: create an eventfd");
	return 0;
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
