/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/image.c - images: put, read
 *
 * What is known of an image follows from its manifest and its configuration: its
 * id, its layers, who runs it. So those are all that is given.
 */
#include "image/store/store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "image/config.h"
#include "image/reference.h"
#include "image/store/state.h"

/* ---- reading ------------------------------------------------------------------- */

int store_image_chains(struct store *s, const char *id, struct hw_strings *ret_chains,
		       struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { 0 };
	int r = db_query(s->db, "SELECT chain FROM image_layers WHERE image = ? ORDER BY position",
			 DB_VALUES(DB_TEXT(id)), &q, e);

	while (r >= 0 && (r = db_step(&q, e)) > 0)
		strings_add(ret_chains, db_text(&q, 0));
	return r;
}

static void read_blob(struct db_query *q, int column, struct buf *ret)
{
	AUTO(buf_done) struct buf b = { 0 };
	size_t len = 0;
	const void *data = db_blob(q, column, &len);

	buf_add(&b, data, len);
	*ret = b;
	b = (struct buf){ 0 };
}

/** store_image_read() - the manifest and the configuration of an image, as bytes */
int store_image_read(struct store *s, const char *id, struct buf *ret_manifest,
		     struct buf *ret_config, struct hw_err *e)
{
	STORE_READING(s);
	AUTO(db_query_done) struct db_query q = { 0 };
	int r = db_query(s->reads, "SELECT manifest_bytes, config_bytes FROM images WHERE id = ?",
			 DB_VALUES(DB_TEXT(id)), &q, e);

	if (r == 0)
		r = db_step(&q, e);
	if (r <= 0)
		return r;
	if (ret_manifest)
		read_blob(&q, 0, ret_manifest);
	if (ret_config)
		read_blob(&q, 1, ret_config);
	return 1;
}

/* ---- putting ------------------------------------------------------------------- */

/* An image on its way into the database. */
struct put {
	struct store *s;
	const struct store_new_image *image;
	char id[DIGEST_TEXT];
	char manifest[DIGEST_TEXT];
	struct image_config *config;
	struct hw_strings changed; /* this image, and those that lose a name to it */
};

static void put_done(struct put *p)
{
	image_config_free(p->config);
	hw_strings_free(&p->changed);
}

AUTO_VALUE_DEFINE(put_done, struct put);

/* In the form that store_find() looks for. */
static int check_name(const char *name, struct hw_err *e)
{
	AUTO(reference_done) struct reference ref = { 0 };
	autofree char *full = NULL;
	int r = reference_parse(name, &ref, e);

	if (r < 0)
		return r;
	full = reference_format(&ref);
	if (!str_equal(full, name) || (ref.tag && ref.digest))
		return err_text(e, -EINVAL, "\"%.300s\" is not the complete name of an image",
				name);
	return 0;
}

static int put_image_row(struct put *p, struct hw_err *e)
{
	const struct store_new_image *image = p->image;
	autofree char *username = image_config_username(p->config);
	int64_t uid = 0;
	struct db_value owner = DB_NULL;

	if (image_config_uid(p->config, &uid))
		owner = (struct db_value)DB_INT(uid);
	return db_run(p->s->db,
		      "INSERT OR REPLACE INTO images (id, manifest, uid, username, manifest_bytes,"
		      " config_bytes) VALUES (?,?,?,?,?,?)",
		      DB_VALUES(DB_TEXT(p->id), DB_TEXT(p->manifest), owner,
				DB_TEXT(str_or(username, "")),
				DB_BLOB(image->manifest, image->manifest_len),
				DB_BLOB(image->config, image->config_len)),
		      e);
}

static int put_layer(struct put *p, size_t position, const char *chain, struct hw_err *e)
{
	int r = db_run(p->s->db, "UPDATE layers SET used = 1 WHERE chain = ?",
		       DB_VALUES(DB_TEXT(chain)), e);

	if (r < 0)
		return r;
	if (db_changes(p->s->db) == 0)
		return err_text(e, -ENOENT, "layer %s is not in the store", chain);
	return db_run(p->s->db,
		      "INSERT OR REPLACE INTO image_layers (image, position, chain)"
		      " VALUES (?,?,?)",
		      DB_VALUES(DB_TEXT(p->id), DB_INT((int64_t)position), DB_TEXT(chain)), e);
}

static int put_layers(struct put *p, struct hw_err *e)
{
	const struct hw_strings *diff_ids = &p->config->diff_ids;
	char chain[DIGEST_TEXT] = "", below[DIGEST_TEXT] = "";
	int r = 0;

	for (size_t i = 0; r == 0 && i < diff_ids->n; i++) {
		digest_chain(i > 0 ? below : NULL, diff_ids->v[i], chain);
		r = put_layer(p, i, chain, e);
		memcpy(below, chain, sizeof(below));
	}
	return r;
}

static int note_loser(struct put *p, const char *name, struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { 0 };
	int r = db_query(p->s->db, "SELECT image FROM names WHERE name = ?",
			 DB_VALUES(DB_TEXT(name)), &q, e);

	while (r >= 0 && (r = db_step(&q, e)) > 0)
		if (!strings_has(&p->changed, db_text(&q, 0)))
			strings_add(&p->changed, db_text(&q, 0));
	return r;
}

static int put_names(struct put *p, struct hw_err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->image->n_names; i++) {
		const char *name = p->image->names[i];

		r = note_loser(p, name, e);
		if (r == 0)
			r = db_run(p->s->db,
				   "INSERT OR REPLACE INTO names (name, image) VALUES (?,?)",
				   DB_VALUES(DB_TEXT(name), DB_TEXT(p->id)), e);
	}
	return r;
}

/* With that manifest, all these names, and every layer. */
static bool is_there(const struct put *p)
{
	AUTO(store_snapshot_put) const struct store_snapshot *snap = store_snapshot_get(p->s);
	const struct store_image *image = NULL;
	struct hw_err ignored;

	if (store_snapshot_find(snap, p->id, &image, &ignored) <= 0 ||
	    !str_equal(image->manifest, p->manifest))
		return false;
	for (size_t i = 0; i < p->image->n_names; i++)
		if (!strings_has(&image->tags, p->image->names[i]) &&
		    !strings_has(&image->digests, p->image->names[i]))
			return false;
	return true;
}

static int put_all(struct put *p, struct hw_err *e)
{
	AUTO(db_change_done) struct db_change change = { 0 };
	AUTO(store_snapshot_put) const struct store_snapshot *draft = NULL;
	int r = db_begin(p->s->db, &change, e);

	strings_add(&p->changed, p->id);
	if (r == 0)
		r = put_image_row(p, e);
	if (r == 0)
		r = put_layers(p, e);
	if (r == 0)
		r = put_names(p, e);
	if (r == 0)
		r = store_draft(p->s, &p->changed, &draft, e);
	if (r == 0)
		r = db_commit(&change, e);
	if (r == 0)
		store_publish(p->s, &draft);
	return r;
}

/* What is there is not written again: a disk takes its time for that, and most pulls are of such. */
static int put_in_turn(struct put *p, struct hw_err *e)
{
	STORE_LOCKED(p->s);

	return is_there(p) ? 0 : put_all(p, e);
}

/**
 * store_image_put() - an image is complete: show it, under these names
 *
 * Return: 0; -ENOENT: a layer is not there; -EINVAL: the configuration or a name is
 * not to be understood
 */
int store_image_put(struct store *s, const struct store_new_image *image, char ret_id[DIGEST_TEXT],
		    struct hw_err *e)
{
	AUTO(put_done) struct put p = { .s = s, .image = image };
	int r = image_config_parse(image->config, image->config_len, &p.config, e);

	for (size_t i = 0; r == 0 && i < image->n_names; i++)
		r = check_name(image->names[i], e);
	if (r < 0)
		return err_ctx(e, "store an image");
	digest_of(image->config, image->config_len, p.id);
	digest_of(image->manifest, image->manifest_len, p.manifest);
	r = put_in_turn(&p, e);
	if (r < 0)
		return err_ctx(e, "store image %s", p.id);
	if (ret_id)
		memcpy(ret_id, p.id, DIGEST_TEXT);
	return 0;
}

/* ---- removing ------------------------------------------------------------------ */

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
