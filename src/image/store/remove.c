/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/remove.c - images go, and layers that nobody needs any more with them
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

static int delete_rows(struct store *s, const char *id, struct hw_err *e)
{
	static const char *const sql[] = {
		"DELETE FROM names WHERE image = ?",
		"DELETE FROM image_layers WHERE image = ?",
		"DELETE FROM images WHERE id = ?",
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(sql); i++)
		r = db_run(s->db, sql[i], DB_VALUES(DB_TEXT(id)), e);
	return r;
}

static int remove_rows(struct store *s, const char *id, struct store_doomed *d, struct hw_err *e)
{
	AUTO(db_change_done) struct db_change change = { 0 };
	AUTO(store_snapshot_put) const struct store_snapshot *draft = NULL;
	AUTO(hw_strings_free) struct hw_strings chains = { 0 }, ids = { 0 };
	int r = db_begin(s->db, &change, e);

	strings_add(&ids, id);
	if (r == 0)
		r = store_image_chains(s, id, &chains, e);
	if (r == 0)
		r = store_list_left(s, false, &chains, e); /* whoever removes one wants room */
	if (r == 0)
		r = delete_rows(s, id, e);
	if (r == 0)
		r = store_give_back(s, &chains, d, e);
	if (r == 0)
		r = store_draft(s, &ids, &draft, e);
	if (r == 0)
		r = db_commit(&change, e);
	if (r == 0)
		store_publish(s, &draft);
	return r;
}

static int remove_in_turn(struct store *s, const char *text, struct store_doomed *d,
			  struct hw_err *e)
{
	STORE_LOCKED(s);
	const struct store_image *image = NULL;
	int r = store_find(s->snapshot, text, true, &image, e);

	if (r <= 0)
		return r < 0 ? r : 1;
	r = remove_rows(s, image->id, d, e);
	if (r == 0)
		store_evict(s, d);
	return r;
}

/**
 * store_image_remove() - remove an image with all its names
 *
 * Return: 0; 1: there is none; or negative errno
 */
int store_image_remove(struct store *s, const char *text, struct hw_err *e)
{
	AUTO(store_doomed_done) struct store_doomed doomed = { 0 };
	int r = remove_in_turn(s, text, &doomed, e);

	if (r == -ENOSPC && store_unreserve(s)) {
		store_doomed_done(&doomed);
		doomed = (struct store_doomed){ 0 };
		r = remove_in_turn(s, text, &doomed, e);
	}
	if (r == 0)
		r = store_delete(s, &doomed, e);
	if (r == 0)
		store_reserve(s);
	return r < 0 ? err_ctx(e, "remove image \"%.256s\"", text) : r;
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
