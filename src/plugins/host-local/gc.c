/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/gc.c - GC of host-local: releases the leases of invalid attachments
 *
 * How:   an attachment is valid if the runtime lists it, or if another plugin has
 *        a record of it. In the second case, the main plugin that called us has
 *        kept the attachment, because the ADD of the attachment may still have
 *        been running when GC was called.
 *        A lease that names only a container (written by old versions of
 *        upstream) is valid if any attachment of that container is valid.
 *
 *        First all leases are read without the lock, to find the candidates:
 *        leases whose owner is not valid. Then only the candidates are read
 *        again, under the lock. If the file of a candidate has changed, it is a
 *        new lease and is kept. The remaining candidates are released under these
 *        conditions ("list": the runtime has sent a list of valid attachments):
 *
 *	index entry of the lease         released
 *	this boot, ADD finished after    never
 *	  GC was called
 *	this boot, ADD finished before   if there is a list
 *	this boot, ADD not finished      always: the ADD was killed; a running ADD
 *	                                 would hold the lock
 *	an earlier boot                  always
 *	another machine                  never
 *	unknown machine or boot          if there is a list, unless the ADD finished
 *	                                 after GC was called
 *	no entry                         if there is a list: upstream's plugin, or an
 *	                                 ADD of ours that was killed, wrote the lease
 *	no entry, and the lease is empty always: its writer was killed
 *
 *        Index entries without a matching lease are also searched without the
 *        lock, and removed under the lock.
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

/* A lease whose owner is not valid. Inode and time identify the version of its file that was read
 * without the lock. */
struct gc_candidate {
	struct hw_ip ip;
	ino_t ino;
	struct timespec changed;
};

struct gc_sweep {
	struct lease_store *store;
	const struct lease_gc_options *options;
	int64_t called; /* when GC was called, by CLOCK_BOOTTIME */
	struct gc_candidate *v;
	size_t n, room;
	struct index_dirs dirs;
};

static void gc_sweep_done(struct gc_sweep *s)
{
	free(s->v);
	index_close_all(&s->dirs);
}
AUTO_VALUE_DEFINE(gc_sweep_done, struct gc_sweep);

/* ---- leases ------------------------------------------------------------------------------ */

static bool is_empty(const struct lease_text *t)
{
	return t->owner.container_id && !*t->owner.container_id && !t->owner.ifname;
}

/* Unreadable leases, and leases of an unknown owner, are not candidates. */
static int find_candidates(struct gc_sweep *s, struct hw_err *e)
{
	AUTO(ip_list_done) struct ip_list all = { 0 };
	struct lease_text t;
	struct stat st;
	int r;

	r = lease_list_all(s->store, &all, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < all.n; i++) {
		if (lease_read(s->store, &all.v[i], &t, &st) <= 0 || !t.owner.container_id)
			continue;
		if (!is_empty(&t) && s->options->is_valid(s->options->ctx, &t.owner))
			continue;
		if (s->n == s->room) {
			s->room = s->room ? 2 * s->room : 16;
			s->v = mem_resize(s->v, s->room, sizeof(*s->v));
		}
		s->v[s->n++] = (struct gc_candidate){ all.v[i], st.st_ino, st.st_ctim };
	}
	return 0;
}

/* Finds the index directory that has an entry for the lease; this boot's directory is preferred.
 * *ret_dir is NULL if there is no entry. */
static int find_index_dir(const struct gc_sweep *s, const struct lease_owner *owner,
			  const struct hw_ip *ip, const struct index_dir **ret_dir,
			  struct hw_err *e)
{
	struct hw_ip found;

	*ret_dir = NULL;
	for (size_t i = 0; owner->ifname && i < s->dirs.n; i++)
		for (unsigned n = 0;; n++) {
			int r;

			r = index_get(s->dirs.v[i].fd, owner, n, &found);
			if (r < 0)
				return err_set(e, r, "read the index of %s", s->store->path);
			if (r == 0)
				break;
			if (!hw_ip_equal(&found, ip))
				continue;
			if (!*ret_dir || s->dirs.v[i].origin == INDEX_THIS_BOOT)
				*ret_dir = &s->dirs.v[i];
		}
	return 0;
}

/* Implements the table at the top of this file. */
static bool may_release(const struct gc_sweep *s, const struct lease_text *t,
			const struct hw_ip *ip, const struct index_dir *dir)
{
	if (!dir)
		return s->options->has_list || is_empty(t);
	if (dir->origin == INDEX_OTHER_MACHINE || dir->origin == INDEX_EARLIER_BOOT)
		return dir->origin == INDEX_EARLIER_BOOT;
	int64_t finished = index_finished_at(dir->fd, &t->owner, ip);
	if (!finished && dir->origin == INDEX_THIS_BOOT)
		return true;
	return s->options->has_list && finished < s->called;
}

static int release_candidate(struct gc_sweep *s, const struct gc_candidate *c, struct hw_err *e)
{
	const struct index_dir *dir;
	struct lease_text t;
	struct stat st;
	int r;

	if (lease_read(s->store, &c->ip, &t, &st) <= 0 || !t.owner.container_id ||
	    c->ino != st.st_ino || c->changed.tv_sec != st.st_ctim.tv_sec ||
	    c->changed.tv_nsec != st.st_ctim.tv_nsec)
		return 0;
	r = find_index_dir(s, &t.owner, &c->ip, &dir, e);
	if (r < 0 || !may_release(s, &t, &c->ip, dir))
		return r;
	r = lease_unlink(s->store, &c->ip, e);
	if (r < 0 || !dir)
		return r;
	r = index_remove(dir->fd, &t.owner, &c->ip);
	return r < 0 ? err_set(e, r, "remove an entry from the index of %s", s->store->path) : 0;
}

/* ---- index entries without a matching lease ------------------------------------------------ */

struct gc_stray {
	const struct lease_store *store;
	int dir;
	struct hw_strings names;
};

/* If the lease names only the container, the entry is kept: only the entry shows the interface. */
static bool is_stray(const struct gc_stray *stray, const char *name)
{
	struct lease_text t;
	struct hw_ip ip;

	if (index_read(stray->dir, name, &ip) <= 0 ||
	    lease_matches_entry(stray->store, name, &ip) != 0)
		return false;
	return lease_read(stray->store, &ip, &t, NULL) <= 0 || str_empty(t.owner.container_id) ||
	       t.owner.ifname;
}

static int add_stray(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct gc_stray *stray = ctx;

	(void)e;
	if (is_stray(stray, entry->name))
		strings_add(&stray->names, entry->name);
	return 0;
}

/* Before it acquires the lock, searches for entries that have no matching lease. Under the lock,
 * removes those that still have none. */
static int remove_strays(struct gc_sweep *s, struct hw_err *e)
{
	autofree struct gc_stray *strays = mem_new((s->dirs.n + 1) * sizeof(*strays));
	int r = 0, removed = 0;

	for (size_t i = 0; r >= 0 && i < s->dirs.n; i++) {
		strays[i] = (struct gc_stray){ s->store, s->dirs.v[i].fd };
		if (s->dirs.v[i].origin != INDEX_OTHER_MACHINE)
			r = file_walk(strays[i].dir, ".", add_stray, &strays[i], e);
	}
	if (r >= 0 && s->store->lock < 0)
		r = lease_lock(s->store, e);
	/* Remove from the end: the owner's last entry gets the name of a removed entry. */
	for (size_t i = 0; r >= 0 && i < s->dirs.n; i++)
		for (size_t j = strays[i].names.n; j-- > 0;)
			if (is_stray(&strays[i], strays[i].names.v[j]) && removed >= 0) {
				removed = index_remove_entry(strays[i].dir, strays[i].names.v[j]);
				/* the lease may exist, and be empty */
				lease_set_incomplete(s->store);
			}
	for (size_t i = 0; i < s->dirs.n; i++)
		hw_strings_free(&strays[i].names);
	if (removed < 0)
		return err_set(e, removed, "remove an entry from the index of %s", s->store->path);
	return r;
}

int lease_gc(struct lease_store *store, const struct lease_gc_options *options, struct hw_err *e)
{
	AUTO(gc_sweep_done)
	struct gc_sweep s = { .store = store, .options = options, .called = time_boot() };
	struct hw_err failed;
	int r;

	r = find_candidates(&s, e);
	if (r >= 0)
		r = index_open_all(store, &s.dirs, e);
	if (r >= 0)
		r = remove_strays(&s, e); /* acquires the lock */
	index_close_all(&s.dirs);
	/* Open the directories again: this boot's directory may have been created since. */
	if (r >= 0)
		r = index_open_all(store, &s.dirs, e);
	if (r >= 0)
		/* A failed release does not stop the remaining ones; return the first error. */
		for (size_t i = 0; i < s.n; i++)
			if (release_candidate(&s, &s.v[i], &failed) < 0 && r >= 0) {
				*e = failed;
				r = failed.code;
			}
	index_remove_empty(store, &s.dirs);
	return r;
}

/* ---- which attachments are valid ------------------------------------------------------------ */

struct gc_validity {
	const char *network;
	struct map *listed; /* attachments that the runtime listed: keys "ID" and "ID IFNAME" */
	const char *state_dir;
	struct hw_strings plugins; /* names of plugins that have attachment records */
};

static int add_plugin(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	(void)e;
	strings_add(ctx, entry->name);
	return 0;
}

static bool is_valid(void *ctx, const struct lease_owner *owner)
{
	const struct gc_validity *v = ctx;
	struct hw_err e;

	if (!owner->ifname)
		return map_find(v->listed, owner->container_id);
	autofree char *key = str_printf("%s %s", owner->container_id, owner->ifname);
	if (map_find(v->listed, key))
		return true;
	for (size_t i = 0; i < v->plugins.n; i++) {
		AUTO(record_done) struct record record = { 0 };

		/* An attachment with an unreadable record is treated as valid. */
		if (record_read(v->state_dir, v->plugins.v[i], v->network, owner->container_id,
				owner->ifname, "", &record, &e) != 0)
			return true;
	}
	return false;
}

int host_local_gc(struct hw_call *call, struct hw_err *e)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE_INIT;
	AUTO(map_free) struct map *listed = map_new(NULL);
	autofree char *state_dir = state_dir_default();
	autofree char *records = str_printf("%s/attachments", state_dir);
	struct gc_validity v = { call->network, listed, state_dir };
	struct lease_gc_options options = { call->valid, is_valid, &v };
	int r;

	for (size_t i = 0; i < call->n_valid; i++) {
		const char *id = str_or(call->valid[i].container_id, "");
		autofree char *key = str_printf("%s %s", id, str_or(call->valid[i].ifname, ""));

		map_set(listed, key, listed);
		map_set(listed, id, listed);
	}
	r = host_local_open(call, LEASE_READ, &store, e);
	if (r <= 0)
		return r;
	r = file_walk(AT_FDCWD, records, add_plugin, &v.plugins, e);
	if (r >= 0 || r == -ENOENT)
		r = lease_gc(&store, &options, e);
	hw_strings_free(&v.plugins);
	return r;
}
