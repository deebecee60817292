/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/image.c - add, read and remove images
 *
 * How:   image ID, layers and user follow from the manifest and the configuration,
 *        so the caller passes only these documents and the names.
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

static void read_blob(struct db_query *q, int column, struct buf *ret)
{
	AUTO(buf_done) struct buf b = { 0 };
	size_t len = 0;
	const void *data = db_blob(q, column, &len);

	buf_add(&b, data, len);
	*ret = b;
	b = (struct buf){ 0 };
}

int store_image_read(struct store *s, const char *id, struct buf *ret_manifest,
		     struct buf *ret_config, struct hw_err *e)
{
	STORE_READING(s);
	AUTO(db_query_done) struct db_query q = { 0 };
	int r;

	r = db_query(s->reader, "SELECT manifest_bytes, config_bytes FROM images WHERE id = ?",
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

/* ---- adding -------------------------------------------------------------------- */

/* An image that is being added. */
struct addition {
	const struct store_new_image *image;
	char id[DIGEST_TEXT];
	char manifest[DIGEST_TEXT];
	struct image_config *config;
};

/* Images that are added in one transaction. */
struct additions {
	struct store *s;
	struct addition *v;
	size_t n;
	struct hw_strings changed; /* IDs of these images and of images that lose a name to them */
};

static void additions_done(struct additions *all)
{
	for (size_t i = 0; i < all->n; i++)
		image_config_free(all->v[i].config);
	free(all->v);
	hw_strings_free(&all->changed);
}

AUTO_VALUE_DEFINE(additions_done, struct additions);

static void add_changed(struct additions *all, const char *id)
{
	if (!strings_has(&all->changed, id))
		strings_add(&all->changed, id);
}

/* Names are stored complete, because store_find() looks for complete names. */
static int check_name(const char *name, struct hw_err *e)
{
	AUTO(reference_done) struct reference ref = { 0 };
	autofree char *full = NULL;
	int r;

	r = reference_parse(name, &ref, e);
	if (r < 0)
		return r;
	full = reference_format(&ref);
	if (!str_equal(full, name) || (ref.tag && ref.digest))
		return err_text(e, -EINVAL,
				"incomplete image name \"%.300s\", want NAME:TAG or NAME@DIGEST",
				name);
	return 0;
}

static int insert_image(struct store *s, const struct addition *a, struct hw_err *e)
{
	const struct store_new_image *image = a->image;
	autofree char *username = image_config_username(a->config);
	int64_t uid = 0;
	struct db_value uid_column = DB_NULL;

	if (image_config_uid(a->config, &uid))
		uid_column = (struct db_value)DB_INT(uid);
	return db_run(s->db,
		      "INSERT OR REPLACE INTO images (id, manifest, uid, username, manifest_bytes,"
		      " config_bytes) VALUES (?,?,?,?,?,?)",
		      DB_VALUES(DB_TEXT(a->id), DB_TEXT(a->manifest), uid_column,
				DB_TEXT(str_or(username, "")),
				DB_BLOB(image->manifest, image->manifest_len),
				DB_BLOB(image->config, image->config_len)),
		      e);
}

static int insert_layers(struct store *s, const struct addition *a, struct hw_err *e)
{
	const struct hw_strings *diff_ids = &a->config->diff_ids;
	char chain[DIGEST_TEXT] = "", below[DIGEST_TEXT] = "";
	int r;

	for (size_t i = 0; i < diff_ids->n; i++) {
		digest_chain(i > 0 ? below : NULL, diff_ids->v[i], chain);
		r = db_run(s->db, "UPDATE layers SET used = 1 WHERE chain = ?",
			   DB_VALUES(DB_TEXT(chain)), e);
		if (r < 0)
			return r;
		if (db_changes(s->db) == 0)
			return err_text(e, -ENOENT, "layer %s is not in the store", chain);
		r = db_run(s->db,
			   "INSERT OR REPLACE INTO image_layers (image, position, chain)"
			   " VALUES (?,?,?)",
			   DB_VALUES(DB_TEXT(a->id), DB_INT((int64_t)i), DB_TEXT(chain)), e);
		if (r < 0)
			return r;
		memcpy(below, chain, sizeof(below));
	}
	return 0;
}

static int insert_names(struct additions *all, const struct addition *a, struct hw_err *e)
{
	struct db *db = all->s->db;
	int r;

	for (size_t i = 0; i < a->image->n_names; i++) {
		AUTO(db_query_done) struct db_query q = { 0 };
		const char *name = a->image->names[i];

		/* an image that loses the name changes too */
		r = db_query(db, "SELECT image FROM names WHERE name = ?", DB_VALUES(DB_TEXT(name)),
			     &q, e);
		while (r >= 0 && (r = db_step(&q, e)) > 0)
			add_changed(all, db_text(&q, 0));
		if (r < 0)
			return r;
		db_query_done(&q);
		r = db_run(db, "INSERT OR REPLACE INTO names (name, image) VALUES (?,?)",
			   DB_VALUES(DB_TEXT(name), DB_TEXT(a->id)), e);
		if (r < 0)
			return r;
	}
	return 0;
}

static int insert_rows(struct additions *all, const struct addition *a, struct hw_err *e)
{
	int r;

	add_changed(all, a->id);
	r = insert_image(all->s, a, e);
	if (r < 0)
		return r;
	r = insert_layers(all->s, a, e);
	if (r < 0)
		return r;
	return insert_names(all, a, e);
}

/* Is the image already stored with this manifest, all these names and all its layers? */
static bool is_stored(struct store *s, const struct addition *a)
{
	AUTO(store_snapshot_put) const struct store_snapshot *snap = store_snapshot_get(s);
	const struct store_image *image = NULL;
	struct hw_err ignored;

	if (store_snapshot_find(snap, a->id, &image, &ignored) <= 0 ||
	    !str_equal(image->manifest, a->manifest))
		return false;
	for (size_t i = 0; i < a->image->n_names; i++)
		if (!strings_has(&image->tags, a->image->names[i]) &&
		    !strings_has(&image->digests, a->image->names[i]))
			return false;
	return true;
}

static bool are_stored(const struct additions *all)
{
	for (size_t i = 0; i < all->n; i++)
		if (!is_stored(all->s, &all->v[i]))
			return false;
	return true;
}

static int add_locked(struct additions *all, struct hw_err *e)
{
	struct store *s = all->s;
	STORE_LOCKED(s);
	AUTO(db_transaction_done) struct db_transaction change = { 0 };
	AUTO(store_snapshot_put) const struct store_snapshot *next = NULL;
	int r;

	/* most pulls are of images that exist: return without waiting for the disk */
	if (are_stored(all))
		return 0;
	r = db_begin(s->db, &change, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < all->n; i++) {
		r = insert_rows(all, &all->v[i], e);
		if (r < 0)
			return err_ctx(e, "store image %s", all->v[i].id);
	}
	r = store_snapshot_build(s, &all->changed, &next, e);
	if (r < 0)
		return r;
	r = db_commit(&change, e);
	if (r < 0)
		return r;
	store_snapshot_publish(s, &next);
	return 0;
}

static int parse_addition(const struct store_new_image *image, struct addition *a, struct hw_err *e)
{
	int r;

	a->image = image;
	r = image_config_parse(image->config, image->config_len, &a->config, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < image->n_names; i++) {
		r = check_name(image->names[i], e);
		if (r < 0)
			return r;
	}
	digest_of(image->config, image->config_len, a->id);
	digest_of(image->manifest, image->manifest_len, a->manifest);
	return 0;
}

int store_images_add(struct store *s, const struct store_new_image *images, size_t n,
		     char (*ret_ids)[DIGEST_TEXT], struct hw_err *e)
{
	AUTO(additions_done) struct additions all = { .s = s };
	int r;

	all.v = mem_new((n + 1) * sizeof(*all.v));
	while (all.n < n) {
		r = parse_addition(&images[all.n], &all.v[all.n], e);
		all.n++;
		if (r < 0)
			return err_ctx(e, "store an image");
	}
	r = add_locked(&all, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		memcpy(ret_ids[i], all.v[i].id, DIGEST_TEXT);
	return 0;
}

/* ---- removing ------------------------------------------------------------------ */

static int list_chains(struct store *s, const char *id, struct hw_strings *ret_chains,
		       struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { 0 };
	int r;

	r = db_query(s->db, "SELECT chain FROM image_layers WHERE image = ? ORDER BY position",
		     DB_VALUES(DB_TEXT(id)), &q, e);
	while (r >= 0 && (r = db_step(&q, e)) > 0)
		strings_add(ret_chains, db_text(&q, 0));
	return r;
}

/* Also removes layers of failed pulls, because images are removed to free disk space. Return: 0;
 * 1: not found */
static int remove_locked(struct store *s, const char *text, struct store_removal *removal,
			 struct hw_err *e)
{
	static const char *const sql[] = {
		"DELETE FROM names WHERE image = ?",
		"DELETE FROM image_layers WHERE image = ?",
		"DELETE FROM images WHERE id = ?",
	};
	STORE_LOCKED(s);
	AUTO(db_transaction_done) struct db_transaction change = { 0 };
	AUTO(store_snapshot_put)
	const struct store_snapshot *now = store_snapshot_get(s), *next = NULL;
	AUTO(hw_strings_free) struct hw_strings chains = { 0 }, ids = { 0 };
	const struct store_image *image = NULL;
	int r;

	r = store_find(now, text, true, &image, e);
	if (r <= 0)
		return r < 0 ? r : 1;
	strings_add(&ids, image->id);
	r = db_begin(s->db, &change, e);
	if (r < 0)
		return r;
	r = list_chains(s, image->id, &chains, e);
	if (r < 0)
		return r;
	r = store_list_abandoned(s, false, &chains, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(sql); i++) {
		r = db_run(s->db, sql[i], DB_VALUES(DB_TEXT(image->id)), e);
		if (r < 0)
			return r;
	}
	r = store_delete_layer_rows(s, &chains, removal, e);
	if (r < 0)
		return r;
	r = store_snapshot_build(s, &ids, &next, e);
	if (r < 0)
		return r;
	r = db_commit(&change, e);
	if (r < 0)
		return r;
	store_snapshot_publish(s, &next);
	store_move_layers_to_gone(s, removal);
	return 0;
}

int store_image_remove(struct store *s, const char *text, struct hw_err *e)
{
	AUTO(store_removal_done) struct store_removal removal = { 0 };
	int r;

	r = remove_locked(s, text, &removal, e);
	if (r == -ENOSPC && store_delete_reserve(s)) {
		store_removal_done(&removal);
		removal = (struct store_removal){ 0 };
		r = remove_locked(s, text, &removal, e);
	}
	if (r == 0)
		r = store_delete_gone(s, &removal, e);
	if (r == 0)
		store_create_reserve(s);
	return r < 0 ? err_ctx(e, "remove image \"%.256s\"", text) : r;
}
