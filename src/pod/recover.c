/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/recover.c - continue where an earlier process has stopped
 *
 * What:  removes incomplete pods and finishes stops in the background. Finds pods that exist but are
 *        not in the database, because it was lost or damaged, and keeps them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/log.h"
#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"
#include "oci/pause.h"
#include "pod/container.h"

/* ---- pods without a row --------------------------------------------------------------- */

static int add_lost(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	AUTO(shared_unref) struct pod *pod = NULL;
	struct pods *p = ctx;

	(void)e;
	if (entry->type != DT_DIR || !object_is_id(entry->name))
		return 0;
	pod = object_get(&p->pods, entry->name);
	if (pod)
		return 0;
	pod = pod_new(p, entry->name, NULL);
	pod->state = POD_LOST;
	object_add(&pod->o);
	pod_publish(pod);
	log_event(LOG_ERROR,
		  "pod is not in the database; it is kept: end its processes and remove it with "
		  "\"hawser rm --force\"",
		  "pod", pod->o.id, NULL);
	return 0;
}

static int add_lost_container(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	AUTO(shared_unref) struct container *c = NULL;
	struct pods *p = ctx;

	(void)e;
	if (entry->type != DT_DIR || !object_is_id(entry->name))
		return 0;
	c = object_get(&p->containers, entry->name);
	if (c)
		return 0;
	c = container_new(p, entry->name, NULL, NULL);
	c->status.state = CONTAINER_LOST;
	object_add(&c->o);
	container_publish(c);
	log_event(LOG_ERROR,
		  "container is not in the database; it is kept: remove it with \"hawser rm "
		  "--force\"",
		  "container", c->o.id, NULL);
	return 0;
}

int recover_lost(struct pods *p, struct hw_err *e)
{
	autofree char *pods = str_printf("%s/pods", p->state);
	autofree char *containers = str_printf("%s/containers", p->state);
	int r;

	r = file_walk(AT_FDCWD, pods, add_lost, p, e);
	return r < 0 ? r : file_walk(AT_FDCWD, containers, add_lost_container, p, e);
}

/* ---- containers --------------------------------------------------------------------- */

/* The first process of a container is a child of its monitor. If a process with its number has another
 * parent, the number was reused, because the container has just ended. */
static bool is_child(int pid, int parent)
{
	autofree char *path = str_printf("/proc/%d/stat", pid);
	AUTO(buf_done) struct buf text = { 0 };
	struct hw_err ignored;
	const char *rest;
	long long number;

	if (file_read(AT_FDCWD, path, 4096, &text, &ignored) < 0)
		return false;
	rest = strrchr(text.data, ')'); /* the name of the program may contain anything */
	if (!rest || strlen(rest) < 4)
		return false;
	rest += 4; /* ") S " */
	autofree char *word = str_ncopy(rest, strcspn(rest, " "));
	return str_to_int64(word, 0, INT32_MAX, &number) && number == parent;
}

static int adopt(struct container *c, struct hw_err *e)
{
	autofree char *bundle = container_dir(c->pods, c->o.id);
	AUTO(monitor_done) struct monitor m = { .pidfd = -1 };
	int r;

	r = monitor_adopt(bundle, &m, e);
	if (r < 0)
		return r;
	if (r == 0) {
		exits_collect(c);
		return 0;
	}
	if (m.container > 0)
		r = container_set_process(c, m.container, e);
	if (r >= 0 && m.container > 0 && !is_child(m.container, m.pid))
		container_drop_process(c);
	return r < 0 ? r : exits_watch(c, &m, e);
}

static int recover_container(struct container *c, struct hw_err *e)
{
	enum container_state state = container_get_state(c);
	int r;

	if (state == CONTAINER_LOST)
		return 0;
	r = container_hold_layers(c, e);
	if (r < 0)
		return r;
	if (state == CONTAINER_CREATED || state == CONTAINER_RUNNING) {
		r = adopt(c, e);
		if (r < 0)
			log_event(LOG_ERROR, "container cannot be watched", "container", c->o.id,
				  "error", e->msg, NULL);
	}
	return 0;
}

int recover_containers(struct pods *p, struct hw_err *e)
{
	AUTO(shared_unref) const struct containers_view *view = containers_view(p);
	int r = 0;

	for (size_t i = 0; r == 0 && i < view->n; i++) {
		AUTO(shared_unref) struct container *c = NULL;

		c = object_get(&p->containers, view->containers[i]->o.id);
		if (c)
			r = recover_container(c, e);
	}
	return r;
}

/* ---- directories of containers that do not exist any more ------------------------------- */

static int sweep_container(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	AUTO(shared_unref) struct container *c = NULL;
	struct pods *p = ctx;

	if (!object_is_id(entry->name))
		return 0;
	c = object_get(&p->containers, entry->name);
	return c ? 0 : container_unmount(p, entry->name, e);
}

int pods_sweep(struct pods *p, struct hw_err *e)
{
	autofree char *dir = str_printf("%s/containers", p->root);
	int r;

	r = file_walk(AT_FDCWD, dir, sweep_container, p, e);
	return r < 0 ? err_ctx(e, "remove files of containers") : 0;
}

/* ---- pods with a row ------------------------------------------------------------------ */

static bool is_namespace(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == NSFS_MAGIC;
}

static bool is_in_namespace(int pid, const char *path)
{
	struct pause_ns pinned, own;
	struct hw_err ignored;
	char proc[64];

	snprintf(proc, sizeof(proc), "/proc/%d/ns/pid", pid);
	return pause_ns_get(path, &pinned, &ignored) > 0 &&
	       pause_ns_get(proc, &own, &ignored) > 0 && pinned.dev == own.dev &&
	       pinned.ino == own.ino;
}

/* Return: why the objects of a pod that should be ready are not complete; NULL: they are */
static const char *find_damage(const struct pod *pod)
{
	autofree char *netns = pod_netns_path(pod->pods, pod->o.id);
	autofree char *pid = pod_path(pod->pods, pod->o.id, "pid");
	autofree char *ipc = pod_path(pod->pods, pod->o.id, "ipc");
	const struct pod_namespaces *n = &pod->spec->namespaces;

	if (n->network == POD_MODE_POD && !is_namespace(netns))
		return "its network namespace is gone";
	if (n->ipc == POD_MODE_POD && !is_namespace(ipc))
		return "its IPC namespace is gone";
	if (n->pid == POD_MODE_POD && !is_in_namespace(pod->pid, pid))
		return "hawser-pause has ended";
	return NULL;
}

static int recover_pod(struct pod *pod, struct hw_err *e)
{
	const char *damage = NULL;
	int r = 0;

	if (pod->state == POD_READY)
		damage = find_damage(pod);
	if (damage) {
		log_event(LOG_WARN, "stopping a pod", "pod", pod->o.id, "reason", damage, NULL);
		r = state_change(pod, POD_STOPPING, e);
	}
	if (r == 0 && (pod->state == POD_STOPPING || pod->state == POD_REMOVING))
		finisher_add(&pod->o, 0);
	return r;
}

int pods_recover(struct pods *p, struct hw_err *e)
{
	AUTO(shared_unref) const struct containers_view *containers = containers_view(p);
	AUTO(shared_unref) const struct pods_view *view = pods_view(p);
	int r = 0;

	for (size_t i = 0; r >= 0 && i < view->n; i++) {
		AUTO(shared_unref) struct pod *pod = NULL;

		pod = object_get(&p->pods, view->pods[i]->o.id);
		if (!pod)
			continue;
		r = object_begin(&pod->o, TIME_NEVER, e);
		if (r != 0)
			continue;
		r = recover_pod(pod, e);
		object_end(&pod->o);
	}
	for (size_t i = 0; i < containers->n; i++) {
		AUTO(shared_unref) struct container *c = NULL;

		c = object_get(&p->containers, containers->containers[i]->o.id);
		if (c)
			finisher_add(&c->o, 0);
	}
	return r < 0 ? r : 0;
}
