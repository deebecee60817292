/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/pods.c - the index of pods, the view for readers, and ownership of a pod
 *
 * How:   a view is an array of immutable descriptions of pods. A change of one pod copies the array
 *        and shares the descriptions of all others.
 */
#include "pod/pods.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/os/boot.h"
#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"
#include "pod/namespaces.h"
#include "pod/pod.h"

const char *pod_state_name(enum pod_state state)
{
	static const char *const names[] = {
		[POD_MAKING] = "making",   [POD_READY] = "ready",	[POD_STOPPING] = "stopping",
		[POD_STOPPED] = "stopped", [POD_REMOVING] = "removing", [POD_LOST] = "lost",
	};

	return (size_t)state < ARRAY_SIZE(names) && names[state] ? names[state] : "unknown";
}

char *pod_dir(const struct pods *p, const char *id)
{
	return str_printf("%s/pods/%s", p->state, id);
}

char *pod_path(const struct pods *p, const char *id, const char *name)
{
	return str_printf("%s/pods/%s/%s", p->state, id, name);
}

char *pod_netns_path(const struct pods *p, const char *id)
{
	return str_printf("%s/" POD_NETNS_PREFIX "%s", p->netns_dir, id);
}

/* Lengths are part of the name, because its parts may contain any character. */
char *pod_name(const struct pod_spec *spec)
{
	return str_printf("%zu %s %zu %s %zu %s %" PRIu32, strlen(spec->name), spec->name,
			  strlen(spec->namespace), spec->namespace, strlen(spec->uid), spec->uid,
			  spec->attempt);
}

/* ---- pods --------------------------------------------------------------------------- */

static void pod_free(void *object)
{
	struct pod *pod = object;

	shared_unref(pod->spec);
	shared_unref(pod->view);
	pthread_cond_destroy(&pod->changed);
	mem_close_fd(&pod->cancel_fd);
	shared_unref(pod->network);
	cgroup_parent_done(&pod->cgroup);
	free(pod->message);
	free(pod->error);
	free(pod);
}

struct pod *pod_new(struct pods *p, const char *id, const struct pod_spec *spec)
{
	struct pod *pod = mem_new(sizeof(*pod));
	pthread_condattr_t attr;

	shared_init(&pod->shared, pod_free);
	pod->pods = p;
	snprintf(pod->id, sizeof(pod->id), "%s", id);
	pod->spec = spec ? shared_ref(spec) : NULL;
	pod->cancel_fd = -1;
	list_init(&pod->finish_link);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&pod->changed, &attr);
	pthread_condattr_destroy(&attr);
	return pod;
}

/* ---- views -------------------------------------------------------------------------- */

static void view_free(void *object)
{
	struct pods_view *view = object;

	for (size_t i = 0; i < view->n; i++)
		shared_unref(view->pods[i]);
	free(view);
}

static struct pods_view *view_new(size_t room)
{
	struct pods_view *view = mem_new(sizeof(*view) + room * sizeof(const struct pod_view *));

	shared_init(&view->shared, view_free);
	return view;
}

static void pod_view_free(void *object)
{
	struct pod_view *view = object;

	shared_unref(view->spec);
	shared_unref(view->network);
	free(view->cgroup);
	free(view->message);
	free(view);
}

static const struct pod_view *pod_view_new(const struct pod *pod)
{
	struct pod_view *view = mem_new(sizeof(*view));

	shared_init(&view->shared, pod_view_free);
	memcpy(view->id, pod->id, sizeof(view->id));
	view->state = pod->state;
	view->created_at = pod->created_at;
	view->spec = pod->spec ? shared_ref(pod->spec) : NULL;
	view->network = pod->network ? shared_ref(pod->network) : NULL;
	view->pid = pod->pid;
	view->cgroup = str_copy(str_or(pod->cgroup.path, ""));
	view->message = str_copy(str_or(pod->message, ""));
	return view;
}

/* The position of @id, or where it would be inserted. */
static size_t view_position(const struct pods_view *view, const char *id)
{
	size_t low = 0, high = view->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(view->pods[middle]->id, id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Publishes the view that follows the current one: with @next, or without the pod if it is NULL. Takes
 * over the reference to @next. The caller holds the lock. */
static void replace_pod(struct pods *p, const char *id, const struct pod_view *next)
{
	AUTO(shared_unref) const struct pods_view *old = pods_view(p);
	struct pods_view *view = view_new(old->n + 1);
	size_t at = view_position(old, id);
	size_t after = at + (at < old->n && str_equal(old->pods[at]->id, id));

	for (size_t i = 0; i < at; i++)
		view->pods[view->n++] = shared_ref(old->pods[i]);
	if (next)
		view->pods[view->n++] = next;
	for (size_t i = after; i < old->n; i++)
		view->pods[view->n++] = shared_ref(old->pods[i]);
	slot_publish(&p->view, &view->shared);
}

void pod_publish(struct pod *pod)
{
	struct pods *p = pod->pods;
	const struct pod_view *view = pod_view_new(pod);

	pthread_mutex_lock(&p->lock);
	shared_unref(pod->view);
	pod->view = shared_ref(view);
	replace_pod(p, pod->id, view);
	pthread_mutex_unlock(&p->lock);
}

const struct pods_view *pods_view(struct pods *p)
{
	return slot_get(&p->view);
}

const struct pod_view *pods_view_find(const struct pods_view *view, const char *id)
{
	size_t at = view_position(view, id);

	if (str_empty(id) || at == view->n || !str_starts(view->pods[at]->id, id))
		return NULL;
	/* IDs have the same length, so the next one may have the same prefix */
	if (at + 1 < view->n && str_starts(view->pods[at + 1]->id, id))
		return NULL;
	return view->pods[at];
}

char *pods_namespace(const struct pods *p, const struct pod_view *pod, enum pod_namespace kind)
{
	const struct pod_namespaces *n = &pod->spec->namespaces;
	int mode = kind == POD_PID ? n->pid : kind == POD_IPC ? n->ipc : n->network;
	static const char *const names[] = {
		[POD_IPC] = "ipc", [POD_UTS] = "uts", [POD_PID] = "pid"
	};

	if (mode != POD_MODE_POD || pod->state != POD_READY)
		return NULL;
	return kind == POD_NETWORK ? pod_netns_path(p, pod->id) : pod_path(p, pod->id, names[kind]);
}

/* ---- index -------------------------------------------------------------------------- */

void pods_insert(struct pods *p, struct pod *pod)
{
	map_set(p->by_id, pod->id, shared_ref(pod));
	if (pod->spec) {
		autofree char *name = pod_name(pod->spec);

		map_set(p->by_name, name, pod);
	}
}

void pods_delete(struct pods *p, struct pod *pod)
{
	pthread_mutex_lock(&p->lock);
	if (pod->spec) {
		autofree char *name = pod_name(pod->spec);

		if (map_find(p->by_name, name) == pod)
			map_take(p->by_name, name);
	}
	pod->gone = true;
	replace_pod(p, pod->id, NULL);
	shared_unref(map_take(p->by_id, pod->id));
	pthread_mutex_unlock(&p->lock);
}

struct pod *pods_get(struct pods *p, const char *id)
{
	AUTO(shared_unref) const struct pods_view *view = pods_view(p);
	const struct pod_view *found;
	struct pod *pod;

	found = pods_view_find(view, id);
	if (!found)
		return NULL;
	pthread_mutex_lock(&p->lock);
	pod = map_find(p->by_id, found->id);
	if (pod)
		shared_ref(pod);
	pthread_mutex_unlock(&p->lock);
	return pod;
}

/* ---- ownership ---------------------------------------------------------------------- */

int pod_begin(struct pod *pod, int64_t deadline, struct hw_err *e)
{
	struct timespec until = { .tv_sec = deadline / 1000000000,
				  .tv_nsec = deadline % 1000000000 };
	int r = 0;

	pthread_mutex_lock(&pod->pods->lock);
	while (pod->busy && r == 0)
		r = pthread_cond_timedwait(&pod->changed, &pod->pods->lock, &until);
	if (!pod->busy && pod->gone)
		r = -1;
	else if (!pod->busy)
		pod->busy = true, r = 0;
	pthread_mutex_unlock(&pod->pods->lock);
	if (r > 0)
		return err_text(e, -ETIMEDOUT, "pod %s: another operation has not ended in time",
				pod->id);
	return r < 0 ? 1 : 0;
}

void pod_end(struct pod *pod)
{
	pthread_mutex_lock(&pod->pods->lock);
	pod->busy = false;
	pthread_cond_broadcast(&pod->changed);
	pthread_mutex_unlock(&pod->pods->lock);
}

/* ---- lifetime ----------------------------------------------------------------------- */

static void unref_pod(void *pod)
{
	shared_unref(pod);
}

static void copy_sysctls(const struct hw_map *from, struct hw_map *to)
{
	to->keys = mem_new((from->n + 1) * sizeof(char *));
	to->values = mem_new((from->n + 1) * sizeof(char *));
	for (; to->n < from->n; to->n++) {
		to->keys[to->n] = str_copy(from->keys[to->n]);
		to->values[to->n] = str_copy(from->values[to->n]);
	}
}

int pods_open(const struct pods_options *options, struct pods **ret_pods, struct hw_err *e)
{
	struct pods *p = mem_new(sizeof(*p));
	autofree char *dir = NULL;
	int r;

	p->options = *options;
	p->root = str_copy(options->root);
	p->state = str_copy(options->state);
	p->netns_dir = str_copy(options->netns_dir);
	p->conf_dir = str_copy(options->conf_dir);
	if (options->sysctls)
		copy_sysctls(options->sysctls, &p->sysctls);
	snprintf(p->boot, sizeof(p->boot), "%s", boot_id());
	pthread_mutex_init(&p->write_lock, NULL);
	pthread_mutex_init(&p->lock, NULL);
	p->by_id = map_new(unref_pod);
	p->by_name = map_new(NULL);
	slot_init(&p->view, &view_new(0)->shared);
	finisher_init(&p->finisher);
	dir = str_printf("%s/pods", p->state);
	r = file_mkdirs(AT_FDCWD, dir, 0711, e);
	if (r == 0)
		r = state_open(p, e);
	if (r == 0)
		r = state_load(p, e);
	if (r == 0)
		r = recover_lost(p, e);
	if (r < 0) {
		pods_close(p);
		return r;
	}
	*ret_pods = p;
	return 0;
}

void pods_close(struct pods *p)
{
	if (!p)
		return;
	finisher_done(&p->finisher);
	db_close(p->db);
	map_free(p->by_name);
	map_free(p->by_id);
	slot_done(&p->view);
	pthread_mutex_destroy(&p->write_lock);
	pthread_mutex_destroy(&p->lock);
	for (size_t i = 0; i < p->sysctls.n; i++) {
		free(p->sysctls.keys[i]);
		free(p->sysctls.values[i]);
	}
	free(p->sysctls.keys);
	free(p->sysctls.values);
	free(p->root);
	free(p->state);
	free(p->netns_dir);
	free(p->conf_dir);
	free(p);
}
