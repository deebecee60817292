/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/stop.c - stop and remove pods
 *
 * How:   every step succeeds if its object does not exist, so both functions also finish what an
 *        interrupted create, stop or remove has left. The row is deleted last.
 *        Networks come before namespaces: plugins clean up inside a namespace that still exists.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/log.h"
#include "base/os/file.h"
#include "base/os/namespace.h"
#include "base/os/remove-tree.h"
#include "base/str.h"
#include "base/time.h"
#include "oci/cgroup.h"
#include "pod/container.h"
#include "pod/files.h"
#include "pod/namespaces.h"

/* Below the two minutes that kubelet waits for a stop, so that it gets the plugin's error. */
#define DEL_TIMEOUT_MS	      110000
#define CGROUP_TIMEOUT_MS     10000
#define CONTAINERS_TIMEOUT_MS 60000

/* ---- steps -------------------------------------------------------------------------- */

/* Return: a descriptor that ends plugins of the background when the daemon ends; -1: a client waits */
static int cancel_fd(const struct pod *pod, unsigned flags)
{
	return flags & POD_BACKGROUND ? pod->pods->finisher.cancel_fd : -1;
}

static int detach_networks(struct pod *pod, unsigned flags, int64_t deadline, struct hw_err *e)
{
	autofree char *netns = pod_netns_path(pod->pods, pod->o.id);
	struct network_pod n = {
		.id = pod->o.id,
		.spec = pod->spec,
		.netns = namespace_exists(netns) ? netns : "",
		.cancel_fd = cancel_fd(pod, flags),
		.deadline = deadline,
	};

	return network_detach(pod->pods->options.cni, &n, pod->network, e);
}

/* A pod without a row: only the cache of libcni may still contain its attachments. */
static int detach_lost(struct pod *pod, unsigned flags, int64_t deadline, struct hw_err *e)
{
	return network_detach_cached(pod->pods->options.cni, pod->o.id, cancel_fd(pod, flags),
				     deadline, e);
}

static int remove_namespaces(struct pod *pod, struct hw_err *e)
{
	autofree char *netns = pod_netns_path(pod->pods, pod->o.id);
	autofree char *dir = pod_dir(pod->pods, pod->o.id);
	int r;

	r = namespaces_remove(netns, dir, e);
	return r < 0 ? r : files_unmount(dir, e);
}

static int remove_files(struct pod *pod, struct hw_err *e)
{
	autofree char *path = str_printf("%s/pods", pod->pods->state);
	autoclose int dir = -1;

	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_set(e, -errno, "open %s", path);
	return remove_tree(dir, pod->o.id, e);
}

/* With the systemd driver, the cgroups of containers end with their units. The cgroup parent of a lost pod is
 * not known, so the default parent is assumed. */
static int remove_cgroup(struct pod *pod, struct hw_err *e)
{
	autofree char *child = NULL;
	int r;

	if (!pod->cgroup.path) {
		r = cgroup_parent_init(&pod->cgroup, pod->pods->options.cgroup_driver, "",
				       pod->o.id, e);
		if (r < 0)
			return r;
	}
	if (pod->cgroup.driver == CGROUP_SYSTEMD)
		return 0;
	child = cgroup_parent_child(&pod->cgroup, pod->o.id);
	return cgroup_remove(pod->pods->options.cgroups, pod->cgroup.own ? pod->cgroup.path : child,
			     time_deadline(CGROUP_TIMEOUT_MS), e);
}

/* ---- with the pod owned ------------------------------------------------------------- */

static int teardown(struct pod *pod, unsigned flags, int64_t deadline, struct hw_err *e)
{
	int kill_ms = flags & POD_BACKGROUND ? POD_BACKGROUND_KILL_MS : CONTAINERS_TIMEOUT_MS;
	int r;

	r = containers_kill_all(pod, time_deadline(kill_ms), e);
	if (r < 0)
		return r;
	r = pod->spec ? detach_networks(pod, flags, deadline, e)
		      : detach_lost(pod, flags, deadline, e);
	/* the end of the daemon is no error of a plugin */
	if (r < 0 && r != -ECANCELED && (flags & PODS_FORCE)) {
		log_event(LOG_WARN, "network not cleaned up", "pod", pod->o.id, "error", e->msg,
			  NULL);
		r = 0;
	}
	if (r == 0)
		r = remove_namespaces(pod, e);
	return r;
}

/* Notes the error for readers, and tries again later. */
static int stop_failed(struct pod *pod, struct hw_err *e)
{
	err_ctx(e, "pod %s", pod->o.id);
	free(pod->message);
	pod->message = str_copy(e->msg);
	pod_publish(pod);
	finisher_add_failed(&pod->o);
	return e->code;
}

int pod_stop(struct pod *pod, unsigned flags, int64_t deadline, struct hw_err *e)
{
	int r = 0;

	if (pod->state == POD_LOST && !(flags & PODS_FORCE))
		return err_text(e, -EBUSY,
				"pod %s was lost from the database: remove it with \"hawser rm "
				"--force\"",
				pod->o.id);
	if (pod->state == POD_STOPPED)
		return 0;
	if (pod->state == POD_READY)
		r = state_change(pod, POD_STOPPING, e);
	if (r < 0)
		return r;
	r = teardown(pod, flags, deadline, e);
	if (r < 0)
		return stop_failed(pod, e);
	free(take_ptr(pod->message));
	pod->pid = 0;
	/* a pod that is being removed stays in that state */
	if (pod->state == POD_STOPPING)
		r = state_change(pod, POD_STOPPED, e);
	return r < 0 ? stop_failed(pod, e) : 0;
}

int pod_remove(struct pod *pod, unsigned flags, int64_t deadline, struct hw_err *e)
{
	int r;

	r = pod_stop(pod, flags, deadline, e);
	if (r == 0 && pod->state == POD_STOPPED)
		r = state_change(pod, POD_REMOVING, e);
	if (r < 0)
		return r;
	r = containers_remove_all(pod, flags, e);
	if (r == 0)
		r = remove_files(pod, e);
	if (r == 0)
		r = remove_cgroup(pod, e);
	if (r == 0)
		r = state_delete(pod, e);
	return r < 0 ? stop_failed(pod, e) : 0;
}

/* ---- operations --------------------------------------------------------------------- */

int pods_stop(struct pods *p, const char *id, int64_t deadline, struct hw_err *e)
{
	AUTO(shared_unref) struct pod *pod = NULL;
	int r;

	r = pod_get(p, id, &pod, e);
	if (r <= 0)
		return r;
	object_cancel(&pod->o); /* a running create ends soon */
	r = object_begin(&pod->o, deadline, e);
	if (r != 0)
		return r < 0 ? r : 0;
	r = pod_stop(pod, 0, time_deadline(DEL_TIMEOUT_MS), e);
	object_end(&pod->o);
	return r;
}

int pods_remove(struct pods *p, const char *id, unsigned flags, int64_t deadline, struct hw_err *e)
{
	AUTO(shared_unref) struct pod *pod = NULL;
	int r;

	r = pod_get(p, id, &pod, e);
	if (r <= 0)
		return r;
	object_cancel(&pod->o); /* a running create ends soon */
	r = object_begin(&pod->o, deadline, e);
	if (r != 0)
		return r < 0 ? r : 0;
	r = pod_remove(pod, flags, time_deadline(DEL_TIMEOUT_MS), e);
	object_end(&pod->o);
	return r;
}
