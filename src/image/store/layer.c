/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/layer.c - the layers that are there
 */
#include "image/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "image/store/state.h"

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
