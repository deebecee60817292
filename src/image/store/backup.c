/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/backup.c - files from which the rows of the database can be rebuilt
 *
 * What:  layers/HEX/layer is the row of a layer. It is written into the stage, so that
 *        it is synced and moved into place with the layer.
 *        images/HEX/ has the manifest, the configuration and the names of an image.
 * How:   the files of a new image are written into a stage and synced before its row is
 *        added, but moved to images/ after that (commit.c). A removal moves them away
 *        before it deletes the row:
 *
 *	add      write tmp/N/root and sync it, commit, rename it to images/HEX, fsync images/
 *	remove   rename images/HEX to gone/N, fsync images/, commit, delete it
 *
 * Rules: files never exist longer than their row. So files without a row are a proof that
 *        rows were lost. A row without files, or with other ones, is not an error: a change
 *        was interrupted, an older version has stored the image, or a file was damaged;
 *        store_backup_all() writes the files again.
 *        A file that cannot be read never prevents a start, a pull or a recovery.
 */
#include "image/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os/file.h"
#include "base/str.h"
#include "image/config.h"
#include "image/manifest.h"
#include "image/store/state.h"

#define PRIVATE_FILE 0600
#define IMAGE_MODE   0700
#define HEX_LEN	     64
#define REMOVED	     ".removed" /* images/HEX.removed: of an older version */
#define FILE_BYTES   (16 << 20)
#define LAYER_BYTES  (64 << 10)

/* ---- files ---------------------------------------------------------------------- */

/* Return: 1; 0: missing or too large; or negative errno: cannot be read */
static int read_file(struct store *s, int dir, const char *path, size_t max, struct buf *ret,
		     struct hw_err *e)
{
	int r;

	r = file_read(dir, path, max, ret, e);
	if (r == -ENOENT || r == -ENOTDIR || r == -EFBIG)
		return 0;
	return r < 0 ? err_ctx(e, "%s", s->root) : 1;
}

/* For a file in a stage. */
static int write_file(int dir, const char *path, const void *data, size_t len, bool sync,
		      struct hw_err *e)
{
	autoclose int fd = -1;
	int r;

	fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, PRIVATE_FILE);
	if (fd < 0)
		return err_set(e, -errno, "create %s", path);
	r = file_write_fd(fd, data, len, e);
	if (r == 0 && sync && fsync(fd) < 0)
		r = err_set(e, -errno, "sync");
	return r < 0 ? err_ctx(e, "%s", path) : 0;
}

/* Replaces a file, unless its content is the same. */
static int update_file(struct store *s, int dir, const char *path, const void *data, size_t len,
		       unsigned flags, struct hw_err *e)
{
	AUTO(buf_done) struct buf old = { 0 };
	struct hw_err ignored; /* a file that cannot be read is replaced */
	int r;

	if (file_read(dir, path, len, &old, &ignored) == 0 && old.len == len &&
	    memcmp(str_or(old.data, ""), data, len) == 0)
		return 0;
	r = file_replace(dir, path, data, len, PRIVATE_FILE, flags, e);
	return r < 0 ? err_ctx(e, "%s", s->root) : 0;
}

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

static char *layer_to_json(const struct store_layer *l)
{
	const struct layer_file f = {
		(char *)l->diff_id, (char *)l->blob, l->blob_size, l->archive,
		l->content,	    l->disk,	     l->inodes,	   l->rebuildable,
		l->opaque,	    l->blob_kept,
	};

	return hw_field_encode(layer_fields, &f, HW_JSON_PRETTY);
}

int store_backup_layer(const struct store_stage *stage, const struct store_layer *layer,
		       struct hw_err *e)
{
	autofree char *json = layer_to_json(layer);

	return write_file(stage->dir, STORE_LAYER_FILE, json, strlen(json), false, e);
}

int store_backup_read_layer(struct store *s, const char *chain_id, struct store_layer *ret_layer,
			    struct hw_err *e)
{
	autofree char *path = str_printf("%s/" STORE_LAYER_FILE, chain_id + strlen("sha256:"));
	AUTO(layer_file_done) struct layer_file f = { 0 };
	AUTO(buf_done) struct buf json = { 0 };
	struct hw_err ignored;
	int r;

	r = read_file(s, s->layers, path, LAYER_BYTES, &json, e);
	if (r <= 0)
		return r;
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

static int read_image_file(struct store *s, const char *hex, const char *name, struct buf *ret,
			   struct hw_err *e)
{
	autofree char *path = str_printf("%s/%s", hex, name);

	return read_file(s, s->images, path, FILE_BYTES, ret, e);
}

static void parse_names(char *text, struct hw_strings *ret)
{
	struct hw_err ignored;

	for (char *line = text, *next; line && *line; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		if (store_check_name(line, &ignored) == 0)
			strings_add(ret, line);
	}
}

int store_backup_read(struct store *s, const char *hex, struct store_backup *ret, struct hw_err *e)
{
	autofree char *id = str_printf("sha256:%.64s", hex);
	AUTO(buf_done) struct buf names = { 0 };
	int r;

	r = read_image_file(s, hex, "names", &names, e);
	if (r < 0)
		return r;
	parse_names(names.data, &ret->names);
	r = read_image_file(s, hex, "manifest", &ret->manifest, e);
	if (r > 0)
		r = read_image_file(s, hex, "config", &ret->config, e);
	return r > 0 ? are_valid(ret, id) : r;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names are sorted, so that the same names are always the same file. */
static char *join_names(const char *const *names, size_t n)
{
	autofree const char **sorted = mem_new((n + 1) * sizeof(*sorted));
	AUTO(buf_done) struct buf b = { 0 };

	for (size_t i = 0; i < n; i++)
		sorted[i] = names[i];
	qsort(sorted, n, sizeof(*sorted), compare_names);
	for (size_t i = 0; i < n; i++)
		buf_printf(&b, "%s\n", sorted[i]);
	return buf_take(&b);
}

bool store_backup_exists(const struct store *s, const char *id)
{
	return faccessat(s->images, id + strlen("sha256:"), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

struct image_files {
	struct {
		const char *name, *data;
		size_t len;
	} v[3];
	char *names; /* to be freed */
};

static void image_files_init(struct image_files *ret, const struct store_new_image *image)
{
	char *names = join_names(image->names, image->n_names);

	*ret = (struct image_files){ { { "manifest", image->manifest, image->manifest_len },
				       { "config", image->config, image->config_len },
				       { "names", names, strlen(names) } },
				     names };
}

static int write_stage(const struct store_stage *stage, const struct store_new_image *image,
		       bool sync, struct hw_err *e)
{
	struct image_files files;
	autoclose int root = -1;
	int r = 0;

	root = openat(stage->dir, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (root < 0 || fchmod(root, IMAGE_MODE) < 0)
		return err_set(e, -errno, "open a stage");
	image_files_init(&files, image);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files.v); i++)
		r = write_file(root, files.v[i].name, files.v[i].data, files.v[i].len, sync, e);
	free(files.names);
	if (r == 0 && sync && fsync(root) < 0)
		r = err_set(e, -errno, "sync a stage");
	return r;
}

int store_backup_stage(struct store *s, const struct store_new_image *image, bool sync,
		       struct store_stage **ret_stage, struct hw_err *e)
{
	AUTO(store_stage_free) struct store_stage *stage = NULL;
	int r;

	r = store_layer_begin(s, &stage, e);
	if (r == 0)
		r = write_stage(stage, image, sync, e);
	if (r < 0)
		return r;
	*ret_stage = take_ptr(stage);
	return 0;
}

int store_backup_place(struct store *s, const char *id, const struct store_stage *stage,
		       struct hw_err *e)
{
	const char *hex = id + strlen("sha256:");
	int r;

	r = renameat2(stage->dir, "root", s->images, hex, RENAME_NOREPLACE);
	if (r < 0 && errno != EEXIST)
		return err_set(e, -errno, "move the files of image %s", id);
	return 0;
}

/* ---- changes -------------------------------------------------------------------- */

static int list_names(struct store *s, const char *id, struct hw_strings *ret_names,
		      struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { 0 };
	int r;

	r = db_query(s->db, "SELECT name FROM names WHERE image = ?", DB_VALUES(DB_TEXT(id)), &q,
		     e);
	while (r >= 0 && (r = db_step(&q, e)) > 0)
		strings_add(ret_names, db_text(&q, 0));
	return r;
}

static int update_files(struct store *s, const char *hex, const struct store_new_image *image,
			unsigned flags, struct hw_err *e)
{
	struct image_files files;
	bool created;
	int r = 0;

	created = mkdirat(s->images, hex, IMAGE_MODE) == 0;
	if (!created && errno != EEXIST)
		return err_set(e, -errno, "create %s/images/%s", s->root, hex);
	image_files_init(&files, image);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files.v); i++) {
		autofree char *path = str_printf("%s/%s", hex, files.v[i].name);

		r = update_file(s, s->images, path, files.v[i].data, files.v[i].len, flags, e);
	}
	free(files.names);
	if (r == 0 && created && (flags & FILE_SYNC) && fsync(s->images) < 0)
		r = err_set(e, -errno, "sync %s/images", s->root);
	return r;
}

/* Errors of a directory that cannot be used any more, or of another file in its place. */
static bool is_damage(int error)
{
	return error == -EIO || error == -EUCLEAN || error == -EBADMSG || error == -EISDIR ||
	       error == -ENOTDIR;
}

int store_backup_update(struct store *s, const char *id, unsigned flags, struct hw_err *e)
{
	AUTO(store_removal_done) struct store_removal removal = { 0 };
	AUTO(hw_strings_free) struct hw_strings names = { 0 };
	AUTO(db_query_done) struct db_query q = { 0 };
	const char *hex = id + strlen("sha256:");
	struct store_new_image image = { 0 };
	int r;

	r = list_names(s, id, &names, e);
	if (r == 0)
		r = db_query(s->db, "SELECT manifest_bytes, config_bytes FROM images WHERE id = ?",
			     DB_VALUES(DB_TEXT(id)), &q, e);
	if (r == 0)
		r = db_step(&q, e);
	if (r <= 0)
		return r;
	image.manifest = db_blob(&q, 0, &image.manifest_len);
	image.config = db_blob(&q, 1, &image.config_len);
	image.names = (const char *const *)names.v;
	image.n_names = names.n;
	r = update_files(s, hex, &image, flags, e);
	if (is_damage(r) && store_move_to_gone(s, s->images, hex, &removal, e) == 0) {
		r = update_files(s, hex, &image, flags, e);
		if (r == 0)
			r = store_delete_gone(s, &removal, e);
	}
	return r;
}

int store_backup_remove(struct store *s, const char *id, struct store_removal *removal,
			struct hw_err *e)
{
	int r;

	r = store_move_to_gone(s, s->images, id + strlen("sha256:"), removal, e);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return fsync(s->images) < 0 ? err_set(e, -errno, "sync %s/images", s->root) : 0;
}

void store_backup_undo_remove(struct store *s, const char *id, const struct store_removal *removal)
{
	/* files that cannot be moved back are written again by the next store_backup_all() */
	for (size_t i = 0; i < removal->gone.n; i++)
		if (renameat2(s->gone, removal->gone.v[i], s->images, id + strlen("sha256:"),
			      RENAME_NOREPLACE) < 0)
			log_debug("%s/gone/%s: %s", s->root, removal->gone.v[i], strerror(errno));
}

/* ---- when the store is opened --------------------------------------------------- */

static int check_entry(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	AUTO(store_removal_done) struct store_removal removal = { 0 };
	autofree char *id = str_printf("sha256:%.64s", entry->name);
	const char *rest = entry->name + strnlen(entry->name, HEX_LEN);
	struct store *s = ctx;
	int r;

	if (!digest_is_sha256(id))
		return 0;
	if (*rest)
		return str_equal(rest, REMOVED)
			       ? store_move_to_gone(s, s->images, entry->name, &removal, e)
			       : 0;
	r = store_image_exists(s, id, e);
	if (r == 0)
		return err_text(e, -ENODATA, "images.db has no row for image %s", id);
	return r < 0 ? r : 0;
}

int store_backup_check(struct store *s, struct hw_err *e)
{
	return file_walk(s->images, ".", check_entry, s, e);
}

/* ---- sweep ---------------------------------------------------------------------- */

static int backup_image(struct store *s, const char *id, struct hw_err *e)
{
	STORE_LOCKED(s);
	int r;

	r = store_backup_update(s, id, FILE_SYNC, e);
	/* a killed process may have left a temporary file */
	return r < 0 ? r : file_sweep(s->images, id + strlen("sha256:"), e);
}

static int backup_layer(struct store *s, const char *chain, struct hw_err *e)
{
	STORE_LOCKED(s);
	autofree char *path = NULL, *json = NULL;
	struct store_layer layer;
	int r;

	r = store_has_directory(s, chain) ? store_layer_get(s, chain, &layer, e) : 0;
	if (r <= 0)
		return r;
	path = str_printf("%s/" STORE_LAYER_FILE, chain + strlen("sha256:"));
	json = layer_to_json(&layer);
	return update_file(s, s->layers, path, json, strlen(json), FILE_SYNC, e);
}

int store_backup_all(struct store *s, struct hw_err *e)
{
	AUTO(store_snapshot_put) const struct store_snapshot *snap = store_snapshot_get(s);
	AUTO(hw_strings_free) struct hw_strings chains = { 0 };
	struct hw_err later;
	int r;

	r = store_list_layers(s, &chains, e);
	for (size_t i = 0; i < chains.n; i++)
		if (backup_layer(s, chains.v[i], r < 0 ? &later : e) < 0 && r == 0)
			r = e->code;
	for (size_t i = 0; i < snap->n; i++)
		if (backup_image(s, snap->images[i]->id, r < 0 ? &later : e) < 0 && r == 0)
			r = e->code;
	return r;
}
