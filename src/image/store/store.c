/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/store.c - open the image store, and clear away what is incomplete
 *
 * How:   the database says what there is. What has no row (a layer that was being
 *        made or deleted when the daemon died) is moved to gone/, which costs a
 *        rename each, and is deleted by store_sweep(). What has a row but no folder
 *        loses the row: then the images that need it are damaged.
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

#define STORE_BUSY_MS 5000 /* somebody looks at the database with another program */
#define RESERVE_NAME  "reserve"
#define RESERVE_BYTES (2 << 20) /* the log grows to 1 MiB before it is written from the start */

static const char *const store_schema[] = {
	"CREATE TABLE layers (chain TEXT PRIMARY KEY, diff TEXT NOT NULL, blob TEXT NOT NULL,"
	" blob_size INTEGER NOT NULL, archive INTEGER NOT NULL, content INTEGER NOT NULL,"
	" disk INTEGER NOT NULL, inodes INTEGER NOT NULL, rebuildable INTEGER NOT NULL,"
	" opaque INTEGER NOT NULL, blob_kept INTEGER NOT NULL,"
	/* when it was put there, in seconds since 1970 */
	" made INTEGER NOT NULL,"
	/* it has been part of an image: not the rest of a pull that failed */
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

static const struct db_options store_db = {
	.migrations = store_schema,
	.n_migrations = ARRAY_SIZE(store_schema),
	.durable = true,
	.busy_ms = STORE_BUSY_MS,
};

unsigned int store_number(struct store *s)
{
	return s->next++;
}

int store_check_digest(const char *digest, struct hw_err *e)
{
	if (digest_is_sha256(digest))
		return 0;
	return err_text(e, -EINVAL, "\"%.80s\" is not a SHA-256 digest", str_or(digest, ""));
}

/* ---- folders ------------------------------------------------------------------ */

/* Mounts are made by names of layers: those must be absolute. */
static int store_resolve(struct store *s, struct hw_err *e)
{
	char *absolute = realpath(s->root, NULL);

	if (!absolute)
		return err_set(e, -errno, "find %s", s->root);
	free(s->root);
	s->root = absolute;
	return 0;
}

static int store_lock_root(struct store *s, struct hw_err *e)
{
	int r = file_lock(s->dir, "lock", true, time_now(), &s->lock_fd, e);

	if (r == -ETIMEDOUT)
		return err_text(e, -EBUSY, "%s is in use by another process", s->root);
	return r < 0 ? err_ctx(e, "lock %s", s->root) : 0;
}

static int store_folder(struct store *s, const char *name, mode_t mode, int *ret_fd,
			struct hw_err *e)
{
	if (mkdirat(s->dir, name, mode) < 0 && errno != EEXIST)
		return err_set(e, -errno, "make %s/%s", s->root, name);
	*ret_fd = openat(s->dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return *ret_fd < 0 ? err_set(e, -errno, "open %s/%s", s->root, name) : 0;
}

static int store_folders(struct store *s, struct hw_err *e)
{
	autoclose int empty = -1;
	int r = file_mkdirs(AT_FDCWD, s->root, 0700, e);

	if (r < 0)
		return r;
	r = store_resolve(s, e);
	if (r < 0)
		return r;
	s->dir = open(s->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir < 0)
		return err_set(e, -errno, "open %s", s->root);
	r = store_lock_root(s, e);
	if (r == 0)
		r = store_folder(s, "layers", 0700, &s->layers, e);
	if (r == 0)
		r = store_folder(s, "tmp", 0700, &s->tmp, e);
	if (r == 0)
		r = store_folder(s, "gone", 0700, &s->gone, e);
	if (r == 0)
		r = store_folder(s, "empty", 0755, &empty, e);
	if (r == 0 && fsync(s->dir) < 0)
		r = err_set(e, -errno, "write %s to disk", s->root);
	return r;
}

/* ---- reserve ------------------------------------------------------------------- */

/*
 * Why:   to remove an image, or even to look what there is, the database has to
 *        write a little. On a full disk that fails, and the disk stays full.
 * How:   a file that is good for nothing but its size. It is given up when there is
 *        no space left, and made again as soon as there is.
 */
void store_reserve(struct store *s)
{
	autoclose int fd =
		openat(s->dir, RESERVE_NAME, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	/* best effort: what there is of it helps as well */
	if (fd >= 0)
		(void)!fallocate(fd, 0, 0, RESERVE_BYTES);
}

bool store_unreserve(struct store *s)
{
	return unlinkat(s->dir, RESERVE_NAME, 0) == 0;
}

/* ---- what is incomplete -------------------------------------------------------- */

static bool store_is_number(const char *name, long long *ret_n)
{
	return str_to_int64(name, 0, UINT32_MAX - 1, ret_n);
}

static int count_name(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct store *s = ctx;
	long long n;

	(void)e;
	if (store_is_number(entry->name, &n) && n >= s->next)
		s->next = (unsigned int)n + 1;
	return 0;
}

static int move_unfinished(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	AUTO(store_doomed_done) struct store_doomed doomed = { 0 };
	struct store *s = ctx;

	return store_move_out(s, s->tmp, entry->name, &doomed, e);
}

static int move_unknown(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	AUTO(store_doomed_done) struct store_doomed doomed = { 0 };
	autofree char *chain = str_printf("sha256:%s", entry->name);
	struct store *s = ctx;
	int r = store_layer_exists(s, chain, e);

	return r != 0 ? (r > 0 ? 0 : r) : store_move_out(s, s->layers, entry->name, &doomed, e);
}

static int list_lost(struct store *s, struct hw_strings *ret_lost, struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { 0 };
	int r = db_query(s->db, "SELECT chain FROM layers", DB_NO_VALUES, &q, e);

	while (r >= 0 && (r = db_step(&q, e)) > 0) {
		const char *chain = db_text(&q, 0);
		bool known = digest_is_sha256(chain);
		autofree char *path = str_printf("%s/root", known ? chain + strlen("sha256:") : "");

		if (known && faccessat(s->layers, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		if (known && errno != ENOENT)
			return err_set(e, -errno, "look for %s/layers/%s", s->root, path);
		strings_add(ret_lost, chain);
	}
	return r;
}

static int forget_lost(struct store *s, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings lost = { 0 };
	int r = list_lost(s, &lost, e);

	for (size_t i = 0; r == 0 && i < lost.n; i++)
		r = db_run(s->db, "DELETE FROM layers WHERE chain = ?",
			   DB_VALUES(DB_TEXT(lost.v[i])), e);
	return r;
}

static int store_clear(struct store *s, struct hw_err *e)
{
	int r = file_walk(s->gone, ".", count_name, s, e);

	if (r == 0) /* a process that outlived us may still write below tmp/N: no new one is that */
		r = file_walk(s->tmp, ".", count_name, s, e);
	if (r == 0)
		r = file_walk(s->tmp, ".", move_unfinished, s, e);
	if (r == 0)
		r = forget_lost(s,
				e); /* first: the folder of such a layer may be there, rootless */
	if (r == 0)
		r = file_walk(s->layers, ".", move_unknown, s, e);
	s->old = s->next;
	return r < 0 ? err_ctx(e, "clear away what is incomplete in %s", s->root) : 0;
}

static int sweep_one(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	AUTO(store_doomed_done) struct store_doomed doomed = { 0 };
	struct store *s = ctx;
	long long n;

	if (store_is_number(entry->name, &n) && n >= s->old)
		return 0; /* somebody is at it */
	strings_add(&doomed.gone, entry->name);
	return store_delete(s, &doomed, e);
}

/** store_sweep() - delete what was incomplete when the store was opened, and what is stale */
int store_sweep(struct store *s, struct hw_err *e)
{
	int r = file_walk(s->gone, ".", sweep_one, s, e);

	return r < 0 ? r : store_trim_stale(s, e);
}

/* ---- opening ------------------------------------------------------------------- */

static int load_usage(struct store *s, struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { 0 };
	int r = db_query(s->db, "SELECT total(disk), total(inodes), count(*) FROM layers",
			 DB_NO_VALUES, &q, e);

	if (r == 0)
		r = db_step(&q, e);
	if (r > 0)
		s->usage =
			(struct store_usage){ db_int(&q, 0), db_int(&q, 1), (size_t)db_int(&q, 2) };
	return r < 0 ? r : 0;
}

static int store_open_db(struct store *s, struct hw_err *e)
{
	autofree char *path = str_printf("%s/images.db", s->root);
	int r = db_open(path, &store_db, &s->db, e);

	if (r == -ENOSPC && store_unreserve(s))
		r = db_open(path, &store_db, &s->db, e);
	return r < 0 ? r : db_open_reader(s->db, store_db.busy_ms, &s->reads, e);
}

static int store_load(struct store *s, struct hw_err *e)
{
	const struct store_snapshot *all = NULL;
	int r = store_open_db(s, e);

	if (r == 0)
		r = store_clear(s, e);
	if (r == 0)
		r = load_usage(s, e);
	if (r == 0)
		r = store_draft_all(s, &all, e);
	if (r < 0)
		return r;
	store_publish(s, &all);
	store_reserve(s);
	return 0;
}

static struct store *store_new(const char *root)
{
	struct store *s = mem_new(sizeof(*s));

	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->reading, NULL);
	pthread_mutex_init(&s->publish, NULL);
	s->root = str_copy(root);
	s->lock_fd = s->dir = s->layers = s->tmp = s->gone = -1;
	s->held = map_new(free);
	s->doubted = map_new(NULL);
	return s;
}

AUTO_DEFINE(store_close, struct store);

/**
 * store_open() - open the store, or make it
 * @root: the folder and those above it are made
 *
 * Return: 0; -EBUSY: another process has it; -ENOTSUP: it is newer than we know
 */
int store_open(const char *root, struct store **ret_store, struct hw_err *e)
{
	AUTO(store_close) struct store *s = store_new(root);
	int r = store_folders(s, e);

	if (r == 0)
		r = store_load(s, e);
	if (r < 0)
		return err_ctx(e, "open the image store");
	*ret_store = take_ptr(s);
	return 0;
}

/** store_close() - close it; nobody uses it any more */
void store_close(struct store *s)
{
	if (!s)
		return;
	store_snapshot_put(s->snapshot);
	db_close(s->reads);
	db_close(s->db);
	map_free(s->held);
	map_free(s->doubted);
	hw_strings_free(&s->pinned);
	mem_close_fd(&s->layers);
	mem_close_fd(&s->tmp);
	mem_close_fd(&s->gone);
	mem_close_fd(&s->dir);
	mem_close_fd(&s->lock_fd); /* last: now another one may open it */
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->reading);
	pthread_mutex_destroy(&s->publish);
	free(s->root);
	free(s);
}

const char *store_root(const struct store *s)
{
	return s->root;
}

void store_add_usage(struct store *s, int64_t bytes, int64_t inodes, int layers)
{
	pthread_mutex_lock(&s->publish);
	s->usage.bytes += bytes;
	s->usage.inodes += inodes;
	s->usage.layers += (size_t)layers;
	pthread_mutex_unlock(&s->publish);
}

/** store_usage() - what all layers take, as the database has it */
void store_usage(struct store *s, struct store_usage *ret_usage)
{
	pthread_mutex_lock(&s->publish);
	*ret_usage = s->usage;
	pthread_mutex_unlock(&s->publish);
}
