/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/hold.c - layers that are in use, by pulls and by containers
 */
#include "image/store/store.h"

#include "base/log.h"
#include "base/str.h"
#include "image/store/state.h"

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
