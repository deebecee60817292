/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/prune.c - holds on layers, and removal of unused layers
 *
 * How:   first the rows, in one transaction; then the folders, by a rename each, to
 *        gone/; then, when others may go on, what is in there is deleted. Where it
 *        stops in between, the rest is done when the store is opened next.
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

/* ---- folders ------------------------------------------------------------------- */

void store_doomed_done(struct store_doomed *d)
{
	hw_strings_free(&d->chains);
	hw_strings_free(&d->gone);
}

int store_move_out(struct store *s, int from, const char *name, struct store_doomed *d,
		   struct hw_err *e)
{
	char gone[16];

	snprintf(gone, sizeof(gone), "%u", store_number(s));
	if (renameat(from, name, s->gone, gone) < 0)
		return err_set(e, -errno, "move %.80s to %s/gone", name, s->root);
	strings_add(&d->gone, gone);
	return 0;
}

void store_evict(struct store *s, struct store_doomed *d)
{
	struct hw_err e;

	for (size_t i = 0; i < d->chains.n; i++) {
		const char *hex = d->chains.v[i] + strlen("sha256:");

		/* it has no row: whoever wants its place moves it away, and so does the next start */
		if (store_move_out(s, s->layers, hex, d, &e) < 0)
			log_debug("%s", e.msg);
	}
	store_add_usage(s, -d->bytes, -d->inodes, -(int)d->chains.n);
}

int store_delete(struct store *s, const struct store_doomed *d, struct hw_err *e)
{
	struct hw_err later;
	int r = 0;

	for (size_t i = 0; i < d->gone.n; i++)
		if (remove_tree(s->gone, d->gone.v[i], r < 0 ? &later : e) < 0 && r == 0)
			r = err_ctx(e, "delete from %s/gone", s->root);
	return r;
}

/* ---- rows ---------------------------------------------------------------------- */

/* Delete its row, if no image needs it. */
static int delete_layer(struct store *s, const char *chain, struct store_doomed *d,
			struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { 0 };
	int r = db_query(s->db,
			 "DELETE FROM layers WHERE chain = ?1"
			 " AND NOT EXISTS (SELECT 1 FROM image_layers i WHERE i.chain = ?1)"
			 " RETURNING disk, inodes",
			 DB_VALUES(DB_TEXT(chain)), &q, e);

	while (r >= 0 && (r = db_step(&q, e)) > 0) {
		strings_add(&d->chains, chain);
		d->bytes += db_int(&q, 0);
		d->inodes += db_int(&q, 1);
	}
	return r;
}

int store_give_back(struct store *s, const struct hw_strings *chains, struct store_doomed *d,
		    struct hw_err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < chains->n; i++)
		if (!store_is_held(s, chains->v[i]))
			r = delete_layer(s, chains->v[i], d, e);
	return r;
}

int store_list_left(struct store *s, bool stale, struct hw_strings *chains, struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { 0 };
	int64_t before = stale ? time(NULL) - STALE_S : INT64_MAX;
	int r = db_query(s->db, "SELECT chain FROM layers WHERE used = 0 AND made <= ?",
			 DB_VALUES(DB_INT(before)), &q, e);

	while (r >= 0 && (r = db_step(&q, e)) > 0)
		strings_add(chains, db_text(&q, 0));
	return r;
}

/* ---- what belongs to no image -------------------------------------------------- */

static int list_unused(struct store *s, struct hw_strings *ret_chains, struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { 0 };
	int r = db_query(s->db,
			 "SELECT chain FROM layers l WHERE NOT EXISTS"
			 " (SELECT 1 FROM image_layers i WHERE i.chain = l.chain)",
			 DB_NO_VALUES, &q, e);

	while (r >= 0 && (r = db_step(&q, e)) > 0)
		strings_add(ret_chains, db_text(&q, 0));
	return r;
}

static int trim_in_turn(struct store *s, bool stale, struct store_doomed *d, struct hw_err *e)
{
	STORE_LOCKED(s);
	AUTO(db_change_done) struct db_change change = { 0 };
	AUTO(hw_strings_free) struct hw_strings chains = { 0 };
	int r = stale ? store_list_left(s, true, &chains, e) : list_unused(s, &chains, e);

	if (r < 0 || chains.n == 0)
		return r;
	r = db_begin(s->db, &change, e);
	if (r == 0)
		r = store_give_back(s, &chains, d, e);
	if (r == 0)
		r = db_commit(&change, e);
	if (r == 0)
		store_evict(s, d);
	return r;
}

static int trim(struct store *s, bool stale, struct hw_err *e)
{
	AUTO(store_doomed_done) struct store_doomed doomed = { 0 };
	int r = trim_in_turn(s, stale, &doomed, e);

	return r < 0 ? r : store_delete(s, &doomed, e);
}

/** store_trim() - give back every layer that belongs to no image and is not held */
int store_trim(struct store *s, struct hw_err *e)
{
	return trim(s, false, e);
}

int store_trim_stale(struct store *s, struct hw_err *e)
{
	return trim(s, true, e);
}

/* ---- holds --------------------------------------------------------------------- */

struct held {
	size_t holds;
};

struct store_hold {
	struct store *store;
	struct hw_strings chains; /* each once */
};

bool store_is_held(const struct store *s, const char *chain_id)
{
	return map_find(s->held, chain_id) != NULL;
}

/** store_hold_new() - a hold on nothing yet */
struct store_hold *store_hold_new(struct store *s)
{
	struct store_hold *h = mem_new(sizeof(*h));

	h->store = s;
	return h;
}

static void hold_one(struct store_hold *h, const char *chain_id)
{
	struct held *held = map_find(h->store->held, chain_id);

	if (strings_has(&h->chains, chain_id))
		return;
	if (!held) {
		held = mem_new(sizeof(*held));
		map_set(h->store->held, chain_id, held);
	}
	held->holds++;
	strings_add(&h->chains, chain_id);
}

/** store_hold_layer() - a layer stays, if it is there or once it is, until the hold is freed */
int store_hold_layer(struct store_hold *h, const char *chain_id, struct hw_err *e)
{
	STORE_LOCKED(h->store);
	int r = store_check_digest(chain_id, e);

	if (r < 0)
		return r;
	hold_one(h, chain_id);
	if (store_is_doubted(h->store, chain_id))
		return 0;
	return store_layer_exists(h->store, chain_id, e);
}

/* Those that nobody else holds. */
static void let_go(struct store_hold *h, struct hw_strings *ret_free)
{
	for (size_t i = 0; i < h->chains.n; i++) {
		const char *chain = h->chains.v[i];
		struct held *held = map_find(h->store->held, chain);

		if (--held->holds > 0)
			continue;
		free(map_take(h->store->held, chain));
		strings_add(ret_free, chain);
	}
}

/* Of those, the ones that were part of an image, and are no more; not the rest of this pull. */
static int list_left(struct store *s, const struct hw_strings *chains, struct hw_strings *ret_left,
		     struct hw_err *e)
{
	int64_t one = 0;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < chains->n; i++) {
		r = db_get_int(s->db,
			       "SELECT 1 FROM layers l WHERE l.chain = ? AND used = 1"
			       " AND NOT EXISTS (SELECT 1 FROM image_layers i"
			       "  WHERE i.chain = l.chain)",
			       DB_VALUES(DB_TEXT(chains->v[i])), &one, e);
		if (r > 0)
			strings_add(ret_left, chains->v[i]);
	}
	return r < 0 ? r : 0;
}

static int free_in_turn(struct store_hold *h, struct store_doomed *d, struct hw_err *e)
{
	STORE_LOCKED(h->store);
	AUTO(db_change_done) struct db_change change = { 0 };
	AUTO(hw_strings_free) struct hw_strings chains = { 0 }, left = { 0 };
	int r;

	let_go(h, &chains);
	r = list_left(h->store, &chains, &left, e);
	if (r == 0)
		r = store_list_left(h->store, true, &left, e);
	if (r < 0 || left.n == 0) /* as a rule: then nothing is written */
		return r;
	r = db_begin(h->store->db, &change, e);
	if (r == 0)
		r = store_give_back(h->store, &left, d, e);
	if (r == 0)
		r = db_commit(&change, e);
	if (r == 0)
		store_evict(h->store, d);
	return r;
}

/**
 * store_hold_free() - what it held is not needed any more
 *
 * Layers whose image was removed meanwhile are given back. Where that fails,
 * they stay until store_trim().
 */
void store_hold_free(struct store_hold *h)
{
	AUTO(store_doomed_done) struct store_doomed doomed = { 0 };
	struct hw_err e;

	if (!h)
		return;
	if (free_in_turn(h, &doomed, &e) < 0 || store_delete(h->store, &doomed, &e) < 0)
		log_debug("give back layers: %s", e.msg);
	hw_strings_free(&h->chains);
	free(h);
}
