/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network-gc.c - check the attachments of pods, and delete those that no pod has any more
 *
 * How:   the runtimes of a node share the cache of libcni, so an entry that is not of a pod of this
 *        daemon usually belongs to another runtime. It is ours, and dead, only if it names a namespace
 *        hawser-ID of its own container ID that does not exist any more. A dead attachment is deleted by
 *        a DEL like any other, before GC locks the network: if it hangs, no other pod waits for it. GC of the
 *        plugins excludes ADD and DEL, so it is killed after a few seconds.
 */
#include "pod/network-gc.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "cni/runtime/cache.h"
#include "cni/runtime/conf.h"
#include "cni/runtime/gc.h"
#include "pod/pod.h"

#define CHECK_TIMEOUT_MS 60000
#define DEAD_TIMEOUT_MS	 10000 /* for the DEL of a dead attachment */
#define DEAD_TOTAL_MS	 60000 /* for those of a network */
#define LOCKED_MS	 5000  /* for GC of the plugins: all pods of the network wait for it */

/* ---- CHECK -------------------------------------------------------------------------- */

static int check_pod(struct pod *pod, int cancel_fd, struct hw_strings *ret_checked,
		     struct hw_err *e)
{
	autofree char *netns = pod_netns_path(pod->pods, pod->o.id);
	struct network_pod n = {
		.id = pod->o.id,
		.spec = pod->spec,
		.netns = netns,
		.cancel_fd = cancel_fd,
		.deadline = time_deadline(CHECK_TIMEOUT_MS),
	};

	if (pod->state != POD_READY)
		return err_text(e, -EBUSY, "pod %s is %s", pod->o.id, pod_state_name(pod->state));
	return network_check(pod->pods->options.cni, &n, pod->network, ret_checked, e);
}

int pods_check(struct pods *p, const char *id, int cancel_fd, int64_t deadline,
	       struct hw_strings *ret_checked, struct hw_err *e)
{
	AUTO(shared_unref) struct pod *pod = object_get(&p->pods, id);
	int r = 1;

	if (pod)
		r = object_begin(&pod->o, deadline, e);
	if (r == 1)
		return err_text(e, -ENODATA, "no pod %.80s", id);
	if (r < 0)
		return r;
	r = check_pod(pod, cancel_fd, ret_checked, e);
	object_end(&pod->o);
	return r;
}

/* ---- GC ----------------------------------------------------------------------------- */

/* The valid attachments of a network. */
struct valid {
	struct pods *pods;
	const char *network; /* name */
	struct hw_valid *v;
	size_t n;
};

static void add_valid(struct valid *valid, const char *id, const char *ifname)
{
	valid->v = mem_resize(valid->v, valid->n + 1, sizeof(*valid->v));
	valid->v[valid->n++] = (struct hw_valid){ str_copy(id), str_copy(ifname) };
}

static void valid_done(struct valid *valid)
{
	for (size_t i = 0; i < valid->n; i++) {
		free((char *)valid->v[i].container_id);
		free((char *)valid->v[i].ifname);
	}
	free(valid->v);
}

AUTO_VALUE_DEFINE(valid_done, struct valid);

/* Also pods that are being removed: their DEL is still to come. */
static void add_pods(const struct pods_view *view, const char *network, struct valid *valid)
{
	for (size_t i = 0; i < view->n; i++) {
		const struct pod_network *n = view->pods[i]->network;
		const struct pod_attachment *a = n ? n->attachments.v : NULL;

		for (size_t k = 0; n && k < n->attachments.n; k++)
			if (str_equal(a[k].network, network))
				add_valid(valid, view->pods[i]->o.id, a[k].ifname);
	}
}

static bool is_dead(const struct hw_cached *c)
{
	autofree char *name = str_printf("/" POD_NETNS_PREFIX "%s", c->container_id);
	const char *slash = c->netns ? strrchr(c->netns, '/') : NULL;

	return slash && str_equal(slash, name) && access(c->netns, F_OK) < 0 && errno == ENOENT;
}

/* The view is newer than the entries: a pod that it does not have had no row when the entry was read, and its row
 * comes before its attachments. */
static int delete_dead(struct pods *p, const char *network, int cancel_fd, struct hw_err *e)
{
	AUTO(hw_cached_list_free) struct hw_cached_list cached = { 0 };
	AUTO(shared_unref) const struct pods_view *view = NULL;
	int64_t deadline = time_deadline(DEAD_TOTAL_MS);
	struct errors errors = { 0 };
	int r;

	r = hw_cached_attachments(p->options.cni, NULL, NULL, NULL, &cached, e);
	if (r < 0)
		return r;
	view = pods_view(p);
	for (size_t i = 0; i < cached.n; i++) {
		const struct hw_cached *c = &cached.v[i];
		int64_t own = time_earlier(deadline, time_deadline(DEAD_TIMEOUT_MS));

		/* a pod of ours without the attachment, such as a lost one, keeps what the cache has */
		if (!str_equal(c->network, network) || pods_view_find(view, c->container_id) ||
		    !is_dead(c))
			continue;
		if (network_detach_entry(p->options.cni, c, cancel_fd, own, e) < 0) {
			err_ctx(e, "delete attachment %s %s", c->container_id, c->ifname);
			errors_add(&errors, e);
		}
	}
	return errors_result(&errors, e);
}

/* For gc_run(), which calls it after its snapshot of the cache: a pod that is not in the view has not run a
 * plugin before that, because its row comes first. What is in the cache is kept. */
static int list_valid(void *ctx, const struct hw_valid **ret_valid, size_t *ret_n, struct hw_err *e)
{
	static const struct hw_valid none[1]; /* NULL would mean: no list */
	AUTO(hw_cached_list_free) struct hw_cached_list cached = { 0 };
	AUTO(shared_unref) const struct pods_view *view = NULL;
	struct valid *valid = ctx;
	int r;

	r = hw_cached_attachments(valid->pods->options.cni, NULL, NULL, NULL, &cached, e);
	if (r < 0)
		return r;
	view = pods_view(valid->pods);
	add_pods(view, valid->network, valid);
	for (size_t i = 0; i < cached.n; i++)
		if (str_equal(cached.v[i].network, valid->network))
			add_valid(valid, cached.v[i].container_id, cached.v[i].ifname);
	*ret_valid = valid->v ? valid->v : none;
	*ret_n = valid->n;
	return 0;
}

int pods_gc(struct pods *p, const char *name, int cancel_fd, struct hw_err *e)
{
	AUTO(hw_conf_free) struct hw_conf *conf = NULL;
	AUTO(valid_done) struct valid valid = { .pods = p };
	struct errors errors = { 0 };
	int r;

	r = network_load(p->options.network, p->conf_dir, name, &conf, e);
	if (r < 0)
		return r;
	if (hw_conf_gc_disabled(conf))
		return 0;
	valid.network = hw_conf_name(conf);
	if (delete_dead(p, valid.network, cancel_fd, e) < 0)
		errors_add(&errors, e);
	if (gc_run(p->options.cni, conf, LOCKED_MS, list_valid, &valid, e) < 0)
		errors_add(&errors, e);
	r = errors_result(&errors, e);
	return r < 0 ? err_ctx(e, "GC of network \"%s\"", name) : 0;
}
