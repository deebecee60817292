/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/image.c - rows of images: read, insert and remove them
 *
 * How:   image ID, layers and user follow from the manifest and the configuration,
 *        so the caller passes only these documents and the names.
 */
#include "image/store/store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
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

int store_parse_image(const struct store_new_image *in, struct parsed_image *ret, struct hw_err *e)
{
	int r;

	ret->in = in;
	r = image_config_parse(in->config, in->config_len, &ret->config, e);
	for (size_t i = 0; r == 0 && i < in->n_names; i++)
		r = store_check_name(in->names[i], e);
	if (r < 0)
		return r;
	digest_of(in->config, in->config_len, ret->id);
	digest_of(in->manifest, in->manifest_len, ret->manifest);
	return 0;
}

void store_parsed_image_done(struct parsed_image *image)
{
	image_config_free(image->config);
}

static int insert_image(struct store *s, const struct parsed_image *image, struct hw_err *e)
{
	const struct store_new_image *in = image->in;
	autofree char *username = image_config_username(image->config);
	int64_t uid = 0;
	struct db_value uid_column = DB_NULL;

	if (image_config_uid(image->config, &uid))
		uid_column = (struct db_value)DB_INT(uid);
	return db_run(s->db,
		      "INSERT OR REPLACE INTO images (id, manifest, uid, username, manifest_bytes,"
		      " config_bytes) VALUES (?,?,?,?,?,?)",
		      DB_VALUES(DB_TEXT(image->id), DB_TEXT(image->manifest), uid_column,
				DB_TEXT(str_or(username, "")),
				DB_BLOB(in->manifest, in->manifest_len),
				DB_BLOB(in->config, in->config_len)),
		      e);
}

/* @lost: layers may be missing */
static int insert_layers(struct store *s, const struct parsed_image *image, bool lost,
			 struct hw_err *e)
{
	const struct hw_strings *diff_ids = &image->config->diff_ids;
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
			   DB_VALUES(DB_TEXT(image->id), DB_INT((int64_t)i), DB_TEXT(chain)), e);
		if (r < 0)
			return r;
		memcpy(below, chain, sizeof(below));
	}
	return 0;
}

static int insert_names(struct store *s, const struct parsed_image *image,
			struct hw_strings *changed, struct hw_err *e)
{
	int r;

	for (size_t i = 0; i < image->in->n_names; i++) {
		AUTO(db_query_done) struct db_query q = { 0 };
		const char *name = image->in->names[i];

		r = db_query(s->db, "SELECT image FROM names WHERE name = ?",
			     DB_VALUES(DB_TEXT(name)), &q, e);
		while (r >= 0 && (r = db_step(&q, e)) > 0)
			if (!strings_has(changed, db_text(&q, 0)))
				strings_add(changed, db_text(&q, 0));
		if (r < 0)
			return r;
		db_query_done(&q);
		r = db_run(s->db, "INSERT OR REPLACE INTO names (name, image) VALUES (?,?)",
			   DB_VALUES(DB_TEXT(name), DB_TEXT(image->id)), e);
		if (r < 0)
			return r;
	}
	return 0;
}

int store_insert_image(struct store *s, const struct parsed_image *image,
		       struct hw_strings *changed, struct hw_err *e)
{
	int r = 0;

	if (s->lost) { /* it keeps the names that it had */
		AUTO(store_backup_done) struct store_backup backup = { 0 };
		struct hw_err unreadable = { 0 };

		r = store_recover_image(s, image->id + strlen("sha256:"), &backup, &unreadable, e);
		if (unreadable.code < 0)
			log_warn("%s", unreadable.msg);
	}
	if (r >= 0)
		r = insert_image(s, image, e);
	if (r == 0)
		r = insert_layers(s, image, false, e);
	return r < 0 ? r : insert_names(s, image, changed, e);
}

/* ---- recovering ---------------------------------------------------------------- */

int store_insert_recovered(struct store *s, const struct store_new_image *in, struct hw_err *e)
{
	AUTO(store_parsed_image_done) struct parsed_image image = { 0 };
	int r;

	r = store_parse_image(in, &image, e);
	if (r == 0)
		r = store_image_exists(s, image.id, e);
	if (r == 0)
		r = insert_image(s, &image, e);
	if (r == 0)
		r = insert_layers(s, &image, true, e);
	for (size_t i = 0; r >= 0 && i < in->n_names; i++)
		r = db_run(s->db,
			   "INSERT INTO names (name, image) VALUES (?,?) ON CONFLICT DO NOTHING",
			   DB_VALUES(DB_TEXT(in->names[i]), DB_TEXT(image.id)), e);
	return r < 0 ? err_ctx(e, "recover image %s", image.id) : 0;
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
	r = store_backup_remove(s, id, removal, e);
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
	const struct store_image *image = NULL;
	int r;

	r = store_find(now, text, true, &image, e);
	if (r <= 0)
		return r;
	r = delete_rows(s, image->id, removal, e);
	if (r < 0) {
		store_backup_undo_remove(s, image->id, removal);
		return r;
	}
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
