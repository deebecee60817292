/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/commit.c - add layers and images in one change
 *
 * How:   a layer is unpacked into a stage, tmp/N, and the files of an image (backup.c) are
 *        written into a stage, too. syncfs() on the directory of the oldest stage writes all
 *        stages to disk: a layer has thousands of small files, and an fsync() for each would
 *        take longer than the rest of the pull. Since Linux 5.8 syncfs() also reports write
 *        errors that occurred after that directory was opened. Then, under the lock:
 *
 *	rename tmp/N, with the row as a file, to layers/HEX
 *	fsync layers/
 *	add the rows to the database, which syncs them
 *	rename tmp/N/root to images/HEX
 *	fsync images/
 *
 *        If there are no new layers, the files of an image are synced one by one: syncfs()
 *        would wait for all that other programs write to this file system.
 *
 * Rules: if a commit fails, layers without a row are moved back to their stages. If the
 *        process is killed, they are removed when the store is opened again.
 */
#include "image/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os/file.h"
#include "base/str.h"
#include "image/store/state.h"

#define FILE_DISK 4096 /* bytes on disk of the file "layer" */

/* Where the directory of a new layer is. IN_STAGE: still in its stage. MOVED: in layers/.
 * EXCHANGED: in layers/, and the layer that it replaced is in the stage. */
enum layer_place { IN_STAGE, MOVED, EXCHANGED };

struct commit_layer {
	const struct store_new_layer *in;
	enum layer_place place;
	struct store_layer row;
};

struct commit_image {
	struct parsed_image parsed;
	struct store_stage *stage; /* its files; NULL: they exist */
};

struct commit {
	struct store *s;
	struct commit_layer *layers;
	size_t n_layers;
	struct commit_image *images;
	size_t n_images;
	struct hw_strings changed;    /* IDs of images that change */
	struct store_removal removal; /* left-over directories that had the names of new ones */
	struct store_usage added;
};

static void commit_done(struct commit *c)
{
	free(c->layers);
	for (size_t i = 0; i < c->n_images; i++) {
		store_parsed_image_done(&c->images[i].parsed);
		store_stage_free(c->images[i].stage);
	}
	free(c->images);
	hw_strings_free(&c->changed);
	store_removal_done(&c->removal);
}

AUTO_VALUE_DEFINE(commit_done, struct commit);

static const char *hex_of(const char *digest)
{
	return digest + strlen("sha256:");
}

/* ---- checks -------------------------------------------------------------------- */

static int check_layer(const struct store_new_layer *layer, struct hw_err *e)
{
	int r;

	r = store_check_digest(layer->chain_id, e);
	if (r == 0)
		r = store_check_digest(layer->unpacked->diff_id, e);
	if (r == 0)
		r = digest_check(layer->blob, e);
	if (r == 0 && !*layer->stage->name)
		r = err_text(e, -EINVAL, "layer %s was already committed", layer->chain_id);
	return r;
}

static int check_arguments(struct commit *c, const struct store_addition *what, struct hw_err *e)
{
	int r;

	c->layers = mem_new((what->n_layers + 1) * sizeof(*c->layers));
	c->images = mem_new((what->n_images + 1) * sizeof(*c->images));
	for (; c->n_layers < what->n_layers; c->n_layers++) {
		c->layers[c->n_layers].in = &what->layers[c->n_layers];
		r = check_layer(&what->layers[c->n_layers], e);
		if (r < 0)
			return r;
	}
	while (c->n_images < what->n_images) {
		struct parsed_image *parsed = &c->images[c->n_images].parsed;

		r = store_parse_image(&what->images[c->n_images++], parsed, e);
		if (r < 0)
			return err_ctx(e, "store an image");
		if (!strings_has(&c->changed, parsed->id))
			strings_add(&c->changed, parsed->id);
	}
	return 0;
}

/* Is the image already stored with this manifest, all these names and all its layers? */
static bool is_stored(struct store *s, const struct parsed_image *p)
{
	AUTO(store_snapshot_put) const struct store_snapshot *snap = store_snapshot_get(s);
	const struct store_image *image = NULL;
	struct hw_err ignored;

	if (store_snapshot_find(snap, p->id, &image, &ignored) <= 0 ||
	    !str_equal(image->manifest, p->manifest))
		return false;
	for (size_t i = 0; i < p->in->n_names; i++)
		if (!strings_has(&image->tags, p->in->names[i]) &&
		    !strings_has(&image->digests, p->in->names[i]))
			return false;
	return true;
}

static bool is_needed(const struct commit *c)
{
	for (size_t i = 0; i < c->n_images; i++)
		if (!is_stored(c->s, &c->images[i].parsed))
			return true;
	return c->n_layers > 0;
}

/* ---- stages -------------------------------------------------------------------- */

/* Return: bytes on disk; -1 if the file does not exist */
static int64_t file_size(const struct store_stage *stage, const char *name)
{
	struct stat st;

	return fstatat(stage->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -1 : st.st_blocks * 512;
}

static void make_row(const struct store_new_layer *layer, struct store_layer *ret)
{
	const struct unpacked *u = layer->unpacked;
	int64_t recipe = file_size(layer->stage, "recipe");
	int64_t blob = file_size(layer->stage, "blob");

	*ret = (struct store_layer){
		.blob_size = layer->blob_size,
		.archive = u->archive,
		.content = u->content,
		.disk = u->disk + (recipe > 0 ? recipe : 0) + (blob > 0 ? blob : 0) + FILE_DISK,
		/* 3: HEX/, root/ and the file "layer" */
		.inodes = u->inodes + 3 + (recipe >= 0) + (blob >= 0),
		.rebuildable = u->rebuildable,
		.opaque = u->opaque,
		.blob_kept = blob >= 0,
	};
	snprintf(ret->chain_id, sizeof(ret->chain_id), "%s", layer->chain_id);
	snprintf(ret->diff_id, sizeof(ret->diff_id), "%s", u->diff_id);
	snprintf(ret->blob, sizeof(ret->blob), "%s", layer->blob);
}

/* Writes the row of each layer and the documents of each image, so that they are synced with the
 * layers. */
static int write_files(struct commit *c, struct hw_err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->n_layers; i++) {
		make_row(c->layers[i].in, &c->layers[i].row);
		r = store_backup_layer(c->layers[i].in->stage, &c->layers[i].row, e);
	}
	for (size_t i = 0; r == 0 && i < c->n_images; i++) {
		struct commit_image *image = &c->images[i];

		if (!store_backup_exists(c->s, image->parsed.id))
			r = store_backup_stage(c->s, image->parsed.in, c->n_layers == 0,
					       &image->stage, e);
	}
	return r < 0 ? err_ctx(e, "write files of a layer or an image") : 0;
}

/* syncfs() reports errors that occurred after its descriptor was opened, so the descriptor of the
 * oldest stage covers all stages. */
static int sync_stages(const struct commit *c, struct hw_err *e)
{
	const struct store_stage *oldest = NULL;
	long long number, least = 0;

	for (size_t i = 0; i < c->n_layers; i++) {
		const struct store_stage *stage = c->layers[i].in->stage;

		if (str_to_int64(stage->name, 0, UINT32_MAX, &number) &&
		    (!oldest || number < least)) {
			least = number;
			oldest = stage;
		}
	}
	if (oldest && syncfs(oldest->dir) < 0)
		return err_set(e, -errno, "sync layers to disk");
	return 0;
}

/* ---- layers -------------------------------------------------------------------- */

static int move_into_place(struct commit *c, struct commit_layer *layer, struct hw_err *e)
{
	const char *hex = hex_of(layer->in->chain_id);
	struct store *s = c->s;
	int r;

	for (int tries = 0; tries < 2; tries++) {
		if (renameat2(s->tmp, layer->in->stage->name, s->layers, hex, RENAME_NOREPLACE) ==
		    0) {
			layer->place = MOVED;
			return 0;
		}
		if (errno != EEXIST)
			break;
		/* the existing directory has no row, so it is left over */
		r = store_move_to_gone(s, s->layers, hex, &c->removal, e);
		if (r < 0)
			return r;
	}
	return err_set(e, -errno, "move layer %s into place", layer->in->chain_id);
}

/* A layer that has its files and is not suspect stays; the new one is deleted with its stage. */
static int place_layer(struct commit *c, struct commit_layer *layer, struct hw_err *e)
{
	const char *chain_id = layer->in->chain_id;
	struct store *s = c->s;
	int r;

	for (const struct commit_layer *other = c->layers; other < layer; other++)
		if (str_equal(other->in->chain_id, chain_id))
			return 0;
	r = store_layer_exists(s, chain_id, e);
	if (r < 0)
		return r;
	if (r == 0)
		return move_into_place(c, layer, e);
	if (!store_is_suspect(s, chain_id) && store_has_directory(s, chain_id))
		return 0;
	/* exchange the two directories, so that the layer always exists; the old one is then
	 * deleted with the stage */
	if (renameat2(s->tmp, layer->in->stage->name, s->layers, hex_of(chain_id),
		      RENAME_EXCHANGE) == 0) {
		layer->place = EXCHANGED;
		return 0;
	}
	if (errno == ENOENT) /* another program has deleted the directory */
		return move_into_place(c, layer, e);
	return err_set(e, -errno, "replace layer %s", chain_id);
}

static int place_layers(struct commit *c, struct hw_err *e)
{
	bool any = false;
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->n_layers; i++) {
		r = place_layer(c, &c->layers[i], e);
		any = any || c->layers[i].place != IN_STAGE;
	}
	if (r == 0 && any && fsync(c->s->layers) < 0)
		r = err_set(e, -errno, "sync %s/layers", c->s->root);
	return r;
}

static void move_back(struct commit *c)
{
	static const unsigned int flags[] = {
		[MOVED] = RENAME_NOREPLACE, [EXCHANGED] = RENAME_EXCHANGE
	};

	for (size_t i = 0; i < c->n_layers; i++) {
		struct commit_layer *layer = &c->layers[i];

		if (layer->place != IN_STAGE &&
		    renameat2(c->s->layers, hex_of(layer->in->chain_id), c->s->tmp,
			      layer->in->stage->name, flags[layer->place]) == 0)
			layer->place = IN_STAGE;
	}
}

/* ---- rows ---------------------------------------------------------------------- */

/* There is an old row only if the layer was suspect, or had lost its files. */
static int delete_old_row(struct commit *c, const char *chain_id, struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { 0 };
	int r;

	r = db_query(c->s->db, "DELETE FROM layers WHERE chain = ? RETURNING disk, inodes",
		     DB_VALUES(DB_TEXT(chain_id)), &q, e);
	while (r >= 0 && (r = db_step(&q, e)) > 0) {
		c->added.bytes -= db_int(&q, 0);
		c->added.inodes -= db_int(&q, 1);
		c->added.layers--;
	}
	return r;
}

static int list_images(struct store *s, const char *chain_id, struct hw_strings *ids,
		       struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { 0 };
	int r;

	r = db_query(s->db, "SELECT image FROM image_layers WHERE chain = ?",
		     DB_VALUES(DB_TEXT(chain_id)), &q, e);
	while (r >= 0 && (r = db_step(&q, e)) > 0)
		if (!strings_has(ids, db_text(&q, 0)))
			strings_add(ids, db_text(&q, 0));
	return r;
}

static int insert_layer(struct commit *c, const struct store_layer *row, struct hw_err *e)
{
	int r;

	r = delete_old_row(c, row->chain_id, e);
	if (r == 0)
		r = store_insert_layer(c->s, row, e);
	if (r < 0)
		return r;
	c->added.bytes += row->disk;
	c->added.inodes += row->inodes;
	c->added.layers++;
	/* images that had lost this layer are complete again */
	r = list_images(c->s, row->chain_id, &c->changed, e);
	if (r < 0)
		return r;
	return db_run(c->s->db,
		      "UPDATE layers SET used = 1 WHERE chain = ?1"
		      " AND EXISTS (SELECT 1 FROM image_layers WHERE chain = ?1)",
		      DB_VALUES(DB_TEXT(row->chain_id)), e);
}

static int insert_rows(struct commit *c, struct hw_err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->n_layers; i++)
		if (c->layers[i].place != IN_STAGE)
			r = insert_layer(c, &c->layers[i].row, e);
	for (size_t i = 0; r == 0 && i < c->n_images; i++) {
		const struct parsed_image *parsed = &c->images[i].parsed;

		r = store_insert_image(c->s, parsed, &c->changed, e);
		if (r < 0)
			return err_ctx(e, "store image %s", parsed->id);
	}
	return r;
}

static int change_rows(struct commit *c, struct hw_err *e)
{
	AUTO(db_transaction_done) struct db_transaction change = { 0 };
	AUTO(store_snapshot_put) const struct store_snapshot *next = NULL;
	int r;

	r = db_begin(c->s->db, &change, e);
	if (r < 0)
		return r;
	r = insert_rows(c, e);
	if (r < 0)
		return r;
	r = store_snapshot_build(c->s, &c->changed, &next, e);
	if (r < 0)
		return r;
	r = db_commit(&change, e);
	if (r < 0)
		return r;
	store_snapshot_publish(c->s, &next);
	return 0;
}

/* ---- files of images ----------------------------------------------------------- */

static int place_files(struct commit *c, struct hw_err *e)
{
	bool any = false;
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->n_images; i++) {
		const struct commit_image *image = &c->images[i];

		if (!image->stage)
			continue;
		r = store_backup_place(c->s, image->parsed.id, image->stage, e);
		any = true;
	}
	if (r == 0 && any && fsync(c->s->images) < 0)
		r = err_set(e, -errno, "sync %s/images", c->s->root);
	return r;
}

/* The files of an image that only loses a name are not synced: if the name is also in newer files, a
 * recovery ignores it here. */
static unsigned sync_flag(const struct commit *c, const char *id)
{
	for (size_t i = 0; i < c->n_images; i++)
		if (str_equal(c->images[i].parsed.id, id))
			return FILE_SYNC;
	return 0;
}

/* The images are stored, so an error is only logged: the next store_sweep() writes the files. */
static void change_files(struct commit *c)
{
	struct hw_err e;

	if (place_files(c, &e) < 0)
		log_warn("files of images: %s", e.msg);
	for (size_t i = 0; c->n_images > 0 && i < c->changed.n; i++) {
		const char *id = c->changed.v[i];

		if (store_backup_update(c->s, id, sync_flag(c, id), &e) < 0)
			log_warn("image %s: %s", id, e.msg);
	}
}

/* ---- commit -------------------------------------------------------------------- */

static int commit_locked(struct commit *c, struct hw_err *e)
{
	STORE_LOCKED(c->s);
	int r;

	if (!is_needed(c))
		return 0;
	r = place_layers(c, e);
	if (r == 0)
		r = change_rows(c, e);
	if (r < 0) {
		move_back(c);
		return r;
	}
	change_files(c);
	store_add_usage(c->s, c->added.bytes, c->added.inodes, (int)c->added.layers);
	for (size_t i = 0; i < c->n_layers; i++) {
		struct commit_layer *layer = &c->layers[i];

		if (layer->place != IN_STAGE)
			map_take(c->s->suspect, layer->in->chain_id);
		if (layer->place == MOVED)
			layer->in->stage->name[0] = '\0'; /* the stage is empty now */
	}
	return 0;
}

int store_add(struct store *s, const struct store_addition *what, char (*ret_ids)[DIGEST_TEXT],
	      struct hw_err *e)
{
	AUTO(commit_done) struct commit c = { .s = s };
	struct hw_err later;
	int r;

	r = check_arguments(&c, what, e);
	if (r < 0)
		return r;
	/* most pulls are of images that exist: return without waiting for the disk */
	if (is_needed(&c)) {
		r = write_files(&c, e);
		if (r == 0)
			r = sync_stages(&c, e);
		if (r == 0)
			r = commit_locked(&c, e);
		if (store_delete_gone(s, &c.removal, &later) < 0)
			log_debug("%s", later.msg);
	}
	if (r < 0)
		return r;
	for (size_t i = 0; i < c.n_images; i++)
		memcpy(ret_ids[i], c.images[i].parsed.id, DIGEST_TEXT);
	return 0;
}
