/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/layer.c - look up, create and replace layers
 *
 * How:   a layer is unpacked into a stage, tmp/N. To commit it, syncfs() on the
 *        directory of the oldest stage writes all stages to disk: a layer has
 *        thousands of small files, and an fsync() for each would take longer than
 *        the rest of the pull. Since Linux 5.8 syncfs() also reports write errors
 *        that occurred after that directory was opened. Then, under the lock:
 *
 *	rename tmp/N, with the row as a file (backup.c), to layers/HEX
 *	fsync layers/
 *	add the row to the database, which syncs it
 *
 * Rules: if a commit fails, layers without a row are moved back to their stages. If
 *        the process is killed, they are removed when the store is opened again.
 */
#include "image/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os/remove-tree.h"
#include "base/str.h"
#include "image/store/state.h"

#define OPEN_DIRECTORY (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
#define ROOT_MODE      0755
#define FILE_DISK      4096 /* bytes on disk of the file "layer" */

#define LAYER_COLUMNS                                                                              \
	"l.chain, diff, blob, blob_size, archive, content, disk, inodes, rebuildable, opaque, "    \
	"blob_kept"

/* ---- looking up ---------------------------------------------------------------- */

static void layer_from_row(struct db_query *q, struct store_layer *ret)
{
	*ret = (struct store_layer){
		.blob_size = db_int(q, 3),
		.archive = db_int(q, 4),
		.content = db_int(q, 5),
		.disk = db_int(q, 6),
		.inodes = db_int(q, 7),
		.rebuildable = db_int(q, 8),
		.opaque = db_int(q, 9),
		.blob_kept = db_int(q, 10),
	};
	snprintf(ret->chain_id, sizeof(ret->chain_id), "%s", db_text(q, 0));
	snprintf(ret->diff_id, sizeof(ret->diff_id), "%s", db_text(q, 1));
	snprintf(ret->blob, sizeof(ret->blob), "%s", db_text(q, 2));
}

int store_layer_exists(struct store *s, const char *chain_id, struct hw_err *e)
{
	int64_t one = 0;

	return db_get_int(s->db, "SELECT 1 FROM layers WHERE chain = ?",
			  DB_VALUES(DB_TEXT(chain_id)), &one, e);
}

int store_list_layers(struct store *s, struct hw_strings *ret_chains, struct hw_err *e)
{
	STORE_READING(s);
	AUTO(db_query_done) struct db_query q = { 0 };
	int r;

	r = db_query(s->reader, "SELECT chain FROM layers", DB_NO_VALUES, &q, e);
	while (r >= 0 && (r = db_step(&q, e)) > 0)
		strings_add(ret_chains, db_text(&q, 0));
	return r;
}

int store_layer_get(struct store *s, const char *chain_id, struct store_layer *ret_layer,
		    struct hw_err *e)
{
	STORE_READING(s);
	AUTO(db_query_done) struct db_query q = { 0 };
	int r;

	r = db_query(s->reader, "SELECT " LAYER_COLUMNS " FROM layers l WHERE l.chain = ?",
		     DB_VALUES(DB_TEXT(chain_id)), &q, e);
	if (r == 0)
		r = db_step(&q, e);
	if (r > 0)
		layer_from_row(&q, ret_layer);
	return r;
}

int store_image_layers(struct store *s, const char *id, struct store_layer **ret_layers,
		       size_t *ret_n, struct hw_err *e)
{
	STORE_READING(s);
	AUTO(db_query_done) struct db_query q = { 0 };
	autofree struct store_layer *layers = NULL;
	int64_t count = 0;
	size_t n = 0;
	int r;

	r = db_get_int(s->reader,
		       "SELECT (SELECT count(*) FROM image_layers WHERE image = id)"
		       " FROM images WHERE id = ?",
		       DB_VALUES(DB_TEXT(id)), &count, e);
	if (r <= 0)
		return r;
	layers = mem_resize(NULL, (size_t)count + 1, sizeof(*layers));
	r = db_query(s->reader,
		     "SELECT " LAYER_COLUMNS " FROM image_layers i JOIN layers l USING (chain)"
		     " WHERE i.image = ? ORDER BY i.position",
		     DB_VALUES(DB_TEXT(id)), &q, e);
	while (r >= 0 && n < (size_t)count && (r = db_step(&q, e)) > 0)
		layer_from_row(&q, &layers[n++]);
	if (r < 0)
		return r;
	if (n < (size_t)count)
		return 0;
	*ret_layers = take_ptr(layers);
	*ret_n = n;
	return 1;
}

int store_layer_open(struct store *s, const char *chain_id, struct hw_err *e)
{
	int fd, r;

	r = store_check_digest(chain_id, e);
	if (r < 0)
		return r;
	fd = openat(s->layers, chain_id + strlen("sha256:"),
		    O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? err_set(e, -errno, "open layer %s", chain_id) : fd;
}

/* ---- suspect layers ------------------------------------------------------------ */

bool store_is_suspect(const struct store *s, const char *chain_id)
{
	return map_find(s->suspect, chain_id) != NULL;
}

bool store_has_directory(const struct store *s, const char *chain_id)
{
	autofree char *path = NULL;

	if (!digest_is_sha256(chain_id))
		return false;
	path = str_printf("%s/root", chain_id + strlen("sha256:"));
	return faccessat(s->layers, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

int store_layer_mark_suspect(struct store *s, const char *chain_id, struct hw_err *e)
{
	STORE_LOCKED(s);
	int r;

	r = store_layer_exists(s, chain_id, e);
	if (r <= 0)
		return r;
	if (store_is_held(s, chain_id))
		return err_text(e, -EBUSY, "layer %s is in use", chain_id);
	map_set(s->suspect, chain_id, s);
	return 1;
}

void store_layer_clear_suspect(struct store *s, const char *chain_id)
{
	STORE_LOCKED(s);

	map_take(s->suspect, chain_id);
}

/* ---- stages -------------------------------------------------------------------- */

static unsigned int next_number(struct store *s)
{
	STORE_LOCKED(s);

	return store_next_number(s);
}

int store_layer_begin(struct store *s, struct store_stage **ret_stage, struct hw_err *e)
{
	AUTO(store_stage_free) struct store_stage *stage = mem_new(sizeof(*stage));

	stage->store = s;
	stage->dir = -1;
	snprintf(stage->name, sizeof(stage->name), "%u", next_number(s));
	if (mkdirat(s->tmp, stage->name, 0700) == 0)
		stage->dir = openat(s->tmp, stage->name, OPEN_DIRECTORY);
	/* fchmodat() sets the mode regardless of the umask */
	if (stage->dir < 0 || mkdirat(stage->dir, "root", ROOT_MODE) < 0 ||
	    fchmodat(stage->dir, "root", ROOT_MODE, 0) < 0)
		return err_set(e, -errno, "create a directory in %s/tmp", s->root);
	*ret_stage = take_ptr(stage);
	return 0;
}

void store_stage_free(struct store_stage *stage)
{
	struct hw_err e;

	if (!stage)
		return;
	mem_close_fd(&stage->dir);
	/* files that cannot be removed now are removed when the store is opened again */
	if (stage->name[0] && remove_tree(stage->store->tmp, stage->name, &e) < 0)
		log_debug("delete a stage in %s/tmp: %s", stage->store->root, e.msg);
	free(stage);
}

/* ---- commit: directories ------------------------------------------------------- */

/* Where the directory of a new layer is. IN_STAGE: still in its stage. MOVED: in layers/.
 * EXCHANGED: in layers/, and the layer that it replaced is in the stage. */
enum layer_place { IN_STAGE, MOVED, EXCHANGED };

struct commit {
	struct store *s;
	const struct store_new_layer *layers;
	size_t n;
	enum layer_place *places;     /* place of each layer */
	struct store_layer *rows;     /* row of each layer */
	struct hw_strings changed;    /* images that contain one of the layers */
	struct store_removal removal; /* leftover directories that had the names of new layers */
	struct store_usage added;
};

static void commit_done(struct commit *c)
{
	free(c->places);
	free(c->rows);
	hw_strings_free(&c->changed);
	store_removal_done(&c->removal);
}

AUTO_VALUE_DEFINE(commit_done, struct commit);

static const char *directory_name(const struct store_new_layer *layer)
{
	return layer->chain_id + strlen("sha256:");
}

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

/* Writes the row of each layer to its stage, so that it is synced with the layer. */
static int write_rows(struct commit *c, struct hw_err *e)
{
	int r = 0;

	c->rows = mem_new(c->n * sizeof(*c->rows));
	for (size_t i = 0; r == 0 && i < c->n; i++) {
		make_row(&c->layers[i], &c->rows[i]);
		r = store_backup_layer(c->layers[i].stage->dir, &c->rows[i], 0, e);
	}
	return r < 0 ? err_ctx(e, "write the row of a layer") : 0;
}

/* syncfs() reports errors that occurred after its descriptor was opened, so the descriptor of the
 * oldest stage covers all stages. */
static int sync_stages(const struct store_new_layer *layers, size_t n, struct hw_err *e)
{
	const struct store_stage *oldest = layers[0].stage;
	long long number, least = 0;

	for (size_t i = 0; i < n; i++) {
		if (!str_to_int64(layers[i].stage->name, 0, UINT32_MAX, &number))
			return err_text(e, -EINVAL, "layer %s was already committed",
					layers[i].chain_id);
		if (i == 0 || number < least) {
			least = number;
			oldest = layers[i].stage;
		}
	}
	return syncfs(oldest->dir) < 0 ? err_set(e, -errno, "sync layers to disk") : 0;
}

static int move_into_place(struct commit *c, size_t i, struct hw_err *e)
{
	const struct store_new_layer *layer = &c->layers[i];
	struct store *s = c->s;
	int r;

	for (int tries = 0; tries < 2; tries++) {
		if (renameat2(s->tmp, layer->stage->name, s->layers, directory_name(layer),
			      RENAME_NOREPLACE) == 0) {
			c->places[i] = MOVED;
			return 0;
		}
		if (errno != EEXIST)
			break;
		/* the existing directory has no row, so it is left over */
		r = store_move_to_gone(s, s->layers, directory_name(layer), &c->removal, e);
		if (r < 0)
			return r;
	}
	return err_set(e, -errno, "move layer %s into place", layer->chain_id);
}

static void move_back(struct commit *c)
{
	static const unsigned int flags[] = {
		[MOVED] = RENAME_NOREPLACE, [EXCHANGED] = RENAME_EXCHANGE
	};

	for (size_t i = 0; i < c->n; i++)
		if (c->places[i] != IN_STAGE &&
		    renameat2(c->s->layers, directory_name(&c->layers[i]), c->s->tmp,
			      c->layers[i].stage->name, flags[c->places[i]]) == 0)
			c->places[i] = IN_STAGE;
}

/* A layer that has its files and is not suspect stays; the new one is deleted with its stage. */
static int place_layer(struct commit *c, size_t i, struct hw_err *e)
{
	const struct store_new_layer *layer = &c->layers[i];
	int r;

	r = store_layer_exists(c->s, layer->chain_id, e);
	if (r < 0)
		return r;
	if (r == 0)
		return move_into_place(c, i, e);
	if (!store_is_suspect(c->s, layer->chain_id) && store_has_directory(c->s, layer->chain_id))
		return 0;
	/* exchange the two directories, so that the layer always exists; the old one is then
	 * deleted with the stage */
	if (renameat2(c->s->tmp, layer->stage->name, c->s->layers, directory_name(layer),
		      RENAME_EXCHANGE) == 0) {
		c->places[i] = EXCHANGED;
		return 0;
	}
	if (errno == ENOENT) /* another program has deleted the directory */
		return move_into_place(c, i, e);
	return err_set(e, -errno, "replace layer %s", layer->chain_id);
}

static int place_layers(struct commit *c, struct hw_err *e)
{
	bool any = false;
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->n; i++) {
		bool duplicate = false;

		for (size_t k = 0; k < i; k++)
			duplicate = duplicate ||
				    str_equal(c->layers[k].chain_id, c->layers[i].chain_id);
		if (duplicate)
			continue;
		r = place_layer(c, i, e);
		any = any || c->places[i] != IN_STAGE;
	}
	if (r == 0 && any && fsync(c->s->layers) < 0)
		r = err_set(e, -errno, "sync %s/layers", c->s->root);
	return r;
}

/* ---- commit: rows -------------------------------------------------------------- */

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

int store_insert_layer(struct store *s, const struct store_layer *l, struct hw_err *e)
{
	return db_run(s->db,
		      "INSERT INTO layers (chain, diff, blob, blob_size, archive, content, disk,"
		      " inodes, rebuildable, opaque, blob_kept, made)"
		      " VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
		      DB_VALUES(DB_TEXT(l->chain_id), DB_TEXT(l->diff_id), DB_TEXT(l->blob),
				DB_INT(l->blob_size), DB_INT(l->archive), DB_INT(l->content),
				DB_INT(l->disk), DB_INT(l->inodes), DB_INT(l->rebuildable),
				DB_INT(l->opaque), DB_INT(l->blob_kept), DB_INT(time(NULL))),
		      e);
}

static int insert_row(struct commit *c, const struct store_layer *row, struct hw_err *e)
{
	c->added.bytes += row->disk;
	c->added.inodes += row->inodes;
	c->added.layers++;
	return store_insert_layer(c->s, row, e);
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

static int insert_rows(struct commit *c, struct hw_err *e)
{
	AUTO(db_transaction_done) struct db_transaction change = { 0 };
	AUTO(store_snapshot_put) const struct store_snapshot *next = NULL;
	int r;

	r = db_begin(c->s->db, &change, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < c->n; i++) {
		const char *chain_id = c->layers[i].chain_id;

		if (c->places[i] == IN_STAGE)
			continue;
		r = delete_old_row(c, chain_id, e);
		if (r < 0)
			return r;
		r = insert_row(c, &c->rows[i], e);
		if (r < 0)
			return r;
		/* images that had lost this layer are complete again */
		r = list_images(c->s, chain_id, &c->changed, e);
		if (r < 0)
			return r;
		r = db_run(c->s->db,
			   "UPDATE layers SET used = 1 WHERE chain = ?1"
			   " AND EXISTS (SELECT 1 FROM image_layers WHERE chain = ?1)",
			   DB_VALUES(DB_TEXT(chain_id)), e);
		if (r < 0)
			return r;
	}
	r = store_snapshot_build(c->s, &c->changed, &next, e);
	if (r < 0)
		return r;
	r = db_commit(&change, e);
	if (r < 0)
		return r;
	store_snapshot_publish(c->s, &next);
	return 0;
}

static int commit_locked(struct commit *c, struct hw_err *e)
{
	STORE_LOCKED(c->s);
	int r;

	r = place_layers(c, e);
	if (r == 0)
		r = insert_rows(c, e);
	if (r < 0) {
		move_back(c);
		return r;
	}
	store_add_usage(c->s, c->added.bytes, c->added.inodes, (int)c->added.layers);
	for (size_t i = 0; i < c->n; i++) {
		if (c->places[i] != IN_STAGE)
			map_take(c->s->suspect, c->layers[i].chain_id);
		if (c->places[i] == MOVED)
			c->layers[i].stage->name[0] = '\0'; /* the stage is empty now */
	}
	return 0;
}

int store_layers_commit(struct store *s, const struct store_new_layer *layers, size_t n,
			struct hw_err *e)
{
	AUTO(commit_done) struct commit c = { .s = s, .layers = layers, .n = n };
	struct hw_err later;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		r = store_check_digest(layers[i].chain_id, e);
		if (r == 0)
			r = store_check_digest(layers[i].unpacked->diff_id, e);
		if (r == 0)
			r = digest_check(layers[i].blob, e);
	}
	if (r < 0 || n == 0)
		return r;
	c.places = mem_new(n * sizeof(*c.places));
	r = write_rows(&c, e);
	if (r == 0)
		r = sync_stages(layers, n, e);
	if (r == 0)
		r = commit_locked(&c, e);
	if (store_delete_gone(s, &c.removal, &later) < 0)
		log_debug("%s", later.msg);
	return r;
}
