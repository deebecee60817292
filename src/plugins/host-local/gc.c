/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/gc.c - GC and STATUS of host-local
 *
 * What:  GC ends the leases of attachments that are not valid; see lease-gc.c for
 *        which. STATUS says, with code 50, why the next ADD would fail.
 * How:   an attachment is valid when the runtime names it, and also while another
 *        plugin keeps a record of it: its ADD may still have been running when
 *        the runtime asked the plugin that called us, which therefore kept it.
 *        A lease that has only a container's id, as old versions wrote them, is
 *        valid when any attachment of that container is.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/map.h"
#include "base/os/file.h"
#include "base/str.h"
#include "cni/lock.h"
#include "cni/plugin/record.h"
#include "plugins/host-local/host-local.h"
#include "plugins/host-local/pool.h"

/* ---- GC -------------------------------------------------------------------------------- */

struct keeping {
	const struct hw_call *call;
	struct map *valid; /* "ID" and "ID IFNAME" */
	const char *state_dir;
	struct hw_strings plugins; /* that have records */
};

static int add_plugin(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	(void)e;
	strings_add(ctx, entry->name);
	return 0;
}

/* A record that cannot be read is one. */
static bool has_record(const struct keeping *k, const struct lease_owner *owner)
{
	struct hw_err e;

	for (size_t i = 0; i < k->plugins.n; i++) {
		AUTO(record_done) struct record record = { 0 };

		if (record_read(k->state_dir, k->plugins.v[i], k->call->network,
				owner->container_id, owner->ifname, &record, &e) != 0)
			return true;
	}
	return false;
}

static bool keep(void *ctx, const struct lease_owner *owner)
{
	const struct keeping *k = ctx;

	if (!owner->ifname)
		return map_find(k->valid, owner->container_id);
	autofree char *key = str_printf("%s %s", owner->container_id, owner->ifname);
	return map_find(k->valid, key) || has_record(k, owner);
}

static struct map *valid_of(const struct hw_call *call)
{
	struct map *valid = map_new(NULL);

	for (size_t i = 0; i < call->n_valid; i++) {
		const struct hw_valid *v = &call->valid[i];
		const char *id = str_or(v->container_id, "");
		autofree char *key = str_printf("%s %s", id, str_or(v->ifname, ""));

		map_set(valid, key, valid);
		map_set(valid, id, valid);
	}
	return valid;
}

/**
 * host_local_gc() - GC
 */
int host_local_gc(struct hw_call *call, struct hw_err *e)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE;
	AUTO(map_free) struct map *valid = valid_of(call);
	autofree char *state_dir = lock_state_dir();
	autofree char *records = str_printf("%s/attachments", state_dir);
	struct keeping k = { .call = call, .valid = valid, .state_dir = state_dir };
	struct lease_gc gc = { .known = call->valid, .keep = keep, .ctx = &k };

	int r = host_local_open(call, LEASE_LOOK, &store, e);
	if (r == -ENOENT)
		return 0;
	if (r >= 0)
		r = file_walk(AT_FDCWD, records, add_plugin, &k.plugins, e);
	if (r >= 0 || r == -ENOENT)
		r = lease_gc(&store, &gc, e);
	hw_strings_free(&k.plugins);
	return r;
}

/* ---- STATUS ---------------------------------------------------------------------------- */

/* The directory, or what is there of the way to it. */
static char *nearest(const char *path)
{
	/* a relative one begins where we are */
	char *dir = str_printf("%s%s", *path == '/' ? "" : "./", path), *slash;

	while (access(dir, F_OK) < 0 && errno == ENOENT && (slash = strrchr(dir, '/')))
		slash[slash == dir && slash[1]] = '\0';
	return dir;
}

static int check_room(const char *path, struct hw_err *e)
{
	autofree char *dir = nearest(path);
	struct statvfs fs;

	if (access(dir, W_OK | X_OK) < 0)
		return err_cni(e, HW_CNI_NOT_AVAILABLE, "leases cannot be written to %s: %s", path,
			       strerror(errno));
	if (statvfs(dir, &fs) < 0)
		return 0;
	if ((fs.f_blocks && !fs.f_bavail) || (fs.f_files && !fs.f_favail))
		return err_cni(e, HW_CNI_NOT_AVAILABLE, "leases cannot be written to %s: %s", path,
			       strerror(ENOSPC));
	return 0;
}

static bool has_free(const struct range_set *set, const struct lease_list *taken,
		     const struct lease_list *stale)
{
	struct hw_ip none = { 0 };
	struct range_walk w;

	range_walk_init(&w, set, &none);
	while (range_walk_next(&w))
		if (!lease_list_has(taken, &w.cur) || lease_list_has(stale, &w.cur))
			return true;
	return false;
}

static int check_sets(const struct pool *pool, const struct lease_store *store, struct hw_err *e)
{
	AUTO(lease_list_done) struct lease_list taken = { 0 }, stale = { 0 };

	int r = lease_list(store, &taken, e);
	if (r >= 0)
		r = lease_list_stale(store, &stale, e);
	for (size_t i = 0; r >= 0 && i < pool->n; i++) {
		autofree char *ranges = range_set_format(&pool->sets[i]);

		if (!has_free(&pool->sets[i], &taken, &stale))
			r = err_cni(e, HW_CNI_NOT_AVAILABLE,
				    "no IP addresses available in range set: %s", ranges);
	}
	return r;
}

/**
 * host_local_status() - STATUS
 */
int host_local_status(struct hw_call *call, struct hw_err *e)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE;
	AUTO(pool_done) struct pool pool = { 0 };
	autofree char *path = str_printf("%s/%s", host_local_dir(call), call->network);

	int r = pool_init(&pool, call->conf, call->args, call->version, e);
	if (r >= 0)
		r = check_room(path, e);
	if (r < 0)
		return r;
	r = host_local_open(call, LEASE_LOOK, &store, e);
	if (r == -ENOENT)
		return 0;
	return r < 0 ? r : check_sets(&pool, &store, e);
}
