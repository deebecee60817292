/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/layer.c - the layers that are there
 *
 * How:   syncfs() on the first stage's folder puts all of them on disk: a layer
 *        is thousands of small files, and one fsync() for each would take longer
 *        than all the rest. Since Linux 5.8 it also reports what could not be
 *        written since that folder was opened. Then, in turn:
 *
 *	rename tmp/N to layers/HEX
 *	fsync layers/
 *	row in the database, which syncs it
 *
 * Rules: where it stops in between, what has no row is moved back, or else
 *        cleared away when the store is opened next.
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

#define FOLDER	  (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
#define ROOT_MODE 0755

#define LAYER_COLUMNS                                                                              \
	"l.chain, diff, blob, blob_size, archive, content, disk, inodes, rebuildable, opaque, "    \
	"blob_kept"

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

bool store_is_doubted(const struct store *s, const char *chain_id)
{
	return map_find(s->doubted, chain_id) != NULL;
}

int store_layer_images(struct store *s, const char *chain_id, struct hw_strings *ids,
		       struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { 0 };
	int r = db_query(s->db, "SELECT image FROM image_layers WHERE chain = ?",
			 DB_VALUES(DB_TEXT(chain_id)), &q, e);

	while (r >= 0 && (r = db_step(&q, e)) > 0)
		if (!strings_has(ids, db_text(&q, 0)))
			strings_add(ids, db_text(&q, 0));
	return r;
}

/** store_layer_get() - what is known of a layer */
int store_layer_get(struct store *s, const char *chain_id, struct store_layer *ret_layer,
		    struct hw_err *e)
{
	STORE_READING(s);
	AUTO(db_query_done) struct db_query q = { 0 };
	int r = db_query(s->reads, "SELECT " LAYER_COLUMNS " FROM layers l WHERE l.chain = ?",
			 DB_VALUES(DB_TEXT(chain_id)), &q, e);

	if (r == 0)
		r = db_step(&q, e);
	if (r > 0)
		layer_from_row(&q, ret_layer);
	return r;
}

static int image_layer_count(struct store *s, const char *id, int64_t *ret_n, struct hw_err *e)
{
	return db_get_int(s->reads,
			  "SELECT (SELECT count(*) FROM image_layers WHERE image = id)"
			  " FROM images WHERE id = ?",
			  DB_VALUES(DB_TEXT(id)), ret_n, e);
}

/** store_image_layers() - the layers of an image, the lowest first */
int store_image_layers(struct store *s, const char *id, struct store_layer **ret_layers,
		       size_t *ret_n, struct hw_err *e)
{
	STORE_READING(s);
	AUTO(db_query_done) struct db_query q = { 0 };
	autofree struct store_layer *layers = NULL;
	int64_t count = 0;
	size_t n = 0;
	int r = image_layer_count(s, id, &count, e);

	if (r <= 0)
		return r;
	layers = mem_resize(NULL, (size_t)count + 1, sizeof(*layers));
	r = db_query(s->reads,
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

/** store_layer_open() - the folder of a layer */
int store_layer_open(struct store *s, const char *chain_id, struct hw_err *e)
{
	int fd, r = store_check_digest(chain_id, e);

	if (r < 0)
		return r;
	fd = openat(s->layers, chain_id + strlen("sha256:"),
		    O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? err_set(e, -errno, "open layer %s", chain_id) : fd;
}

/* ---- damaged layers ------------------------------------------------------------ */

/**
 * store_layer_doubt() - a layer is not what it should be: let another one take its place
 *
 * Return: 0; 1: there is none; -EBUSY: it is held
 */
int store_layer_doubt(struct store *s, const char *chain_id, struct hw_err *e)
{
	STORE_LOCKED(s);
	int r = store_layer_exists(s, chain_id, e);

	if (r <= 0)
		return r < 0 ? r : 1;
	if (store_is_held(s, chain_id))
		return err_text(e, -EBUSY, "layer %s is in use", chain_id);
	map_set(s->doubted, chain_id, s);
	return 0;
}

/** store_layer_trust() - it stays, as it is; if it is doubted no more, nothing changes */
void store_layer_trust(struct store *s, const char *chain_id)
{
	STORE_LOCKED(s);

	map_take(s->doubted, chain_id);
}

/* ---- a stage ------------------------------------------------------------------- */

static unsigned int next_number(struct store *s)
{
	STORE_LOCKED(s);

	return store_number(s);
}

static int stage_make(struct store_stage *stage)
{
	int tmp = stage->store->tmp;

	if (mkdirat(tmp, stage->name, 0700) < 0)
		return -errno;
	stage->dir = openat(tmp, stage->name, FOLDER);
	if (stage->dir < 0 || mkdirat(stage->dir, "root", ROOT_MODE) < 0)
		return -errno;
	if (fchmodat(stage->dir, "root", ROOT_MODE, 0) < 0) /* whatever the umask */
		return -errno;
	return 0;
}

/**
 * store_layer_begin() - a place to make a layer in
 *
 * Return: 0, or negative errno
 */
int store_layer_begin(struct store *s, struct store_stage **ret_stage, struct hw_err *e)
{
	AUTO(store_stage_free) struct store_stage *stage = mem_new(sizeof(*stage));
	int r;

	stage->store = s;
	stage->dir = -1;
	snprintf(stage->name, sizeof(stage->name), "%u", next_number(s));
	r = stage_make(stage);
	if (r < 0)
		return err_set(e, r, "make a folder in %s/tmp", s->root);
	*ret_stage = take_ptr(stage);
	return 0;
}

/** store_stage_free() - it has its place, or is of no use; NULL is fine */
void store_stage_free(struct store_stage *stage)
{
	struct hw_err e;

	if (!stage)
		return;
	mem_close_fd(&stage->dir);
	/* what stays is cleared away when the store is opened */
	if (stage->name[0] && remove_tree(stage->store->tmp, stage->name, &e) < 0)
		log_debug("%s/tmp: %s", stage->store->root, e.msg);
	free(stage);
}

/* ---- into place ---------------------------------------------------------------- */

/* What has become of a layer: it stays in its stage, has its place, or has changed places with the
 * one that was doubted. */
enum place { STAGED, MOVED, SWAPPED };

/* Where one commit is. */
struct commit {
	struct store *s;
	const struct store_new_layer *layers;
	size_t n;
	enum place *places;	    /* of each layer */
	struct hw_strings changed;  /* images that had lost one of the layers */
	struct store_doomed doomed; /* what lay in the way */
	struct store_usage added;
};

static void commit_done(struct commit *c)
{
	free(c->places);
	hw_strings_free(&c->changed);
	store_doomed_done(&c->doomed);
}

AUTO_VALUE_DEFINE(commit_done, struct commit);

static const char *hex_of(const struct store_new_layer *layer)
{
	return layer->chain_id + strlen("sha256:");
}

static int check_layer(const struct store_new_layer *layer, struct hw_err *e)
{
	int r = store_check_digest(layer->chain_id, e);

	if (r == 0)
		r = store_check_digest(layer->unpacked->diff_id, e);
	return r < 0 ? r : digest_check(layer->blob, e);
}

/* The stage that was opened first reports the errors of all. */
static int sync_stages(const struct store_new_layer *layers, size_t n, struct hw_err *e)
{
	const struct store_stage *first = layers[0].stage;
	long long number, least = 0;

	for (size_t i = 0; i < n; i++) {
		if (!str_to_int64(layers[i].stage->name, 0, UINT32_MAX, &number))
			return err_text(e, -EINVAL, "layer %s was committed already",
					layers[i].chain_id);
		if (i == 0 || number < least) {
			least = number;
			first = layers[i].stage;
		}
	}
	return syncfs(first->dir) < 0 ? err_set(e, -errno, "write layers to disk") : 0;
}

static int move_in(struct commit *c, size_t i, struct hw_err *e)
{
	const struct store_new_layer *layer = &c->layers[i];
	struct store *s = c->s;
	int r;

	for (int tries = 0; tries < 2; tries++) {
		if (renameat2(s->tmp, layer->stage->name, s->layers, hex_of(layer),
			      RENAME_NOREPLACE) == 0) {
			c->places[i] = MOVED;
			return 0;
		}
		if (errno != EEXIST)
			break;
		/* the folder of a layer that is none, since there was no row */
		r = store_move_out(s, s->layers, hex_of(layer), &c->doomed, e);
		if (r < 0)
			return r;
	}
	return err_set(e, -errno, "move layer %s into place", layer->chain_id);
}

/* It is in one of the two places at any time; what was there goes with the stage. */
static int swap_in(struct commit *c, size_t i, struct hw_err *e)
{
	const struct store_new_layer *layer = &c->layers[i];

	if (renameat2(c->s->tmp, layer->stage->name, c->s->layers, hex_of(layer),
		      RENAME_EXCHANGE) == 0) {
		c->places[i] = SWAPPED;
		return 0;
	}
	if (errno == ENOENT) /* somebody has deleted it */
		return move_in(c, i, e);
	return err_set(e, -errno, "replace layer %s", layer->chain_id);
}

static void move_back(struct commit *c)
{
	static const unsigned int flags[] = {
		[MOVED] = RENAME_NOREPLACE, [SWAPPED] = RENAME_EXCHANGE
	};

	for (size_t i = 0; i < c->n; i++)
		if (c->places[i] != STAGED &&
		    renameat2(c->s->layers, hex_of(&c->layers[i]), c->s->tmp,
			      c->layers[i].stage->name, flags[c->places[i]]) == 0)
			c->places[i] = STAGED;
}

/* Unless it is there, and is not doubted. */
static int place_layer(struct commit *c, size_t i, struct hw_err *e)
{
	int r = store_layer_exists(c->s, c->layers[i].chain_id, e);

	if (r == 0)
		return move_in(c, i, e);
	if (r > 0 && store_is_doubted(c->s, c->layers[i].chain_id))
		return swap_in(c, i, e);
	return r < 0 ? r : 0;
}

/* Of two in one commit the first. */
static int move_all_in(struct commit *c, struct hw_err *e)
{
	bool any = false;
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->n; i++) {
		bool twice = false;

		for (size_t k = 0; k < i; k++)
			twice = twice || str_equal(c->layers[k].chain_id, c->layers[i].chain_id);
		if (twice)
			continue;
		r = place_layer(c, i, e);
		any = any || c->places[i] != STAGED;
	}
	if (r == 0 && any && fsync(c->s->layers) < 0)
		r = err_set(e, -errno, "write %s/layers to disk", c->s->root);
	return r;
}

/* ---- into the database --------------------------------------------------------- */

static int64_t size_beside(const struct store_stage *stage, const char *name)
{
	struct stat st;

	return fstatat(stage->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -1 : st.st_blocks * 512;
}

/* Of a layer that was doubted; as a rule there is none. */
static int delete_row(struct commit *c, const char *chain_id, struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { 0 };
	int r = db_query(c->s->db, "DELETE FROM layers WHERE chain = ? RETURNING disk, inodes",
			 DB_VALUES(DB_TEXT(chain_id)), &q, e);

	while (r >= 0 && (r = db_step(&q, e)) > 0) {
		c->added.bytes -= db_int(&q, 0);
		c->added.inodes -= db_int(&q, 1);
		c->added.layers--;
	}
	return r;
}

static int insert_row(struct commit *c, const struct store_new_layer *layer, struct hw_err *e)
{
	const struct unpacked *u = layer->unpacked;
	int64_t recipe = size_beside(layer->stage, "recipe");
	int64_t blob = size_beside(layer->stage, "blob");
	int64_t disk = u->disk + (recipe > 0 ? recipe : 0) + (blob > 0 ? blob : 0);
	int64_t inodes = u->inodes + 2 + (recipe >= 0) + (blob >= 0); /* HEX/ and root/, too */

	c->added.bytes += disk;
	c->added.inodes += inodes;
	c->added.layers++;
	return db_run(c->s->db,
		      "INSERT INTO layers (chain, diff, blob, blob_size, archive, content, disk,"
		      " inodes, rebuildable, opaque, blob_kept, made)"
		      " VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
		      DB_VALUES(DB_TEXT(layer->chain_id), DB_TEXT(u->diff_id), DB_TEXT(layer->blob),
				DB_INT(layer->blob_size), DB_INT(u->archive), DB_INT(u->content),
				DB_INT(disk), DB_INT(inodes), DB_INT(u->rebuildable),
				DB_INT(u->opaque), DB_INT(blob >= 0), DB_INT(time(NULL))),
		      e);
}

/* Images that had lost this layer have it again. */
static int note_images(struct commit *c, const char *chain_id, struct hw_err *e)
{
	int r = store_layer_images(c->s, chain_id, &c->changed, e);

	if (r < 0)
		return r;
	return db_run(c->s->db,
		      "UPDATE layers SET used = 1 WHERE chain = ?1"
		      " AND EXISTS (SELECT 1 FROM image_layers WHERE chain = ?1)",
		      DB_VALUES(DB_TEXT(chain_id)), e);
}

static int insert_rows(struct commit *c, struct hw_err *e)
{
	AUTO(db_change_done) struct db_change change = { 0 };
	AUTO(store_snapshot_put) const struct store_snapshot *draft = NULL;
	int r = db_begin(c->s->db, &change, e);

	for (size_t i = 0; r == 0 && i < c->n; i++) {
		if (c->places[i] == STAGED)
			continue;
		r = delete_row(c, c->layers[i].chain_id, e);
		if (r == 0)
			r = insert_row(c, &c->layers[i], e);
		if (r == 0)
			r = note_images(c, c->layers[i].chain_id, e);
	}
	if (r == 0)
		r = store_draft(c->s, &c->changed, &draft, e);
	if (r == 0)
		r = db_commit(&change, e);
	if (r == 0)
		store_publish(c->s, &draft);
	return r;
}

static int commit_in_turn(struct commit *c, struct hw_err *e)
{
	STORE_LOCKED(c->s);
	int r = move_all_in(c, e);

	if (r == 0)
		r = insert_rows(c, e);
	if (r < 0) {
		move_back(c);
		return r;
	}
	store_add_usage(c->s, c->added.bytes, c->added.inodes, (int)c->added.layers);
	for (size_t i = 0; i < c->n; i++) {
		if (c->places[i] != STAGED)
			map_take(c->s->doubted, c->layers[i].chain_id);
		if (c->places[i] == MOVED)
			c->layers[i].stage->name[0] = '\0';
	}
	return 0;
}

/**
 * store_layers_commit() - layers are complete: put them on disk and in their places
 *
 * Return: 0, or negative errno: then those that were not there still are not
 */
int store_layers_commit(struct store *s, const struct store_new_layer *layers, size_t n,
			struct hw_err *e)
{
	AUTO(commit_done) struct commit c = { .s = s, .layers = layers, .n = n };
	struct hw_err later;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = check_layer(&layers[i], e);
	if (r < 0 || n == 0)
		return r;
	c.places = mem_new(n * sizeof(*c.places));
	r = sync_stages(layers, n, e);
	if (r == 0)
		r = commit_in_turn(&c, e);
	if (store_delete(s, &c.doomed, &later) < 0)
		log_debug("%s", later.msg);
	return r;
}
