/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/create.c - create pods
 *
 * How:   the name is entered in the index first, so that a second request for the same pod finds the
 *        first one and waits for it. Then the row is written, and only then objects are created.
 *        A create that fails is undone by pod_remove(), in the background if a plugin hangs: the client
 *        gets the first error in time.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "base/time.h"
#include "oci/cgroup.h"
#include "pod/files.h"
#include "pod/namespaces.h"
#include "pod/network/pod-cidr.h"
#include "pod/pod.h"

/* For the undo of a create that took all its time. The answer of a create that hangs comes after 228 s by
 * default; kubelet waits for 240 s. */
#define UNDO_MS 8000
#define USERNS	"linux.security_context.namespace_options.userns_options"
/* For any undo in the foreground: a stop that has cancelled the create waits for it. */
#define UNDO_MAX_MS 30000

/* ---- objects ------------------------------------------------------------------------ */

static int create_namespaces(struct pod *pod, const char *dir, const char *netns,
			     struct hw_strings *ret_later, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings procs = { 0 };
	const struct pods *p = pod->pods;
	struct namespaces_new n = {
		.spec = pod->spec,
		.netns = netns,
		.dir = dir,
		.default_sysctls = &p->sysctls,
		.pause = p->options.pause,
		.procs = &procs,
	};
	int r;

	if (pod->spec->namespaces.pid == POD_MODE_POD && pod->cgroup.driver == CGROUP_CGROUPFS) {
		autofree char *path = cgroup_parent_child(&pod->cgroup, pod->o.id);

		r = cgroup_create(p->options.cgroups, path, e);
		if (r < 0)
			return r;
		cgroup_procs_files(p->options.cgroups, path, &procs);
	}
	r = namespaces_create(&n, &pod->pid, ret_later, e);
	return r < 0 ? r : pause_watch_add(pod, e);
}

/* When a create has to answer, if @deadline is that of its plugins. */
static int64_t undo_deadline(int64_t deadline)
{
	return deadline + INT64_C(1000000) * UNDO_MS;
}

static int attach_networks(struct pod *pod, const char *netns, int64_t deadline, struct hw_err *e)
{
	struct network_pod n = {
		.id = pod->o.id,
		.spec = pod->spec,
		.netns = netns,
		.cancel_fd = pod->o.cancel_fd,
		.deadline = deadline,
		.undo_deadline = undo_deadline(deadline),
	};
	const struct pod_network *attached;
	int r;

	r = network_attach(pod->pods->options.cni, &n, pod->network, &attached, e);
	if (r < 0)
		return r;
	shared_unref(pod->network);
	pod->network = attached;
	return 0;
}

static int create_objects(struct pod *pod, int64_t deadline, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings later = { 0 };
	autofree char *netns = pod_netns_path(pod->pods, pod->o.id);
	autofree char *dir = pod_dir(pod->pods, pod->o.id);
	int r;

	r = files_create(dir, pod->spec, e);
	if (r < 0)
		return r;
	r = create_namespaces(pod, dir, netns, &later, e);
	if (r < 0)
		return r;
	r = attach_networks(pod, netns, deadline, e);
	if (r < 0)
		return r;
	r = namespaces_set_sysctls(netns, pod->spec, &later, e);
	if (r < 0)
		return r;
	r = files_write_hosts(dir, pod->spec, &pod->network->ips, e);
	if (r < 0)
		return r;
	/* last, because a failed create does not remove it */
	return files_create_logs(pod->spec, e);
}

/* ---- the pod ------------------------------------------------------------------------ */

static int check_handler(const struct pods *p, const struct pod_spec *spec, struct hw_err *e)
{
	const char *name = spec->handler;
	const struct oci_handler *h;

	h = handlers_find(p->options.handlers, name);
	if (!h)
		return err_text(e, -EINVAL, "runtime_handler: unknown handler \"%.200s\"", name);
	if (h->message)
		return err_text(e, -EPERM, "runtime_handler: handler \"%s\" cannot be used: %s",
				h->name, h->message);
	if (!pod_user_mapping(&spec->namespaces))
		return 0;
	if (p->no_userns)
		return err_text(e, -EPERM, USERNS ": not supported on this node: %s", p->no_userns);
	if (h->idmap == OCI_IDMAP_NONE)
		return err_text(e, -EPERM, USERNS ": handler \"%s\" has no idmapped mounts",
				h->name);
	return 0;
}

/* Decides everything that depends on the host, and refuses what it cannot do. Changes nothing. */
static int plan(struct pod *pod, struct hw_err *e)
{
	AUTO(shared_unref) const struct network_view *view = NULL;
	AUTO(hw_strings_free) struct hw_strings cidrs = { 0 };
	struct network_host host = { .pod_cidrs = &cidrs };
	struct pods *p = pod->pods;
	int r;

	r = check_handler(p, pod->spec, e);
	if (r < 0)
		return r;
	r = cgroup_parent_init(&pod->cgroup, p->options.cgroup_driver,
			       str_or(pod->spec->cgroup_parent, ""), pod->o.id, e);
	if (r < 0)
		return err_ctx(e, "linux.cgroup_parent");
	r = pod_check_limits(p, &pod->spec->resources, "linux.resources", e);
	if (r == 0)
		r = pod_check_limits(p, &pod->spec->overhead, "linux.overhead", e);
	if (r < 0)
		return r;
	host.cgroup = pod->cgroup.path;
	r = pod_cidr_ranges(p->options.pod_cidr, &cidrs, e);
	if (r < 0)
		return r;
	view = network_watch_view(p->options.network);
	return network_plan(pod->spec, view, p->conf_dir, &host, &pod->network, e);
}

/* Return: 0 with a pod that the caller owns; 1 with a reference to the pod that has the name */
static int reserve(struct pods *p, const struct pod_spec *spec, struct pod **ret_pod,
		   struct hw_err *e)
{
	AUTO(shared_unref) struct pod *pod = NULL;
	struct object *found;
	char id[POD_ID];
	int r;

	r = object_new_id(id, e);
	if (r < 0)
		return r;
	pod = pod_new(p, id, spec);
	pod->created_at = time_real();
	pod->state = POD_MAKING;
	r = object_begin_create(&pod->o, e);
	if (r < 0)
		return r;
	found = object_add(&pod->o);
	*ret_pod = found ? (struct pod *)found : take_ptr(pod);
	return found ? 1 : 0;
}

static void undo(struct pod *pod, int64_t latest)
{
	int64_t deadline = time_earlier(latest, time_deadline(UNDO_MAX_MS));
	struct hw_err e;

	/* without this, the row says "making", which means the same after a restart */
	if (state_change(pod, POD_REMOVING, &e) < 0) {
		pod->state = POD_REMOVING;
		pod_publish(pod);
	}
	if (time_has_passed(deadline))
		finisher_add(&pod->o, 0);
	else if (pod_remove(pod, 0, deadline, &e) < 0)
		log_event(LOG_WARN, "failed create not undone yet", "pod", pod->o.id, "error",
			  e.msg, NULL);
}

/* The caller owns the pod, which is in the table. @deadline: of the plugins */
static int create(struct pod *pod, int64_t deadline, struct hw_err *e)
{
	bool stored = false;
	int r;

	r = plan(pod, e);
	if (r == 0)
		r = state_insert(pod, e);
	stored = r == 0;
	if (r == 0)
		r = create_objects(pod, deadline, e);
	if (r == 0)
		r = state_change(pod, POD_READY, e);
	if (r < 0)
		object_set_error(&pod->o, e);
	object_end_create(&pod->o);
	if (r < 0 && stored)
		undo(pod, undo_deadline(deadline));
	else if (r < 0)
		object_remove(&pod->o);
	return r;
}

/* ---- a pod that has the name already ------------------------------------------------- */

static int refuse_name(const struct pod *pod, const char *why, struct hw_err *e)
{
	return err_text(e, -ENOTUNIQ, "pod %s/%s with UID %s, attempt %" PRIu32 " %s: %s",
			pod->spec->namespace, pod->spec->name, pod->spec->uid, pod->spec->attempt,
			why, pod->o.id);
}

/* Return: 0: @pod is what the caller wants; 1: it is gone, try again; or a negative errno */
static int join(struct pods *p, struct pod *pod, const struct pod_spec *spec, int64_t deadline,
		struct hw_err *e)
{
	AUTO(shared_unref) const struct pods_view *view = NULL;
	const struct pod_view *found;
	int r;

	if (!str_equal(pod->spec->text, spec->text))
		return refuse_name(pod, "exists with another configuration", e);
	r = object_join(&pod->o, deadline, e);
	if (r != 0)
		return r;
	view = pods_view(p);
	found = pods_view_find(view, pod->o.id);
	if (found && found->state == POD_READY)
		return 0;
	if (found && (found->state == POD_STOPPING || found->state == POD_STOPPED))
		return refuse_name(pod, "is stopped and must be removed first", e);
	/* an earlier create that failed, or was interrupted */
	r = pods_remove(p, pod->o.id, 0, deadline, e);
	return r < 0 ? r : 1;
}

int pods_create(struct pods *p, const struct pod_spec *spec, int64_t deadline, char ret_id[POD_ID],
		struct hw_err *e)
{
	int64_t plugins_by = time_deadline(p->options.network_timeout_ms);

	for (;;) {
		AUTO(shared_unref) struct pod *pod = NULL;
		int r;

		r = reserve(p, spec, &pod, e);
		if (r < 0)
			return r;
		if (r == 1) {
			r = join(p, pod, spec, deadline, e);
		} else {
			r = create(pod, plugins_by, e);
			object_end(&pod->o);
		}
		if (r == 0)
			memcpy(ret_id, pod->o.id, POD_ID);
		if (r <= 0)
			return r;
	}
}
