/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/gc.c - end every attachment of a network that is not named
 *
 * What:  libcni's GCNetworkList (facts 2.11): DEL for each cached attachment
 *        that is not valid, then GC for each plugin, which knows what no cache
 *        remembers.
 * How:   first the cache is looked at, then the network's lock is waited for.
 *        An ADD that was running meanwhile, or came since, has written its
 *        entry after that look: it is kept and named to the plugins as valid,
 *        whatever the caller's list says, since the caller could not know it.
 * Rules: an error does not stop it; all of them are told, one per line.
 */
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "cni/runtime/cache.h"
#include "cni/runtime/cni.h"
#include "cni/runtime/run.h"
#include "cni/version.h"

struct gc {
	const struct hw_cni *cni;
	const struct hw_conf *conf;
	struct hw_valid *keep; /* strings borrowed from the caller and the cache */
	size_t n_keep;
	bool told; /* the plugins are told what to keep */
	struct errors errors;
};

static void gc_done(struct gc *gc)
{
	free(gc->keep);
}

AUTO_VALUE_DEFINE(gc_done, struct gc);

static void keep(struct gc *gc, const char *container_id, const char *ifname)
{
	gc->keep = mem_resize(gc->keep, gc->n_keep + 1, sizeof(*gc->keep));
	gc->keep[gc->n_keep++] = (struct hw_valid){ str_or(container_id, ""), str_or(ifname, "") };
	gc->told = true;
}

static bool is_kept(const struct gc *gc, const struct hw_cached *entry)
{
	for (size_t i = 0; i < gc->n_keep; i++)
		if (str_equal(gc->keep[i].container_id, entry->container_id) &&
		    str_equal(gc->keep[i].ifname, entry->ifname))
			return true;
	return false;
}

/* DEL with what the ADD was called with, but by the network's present configuration, and with the
 * time that is left for the whole GC. */
static void end_stale(struct gc *gc, const struct run *whole, const struct hw_cached *entry)
{
	autofree const char *(*args)[2] = mem_new((entry->args.n + 1) * sizeof(*args));
	struct hw_attach at = {
		.size = sizeof(at),
		.container_id = entry->container_id,
		.netns = entry->netns,
		.ifname = entry->ifname,
		.args = (const char *const(*)[2])args,
		.n_args = entry->args.n,
		.capability_args = entry->capability_args,
	};
	AUTO(run_done) struct run run = { 0 };
	autofree char *prev = NULL;
	struct hw_err e;
	int r;

	for (size_t i = 0; i < entry->args.n; i++) {
		args[i][0] = entry->args.keys[i];
		args[i][1] = entry->args.values[i];
	}
	r = run_init(&run, gc->cni, gc->conf, &at, &e);
	if (r >= 0) {
		run.cancel_fd = whole->cancel_fd;
		run.deadline = whole->deadline;
		prev = run_prev_result(&run);
		r = run_del(&run, prev, &e);
	}
	if (r < 0) {
		err_ctx(&e, "failed to delete stale attachment %s %s", at.container_id, at.ifname);
		errors_add(&gc->errors, &e);
	}
}

static bool concerns(const struct gc *gc, const struct hw_cached *entry)
{
	return str_equal(entry->network, gc->conf->name) && !is_kept(gc, entry);
}

/* First all that must stay is known, then the rest ends. */
static void sort_out(struct gc *gc, const struct run *run, const struct cache_snapshot *before,
		     const struct hw_cached_list *cached)
{
	for (size_t i = 0; i < cached->n; i++)
		if (concerns(gc, &cached->v[i]) &&
		    !cache_snapshot_has(before, gc->conf->name, &cached->v[i]))
			keep(gc, cached->v[i].container_id, cached->v[i].ifname);
	for (size_t i = 0; i < cached->n; i++)
		if (concerns(gc, &cached->v[i]))
			end_stale(gc, run, &cached->v[i]);
}

static void sweep(struct gc *gc)
{
	struct hw_err e;

	if (cache_sweep(gc->cni->cache_dir, &e) < 0)
		errors_add(&gc->errors, &e);
}

static void ask_plugins(struct gc *gc, const struct run *run)
{
	struct conf_request request = { .with_valid = gc->told,
					.valid = gc->keep,
					.n_valid = gc->n_keep };

	if (!version_at_least(gc->conf->version, "1.1.0"))
		return;
	for (size_t i = 0; i < gc->conf->n_plugins; i++) {
		autofree char *output = NULL;
		struct hw_err e;
		size_t len;

		if (run_plugin(run, i, "GC", &request, &output, &len, &e) < 0) {
			err_ctx(&e, "failed to GC plugin %s", gc->conf->plugins[i].type);
			errors_add(&gc->errors, &e);
		}
	}
}

int hw_gc(const struct hw_cni *cni, const struct hw_conf *conf, const struct hw_valid *valid,
	  size_t n_valid, struct hw_err *e)
{
	AUTO(cache_snapshot_free) struct cache_snapshot *before = NULL;
	AUTO(hw_cached_list_free) struct hw_cached_list cached = { 0 };
	AUTO(gc_done) struct gc gc = { .cni = cni, .conf = conf, .told = valid != NULL };
	AUTO(run_done) struct run run = { 0 };
	autoclose int lock = -1;
	int r;

	if (conf->disable_gc)
		return 0;
	for (size_t i = 0; valid && i < n_valid; i++)
		keep(&gc, valid[i].container_id, valid[i].ifname);
	r = run_init(&run, cni, conf, NULL, e);
	if (r >= 0)
		r = cache_snapshot(cni->cache_dir, &before, e);
	if (r >= 0)
		r = run_lock(&run, true, &lock, e);
	if (r >= 0)
		r = hw_cached_attachments(cni, NULL, cni->damaged, cni->damaged_ctx, &cached, e);
	if (r < 0)
		return r;
	sort_out(&gc, &run, before, &cached);
	sweep(&gc);
	ask_plugins(&gc, &run);
	return errors_end(&gc.errors, e);
}
