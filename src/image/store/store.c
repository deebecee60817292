/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/store.c - open the image store, and remove incomplete data
 *
 * How:   the database decides which layers exist. A directory without a row (its
 *        layer was being created or deleted when the daemon died) is moved to
 *        gone/, which costs one rename, and deleted by store_sweep(). This holds only
 *        if the database is complete: otherwise see recover.c.
 *        A row without a directory stays, and the images with that layer are damaged:
 *        a pull replaces the layer, or it is there again at the next start, for example
 *        because its disk is mounted.
 */
#include "image/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"
#include "image/store/state.h"

#define STORE_BUSY_MS 5000 /* an administrator may have the database open */
#define LOCK_MS	      1000
#define RESERVE_NAME  "reserve"
#define RESERVE_BYTES (2 << 20) /* enough for the write-ahead log, which grows to 1 MiB */

static const char *const store_schema[] = {
	"CREATE TABLE layers (chain TEXT PRIMARY KEY, diff TEXT NOT NULL, blob TEXT NOT NULL,"
	" blob_size INTEGER NOT NULL, archive INTEGER NOT NULL, content INTEGER NOT NULL,"
	" disk INTEGER NOT NULL, inodes INTEGER NOT NULL, rebuildable INTEGER NOT NULL,"
	" opaque INTEGER NOT NULL, blob_kept INTEGER NOT NULL,"
	/* time of the commit, in seconds since 1970 */
	" made INTEGER NOT NULL,"
	/* 1: has been part of an image; 0: left by a pull that is running or failed */
	" used INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;"
	"CREATE INDEX layers_left ON layers (chain) WHERE used = 0;"
	"CREATE TABLE images (id TEXT PRIMARY KEY, manifest TEXT NOT NULL, uid INTEGER,"
	" username TEXT NOT NULL, manifest_bytes BLOB NOT NULL, config_bytes BLOB NOT NULL) STRICT;"
	"CREATE TABLE image_layers (image TEXT NOT NULL, position INTEGER NOT NULL,"
	" chain TEXT NOT NULL, PRIMARY KEY (image, position)) STRICT, WITHOUT ROWID;"
	"CREATE INDEX layer_images ON image_layers (chain);"
	"CREATE TABLE names (name TEXT PRIMARY KEY, image TEXT NOT NULL) STRICT, WITHOUT ROWID;"
	"CREATE INDEX image_names ON names (image);",
};

const struct db_options store_db = {
	.migrations = store_schema,
	.n_migrations = ARRAY_SIZE(store_schema),
	.durable = true,
	.busy_ms = STORE_BUSY_MS,
	.check = true,
};

unsigned int store_next_number(struct store *s)
{
	return s->next_number++;
}

int store_check_digest(const char *digest, struct hw_err *e)
{
	if (digest_is_sha256(digest))
		return 0;
	return err_text(e, -EINVAL, "invalid SHA-256 digest \"%.80s\"", str_or(digest, ""));
}

/* ---- reserve ------------------------------------------------------------------- */

void store_create_reserve(struct store *s)
{
	autoclose int fd = -1;

	fd = openat(s->dir, RESERVE_NAME, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	/* best effort: a smaller reserve helps too */
	if (fd >= 0)
		(void)!fallocate(fd, 0, 0, RESERVE_BYTES);
}

bool store_delete_reserve(struct store *s)
{
	return unlinkat(s->dir, RESERVE_NAME, 0) == 0;
}

/* ---- incomplete data ----------------------------------------------------------- */

static bool parse_number(const char *name, long long *ret_n)
{
	return str_to_int64(name, 0, UINT32_MAX - 1, ret_n);
}

static int skip_used_number(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct store *s = ctx;
	long long n;

	(void)e;
	if (parse_number(entry->name, &n) && n >= s->next_number)
		s->next_number = (unsigned int)n + 1;
	return 0;
}

static int remove_stage(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	AUTO(store_removal_done) struct store_removal removal = { 0 };
	struct store *s = ctx;

	return store_move_to_gone(s, s->tmp, entry->name, &removal, e);
}

static int remove_layer_without_row(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	AUTO(store_removal_done) struct store_removal removal = { 0 };
	autofree char *chain = str_printf("sha256:%s", entry->name);
	struct store *s = ctx;
	int r;

	r = store_layer_exists(s, chain, e);
	if (r != 0)
		return r < 0 ? r : 0;
	return store_move_to_gone(s, s->layers, entry->name, &removal, e);
}

static int remove_incomplete(struct store *s, struct hw_err *e)
{
	int r;

	r = file_walk(s->gone, ".", skip_used_number, s, e);
	/* a hawser-fetch that outlived the last daemon may still write to a stage by its name, so
	 * names in tmp/ are not used again */
	if (r == 0)
		r = file_walk(s->tmp, ".", skip_used_number, s, e);
	if (r == 0)
		r = file_walk(s->tmp, ".", remove_stage, s, e);
	if (r == 0 && !s->lost)
		r = store_backup_check(s, e);
	if (r == -ENODATA) {
		struct hw_err why = *e;

		r = store_set_lost(s, why.msg, e);
	}
	if (r == 0 && !s->lost)
		r = file_walk(s->layers, ".", remove_layer_without_row, s, e);
	s->leftover_below = s->next_number;
	return r < 0 ? err_ctx(e, "remove incomplete data from %s", s->root) : 0;
}

struct leftovers {
	const struct store *s;
	struct store_removal removal;
};

static int add_leftover(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct leftovers *l = ctx;
	long long n;

	(void)e;
	if (!parse_number(entry->name, &n) || n < l->s->leftover_below)
		strings_add(&l->removal.gone, entry->name); /* else another thread is deleting it */
	return 0;
}

static int delete_leftovers(struct store *s, struct hw_err *e)
{
	struct leftovers l = { .s = s };
	int r;

	r = file_walk(s->gone, ".", add_leftover, &l, e);
	if (r == 0)
		r = store_delete_gone(s, &l.removal, e);
	store_removal_done(&l.removal);
	return r;
}

int store_sweep(struct store *s, struct hw_err *e)
{
	static int (*const steps[])(struct store * s, struct hw_err * e) = {
		delete_leftovers,
		store_trim_unused,
		store_backup_all,
	};
	struct hw_err later;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		if (steps[i](s, r < 0 ? &later : e) < 0 && r == 0)
			r = e->code;
	return r;
}

/* ---- opening ------------------------------------------------------------------- */

static int open_directory(struct store *s, const char *name, mode_t mode, int *ret_fd,
			  struct hw_err *e)
{
	if (mkdirat(s->dir, name, mode) < 0 && errno != EEXIST)
		return err_set(e, -errno, "create %s/%s", s->root, name);
	*ret_fd = openat(s->dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return *ret_fd < 0 ? err_set(e, -errno, "open %s/%s", s->root, name) : 0;
}

static int open_directories(struct store *s, struct hw_err *e)
{
	autoclose int empty = -1;
	char *absolute;
	int r;

	r = file_mkdirs(AT_FDCWD, s->root, 0700, e);
	if (r < 0)
		return r;
	absolute = realpath(s->root, NULL); /* mounts need absolute paths of layers */
	if (!absolute)
		return err_set(e, -errno, "resolve %s", s->root);
	free(s->root);
	s->root = absolute;
	s->dir = open(s->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir < 0)
		return err_set(e, -errno, "open %s", s->root);
	/* a process that a killed owner has just started holds it until it executes its program */
	r = file_lock(s->dir, "lock", true, time_deadline(LOCK_MS), &s->lock_fd, e);
	if (r == -ETIMEDOUT)
		return err_text(e, -EBUSY, "%s is in use by another process", s->root);
	if (r < 0)
		return err_ctx(e, "lock %s", s->root);
	r = open_directory(s, "layers", 0700, &s->layers, e);
	if (r < 0)
		return r;
	r = open_directory(s, "images", 0700, &s->images, e);
	if (r < 0)
		return r;
	r = open_directory(s, "tmp", 0700, &s->tmp, e);
	if (r < 0)
		return r;
	r = open_directory(s, "gone", 0700, &s->gone, e);
	if (r < 0)
		return r;
	r = open_directory(s, "empty", 0755, &empty, e);
	if (r < 0)
		return r;
	return fsync(s->dir) < 0 ? err_set(e, -errno, "sync %s", s->root) : 0;
}

static int stop_at_entry(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	(void)ctx;
	(void)entry;
	(void)e;
	return 1;
}

/* Return: 1 if there are layers or images; 0 if not */
static int has_content(struct store *s, struct hw_err *e)
{
	int r;

	r = file_walk(s->layers, ".", stop_at_entry, NULL, e);
	return r == 0 ? file_walk(s->images, ".", stop_at_entry, NULL, e) : r;
}

static int open_file(struct store *s, bool must_exist, struct hw_err *e)
{
	autofree char *path = str_printf("%s/images.db", s->root);
	struct db_options options = store_db;
	int r;

	options.must_exist = must_exist;
	r = db_open(path, &options, &s->db, e);
	if (r == -ENOSPC && store_delete_reserve(s))
		r = db_open(path, &options, &s->db, e);
	return r;
}

static int open_database(struct store *s, struct hw_err *e)
{
	int r;

	store_read_loss(s);
	r = has_content(s, e);
	if (r < 0)
		return r;
	r = open_file(s, r > 0 && !s->lost, e);
	if (r == -ENODATA || r == -EUCLEAN) {
		struct hw_err why = *e;

		r = store_set_lost(s, why.msg, e);
		if (r == 0)
			r = store_move_database(s, e);
		if (r == 0)
			r = open_file(s, false, e);
	}
	return r < 0 ? r : db_open_reader(s->db, store_db.busy_ms, &s->reader, e);
}

int store_load_usage(struct store *s, struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { 0 };
	int r;

	r = db_query(s->db, "SELECT total(disk), total(inodes), count(*) FROM layers", DB_NO_VALUES,
		     &q, e);
	if (r == 0)
		r = db_step(&q, e);
	if (r < 0)
		return r;
	pthread_mutex_lock(&s->usage_lock);
	s->usage = (struct store_usage){ db_int(&q, 0), db_int(&q, 1), (size_t)db_int(&q, 2) };
	pthread_mutex_unlock(&s->usage_lock);
	return 0;
}

AUTO_DEFINE(store_close, struct store);

int store_open(const char *root, struct store **ret_store, struct hw_err *e)
{
	AUTO(store_close) struct store *s = mem_new(sizeof(*s));
	const struct store_snapshot *all = NULL;
	int r;

	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->read_lock, NULL);
	pthread_mutex_init(&s->usage_lock, NULL);
	slot_init(&s->snapshot, NULL);
	s->root = str_copy(root);
	s->lock_fd = s->dir = s->layers = s->images = s->tmp = s->gone = -1;
	s->held = map_new(free);
	s->suspect = map_new(NULL);
	r = open_directories(s, e);
	if (r == 0)
		r = open_database(s, e);
	if (r == 0)
		r = remove_incomplete(s, e);
	if (r == 0)
		r = store_load_usage(s, e);
	if (r == 0)
		r = store_snapshot_load(s, &all, e);
	if (r < 0)
		return err_ctx(e, "open the image store");
	store_snapshot_publish(s, &all);
	store_create_reserve(s);
	*ret_store = take_ptr(s);
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	slot_done(&s->snapshot);
	db_close(s->reader);
	db_close(s->db);
	map_free(s->held);
	map_free(s->suspect);
	hw_strings_free(&s->pinned);
	free(s->lost);
	mem_close_fd(&s->layers);
	mem_close_fd(&s->images);
	mem_close_fd(&s->tmp);
	mem_close_fd(&s->gone);
	mem_close_fd(&s->dir);
	mem_close_fd(&s->lock_fd); /* close it last: now another process can open the store */
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->read_lock);
	pthread_mutex_destroy(&s->usage_lock);
	free(s->root);
	free(s);
}

const char *store_root(const struct store *s)
{
	return s->root;
}

void store_add_usage(struct store *s, int64_t bytes, int64_t inodes, int layers)
{
	pthread_mutex_lock(&s->usage_lock);
	s->usage.bytes += bytes;
	s->usage.inodes += inodes;
	s->usage.layers += (size_t)layers;
	pthread_mutex_unlock(&s->usage_lock);
}

void store_usage(struct store *s, struct store_usage *ret_usage)
{
	pthread_mutex_lock(&s->usage_lock);
	*ret_usage = s->usage;
	pthread_mutex_unlock(&s->usage_lock);
}
