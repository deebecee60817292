/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/backup.c - files from which the rows of the database can be rebuilt
 *
 * What:  layers/HEX/layer is the row of a layer. It is written into the stage, so that
 *        it is synced and moved into place with the layer.
 *        images/HEX/ has the manifest, the configuration and the names of an image.
 * How:   the files of a new image are written without the lock. Under the lock, before the
 *        commit, the names of images that gain or lose a name are replaced:
 *
 *	add      rename tmp/N/root to images/HEX, syncfs, commit
 *	remove   rename images/HEX to images/HEX.removed, fsync images/, commit, delete it
 *
 *        One sync covers the files and the rename: after a power cut in between, images/
 *        may contain incomplete files, but they have no row.
 *
 * Rules: the database decides. An image has files before it has a row, and until its row
 *        is deleted. Files without a row, and HEX.removed, exist only during a change, or
 *        if the process was killed: store_backup_check() cleans up. store_backup_all()
 *        writes what is missing, for images that an older version has stored.
 */
#include "image/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os/file.h"
#include "base/os/remove-tree.h"
#include "base/str.h"
#include "image/config.h"
#include "image/manifest.h"
#include "image/store/state.h"

#define PRIVATE_FILE 0600
#define HEX_LEN	     64
#define REMOVED	     ".removed"
#define FILE_BYTES   (16 << 20)
#define LAYER_BYTES  (64 << 10)

/* ---- layers -------------------------------------------------------------------- */

struct layer_file {
	char *diff_id, *blob;
	int64_t blob_size, archive, content, disk, inodes;
	bool rebuildable, opaque, blob_kept;
};

#define COUNT(member)                                                                              \
	{                                                                                          \
#member, HW_INT64, HW_AT(struct layer_file, member), .flags = HW_ALWAYS, .min = 0, \
								     .max = INT64_MAX              \
	}
#define FLAG(member)                                                                               \
	{                                                                                          \
#member, HW_BOOL, HW_AT(struct layer_file, member), .flags = HW_ALWAYS             \
	}

static const struct hw_field layer_fields[] = {
	{ "diff_id", HW_STRING, HW_AT(struct layer_file, diff_id), .flags = HW_REQUIRED },
	{ "blob", HW_STRING, HW_AT(struct layer_file, blob), .flags = HW_REQUIRED },
	COUNT(blob_size),
	COUNT(archive),
	COUNT(content),
	COUNT(disk),
	COUNT(inodes),
	FLAG(rebuildable),
	FLAG(opaque),
	FLAG(blob_kept),
	{ 0 },
};

static void layer_file_done(struct layer_file *f)
{
	hw_field_clear(layer_fields, f);
}

AUTO_VALUE_DEFINE(layer_file_done, struct layer_file);

int store_backup_layer(int dir, const struct store_layer *l, unsigned flags, struct hw_err *e)
{
	const struct layer_file f = {
		(char *)l->diff_id, (char *)l->blob, l->blob_size, l->archive,
		l->content,	    l->disk,	     l->inodes,	   l->rebuildable,
		l->opaque,	    l->blob_kept,
	};
	autofree char *json = hw_field_encode(layer_fields, &f, HW_JSON_PRETTY);

	return file_replace(dir, STORE_LAYER_FILE, json, strlen(json), PRIVATE_FILE, flags, e);
}

int store_backup_read_layer(struct store *s, const char *chain_id, struct store_layer *ret_layer,
			    struct hw_err *e)
{
	autofree char *path = str_printf("%s/" STORE_LAYER_FILE, chain_id + strlen("sha256:"));
	AUTO(layer_file_done) struct layer_file f = { 0 };
	AUTO(buf_done) struct buf json = { 0 };
	struct hw_err ignored;
	int r;

	r = file_read(s->layers, path, LAYER_BYTES, &json, e);
	if (r == -ENOENT || r == -ENOTDIR || r == -EFBIG)
		return 0;
	if (r < 0)
		return err_ctx(e, "%s/layers", s->root);
	if (hw_field_decode(layer_fields, str_or(json.data, ""), json.len, &f, &ignored) < 0 ||
	    !digest_is_sha256(f.diff_id) || digest_check(f.blob, &ignored) < 0)
		return 0;
	*ret_layer = (struct store_layer){
		.blob_size = f.blob_size,
		.archive = f.archive,
		.content = f.content,
		.disk = f.disk,
		.inodes = f.inodes,
		.rebuildable = f.rebuildable,
		.opaque = f.opaque,
		.blob_kept = f.blob_kept,
	};
	snprintf(ret_layer->chain_id, sizeof(ret_layer->chain_id), "%s", chain_id);
	snprintf(ret_layer->diff_id, sizeof(ret_layer->diff_id), "%s", f.diff_id);
	snprintf(ret_layer->blob, sizeof(ret_layer->blob), "%s", f.blob);
	return 1;
}

/* ---- files of an image ---------------------------------------------------------- */

void store_backup_done(struct store_backup *b)
{
	buf_done(&b->manifest);
	buf_done(&b->config);
	hw_strings_free(&b->names);
}

/* Return: 1; 0: missing or too large */
static int read_file(struct store *s, const char *image, const char *name, size_t max,
		     struct buf *ret, struct hw_err *e)
{
	autofree char *path = str_printf("%s/%s", image, name);
	int r;

	r = file_read(s->images, path, max, ret, e);
	if (r == -ENOENT || r == -ENOTDIR || r == -EFBIG)
		return 0;
	return r < 0 ? err_ctx(e, "%s/images", s->root) : 1;
}

/* The files must belong together: the manifest lists the configuration, whose digest is the ID. */
static bool are_valid(const struct store_backup *b, const char *id)
{
	AUTO(manifest_free) struct manifest *manifest = NULL;
	AUTO(image_config_free) struct image_config *config = NULL;
	struct hw_err ignored;
	char digest[DIGEST_TEXT];

	digest_of(str_or(b->config.data, ""), b->config.len, digest);
	return str_equal(digest, id) &&
	       image_config_parse(b->config.data, b->config.len, &config, &ignored) == 0 &&
	       manifest_parse(str_or(b->manifest.data, ""), b->manifest.len, NULL, &manifest,
			      &ignored) == 0 &&
	       manifest->kind == MANIFEST_IMAGE && str_equal(manifest->config.digest, id);
}

int store_backup_read(struct store *s, const char *hex, struct store_backup *ret, struct hw_err *e)
{
	AUTO(store_backup_done) struct store_backup b = { 0 };
	AUTO(buf_done) struct buf names = { 0 };
	autofree char *id = str_printf("sha256:%.64s", hex);
	int r;

	r = read_file(s, hex, "names", FILE_BYTES, &names, e);
	if (r < 0)
		return r;
	for (char *line = names.data, *next; line && *line; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		if (store_check_name(line, &(struct hw_err){ 0 }) == 0)
			strings_add(&b.names, line);
	}
	r = read_file(s, hex, "manifest", FILE_BYTES, &b.manifest, e);
	if (r > 0)
		r = read_file(s, hex, "config", FILE_BYTES, &b.config, e);
	if (r > 0)
		r = are_valid(&b, id);
	if (r < 0)
		return r;
	*ret = b;
	b = (struct store_backup){ 0 };
	return r;
}

static char *join_names(const char *const *names, size_t n)
{
	AUTO(buf_done) struct buf b = { 0 };

	for (size_t i = 0; i < n; i++)
		buf_printf(&b, "%s\n", names[i]);
	return buf_take(&b);
}

bool store_backup_exists(const struct store *s, const char *id)
{
	return faccessat(s->images, id + strlen("sha256:"), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int store_backup_place(struct store *s, const struct store_new_image *image, const char *id,
		       struct hw_err *e)
{
	AUTO(store_stage_free) struct store_stage *stage = NULL;
	autofree char *names = join_names(image->names, image->n_names);
	const struct {
		const char *path, *data;
		size_t len;
	} files[] = {
		{ "root/manifest", image->manifest, image->manifest_len },
		{ "root/config", image->config, image->config_len },
		{ "root/names", names, strlen(names) },
	};
	int r;

	if (store_backup_exists(s, id))
		return 0;
	r = store_layer_begin(s, &stage, e);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files); i++)
		r = file_replace(stage->dir, files[i].path, files[i].data, files[i].len,
				 PRIVATE_FILE, 0, e);
	if (r < 0)
		return r;
	if (renameat2(stage->dir, "root", s->images, id + strlen("sha256:"), RENAME_NOREPLACE) < 0)
		return errno == EEXIST ? 0 : err_set(e, -errno, "move the files of image %s", id);
	return syncfs(stage->dir) < 0 ? err_set(e, -errno, "sync the files of image %s", id) : 0;
}

/* ---- changes -------------------------------------------------------------------- */

/* Replaces a file of an image, unless its content is the same. */
static int update_file(struct store *s, const char *hex, const char *name, const char *data,
		       size_t len, struct hw_err *e)
{
	autofree char *path = str_printf("%s/%s", hex, name);
	AUTO(buf_done) struct buf old = { 0 };
	int r;

	r = read_file(s, hex, name, FILE_BYTES, &old, e);
	if (r < 0)
		return r;
	if (r > 0 && old.len == len && memcmp(str_or(old.data, ""), data, len) == 0)
		return 0;
	r = file_replace(s->images, path, data, len, PRIVATE_FILE, FILE_SYNC, e);
	return r < 0 ? err_ctx(e, "%s/images", s->root) : 0;
}

static int list_names(struct store *s, const char *id, struct hw_strings *ret_names,
		      struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { 0 };
	int r;

	r = db_query(s->db, "SELECT name FROM names WHERE image = ? ORDER BY name",
		     DB_VALUES(DB_TEXT(id)), &q, e);
	while (r >= 0 && (r = db_step(&q, e)) > 0)
		strings_add(ret_names, db_text(&q, 0));
	return r;
}

int store_backup_update(struct store *s, const char *id, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings names = { 0 };
	AUTO(db_query_done) struct db_query q = { 0 };
	const char *hex = id + strlen("sha256:");
	autofree char *text = NULL;
	const void *manifest;
	size_t len = 0;
	int r;

	if (!store_backup_exists(s, id))
		return 0; /* store_backup_all() will write them */
	r = db_query(s->db, "SELECT manifest_bytes FROM images WHERE id = ?",
		     DB_VALUES(DB_TEXT(id)), &q, e);
	if (r == 0)
		r = db_step(&q, e);
	if (r <= 0)
		return r;
	manifest = db_blob(&q, 0, &len);
	r = update_file(s, hex, "manifest", manifest, len, e);
	if (r == 0)
		r = list_names(s, id, &names, e);
	if (r < 0)
		return r;
	text = join_names((const char *const *)names.v, names.n);
	return update_file(s, hex, "names", text, strlen(text), e);
}

int store_backup_remove(struct store *s, const char *id, struct hw_err *e)
{
	const char *hex = id + strlen("sha256:");
	autofree char *removed = str_printf("%s" REMOVED, hex);

	if (renameat(s->images, hex, s->images, removed) < 0)
		return errno == ENOENT ? 0
				       : err_set(e, -errno, "rename %s/images/%s", s->root, hex);
	return fsync(s->images) < 0 ? err_set(e, -errno, "sync %s/images", s->root) : 0;
}

void store_backup_delete(struct store *s, const char *id, struct store_removal *removal)
{
	autofree char *removed = str_printf("%s" REMOVED, id + strlen("sha256:"));
	struct hw_err e;

	/* files that cannot be moved now are moved at the next start */
	if (store_move_to_gone(s, s->images, removed, removal, &e) < 0 && e.code != -ENOENT)
		log_debug("%s", e.msg);
}

void store_backup_restore(struct store *s, const struct hw_strings *ids)
{
	struct hw_err e;
	int r;

	for (size_t i = 0; i < ids->n; i++) {
		const char *hex = ids->v[i] + strlen("sha256:");
		autofree char *removed = str_printf("%s" REMOVED, hex);

		r = store_image_exists(s, ids->v[i], &e);
		if (r > 0) {
			renameat2(s->images, removed, s->images, hex, RENAME_NOREPLACE);
			r = store_backup_update(s, ids->v[i], &e);
		} else if (r == 0 && !s->lost && store_backup_exists(s, ids->v[i])) {
			r = remove_tree(s->images, hex, &e);
		}
		if (r < 0) /* the next start or sweep does it */
			log_debug("%s", e.msg);
	}
}

/* ---- when the store is opened --------------------------------------------------- */

/* Entries of images/, sorted by the action that they need. */
struct entries {
	struct store *s;
	struct hw_strings restored; /* HEX.removed with a row */
	struct hw_strings deleted;  /* without a row */
	char *lost;		    /* a layer that an image without a row needs */
};

static void entries_done(struct entries *all)
{
	hw_strings_free(&all->restored);
	hw_strings_free(&all->deleted);
	free(all->lost);
}

AUTO_VALUE_DEFINE(entries_done, struct entries);

/* The layers of an image that was being added have rows. If a layer has files but no row, and an
 * image needs it, then not the image is incomplete, but the database. */
static int find_lost_layer(struct entries *all, const char *hex, struct hw_err *e)
{
	AUTO(store_backup_done) struct store_backup b = { 0 };
	AUTO(image_config_free) struct image_config *config = NULL;
	char chain[DIGEST_TEXT] = "", below[DIGEST_TEXT] = "";
	int r;

	r = store_backup_read(all->s, hex, &b, e);
	if (r <= 0)
		return r;
	r = image_config_parse(b.config.data, b.config.len, &config, e);
	for (size_t i = 0; r >= 0 && !all->lost && i < config->diff_ids.n; i++) {
		digest_chain(i > 0 ? below : NULL, config->diff_ids.v[i], chain);
		r = store_layer_exists(all->s, chain, e);
		if (r == 0 && store_has_directory(all->s, chain))
			all->lost = str_copy(chain);
		memcpy(below, chain, sizeof(below));
	}
	return r < 0 ? r : 0;
}

static int sort_entry(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct entries *all = ctx;
	autofree char *id = str_printf("sha256:%.64s", entry->name);
	const char *rest = entry->name + strnlen(entry->name, HEX_LEN);
	int r;

	if (!digest_is_sha256(id) || (*rest && !str_equal(rest, REMOVED)))
		return 0;
	r = store_image_exists(all->s, id, e);
	if (r < 0)
		return r;
	if (r > 0 && *rest)
		strings_add(&all->restored, entry->name);
	if (r > 0)
		return 0;
	strings_add(&all->deleted, entry->name);
	return *rest || all->lost ? 0 : find_lost_layer(all, entry->name, e);
}

int store_backup_check(struct store *s, struct store_removal *removal, struct hw_err *e)
{
	AUTO(entries_done) struct entries all = { .s = s };
	int r;

	r = file_walk(s->images, ".", sort_entry, &all, e);
	if (r < 0)
		return r;
	if (all.lost)
		return err_text(e, -ENODATA, "images.db has no row for layer %s", all.lost);
	for (size_t i = 0; r == 0 && i < all.restored.n; i++) {
		autofree char *hex = str_ncopy(all.restored.v[i], HEX_LEN);

		if (renameat2(s->images, all.restored.v[i], s->images, hex, RENAME_NOREPLACE) < 0)
			r = store_move_to_gone(s, s->images, all.restored.v[i], removal, e);
	}
	for (size_t i = 0; r == 0 && i < all.deleted.n; i++)
		r = store_move_to_gone(s, s->images, all.deleted.v[i], removal, e);
	return r;
}

/* ---- stores of older versions ---------------------------------------------------- */

static int update_locked(struct store *s, const char *id, struct hw_err *e)
{
	char *ids[] = { (char *)id };
	STORE_LOCKED(s);
	int r;

	r = store_image_exists(s, id, e);
	if (r == 0) /* the image was removed meanwhile */
		store_backup_restore(s, &(struct hw_strings){ ids, 1 });
	if (r <= 0)
		return r;
	/* a killed process may have left a temporary file */
	r = file_sweep(s->images, id + strlen("sha256:"), e);
	return r < 0 ? r : store_backup_update(s, id, e);
}

static int backup_image(struct store *s, const struct store_image *image, struct hw_err *e)
{
	AUTO(buf_done) struct buf manifest = { 0 }, config = { 0 };
	int r;

	if (!store_backup_exists(s, image->id)) {
		r = store_image_read(s, image->id, &manifest, &config, e);
		if (r <= 0)
			return r;
		r = store_backup_place(s,
				       &(struct store_new_image){ .manifest = manifest.data,
								  .manifest_len = manifest.len,
								  .config = config.data,
								  .config_len = config.len },
				       image->id, e);
		if (r < 0)
			return r;
	}
	return update_locked(s, image->id, e);
}

static int backup_layer(struct store *s, const char *chain, struct hw_err *e)
{
	STORE_LOCKED(s);
	autoclose int dir = -1;
	struct store_layer layer;
	int r;

	dir = openat(s->layers, chain + strlen("sha256:"),
		     O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir < 0 || faccessat(dir, STORE_LAYER_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	r = store_layer_get(s, chain, &layer, e);
	return r <= 0 ? r : store_backup_layer(dir, &layer, FILE_SYNC, e);
}

int store_backup_all(struct store *s, struct hw_err *e)
{
	AUTO(store_snapshot_put) const struct store_snapshot *snap = store_snapshot_get(s);
	AUTO(hw_strings_free) struct hw_strings chains = { 0 };
	int r;

	r = store_list_layers(s, &chains, e);
	for (size_t i = 0; r >= 0 && i < chains.n; i++)
		r = backup_layer(s, chains.v[i], e);
	for (size_t i = 0; r >= 0 && i < snap->n; i++)
		r = backup_image(s, snap->images[i], e);
	return r < 0 ? r : 0;
}
