/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/recover.c - continue where an earlier process has stopped
 *
 * What:  removes incomplete pods and finishes stops in the background. Adopts the containers that live.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/os/file.h"
#include "base/os/namespace.h"
#include "base/str.h"
#include "base/time.h"
#include "oci/pause.h"
#include "pod/container.h"
#include "pod/namespaces.h"

/* ---- containers --------------------------------------------------------------------- */

int container_adopt(struct container *c, struct hw_err *e)
{
	autofree char *bundle = container_dir(c->pods, c->o.id);
	AUTO(monitor_done) struct monitor m = { .pidfd = -1 };
	int r;

	r = monitor_adopt(bundle, &m, e);
	if (r < 0 && r != -EBUSY)
		return r;
	/* -EBUSY: a container that was not started has the lock, too, and its conmon was killed */
	if (r <= 0)
		return exits_collect(c, e);
	r = container_set_process(c, &m, e);
	return r < 0 ? r : exits_watch(c, &m, e);
}

static void end_commands(struct container *c)
{
	autofree char *bundle = container_dir(c->pods, c->o.id);
	struct hw_err e;
	int r;

	r = exec_sweep(bundle, c->o.id, &e);
	if (r < 0 && r != -ENOENT)
		log_event(LOG_WARN, "commands of an earlier daemon not ended", "container", c->o.id,
			  "error", e.msg, NULL);
}

/* A daemon that was killed while it killed the container may have left it frozen. */
static void thaw(struct container *c)
{
	autofree char *cgroup = container_cgroup(c);
	struct hw_err e;

	if (cgroup_thaw(c->pods->options.cgroups, cgroup, &e) < 0)
		log_event(LOG_WARN, "container may be frozen", "container", c->o.id, "error", e.msg,
			  NULL);
}

static void undo_update(struct container *c)
{
	struct hw_err e;

	if (container_recover_limits(c, &e) < 0)
		log_event(LOG_WARN, "limits of an interrupted update not restored", "container",
			  c->o.id, "error", e.msg, NULL);
}

static int recover_container(struct container *c, struct hw_err *e)
{
	enum container_state state = container_get_state(c);
	int r;

	if (state == CONTAINER_LOST)
		return lost_recover(c, e);
	r = container_hold_layers(c, e);
	if (r < 0)
		return r;
	if (state == CONTAINER_CREATED || state == CONTAINER_RUNNING) {
		thaw(c);
		end_commands(c);
		undo_update(c);
		r = container_adopt(c, e);
		if (r < 0) /* finish.c tries again */
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

/* Return: 1 if @path is a namespace; 0 if not; or a negative errno */
static int check_pin(const char *path, struct hw_err *e)
{
	struct namespace_id ns;

	return namespace_get(path, &ns, e);
}

/* A process that has ended still has its PID namespace until its parent has waited for it.
 * Return: 1 if the process runs in the namespace; 0 if not; or a negative errno */
static int check_pause(const char *path, int pid, struct hw_err *e)
{
	autoclose int pidfd = -1;
	struct namespace_id ns;
	int r;

	r = namespace_get(path, &ns, e);
	if (r > 0)
		r = pause_open(pid, &ns, &pidfd, e);
	if (r <= 0)
		return r;
	return poll(&(struct pollfd){ .fd = pidfd, .events = POLLIN }, 1, 0) == 0;
}

/* Return: 1 if the objects of a pod that should be ready are complete; 0 if not, with the reason; or a
 * negative errno */
static int check_objects(const struct pod *pod, const char **ret_damage, struct hw_err *e)
{
	autofree char *netns = pod_netns_path(pod->pods, pod->o.id);
	autofree char *pid = pod_path(pod->pods, pod->o.id, "pid");
	autofree char *ipc = pod_path(pod->pods, pod->o.id, "ipc");
	autofree char *user = pod_path(pod->pods, pod->o.id, "user");
	const struct pod_namespaces *n = &pod->spec->namespaces;
	int r = 1;

	*ret_damage = "its network namespace is gone";
	if (n->network == POD_MODE_POD)
		r = check_pin(netns, e);
	if (r > 0 && n->ipc == POD_MODE_POD) {
		*ret_damage = "its IPC namespace is gone";
		r = check_pin(ipc, e);
	}
	if (r > 0 && pod_user_mapping(n)) {
		*ret_damage = "its user namespace is gone";
		r = check_pin(user, e);
	}
	if (r > 0 && n->pid == POD_MODE_POD) {
		*ret_damage = "hawser-pause has ended";
		r = pod->pid > 0 ? check_pause(pid, pod->pid, e) : 0;
	}
	return r;
}

/* A pod that cannot be checked is left alone: its containers may be running. */
int recover_pod(struct pod *pod, struct hw_err *e)
{
	const char *damage;
	int r = 1;

	if (pod->state == POD_READY)
		r = check_objects(pod, &damage, e);
	if (r < 0)
		log_event(LOG_ERROR, "pod cannot be checked", "pod", pod->o.id, "error", e->msg,
			  NULL);
	if (r == 0) {
		log_event(LOG_WARN, "stopping a pod", "pod", pod->o.id, "reason", damage, NULL);
		r = state_change(pod, POD_STOPPING, e);
		if (r < 0)
			return r;
	}
	if (pod->state == POD_STOPPING || pod->state == POD_REMOVING)
		finisher_add(&pod->o, 0);
	return 0;
}

static void watch_pause(struct pod *pod)
{
	struct hw_err e;

	if (pause_watch_add(pod, &e) < 0)
		log_event(LOG_ERROR, "pod cannot be watched", "pod", pod->o.id, "error", e.msg,
			  NULL);
}

void pods_recover(struct pods *p)
{
	AUTO(shared_unref) const struct containers_view *containers = containers_view(p);
	AUTO(shared_unref) const struct pods_view *view = pods_view(p);
	struct hw_err e;

	for (size_t i = 0; i < view->n; i++) {
		AUTO(shared_unref) struct pod *pod = NULL;

		pod = object_get(&p->pods, view->pods[i]->o.id);
		if (!pod || object_begin(&pod->o, TIME_NEVER, &e) != 0)
			continue;
		if (recover_pod(pod, &e) < 0) {
			log_event(LOG_ERROR, "pod not recovered, trying again later", "pod",
				  pod->o.id, "error", e.msg, NULL);
			finisher_add_failed(&pod->o);
		} else if (pod->state == POD_READY) {
			watch_pause(pod);
		}
		object_end(&pod->o);
	}
	for (size_t i = 0; i < containers->n; i++) {
		AUTO(shared_unref) struct container *c = NULL;

		c = object_get(&p->containers, containers->containers[i]->o.id);
		if (c)
			finisher_add(&c->o, 0);
	}
}
