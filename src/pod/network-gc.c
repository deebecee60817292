/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network-gc.c - check the attachments of pods, and delete those that no pod has any more
 *
 * How:   the runtimes of a node share the cache of libcni, so an entry that is not of a pod of this
 *        daemon usually belongs to another runtime. It is ours, and dead, only if it names a namespace
 *        hawser-ID of its own container ID that does not exist any more.
 */
#include "pod/network-gc.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "cni/runtime/conf.h"
#include "pod/pod.h"

#define CHECK_TIMEOUT_MS 60000

/* ---- CHECK -------------------------------------------------------------------------- */

static int check_pod(struct pod *pod, struct hw_strings *ret_checked, struct hw_err *e)
{
	autofree char *netns = pod_netns_path(pod->pods, pod->o.id);
	struct network_pod n = {
		.id = pod->o.id,
		.spec = pod->spec,
		.netns = netns,
		.cancel_fd = -1,
		.timeout_ms = CHECK_TIMEOUT_MS,
	};

	if (pod->state != POD_READY)
		return err_text(e, -EBUSY, "pod %s is %s", pod->o.id, pod_state_name(pod->state));
	return network_check(pod->pods->options.cni, &n, pod->network, ret_checked, e);
}

int pods_check(struct pods *p, const char *id, int64_t deadline, struct hw_strings *ret_checked,
	       struct hw_err *e)
{
	AUTO(shared_unref) struct pod *pod = object_get(&p->pods, id);
	int r = 1;

	if (pod)
		r = object_begin(&pod->o, deadline, e);
	if (r == 1)
		return err_text(e, -ENODATA, "no pod %.80s", id);
	if (r < 0)
		return r;
	r = check_pod(pod, ret_checked, e);
	object_end(&pod->o);
	return r;
}

/* ---- GC ----------------------------------------------------------------------------- */

struct valid {
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

/* Also pods that are being removed: their DEL is still to come. A pod that is not in the view yet has
 * not run a plugin; hw_gc() keeps what is attached after its start. */
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

static void add_cached(const struct pods_view *view, const struct hw_cached *c, const char *network,
		       struct valid *valid)
{
	const struct pod_view *pod = pods_view_find(view, c->container_id);

	/* a pod of ours without the attachment, such as a lost one, keeps what the cache has */
	if (str_equal(c->network, network) && (pod || !is_dead(c)))
		add_valid(valid, c->container_id, c->ifname);
}

int pods_gc(struct pods *p, const char *name, struct hw_err *e)
{
	AUTO(shared_unref) const struct pods_view *view = NULL;
	AUTO(hw_conf_free) struct hw_conf *conf = NULL;
	AUTO(valid_done) struct valid valid = { 0 };
	struct hw_cached_list cached = { 0 };
	int r;

	r = network_load(p->options.network, p->conf_dir, name, &conf, e);
	if (r < 0)
		return r;
	r = hw_cached_attachments(p->options.cni, NULL, NULL, NULL, &cached, e);
	if (r < 0)
		return r;
	view = pods_view(p);
	add_pods(view, hw_conf_name(conf), &valid);
	for (size_t i = 0; i < cached.n; i++)
		add_cached(view, &cached.v[i], hw_conf_name(conf), &valid);
	hw_cached_list_free(&cached);
	/* NULL would mean: no list */
	r = hw_gc(p->options.cni, conf, valid.v ? valid.v : &(struct hw_valid){ 0 }, valid.n, e);
	return r < 0 ? err_ctx(e, "GC of network \"%s\"", name) : 0;
}
