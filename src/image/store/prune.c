/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/prune.c - holds on layers, and removal of unused layers
 *
 * How:   removal deletes the rows in one transaction, moves the directories to gone/
 *        with one rename each, releases the lock, and deletes the directories. If
 *        the process is killed in between, the remaining steps are done when the
 *        store is opened again.
 */
#include "image/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os/remove-tree.h"
#include "base/str.h"
#include "image/store/state.h"

#define STALE_S (24 * 60 * 60)

/* ---- directories --------------------------------------------------------------- */

void store_removal_done(struct store_removal *removal)
{
	hw_strings_free(&removal->chains);
	hw_strings_free(&removal->gone);
}

int store_move_to_gone(struct store *s, int from, const char *name, struct store_removal *removal,
		       struct hw_err *e)
{
	char gone[16];

	snprintf(gone, sizeof(gone), "%u", store_next_number(s));
	if (renameat(from, name, s->gone, gone) < 0)
		return err_set(e, -errno, "move %.80s to %s/gone", name, s->root);
	strings_add(&removal->gone, gone);
	return 0;
}

void store_move_layers_to_gone(struct store *s, struct store_removal *removal)
{
	struct hw_err e;

	for (size_t i = 0; i < removal->chains.n; i++) {
		const char *hex = removal->chains.v[i] + strlen("sha256:");

		/* a directory that cannot be moved now is moved at the next commit or start */
		if (store_move_to_gone(s, s->layers, hex, removal, &e) < 0)
			log_debug("%s", e.msg);
	}
	store_add_usage(s, -removal->bytes, -removal->inodes, -(int)removal->chains.n);
}

int store_delete_gone(struct store *s, const struct store_removal *removal, struct hw_err *e)
{
	struct hw_err later;
	int r = 0;

	for (size_t i = 0; i < removal->gone.n; i++)
		if (remove_tree(s->gone, removal->gone.v[i], r < 0 ? &later : e) < 0 && r == 0)
			r = err_ctx(e, "delete from %s/gone", s->root);
	return r;
}

/* ---- rows ---------------------------------------------------------------------- */

int store_delete_layer_rows(struct store *s, const struct hw_strings *chains,
			    struct store_removal *removal, struct hw_err *e)
{
	int r;

	if (s->lost) /* images that are not recovered yet may need them */
		return 0;
	for (size_t i = 0; i < chains->n; i++) {
		AUTO(db_query_done) struct db_query q = { 0 };
		const char *chain = chains->v[i];

		if (store_is_held(s, chain))
			continue;
		r = db_query(s->db,
			     "DELETE FROM layers WHERE chain = ?1"
			     " AND NOT EXISTS (SELECT 1 FROM image_layers i WHERE i.chain = ?1)"
			     " RETURNING disk, inodes",
			     DB_VALUES(DB_TEXT(chain)), &q, e);
		while (r >= 0 && (r = db_step(&q, e)) > 0) {
			strings_add(&removal->chains, chain);
			removal->bytes += db_int(&q, 0);
			removal->inodes += db_int(&q, 1);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- trimming ------------------------------------------------------------------ */

int store_list_abandoned(struct store *s, bool stale_only, struct hw_strings *chains,
			 struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { 0 };
	int64_t before = stale_only ? time(NULL) - STALE_S : INT64_MAX;
	int r;

	r = db_query(s->db, "SELECT chain FROM layers WHERE used = 0 AND made <= ?",
		     DB_VALUES(DB_INT(before)), &q, e);
	while (r >= 0 && (r = db_step(&q, e)) > 0)
		strings_add(chains, db_text(&q, 0));
	return r;
}

/* Lists layers that no image has; with @keep_fresh, without those that a pull may still need. */
static int list_unused(struct store *s, bool keep_fresh, struct hw_strings *ret_chains,
		       struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { 0 };
	int64_t before = keep_fresh ? time(NULL) - STALE_S : INT64_MAX;
	int r;

	r = db_query(s->db,
		     "SELECT chain FROM layers l WHERE (used = 1 OR made <= ?) AND NOT EXISTS"
		     " (SELECT 1 FROM image_layers i WHERE i.chain = l.chain)",
		     DB_VALUES(DB_INT(before)), &q, e);
	while (r >= 0 && (r = db_step(&q, e)) > 0)
		strings_add(ret_chains, db_text(&q, 0));
	return r;
}

/* Removes layers in one transaction; does nothing if the list is empty. */
static int remove_layers(struct store *s, const struct hw_strings *chains,
			 struct store_removal *removal, struct hw_err *e)
{
	AUTO(db_transaction_done) struct db_transaction change = { 0 };
	int r;

	if (chains->n == 0)
		return 0;
	r = db_begin(s->db, &change, e);
	if (r < 0)
		return r;
	r = store_delete_layer_rows(s, chains, removal, e);
	if (r < 0)
		return r;
	r = db_commit(&change, e);
	if (r < 0)
		return r;
	store_move_layers_to_gone(s, removal);
	return 0;
}

static int trim_locked(struct store *s, bool keep_fresh, struct store_removal *removal,
		       struct hw_err *e)
{
	int r;

	STORE_LOCKED(s);
	AUTO(hw_strings_free) struct hw_strings chains = { 0 };
	r = list_unused(s, keep_fresh, &chains, e);
	return r < 0 ? r : remove_layers(s, &chains, removal, e);
}

static int trim_layers(struct store *s, bool keep_fresh, struct hw_err *e)
{
	AUTO(store_removal_done) struct store_removal removal = { 0 };
	int r;

	r = trim_locked(s, keep_fresh, &removal, e);
	return r < 0 ? r : store_delete_gone(s, &removal, e);
}

int store_trim(struct store *s, struct hw_err *e)
{
	return trim_layers(s, false, e);
}

int store_trim_unused(struct store *s, struct hw_err *e)
{
	return trim_layers(s, true, e);
}

/* ---- holds --------------------------------------------------------------------- */

struct hold_count {
	size_t holds;
};

struct store_hold {
	struct store *store;
	struct hw_strings chains; /* without duplicates */
};

bool store_is_held(const struct store *s, const char *chain_id)
{
	return map_find(s->held, chain_id) != NULL;
}

struct store_hold *store_hold_new(struct store *s)
{
	struct store_hold *h = mem_new(sizeof(*h));

	h->store = s;
	return h;
}

/* The caller holds the lock of the store. */
static void add_to_hold(struct store_hold *h, const char *chain_id)
{
	struct hold_count *count;

	if (strings_has(&h->chains, chain_id))
		return;
	count = map_find(h->store->held, chain_id);
	if (!count) {
		count = mem_new(sizeof(*count));
		map_set(h->store->held, chain_id, count);
	}
	count->holds++;
	strings_add(&h->chains, chain_id);
}

int store_hold_layer(struct store_hold *h, const char *chain_id, struct hw_err *e)
{
	STORE_LOCKED(h->store);
	int r;

	r = store_check_digest(chain_id, e);
	if (r < 0)
		return r;
	add_to_hold(h, chain_id);
	r = store_layer_exists(h->store, chain_id, e);
	if (r == 0 && h->store->lost) {
		struct hw_err unreadable = { 0 };

		r = store_adopt_layer(h->store, chain_id, &unreadable, e);
		if (unreadable.code < 0)
			log_warn("%s", unreadable.msg);
		if (r > 0 && store_load_usage(h->store, e) < 0)
			return e->code;
	}
	if (r <= 0)
		return r;
	return !store_is_suspect(h->store, chain_id) && store_has_directory(h->store, chain_id);
}

int store_hold_all(struct store_hold *h, struct hw_err *e)
{
	STORE_LOCKED(h->store);
	AUTO(db_query_done) struct db_query q = { 0 };
	int r;

	r = db_query(h->store->db, "SELECT chain FROM layers", DB_NO_VALUES, &q, e);
	while (r >= 0 && (r = db_step(&q, e)) > 0)
		add_to_hold(h, db_text(&q, 0));
	return r;
}

static int release_locked(struct store_hold *h, struct store_removal *removal, struct hw_err *e)
{
	struct store *s = h->store;
	STORE_LOCKED(s);
	AUTO(hw_strings_free) struct hw_strings released = { 0 }, unused = { 0 };
	int64_t one = 0;
	int r;

	for (size_t i = 0; i < h->chains.n; i++) {
		const char *chain = h->chains.v[i];
		struct hold_count *count = map_find(s->held, chain);

		if (--count->holds > 0)
			continue;
		free(map_take(s->held, chain));
		strings_add(&released, chain);
	}
	/* select layers whose images were all removed, but not layers of a failed pull */
	for (size_t i = 0; i < released.n; i++) {
		r = db_get_int(s->db,
			       "SELECT 1 FROM layers l WHERE l.chain = ? AND used = 1"
			       " AND NOT EXISTS (SELECT 1 FROM image_layers i"
			       "  WHERE i.chain = l.chain)",
			       DB_VALUES(DB_TEXT(released.v[i])), &one, e);
		if (r < 0)
			return r;
		if (r > 0)
			strings_add(&unused, released.v[i]);
	}
	r = store_list_abandoned(s, true, &unused, e);
	return r < 0 ? r : remove_layers(s, &unused, removal, e);
}

void store_hold_free(struct store_hold *h)
{
	AUTO(store_removal_done) struct store_removal removal = { 0 };
	struct hw_err e;

	if (!h)
		return;
	if (release_locked(h, &removal, &e) < 0 || store_delete_gone(h->store, &removal, &e) < 0)
		log_debug("remove unused layers: %s", e.msg);
	store_hold_leave(h);
}

void store_hold_leave(struct store_hold *h)
{
	if (!h)
		return;
	hw_strings_free(&h->chains);
	free(h);
}
