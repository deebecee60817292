/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/layer.c - look up layers, and create stages for new ones
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

#define LAYER_COLUMNS                                                                              \
	"l.chain, diff, blob, blob_size, archive, content, disk, inodes, rebuildable, opaque, "    \
	"blob_kept"

/* ---- rows ---------------------------------------------------------------------- */

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
