/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/lease-end.c - the end of leases: an owner's, and those of earlier boots
 *
 * How:   the lease first, then its place in the index: killed in between, the
 *        next DEL finds the place and nothing behind it.
 *        Where the caller does not know the leases one look into all files tells,
 *        because upstream's plugin may have made some, or a killed ADD of ours; it
 *        also removes what killed writers left empty. Not where the index is known
 *        to have all, which such a look finds out. And where the index says that
 *        the ADD was never done: it may have been killed between a lease and its
 *        entry.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/str.h"
#include "plugins/host-local/lease-file.h"
#include "plugins/host-local/lease-index.h"

/**
 * lease_end() - end one lease, if it is the owner's
 *
 * Return: 1 when it was
 */
int lease_end(struct lease_store *store, const struct lease_owner *owner, const struct hw_ip *ip,
	      struct hw_err *e)
{
	int r = lease_match(store, ip, owner);
	if (r < 0)
		return err_set(e, r, "read a lease in %s", store->path);
	if (r != LEASE_WHOLE)
		return 0;
	r = lease_unlink(store, ip, e);
	if (r < 0)
		return r;
	r = index_remove(store->index, owner, ip);
	return r < 0 ? err_set(e, r, "end a lease in the index of %s", store->path) : 1;
}

/* All that one folder of the index knows of the owner, from the end. */
static int end_indexed(const struct lease_store *store, int folder, const struct lease_owner *owner,
		       bool *ret_unfinished, struct hw_err *e)
{
	char name[INDEX_NAME];
	struct hw_ip ip;
	unsigned n = 0;
	int ended = 0, r;

	while ((r = index_get(folder, owner, n, &ip)) > 0)
		n++;
	if (r < 0)
		return err_set(e, r, "read the index of %s", store->path);
	while (n-- > 0) {
		if (!index_is_finished(folder, owner, n))
			*ret_unfinished = true;
		r = index_get(folder, owner, n, &ip);
		if (r >= 0)
			r = lease_match(store, &ip, owner);
		if (r < 0)
			return err_set(e, r, "read a lease in %s", store->path);
		if (r == LEASE_WHOLE || r == LEASE_EMPTY) {
			r = lease_unlink(store, &ip, e);
			if (r < 0)
				return r;
			ended++;
		}
		index_name(owner, n, name);
		if (unlinkat(folder, name, 0) < 0 && errno != ENOENT)
			return err_set(e, -errno, "end a lease in the index of %s", store->path);
	}
	return ended;
}

static int end_in_folders(const struct lease_store *store, const struct lease_owner *owner,
			  bool *ret_unfinished, struct hw_err *e)
{
	AUTO(index_close_all) struct index_folders folders = { 0 };
	int ended = 0, r = index_open_all(store, &folders, e);

	for (size_t i = 0; r >= 0 && i < folders.n; i++) {
		r = end_indexed(store, folders.v[i].fd, owner, ret_unfinished, e);
		ended += r > 0 ? r : 0;
	}
	if (ended)
		index_tidy(store, &folders);
	return r < 0 ? r : ended;
}

/* Those of a list that match as well as asked. */
static int end_matching(const struct lease_store *store, const struct lease_owner *owner,
			const struct lease_list *list, enum lease_match want, struct hw_err *e)
{
	int ended = 0;

	for (size_t i = 0; i < list->n; i++) {
		int r = lease_match(store, &list->v[i], owner);
		if (r < 0)
			return err_set(e, r, "read a lease in %s", store->path);
		if (r != (int)want)
			continue;
		r = lease_unlink(store, &list->v[i], e);
		if (r < 0)
			return r;
		ended++;
	}
	return ended;
}

/* As upstream: those of the container alone only where there is none of the interface. */
static int end_listed(const struct lease_store *store, const struct lease_owner *owner,
		      const struct lease_list *list, struct hw_err *e)
{
	int r = end_matching(store, owner, list, LEASE_WHOLE, e);

	return r ? r : end_matching(store, owner, list, LEASE_ID_ONLY, e);
}

/* One look into all files sorts the few that matter out. */
static int look_for(const struct lease_store *store, const struct lease_owner *owner,
		    struct lease_list *ret_owners, struct lease_list *ret_empty, struct hw_err *e)
{
	AUTO(lease_list_done) struct lease_list all = { 0 };
	int r = lease_list(store, &all, e);

	for (size_t i = 0; r >= 0 && i < all.n; i++) {
		int m = lease_match(store, &all.v[i], owner);

		if (m < 0)
			return err_set(e, m, "read a lease in %s", store->path);
		if (m == LEASE_WHOLE || m == LEASE_ID_ONLY)
			lease_list_add(ret_owners, &all.v[i]);
		else if (m == LEASE_EMPTY)
			lease_list_add(ret_empty, &all.v[i]);
	}
	return r;
}

static bool is_in_folders(const struct lease_store *store, const struct index_folders *folders,
			  const struct hw_ip *ip)
{
	struct lease_text t;

	if (lease_read(store, ip, &t, NULL) <= 0 || !t.owner.ifname)
		return false;
	for (size_t i = 0; i < folders->n; i++)
		if (index_has(folders->v[i].fd, &t.owner, ip))
			return true;
	return false;
}

/**
 * lease_look_at_index() - has the index all leases?
 */
int lease_look_at_index(struct lease_store *store, struct hw_err *e)
{
	AUTO(index_close_all) struct index_folders folders = { 0 };
	AUTO(lease_list_done) struct lease_list all = { 0 };
	int r = index_open_all(store, &folders, e);

	if (r >= 0)
		r = lease_list(store, &all, e);
	if (r < 0)
		return r;
	store->indexed = true;
	for (size_t i = 0; store->indexed && i < all.n; i++)
		store->indexed = is_in_folders(store, &folders, &all.v[i]);
	return 0;
}

static int end_found(struct lease_store *store, const struct lease_owner *owner, struct hw_err *e)
{
	AUTO(lease_list_done) struct lease_list owners = { 0 }, empty = { 0 };
	int r = look_for(store, owner, &owners, &empty, e);

	if (r >= 0)
		r = end_matching(store, owner, &empty, LEASE_EMPTY, e);
	if (r >= 0)
		r = end_listed(store, owner, &owners, e);
	return r < 0 ? r : lease_look_at_index(store, e);
}

/**
 * lease_end_all() - end all the owner's leases
 * @known: addresses that the owner had, as a result says
 */
int lease_end_all(struct lease_store *store, const struct lease_owner *owner,
		  const struct lease_list *known, struct hw_err *e)
{
	bool unfinished = false;
	int ended = end_in_folders(store, owner, &unfinished, e);
	if (ended < 0)
		return ended;
	int r = ended ? end_matching(store, owner, known, LEASE_WHOLE, e)
		      : end_listed(store, owner, known, e);
	if (r >= 0 && (unfinished || (known->n == 0 && !store->indexed)))
		r = end_found(store, owner, e);
	return r < 0 ? r : 0;
}

/**
 * lease_has_any() - has the owner any lease?
 */
int lease_has_any(const struct lease_store *store, const struct lease_owner *owner,
		  struct hw_err *e)
{
	AUTO(lease_list_done) struct lease_list owners = { 0 }, empty = { 0 };

	int r = lease_find(store, owner, &owners, e);
	if (r >= 0 && !owners.n)
		r = look_for(store, owner, &owners, &empty, e);
	return r < 0 ? r : owners.n > 0;
}

/* ---- earlier boots ------------------------------------------------------------------ */

struct stale {
	const struct lease_store *store;
	int folder;
	struct lease_list *list;
};

/* Has its owner leased it anew since the boot? A DEL that was killed may have left the old entry. */
static bool is_leased_anew(const struct lease_store *store, const struct hw_ip *ip)
{
	struct lease_text t;

	return lease_read(store, ip, &t, NULL) > 0 && t.owner.ifname &&
	       index_stamped(store->index, &t.owner, ip) > 0;
}

static int add_stale(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct stale *s = ctx;
	struct hw_ip ip;

	(void)e;
	if (index_read(s->folder, entry->name, &ip) > 0 &&
	    lease_is_agreed(s->store, entry->name, &ip) > 0 && !is_leased_anew(s->store, &ip))
		lease_list_add(s->list, &ip);
	return 0;
}

/**
 * lease_list_stale() - what this machine leased before it was booted
 */
int lease_list_stale(const struct lease_store *store, struct lease_list *ret_list, struct hw_err *e)
{
	AUTO(index_close_all) struct index_folders folders = { 0 };
	int r = index_open_all(store, &folders, e);

	for (size_t i = 0; r >= 0 && i < folders.n; i++) {
		struct stale s = { store, folders.v[i].fd, ret_list };

		if (folders.v[i].time == INDEX_EARLIER)
			r = file_walk(s.folder, ".", add_stale, &s, e);
	}
	lease_list_sort(ret_list);
	return r;
}

static int remove_entry(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	(void)ctx;
	return file_remove(entry->dir, entry->name, e) < 0 ? e->code : 0;
}

/**
 * lease_end_stale() - end what this machine leased before it was booted
 *
 * No pod lives through that.
 */
int lease_end_stale(struct lease_store *store, struct hw_err *e)
{
	AUTO(index_close_all) struct index_folders folders = { 0 };
	AUTO(lease_list_done) struct lease_list list = { 0 };
	int r = lease_list_stale(store, &list, e);

	for (size_t i = 0; r >= 0 && i < list.n; i++)
		r = lease_unlink(store, &list.v[i], e);
	if (r >= 0)
		r = index_open_all(store, &folders, e);
	for (size_t i = 0; r >= 0 && i < folders.n; i++)
		if (folders.v[i].time == INDEX_EARLIER)
			r = file_walk(folders.v[i].fd, ".", remove_entry, NULL, e);
	index_tidy(store, &folders);
	return r < 0 ? r : (int)list.n;
}
