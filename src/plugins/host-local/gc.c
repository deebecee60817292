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
#include <sys/stat.h>

#include "base/map.h"
#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"
#include "cni/lock.h"
#include "cni/plugin/record.h"
#include "plugins/host-local/host-local.h"
#include "plugins/host-local/index.h"

/*
 * How:   first without the lock a look at all leases for those that are not to
 *        be kept; then under the lock a second look at these alone. What is not
 *        the same file any more was leased since. What is still there:
 *
 *	the index says            ended when its owner is not to be kept
 *	finished since GC began   never
 *	finished before           if all valid ones are known
 *	not finished              always: under the lock it is a dead ADD's
 *	of an earlier boot        always
 *	of another machine        never
 *	of nobody knows when      if all valid ones are known
 *	nothing                   if all valid ones are known: upstream's plugin
 *	                          made it, or an ADD of ours died on the way
 *	nothing, and it is empty  always: a dead writer's
 *
 *        In the same way entries of the index that no lease agrees with are removed.
 */

struct suspect {
	struct hw_ip ip;
	ino_t ino;
	struct timespec changed;
};

struct sweep {
	struct lease_store *store;
	const struct lease_gc *gc;
	int64_t called;
	struct suspect *v;
	size_t n, room;
	struct index_folders folders;
};

static void sweep_done(struct sweep *s)
{
	free(s->v);
	index_close_all(&s->folders);
}
AUTO_VALUE_DEFINE(sweep_done, struct sweep);

static bool is_empty(const struct lease_text *t)
{
	return t->owner.container_id && !*t->owner.container_id && !t->owner.ifname;
}

static void suspect_add(struct sweep *s, const struct hw_ip *ip, const struct stat *st)
{
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 16;
		s->v = mem_resize(s->v, s->room, sizeof(*s->v));
	}
	s->v[s->n++] = (struct suspect){ *ip, st->st_ino, st->st_ctim };
}

/* A file that cannot be read may be anybody's. */
static int find_suspects(struct sweep *s, struct hw_err *e)
{
	AUTO(ip_list_done) struct ip_list all = { 0 };
	struct lease_text t;
	struct stat st;
	int r = lease_list(s->store, &all, e);

	for (size_t i = 0; r >= 0 && i < all.n; i++) {
		if (lease_read(s->store, &all.v[i], &t, &st) <= 0 || !t.owner.container_id)
			continue;
		if (is_empty(&t) || !s->gc->keep(s->gc->ctx, &t.owner))
			suspect_add(s, &all.v[i], &st);
	}
	return r;
}

static bool is_same_file(const struct suspect *suspect, const struct stat *st)
{
	return suspect->ino == st->st_ino && suspect->changed.tv_sec == st->st_ctim.tv_sec &&
	       suspect->changed.tv_nsec == st->st_ctim.tv_nsec;
}

/* Where the index has the lease, this boot's place first; NULL: nowhere. */
static int find_folder(const struct sweep *s, const struct lease_owner *owner,
		       const struct hw_ip *ip, const struct index_folder **ret_folder,
		       struct hw_err *e)
{
	struct hw_ip found;

	*ret_folder = NULL;
	for (size_t i = 0; owner->ifname && i < s->folders.n; i++)
		for (unsigned n = 0;; n++) {
			int r = index_get(s->folders.v[i].fd, owner, n, &found);
			if (r < 0)
				return err_set(e, r, "read the index of %s", s->store->path);
			if (r == 0)
				break;
			if (!hw_ip_equal(&found, ip))
				continue;
			if (!*ret_folder || s->folders.v[i].time == INDEX_NOW)
				*ret_folder = &s->folders.v[i];
		}
	return 0;
}

static bool is_over(const struct sweep *s, const struct lease_text *t, const struct hw_ip *ip,
		    const struct index_folder *folder)
{
	if (!folder)
		return s->gc->known || is_empty(t);
	if (folder->time == INDEX_FOREIGN || folder->time == INDEX_EARLIER)
		return folder->time == INDEX_EARLIER;
	int64_t finished = index_stamped(folder->fd, &t->owner, ip);
	if (!finished && folder->time == INDEX_NOW)
		return true;
	return s->gc->known && finished < s->called;
}

static int end_suspect(struct sweep *s, const struct suspect *suspect, struct hw_err *e)
{
	const struct index_folder *folder;
	struct lease_text t;
	struct stat st;

	if (lease_read(s->store, &suspect->ip, &t, &st) <= 0 || !t.owner.container_id ||
	    !is_same_file(suspect, &st))
		return 0;
	int r = find_folder(s, &t.owner, &suspect->ip, &folder, e);
	if (r < 0 || !is_over(s, &t, &suspect->ip, folder))
		return r;
	r = lease_unlink(s->store, &suspect->ip, e);
	if (r >= 0 && folder && index_remove(folder->fd, &t.owner, &suspect->ip) < 0)
		r = err_set(e, -errno, "tidy the index of %s", s->store->path);
	return r;
}

/* ---- entries of the index that no lease agrees with --------------------------------------- */

struct stray {
	const struct lease_store *store;
	int folder;
	struct hw_strings names;
};

static bool is_stray(const struct stray *s, const char *name)
{
	struct hw_ip ip;

	return index_read(s->folder, name, &ip) > 0 && lease_is_agreed(s->store, name, &ip) == 0;
}

static int find_stray(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct stray *s = ctx;

	(void)e;
	if (is_stray(s, entry->name))
		strings_add(&s->names, entry->name);
	return 0;
}

static int find_strays(const struct sweep *s, struct stray *strays, struct hw_err *e)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < s->folders.n; i++) {
		strays[i] = (struct stray){ s->store, s->folders.v[i].fd };
		if (s->folders.v[i].time != INDEX_FOREIGN)
			r = file_walk(strays[i].folder, ".", find_stray, &strays[i], e);
	}
	return r;
}

/* From the end: the last entry of an owner takes the place of a removed one. */
static int remove_strays(const struct sweep *s, struct stray *strays, struct hw_err *e)
{
	int r = 0;

	for (size_t i = 0; i < s->folders.n; i++)
		for (size_t j = strays[i].names.n; j-- > 0;)
			if (is_stray(&strays[i], strays[i].names.v[j]))
				r = r < 0 ? r : index_drop(strays[i].folder, strays[i].names.v[j]);
	return r < 0 ? err_set(e, r, "tidy the index of %s", s->store->path) : 0;
}

static int gc_index(struct sweep *s, struct hw_err *e)
{
	autofree struct stray *strays = mem_new((s->folders.n + 1) * sizeof(*strays));
	int r = find_strays(s, strays, e);

	if (r >= 0 && s->store->lock < 0)
		r = lease_lock(s->store, e);
	if (r >= 0)
		r = remove_strays(s, strays, e);
	for (size_t i = 0; i < s->folders.n; i++)
		hw_strings_free(&strays[i].names);
	return r;
}

static int gc_leases(struct sweep *s, struct hw_err *e)
{
	struct hw_err own;
	int r = 0;

	for (size_t i = 0; i < s->n; i++)
		if (end_suspect(s, &s->v[i], &own) < 0 && r >= 0) {
			*e = own;
			r = own.code;
		}
	return r;
}

/**
 * lease_gc() - end every lease whose owner is not to be kept
 * @store: opened with LEASE_LOOK
 */
int lease_gc(struct lease_store *store, const struct lease_gc *gc, struct hw_err *e)
{
	AUTO(sweep_done) struct sweep s = { .store = store, .gc = gc, .called = time_boot() };

	int r = find_suspects(&s, e);
	if (r >= 0)
		r = index_open_all(store, &s.folders, e);
	if (r >= 0)
		r = gc_index(&s, e); /* takes the lock */
	index_close_all(&s.folders);
	if (r >= 0)
		r = index_open_all(store, &s.folders, e); /* this boot's may be new */
	if (r >= 0)
		r = gc_leases(&s, e);
	index_tidy(store, &s.folders);
	return r;
}

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
