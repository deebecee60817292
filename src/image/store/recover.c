/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/recover.c - a store without its database: keep the layers, rebuild the rows
 *
 * How:   ROOT/needs-recovery exists from the time when the loss is noticed until
 *        store_recover() has succeeded; it contains the reason. The old database is
 *        renamed, and a new one is used meanwhile. In this state no layer is removed,
 *        and a pull finds the layers that have a file "layer" (store_adopt_layer()).
 *        store_recover() rebuilds all rows in one transaction. If it is killed, it can
 *        be called again. If a file cannot be read, it recovers the others and fails, so
 *        that it can be called again, too.
 * Rules: nothing is deleted. Directories from which no row can be rebuilt are moved to
 *        ROOT/unrecovered, and no database of an earlier loss is overwritten.
 *        Rows of images that were pulled meanwhile are newer than the files, so they stay.
 *        If the files of several images contain the same name, the newest file decides:
 *        the name was being moved when the process was killed.
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

#define OLD_DATABASE "images.db.damaged"
#define MARK	     "needs-recovery"
#define MARK_BYTES   4096
#define DATABASE     "images.db"
#define UNUSED	     "unrecovered"
#define HEX_LEN	     64

/* ---- noticing the loss ----------------------------------------------------------- */

void store_read_loss(struct store *s)
{
	AUTO(buf_done) struct buf why = { 0 };
	struct hw_err e;
	int r;

	r = file_read(s->dir, MARK, MARK_BYTES, &why, &e);
	if (r == -ENOENT)
		return;
	/* that it exists is enough */
	s->lost = r < 0 ? str_copy(e.msg)
			: str_ncopy(str_or(why.data, ""), strcspn(str_or(why.data, ""), "\n"));
}

static int write_mark(struct store *s, struct hw_err *e)
{
	autofree char *text = str_printf("%s\n", s->lost);
	int r;

	r = file_replace(s->dir, MARK, text, strlen(text), 0600, FILE_SYNC, e);
	if (r == -ENOSPC && store_delete_reserve(s))
		r = file_replace(s->dir, MARK, text, strlen(text), 0600, FILE_SYNC, e);
	return r < 0 ? err_ctx(e, "%s", s->root) : 0;
}

/* Takes ownership of @why. */
static void change_lost(struct store *s, char *why)
{
	STORE_GUARD(s->usage_lock);

	free(s->lost);
	s->lost = why;
}

int store_set_lost(struct store *s, const char *why, struct hw_err *e)
{
	if (s->lost)
		return 0;
	change_lost(s, str_ncopy(why, strcspn(why, "\n")));
	return write_mark(s, e);
}

/* The files of a database. The write-ahead log is moved before the database: it would be applied to a
 * new database of the same name. */
static const char *const suffixes[] = { "-shm", "-wal", "" };

static bool has_database(const struct store *s, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		autofree char *file = str_printf("%s%s", name, suffixes[i]);

		if (faccessat(s->dir, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			return true;
	}
	return false;
}

/* Renames a database, which must be closed, to OLD_DATABASE.N with the first unused N; 0: without a
 * number. */
static int move_database(struct store *s, const char *name, unsigned int n, struct hw_err *e)
{
	autofree char *to = n ? str_printf(OLD_DATABASE ".%u", n) : str_copy(OLD_DATABASE);

	while (has_database(s, to)) {
		free(to);
		to = str_printf(OLD_DATABASE ".%u", ++n);
	}
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		autofree char *old = str_printf("%s%s", name, suffixes[i]);
		autofree char *new = str_printf("%s%s", to, suffixes[i]);

		if (renameat(s->dir, old, s->dir, new) < 0 && errno != ENOENT)
			return err_set(e, -errno, "rename %s/%s", s->root, old);
	}
	return fsync(s->dir) < 0 ? err_set(e, -errno, "sync %s", s->root) : 0;
}

int store_move_database(struct store *s, struct hw_err *e)
{
	return move_database(s, DATABASE, 0, e);
}

char *store_loss(struct store *s)
{
	STORE_GUARD(s->usage_lock);

	return s->lost ? str_copy(s->lost) : NULL;
}

/* ---- layers ---------------------------------------------------------------------- */

static int note_error(int r, const struct hw_err *e, struct hw_err *unreadable)
{
	if (r < 0 && unreadable->code == 0)
		*unreadable = *e;
	return 0;
}

int store_adopt_layer(struct store *s, const char *chain_id, struct hw_err *unreadable,
		      struct hw_err *e)
{
	struct store_layer layer;
	int r;

	if (!store_has_directory(s, chain_id))
		return 0;
	r = store_backup_read_layer(s, chain_id, &layer, e);
	if (r <= 0)
		return note_error(r, e, unreadable);
	r = store_insert_layer(s, &layer, e);
	return r < 0 ? r : 1;
}

struct recovery {
	struct store *s;
	struct store_recovery *result;
	struct hw_err unreadable; /* code 0: all files could be read */
};

static int adopt_entry(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct recovery *all = ctx;
	autofree char *chain = str_printf("sha256:%s", entry->name);
	int r;

	if (!digest_is_sha256(chain))
		return 0;
	r = store_layer_exists(all->s, chain, e);
	if (r == 0)
		r = store_adopt_layer(all->s, chain, &all->unreadable, e);
	if (r < 0)
		return r;
	all->result->layers += r > 0;
	return 0;
}

/* ---- images ---------------------------------------------------------------------- */

struct dated_image {
	char hex[HEX_LEN + 1];
	struct timespec time;
};

struct dated_images {
	struct dated_image *v;
	size_t n, room;
};

static int newest_first(const void *a, const void *b)
{
	const struct timespec *x = &((const struct dated_image *)a)->time;
	const struct timespec *y = &((const struct dated_image *)b)->time;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? 1 : -1;
	return x->tv_nsec < y->tv_nsec ? 1 : x->tv_nsec > y->tv_nsec ? -1 : 0;
}

static int add_entry(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct dated_images *all = ctx;
	autofree char *id = str_printf("sha256:%s", entry->name), *names = NULL;
	struct dated_image image = { 0 };
	struct stat st;

	(void)e;
	if (!digest_is_sha256(id))
		return 0;
	memcpy(image.hex, entry->name, HEX_LEN);
	names = str_printf("%s/names", image.hex);
	if (fstatat(entry->dir, names, &st, AT_SYMLINK_NOFOLLOW) == 0)
		image.time = st.st_mtim;
	if (all->n == all->room) {
		all->room = all->room ? 2 * all->room : 64;
		all->v = mem_resize(all->v, all->room, sizeof(*all->v));
	}
	all->v[all->n++] = image;
	return 0;
}

static void add_missing_names(struct recovery *all, const struct hw_strings *names)
{
	for (size_t i = 0; i < names->n; i++)
		if (!strings_has(&all->result->missing, names->v[i]))
			strings_add(&all->result->missing, names->v[i]);
}

int store_recover_image(struct store *s, const char *hex, struct store_backup *ret_backup,
			struct hw_err *unreadable, struct hw_err *e)
{
	struct store_new_image image;
	int r;

	r = store_backup_read(s, hex, ret_backup, e);
	if (r <= 0)
		return note_error(r, e, unreadable);
	image = (struct store_new_image){ .manifest = ret_backup->manifest.data,
					  .manifest_len = ret_backup->manifest.len,
					  .config = ret_backup->config.data,
					  .config_len = ret_backup->config.len,
					  .names = (const char *const *)ret_backup->names.v,
					  .n_names = ret_backup->names.n };
	r = store_insert_recovered(s, &image, e);
	return r < 0 ? r : 1;
}

static int recover_images(struct recovery *all, struct hw_err *e)
{
	struct dated_images images = { 0 };
	int r;

	r = file_walk(all->s->images, ".", add_entry, &images, e);
	if (r == 0 && images.n > 1)
		qsort(images.v, images.n, sizeof(*images.v), newest_first);
	for (size_t i = 0; r >= 0 && i < images.n; i++) {
		AUTO(store_backup_done) struct store_backup backup = { 0 };

		r = store_recover_image(all->s, images.v[i].hex, &backup, &all->unreadable, e);
		if (r == 0)
			add_missing_names(all, &backup.names);
	}
	free(images.v);
	return r < 0 ? r : 0;
}

/* Names of the old database, as far as it can be read. If there were several losses, it is the first
 * one: images that were pulled after that have files. */
static void add_old_names(struct recovery *all)
{
	autofree char *path = str_printf("%s/" OLD_DATABASE, all->s->root);
	struct db_options options = store_db;
	AUTO(db_close) struct db *old = NULL;
	AUTO(hw_strings_free) struct hw_strings names = { 0 };
	AUTO(db_query_done) struct db_query q = { 0 };
	struct hw_err ignored;

	options.must_exist = true;
	options.check = false;
	if (db_open(path, &options, &old, &ignored) < 0 ||
	    db_query(old, "SELECT name FROM names", DB_NO_VALUES, &q, &ignored) < 0)
		return;
	while (db_step(&q, &ignored) > 0)
		if (store_check_name(db_text(&q, 0), &ignored) == 0)
			strings_add(&names, db_text(&q, 0));
	add_missing_names(all, &names);
	db_query_done(&q);
}

/* A name is missing unless it belongs to an image with all its layers. */
static void find_missing_names(struct recovery *all, const struct store_snapshot *snap)
{
	struct hw_strings candidates = all->result->missing;

	all->result->missing = (struct hw_strings){ 0 };
	for (size_t i = 0; i < snap->n; i++)
		if (snap->images[i]->damaged) {
			add_missing_names(all, &snap->images[i]->tags);
			add_missing_names(all, &snap->images[i]->digests);
		}
	for (size_t i = 0; i < candidates.n; i++) {
		const struct store_image *image = NULL;
		struct hw_err ignored;

		if (store_snapshot_find(snap, candidates.v[i], &image, &ignored) <= 0 &&
		    !strings_has(&all->result->missing, candidates.v[i]))
			strings_add(&all->result->missing, candidates.v[i]);
	}
	hw_strings_free(&candidates);
}

/* ---- rows ------------------------------------------------------------------------ */

static int rebuild_rows(struct recovery *all, struct hw_err *e)
{
	AUTO(db_transaction_done) struct db_transaction change = { 0 };
	AUTO(store_snapshot_put) const struct store_snapshot *next = NULL;
	struct store *s = all->s;
	int r;

	r = db_begin(s->db, &change, e);
	if (r < 0)
		return r;
	r = file_walk(s->layers, ".", adopt_entry, all, e);
	if (r < 0)
		return r;
	r = recover_images(all, e);
	if (r < 0)
		return r;
	r = db_run(s->db,
		   "UPDATE layers SET used = 1 WHERE chain IN (SELECT chain FROM image_layers)",
		   DB_NO_VALUES, e);
	if (r < 0)
		return r;
	r = store_snapshot_load(s, &next, e);
	if (r < 0)
		return r;
	r = db_commit(&change, e);
	if (r < 0)
		return r;
	add_old_names(all);
	find_missing_names(all, next);
	store_snapshot_publish(s, &next);
	return 0;
}

/* ---- what cannot be used --------------------------------------------------------- */

/* Moves a directory to unrecovered/KIND-NAME, or if that exists, to unrecovered/KIND-NAME.N. */
static int set_aside(struct recovery *all, const char *kind, const struct file_entry *entry,
		     struct hw_err *e)
{
	struct store *s = all->s;
	autoclose int dir = -1;

	if (mkdirat(s->dir, UNUSED, 0700) < 0 && errno != EEXIST)
		return err_set(e, -errno, "create %s/" UNUSED, s->root);
	dir = openat(s->dir, UNUSED, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir < 0)
		return err_set(e, -errno, "open %s/" UNUSED, s->root);
	if (!all->result->unrecovered)
		all->result->unrecovered = str_printf("%s/" UNUSED, s->root);
	for (unsigned int n = 0;; n++) {
		autofree char *to = n ? str_printf("%s-%.128s.%u", kind, entry->name, n)
				      : str_printf("%s-%.128s", kind, entry->name);

		if (renameat2(entry->dir, entry->name, dir, to, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno != EEXIST)
			return err_set(e, -errno, "move %.80s to %s/" UNUSED, entry->name, s->root);
	}
}

static int set_layer_aside(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	autofree char *chain = str_printf("sha256:%s", entry->name);
	struct recovery *all = ctx;
	int r;

	r = store_layer_exists(all->s, chain, e);
	if (r != 0)
		return r < 0 ? r : 0;
	all->result->unknown_layers++;
	return set_aside(all, "layer", entry, e);
}

static int set_image_aside(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	autofree char *id = str_printf("sha256:%s", entry->name);
	struct recovery *all = ctx;
	int r;

	r = store_image_exists(all->s, id, e);
	if (r != 0)
		return r < 0 ? r : 0;
	return set_aside(all, "image", entry, e);
}

/* After the end of the recovery, directories without a row would be deleted as left over, also if a
 * power cut undid the renames. */
static int set_unused_aside(struct recovery *all, struct hw_err *e)
{
	struct store *s = all->s;
	int r;

	r = file_walk(s->layers, ".", set_layer_aside, all, e);
	if (r == 0)
		r = file_walk(s->images, ".", set_image_aside, all, e);
	if (r == 0 && all->result->unrecovered && syncfs(s->dir) < 0)
		r = err_set(e, -errno, "sync %s/" UNUSED, s->root);
	return r;
}

/* ---- recovery -------------------------------------------------------------------- */

/* The names in the old database must not be reported by the next recovery. */
static int end_recovery(struct store *s, struct hw_err *e)
{
	int r;

	r = file_remove(s->dir, MARK, e);
	if (r < 0)
		return r;
	if (fsync(s->dir) < 0)
		return err_set(e, -errno, "sync %s", s->root);
	change_lost(s, NULL);
	return has_database(s, OLD_DATABASE) ? move_database(s, OLD_DATABASE, 1, e) : 0;
}

static int recover_locked(struct recovery *all, struct hw_err *e)
{
	struct store *s = all->s;
	STORE_LOCKED(s);
	int r;

	if (!s->lost)
		return 0;
	all->result->lost = true;
	r = rebuild_rows(all, e);
	if (r == 0)
		r = store_load_usage(s, e);
	if (r < 0)
		return r;
	if (all->unreadable.code < 0) {
		*e = all->unreadable;
		return err_ctx(e, "only what can be read was recovered");
	}
	r = set_unused_aside(all, e);
	return r < 0 ? r : end_recovery(s, e);
}

void store_recovery_done(struct store_recovery *r)
{
	free(r->unrecovered);
	hw_strings_free(&r->missing);
}

int store_recover(struct store *s, struct store_recovery *ret, struct hw_err *e)
{
	AUTO(store_recovery_done) struct store_recovery result = { 0 };
	struct recovery all = { .s = s, .result = &result };
	int r;

	r = recover_locked(&all, e);
	if (r == -ENOSPC && store_delete_reserve(s)) {
		store_recovery_done(&result);
		result = (struct store_recovery){ 0 };
		r = recover_locked(&all, e);
	}
	if (r < 0)
		return err_ctx(e, "recover the image store");
	store_create_reserve(s);
	*ret = result;
	result = (struct store_recovery){ 0 };
	return 0;
}
