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

int store_image_exists(struct store *s, const char *id, struct hw_err *e)
{
	int64_t one = 0;

	return db_get_int(s->db, "SELECT 1 FROM images WHERE id = ?", DB_VALUES(DB_TEXT(id)), &one,
			  e);
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
int store_check_name(const char *name, struct hw_err *e)
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

/* @lost: layers may be missing */
static int insert_layers(struct store *s, const struct addition *a, bool lost, struct hw_err *e)
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
		if (!lost && (db_changes(s->db) == 0 || !store_has_directory(s, chain)))
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

	if (all->s->lost) { /* it keeps the names that it had */
		AUTO(store_backup_done) struct store_backup backup = { 0 };

		r = store_recover_image(all->s, a->id + strlen("sha256:"), &backup, e);
		if (r < 0)
			return r;
	}
	r = insert_image(all->s, a, e);
	if (r < 0)
		return r;
	r = insert_layers(all->s, a, false, e);
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

static int place_files(struct additions *all, struct hw_err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < all->n; i++)
		r = store_backup_place(all->s, all->v[i].image, all->v[i].id, e);
	return r;
}

static bool have_files(const struct additions *all)
{
	for (size_t i = 0; i < all->n; i++)
		if (!store_backup_exists(all->s, all->v[i].id))
			return false;
	return true;
}

/* Also of the images that lose a name. */
static int update_files(struct additions *all, struct hw_err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < all->changed.n; i++)
		r = store_backup_update(all->s, all->changed.v[i], e);
	return r;
}

static int change_rows(struct additions *all, struct hw_err *e)
{
	struct store *s = all->s;
	AUTO(db_transaction_done) struct db_transaction change = { 0 };
	AUTO(store_snapshot_put) const struct store_snapshot *next = NULL;
	int r;

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
	r = update_files(all, e);
	if (r < 0)
		return r;
	r = db_commit(&change, e);
	if (r < 0)
		return r;
	store_snapshot_publish(s, &next);
	return 0;
}

/* Return: 0; 1: files are missing, because another thread has removed an image with this ID */
static int add_locked(struct additions *all, struct hw_err *e)
{
	STORE_LOCKED(all->s);

	if (are_stored(all))
		return 0;
	if (!have_files(all))
		return 1;
	return change_rows(all, e);
}

static void restore_files(struct additions *all)
{
	STORE_LOCKED(all->s);

	store_backup_restore(all->s, &all->changed);
}

static int parse_addition(const struct store_new_image *image, struct addition *a, struct hw_err *e)
{
	int r;

	a->image = image;
	r = image_config_parse(image->config, image->config_len, &a->config, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < image->n_names; i++) {
		r = store_check_name(image->names[i], e);
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
		add_changed(&all, all.v[all.n - 1].id);
	}
	/* most pulls are of images that exist: return without waiting for the disk */
	r = !are_stored(&all);
	while (r > 0) {
		r = place_files(&all, e); /* slow, so without the lock */
		if (r == 0)
			r = add_locked(&all, e);
	}
	if (r < 0) {
		restore_files(&all);
		return r;
	}
	for (size_t i = 0; i < n; i++)
		memcpy(ret_ids[i], all.v[i].id, DIGEST_TEXT);
	return 0;
}

/* ---- recovering ---------------------------------------------------------------- */

int store_insert_recovered(struct store *s, const struct store_new_image *image, struct hw_err *e)
{
	AUTO(additions_done) struct additions one = { .s = s, .n = 1 };
	int r;

	one.v = mem_new(sizeof(*one.v));
	r = parse_addition(image, one.v, e);
	if (r == 0)
		r = store_image_exists(s, one.v->id, e);
	if (r == 0)
		r = insert_image(s, one.v, e);
	if (r == 0)
		r = insert_layers(s, one.v, true, e);
	for (size_t i = 0; r >= 0 && i < image->n_names; i++)
		r = db_run(s->db,
			   "INSERT INTO names (name, image) VALUES (?,?) ON CONFLICT DO NOTHING",
			   DB_VALUES(DB_TEXT(image->names[i]), DB_TEXT(one.v->id)), e);
	return r < 0 ? err_ctx(e, "recover image %s", one.v->id) : 0;
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

/* Also removes layers of failed pulls, because images are removed to free disk space. */
static int delete_rows(struct store *s, const char *id, struct store_removal *removal,
		       struct hw_err *e)
{
	static const char *const sql[] = {
		"DELETE FROM names WHERE image = ?",
		"DELETE FROM image_layers WHERE image = ?",
		"DELETE FROM images WHERE id = ?",
	};
	AUTO(db_transaction_done) struct db_transaction change = { 0 };
	AUTO(store_snapshot_put) const struct store_snapshot *next = NULL;
	AUTO(hw_strings_free) struct hw_strings chains = { 0 };
	char *ids[] = { (char *)id };
	int r;

	r = db_begin(s->db, &change, e);
	if (r < 0)
		return r;
	r = list_chains(s, id, &chains, e);
	if (r < 0)
		return r;
	r = store_list_abandoned(s, false, &chains, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(sql); i++) {
		r = db_run(s->db, sql[i], DB_VALUES(DB_TEXT(id)), e);
		if (r < 0)
			return r;
	}
	r = store_delete_layer_rows(s, &chains, removal, e);
	if (r < 0)
		return r;
	r = store_snapshot_build(s, &(struct hw_strings){ ids, 1 }, &next, e);
	if (r < 0)
		return r;
	r = store_backup_remove(s, id, e);
	if (r < 0)
		return r;
	r = db_commit(&change, e);
	if (r < 0)
		return r;
	store_snapshot_publish(s, &next);
	return 0;
}

/* Return: 1 if removed; 0: not found */
static int remove_locked(struct store *s, const char *text, struct store_removal *removal,
			 struct hw_err *e)
{
	STORE_LOCKED(s);
	AUTO(store_snapshot_put) const struct store_snapshot *now = store_snapshot_get(s);
	AUTO(hw_strings_free) struct hw_strings ids = { 0 };
	const struct store_image *image = NULL;
	int r;

	r = store_find(now, text, true, &image, e);
	if (r <= 0)
		return r;
	r = delete_rows(s, image->id, removal, e);
	if (r < 0) {
		strings_add(&ids, image->id);
		store_backup_restore(s, &ids);
		return r;
	}
	store_backup_delete(s, image->id, removal);
	store_move_layers_to_gone(s, removal);
	return 1;
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
		return 0;
	if (r < 0 || store_delete_gone(s, &removal, e) < 0)
		return err_ctx(e, "remove image \"%.256s\"", text);
	store_create_reserve(s);
	return 1;
}
