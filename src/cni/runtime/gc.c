/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/gc.c - garbage collection of a network's attachments
 *
 * What:  libcni's GCNetworkList: DEL for each cached attachment that is not in
 *        the list of valid ones, then GC for each plugin, which also
 *        deletes attachments that are not in the cache.
 * How:   takes a snapshot of the cache, then waits for the network's lock. An
 *        attachment whose cache entry is newer than the snapshot was added
 *        after the caller had made its list: it is kept, and added to the list
 *        that the plugins get. hawser-cri makes its list after the snapshot.
 * Rules: GC continues after an error and returns all errors, one per line.
 */
#include "cni/runtime/gc.h"

#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "base/time.h"
#include "cni/runtime/cache.h"
#include "cni/runtime/cni.h"
#include "cni/runtime/run.h"
#include "cni/version.h"

struct gc {
	const struct hw_cni *cni;
	const struct hw_conf *conf;
	struct hw_valid *valid; /* attachments to keep; the caller or the cache owns the strings */
	size_t n_valid;
	bool with_valid; /* the plugins get this list, even if it is empty */
	struct errors errors;
};

static void gc_done(struct gc *gc)
{
	free(gc->valid);
}

AUTO_VALUE_DEFINE(gc_done, struct gc);

static void add_valid(struct gc *gc, const char *container_id, const char *ifname)
{
	gc->valid = mem_resize(gc->valid, gc->n_valid + 1, sizeof(*gc->valid));
	gc->valid[gc->n_valid++] =
		(struct hw_valid){ str_or(container_id, ""), str_or(ifname, "") };
	gc->with_valid = true;
}

/* Return: true if the entry is of this network and not in the list of valid attachments */
static bool is_stale(const struct gc *gc, const struct hw_cached *entry)
{
	if (!str_equal(entry->network, gc->conf->name))
		return false;
	for (size_t i = 0; i < gc->n_valid; i++)
		if (str_equal(gc->valid[i].container_id, entry->container_id) &&
		    str_equal(gc->valid[i].ifname, entry->ifname))
			return false;
	return true;
}

/* Runs DEL with the arguments of the ADD and the current network configuration, as in libcni.
 * @whole: the GC, whose deadline and cancel descriptor apply */
static void delete_stale(struct gc *gc, const struct run *whole, const struct hw_cached *entry)
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

static void gc_plugins(struct gc *gc, const struct run *run)
{
	struct conf_request request = { .with_valid = gc->with_valid,
					.valid = gc->valid,
					.n_valid = gc->n_valid };

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

int gc_run(const struct hw_cni *cni, const struct hw_conf *conf, int locked_ms,
	   int (*list)(void *ctx, const struct hw_valid **ret_valid, size_t *ret_n,
		       struct hw_err *e),
	   void *ctx, struct hw_err *e)
{
	AUTO(cache_snapshot_free) struct cache_snapshot *before = NULL;
	AUTO(hw_cached_list_free) struct hw_cached_list cached = { 0 };
	AUTO(gc_done) struct gc gc = { .cni = cni, .conf = conf };
	AUTO(run_done) struct run run = { 0 };
	const struct hw_valid *valid = NULL;
	autoclose int lock = -1;
	size_t n_valid = 0;
	int r;

	if (conf->disable_gc)
		return 0;
	r = run_init(&run, cni, conf, NULL, e);
	if (r < 0)
		return r;
	r = cache_snapshot(cni->cache_dir, &before, e);
	if (r < 0)
		return r;
	r = list(ctx, &valid, &n_valid, e);
	if (r < 0)
		return r;
	gc.with_valid = valid != NULL;
	for (size_t i = 0; valid && i < n_valid; i++)
		add_valid(&gc, valid[i].container_id, valid[i].ifname);
	r = run_lock(&run, true, &lock, e);
	if (r < 0)
		return r;
	run.deadline = time_earlier(run.deadline, time_deadline(locked_ms));
	r = hw_cached_attachments(cni, NULL, cni->damaged, cni->damaged_ctx, &cached, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < cached.n; i++)
		if (is_stale(&gc, &cached.v[i]) &&
		    !cache_snapshot_has(before, conf->name, &cached.v[i]))
			add_valid(&gc, cached.v[i].container_id, cached.v[i].ifname);
	for (size_t i = 0; i < cached.n; i++)
		if (is_stale(&gc, &cached.v[i]))
			delete_stale(&gc, &run, &cached.v[i]);
	if (cache_sweep(cni->cache_dir, e) < 0)
		errors_add(&gc.errors, e);
	gc_plugins(&gc, &run);
	return errors_result(&gc.errors, e);
}

struct given {
	const struct hw_valid *valid;
	size_t n_valid;
};

static int list_given(void *ctx, const struct hw_valid **ret_valid, size_t *ret_n, struct hw_err *e)
{
	const struct given *given = ctx;

	(void)e;
	*ret_valid = given->valid;
	*ret_n = given->n_valid;
	return 0;
}

int hw_gc(const struct hw_cni *cni, const struct hw_conf *conf, const struct hw_valid *valid,
	  size_t n_valid, struct hw_err *e)
{
	struct given given = { valid, n_valid };

	return gc_run(cni, conf, 0, list_given, &given, e);
}
