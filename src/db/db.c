/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db/db.c - SQLite databases: schema migration, statements, transactions
 *
 * How:   the schema version is stored in PRAGMA user_version and checked before
 *        anything is written. Each migration sets its version number in the same
 *        transaction. The journal is a write-ahead log, and a thread copies it to
 *        the database (see "checkpoints" below). Caches are small, so that the
 *        daemon uses little memory.
 */
#include "db/db.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/log.h"
#include "base/os/thread.h"
#include "base/str.h"

#define DB_MODE	   0600
#define READ_BYTES 16384
#define CACHE	   "PRAGMA cache_size = -128; PRAGMA temp_store = MEMORY;"

/* See "checkpoints" below. Pages have 4 KiB. */
#define CHECKPOINT_PAGES   256
#define LOG_PAGES_MAX	   1024
#define LOG_BYTES_MAX	   "4194304" /* LOG_PAGES_MAX pages */
#define LOG_RESERVE	   (2 << 20) /* bytes: more than the log has between two checkpoints */
#define CHECKPOINT_BUSY_MS 100	     /* to wait for readers, which are short */

enum checkpoint { CHECKPOINT_NONE, CHECKPOINT_PASSIVE, CHECKPOINT_RESTART };

/* All zero in a handle that only reads. */
struct checkpointer {
	/* used by the thread that commits */
	int asked_at;  /* length of the log when a checkpoint was requested last, in pages */
	int waited_at; /* length of the log when a commit waited last */
	bool has_thread;
	pthread_t thread;

	pthread_mutex_t lock; /* protects the rest */
	pthread_cond_t changed;
	enum checkpoint wanted, running;
	bool stop;
	bool failed; /* the last checkpoint failed, and the error was logged */
};

struct db {
	sqlite3 *handle;
	char *path;
	bool writes; /* the checkpointer is used */
	const char *vfs;
	struct checkpointer checkpointer;
};

/* The errno of each primary result code. All other codes are programming errors. */
static const struct {
	int code;
	int error;
} db_errors[] = {
	{ SQLITE_FULL, ENOSPC },     { SQLITE_BUSY, EBUSY },	 { SQLITE_LOCKED, EBUSY },
	{ SQLITE_CORRUPT, EUCLEAN }, { SQLITE_NOTADB, EUCLEAN }, { SQLITE_READONLY, EROFS },
	{ SQLITE_CANTOPEN, EIO },    { SQLITE_IOERR, EIO },	 { SQLITE_PERM, EACCES },
	{ SQLITE_AUTH, EACCES },     { SQLITE_TOOBIG, EFBIG },	 { SQLITE_CONSTRAINT, EEXIST },
};

static int db_errno(struct db *db, int code)
{
	int primary = code & 0xff;
	int system = db->handle ? sqlite3_system_errno(db->handle) : 0;

	if (primary == SQLITE_NOMEM)
		mem_exhausted();
	if (code == SQLITE_IOERR_SHMSIZE)
		return ENOSPC; /* the shared-memory file of the write-ahead log could not grow */
	if ((primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN) && system > 0)
		return system;
	for (size_t i = 0; i < ARRAY_SIZE(db_errors); i++)
		if (db_errors[i].code == primary)
			return db_errors[i].error;
	return EINVAL;
}

static void request_checkpoint(struct db *db, enum checkpoint kind);

/* Sets the last error of this handle: "PATH: ACTION: MESSAGE", with SQLite's message. If the disk is
 * full, a checkpoint may make blocks of the log available. */
static int db_error(struct db *db, int code, const char *action, struct hw_err *e)
{
	int error = db_errno(db, code);
	const char *message = db->handle ? sqlite3_errmsg(db->handle) : sqlite3_errstr(code);

	if (error == ENOSPC && db->writes)
		request_checkpoint(db, CHECKPOINT_PASSIVE);
	return err_text(e, -error, "%s: %.128s: %s", db->path, action, message);
}

/* Runs any number of statements without parameters. */
static int db_exec(struct db *db, const char *sql, struct hw_err *e)
{
	int code;

	code = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
	return code == SQLITE_OK ? 0 : db_error(db, code, sql, e);
}

/* ---- statements --------------------------------------------------------------- */

static int bind_value(sqlite3_stmt *stmt, int at, const struct db_value *v)
{
	switch (v->data || v->kind == DB_KIND_INT ? v->kind : DB_KIND_NULL) {
	case DB_KIND_INT:
		return sqlite3_bind_int64(stmt, at, v->number);
	case DB_KIND_TEXT:
		return sqlite3_bind_text64(stmt, at, v->data, strlen(v->data), SQLITE_STATIC,
					   SQLITE_UTF8);
	case DB_KIND_BLOB:
		return sqlite3_bind_blob64(stmt, at, v->data, v->len, SQLITE_STATIC);
	default:
		return sqlite3_bind_null(stmt, at);
	}
}

int db_query(struct db *db, const char *sql, const struct db_value *values, size_t n,
	     struct db_query *ret_query, struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { .db = db };
	int code;

	code = sqlite3_prepare_v2(db->handle, sql, -1, &q.stmt, NULL);
	if (code != SQLITE_OK)
		return db_error(db, code, sql, e);
	if ((size_t)sqlite3_bind_parameter_count(q.stmt) != n)
		return err_text(e, -EINVAL,
				"%s: %s: parameter count mismatch: got %zu values, want %d",
				db->path, sql, n, sqlite3_bind_parameter_count(q.stmt));
	for (size_t i = 0; i < n; i++) {
		code = bind_value(q.stmt, (int)i + 1, &values[i]);
		if (code != SQLITE_OK)
			return db_error(db, code, sql, e);
	}
	*ret_query = (struct db_query){ db, take_ptr(q.stmt) };
	return 0;
}

int db_step(struct db_query *q, struct hw_err *e)
{
	int code;

	code = sqlite3_step(q->stmt);
	if (code == SQLITE_ROW)
		return 1;
	return code == SQLITE_DONE ? 0 : db_error(q->db, code, sqlite3_sql(q->stmt), e);
}

void db_query_done(struct db_query *q)
{
	sqlite3_finalize(q->stmt);
	q->stmt = NULL;
}

int64_t db_int(struct db_query *q, int column)
{
	return sqlite3_column_int64(q->stmt, column);
}

const char *db_text(struct db_query *q, int column)
{
	const unsigned char *text = sqlite3_column_text(q->stmt, column);

	return text ? (const char *)text : "";
}

const void *db_blob(struct db_query *q, int column, size_t *ret_len)
{
	const void *data = sqlite3_column_blob(q->stmt, column);

	*ret_len = (size_t)sqlite3_column_bytes(q->stmt, column);
	return data;
}

bool db_is_null(struct db_query *q, int column)
{
	return sqlite3_column_type(q->stmt, column) == SQLITE_NULL;
}

int db_run(struct db *db, const char *sql, const struct db_value *values, size_t n,
	   struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { .db = db };
	int r;

	r = db_query(db, sql, values, n, &q, e);
	while (r >= 0 && (r = db_step(&q, e)) > 0)
		;
	return r;
}

int64_t db_changes(struct db *db)
{
	return sqlite3_changes64(db->handle);
}

int db_get_int(struct db *db, const char *sql, const struct db_value *values, size_t n,
	       int64_t *ret_number, struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { .db = db };
	int r;

	r = db_query(db, sql, values, n, &q, e);
	if (r == 0)
		r = db_step(&q, e);
	if (r > 0)
		*ret_number = db_int(&q, 0);
	return r;
}

/* ---- transactions ------------------------------------------------------------- */

int db_begin(struct db *db, struct db_transaction *ret_change, struct hw_err *e)
{
	int r;

	r = db_exec(db, "BEGIN IMMEDIATE", e);
	if (r < 0)
		return r;
	ret_change->db = db;
	return 0;
}

int db_commit(struct db_transaction *c, struct hw_err *e)
{
	int r;

	r = db_exec(c->db, "COMMIT", e);
	if (r < 0)
		return r;
	c->db = NULL;
	return 0;
}

void db_transaction_done(struct db_transaction *c)
{
	/* after some errors SQLite has already rolled back */
	if (c->db && !sqlite3_get_autocommit(c->db->handle))
		sqlite3_exec(c->db->handle, "ROLLBACK", NULL, NULL, NULL);
	c->db = NULL;
}

/* ---- checkpoints ---------------------------------------------------------------- */

/*
 * A checkpoint copies the write-ahead log to the database and syncs both. SQLite would do that in
 * the commit that makes the log longer than a limit; here a thread does it, with its own connection.
 * The first checkpoint starts the thread, db_close() ends it. The connection is opened and closed by
 * SQLite, which knows all connections of the process, so it releases no locks of the others.
 *
 *	after CHECKPOINT_PAGES more pages   PASSIVE: blocks neither readers nor writers
 *	after LOG_PAGES_MAX more pages      RESTART, and the commit waits for it
 *	when a write fails with ENOSPC      PASSIVE: the next commit may need no new blocks
 *
 * After a PASSIVE checkpoint of the whole log, the next commit starts the log again at its beginning.
 * That is the usual case. If commits follow each other without a pause, each checkpoint misses those
 * that were made while it ran, and the log would grow forever. A commit must then wait until the
 * thread has caught up. It waits in the hook: it is complete, and its handle holds no lock. RESTART
 * excludes writers and waits for readers. If the commit did not wait, the next BEGIN could fail with
 * -EBUSY. TRUNCATE made commits slower when measured, probably as the file must grow again.
 * A read transaction that does not end makes the log grow in any case;
 * journal_size_limit makes the file small again after that.
 */

static int open_handle(struct db *db, const char *path, const char *vfs, int flags, int busy_ms,
		       struct hw_err *e);

static int open_checkpoint_handle(const struct db *first, struct db **ret_db, struct hw_err *e)
{
	AUTO(db_close) struct db *db = mem_new(sizeof(*db));
	int r;

	r = open_handle(db, first->path, first->vfs, SQLITE_OPEN_READWRITE, CHECKPOINT_BUSY_MS, e);
	if (r < 0)
		return r;
	/* sqlite3_wal_checkpoint_v2() ignores a log that the connection has not read before */
	r = db_exec(db, CACHE "PRAGMA synchronous = FULL; PRAGMA schema_version", e);
	if (r < 0)
		return r;
	*ret_db = take_ptr(db);
	return 0;
}

/* @own: the thread's connection, opened by the first call */
static int checkpoint(const struct db *db, enum checkpoint kind, struct db **own, struct hw_err *e)
{
	int mode =
		kind == CHECKPOINT_RESTART ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE;
	int code, r;

	if (!*own) {
		r = open_checkpoint_handle(db, own, e);
		if (r < 0)
			return r;
	}
	code = sqlite3_wal_checkpoint_v2((*own)->handle, NULL, mode, NULL, NULL);
	/* busy: readers needed a part of the log; the next checkpoint copies the rest */
	if (code == SQLITE_OK || (code & 0xff) == SQLITE_BUSY)
		return 0;
	return db_error(*own, code, "checkpoint", e);
}

/* The thread that commits cannot report the error: its commit has succeeded. Call it with the lock
 * held. Only the first of several failures is logged. */
static void note_result(struct checkpointer *c, int r, const struct hw_err *e)
{
	if (r < 0 && !c->failed)
		log_warn("%s", e->msg);
	c->failed = r < 0;
}

static void *run_checkpoints(void *arg)
{
	AUTO(db_close) struct db *own = NULL;
	struct db *db = arg;
	struct checkpointer *c = &db->checkpointer;
	struct hw_err e;
	int r;

	pthread_mutex_lock(&c->lock);
	for (;;) {
		while (!c->stop && c->wanted == CHECKPOINT_NONE)
			pthread_cond_wait(&c->changed, &c->lock);
		if (c->stop)
			break;
		c->running = c->wanted;
		c->wanted = CHECKPOINT_NONE;
		pthread_mutex_unlock(&c->lock);
		r = checkpoint(db, c->running, &own, &e);
		pthread_mutex_lock(&c->lock);
		note_result(c, r, &e);
		c->running = CHECKPOINT_NONE;
		pthread_cond_broadcast(&c->changed);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* RESTART returns when the checkpoint has ended. */
static void request_checkpoint(struct db *db, enum checkpoint kind)
{
	struct checkpointer *c = &db->checkpointer;
	struct hw_err e;
	int r;

	pthread_mutex_lock(&c->lock);
	if (!c->has_thread) {
		r = thread_start(run_checkpoints, db, &c->thread, &e);
		c->has_thread = r == 0;
		if (r < 0) {
			err_ctx(&e, "%s: checkpoint", db->path);
			note_result(c, r, &e);
		}
	}
	if (c->has_thread) {
		c->wanted = kind;
		pthread_cond_broadcast(&c->changed);
		while (kind == CHECKPOINT_RESTART && (c->wanted == kind || c->running == kind))
			pthread_cond_wait(&c->changed, &c->lock);
	}
	pthread_mutex_unlock(&c->lock);
}

/* SQLite calls this after each commit. @pages: length of the log, including pages that are already
 * in the database */
static int on_commit(void *arg, sqlite3 *handle, const char *schema, int pages)
{
	struct db *db = arg;
	struct checkpointer *c = &db->checkpointer;

	(void)handle;
	(void)schema;
	if (pages < c->asked_at) /* the log started again */
		c->asked_at = c->waited_at = 0;
	if (pages - c->waited_at >= LOG_PAGES_MAX) {
		c->asked_at = c->waited_at = pages;
		request_checkpoint(db, CHECKPOINT_RESTART);
	} else if (pages - c->asked_at >= CHECKPOINT_PAGES) {
		c->asked_at = pages;
		request_checkpoint(db, CHECKPOINT_PASSIVE);
	}
	return SQLITE_OK; /* another value would be the result of the COMMIT */
}

/* Replaces SQLite's own hook, which runs a checkpoint in the thread that commits. */
static void start_checkpoints(struct db *db)
{
	pthread_mutex_init(&db->checkpointer.lock, NULL);
	pthread_cond_init(&db->checkpointer.changed, NULL);
	sqlite3_wal_hook(db->handle, on_commit, db);
	db->writes = true;
}

static void stop_checkpoints(struct db *db)
{
	struct checkpointer *c = &db->checkpointer;

	if (c->has_thread) {
		pthread_mutex_lock(&c->lock);
		c->stop = true;
		pthread_cond_broadcast(&c->changed);
		pthread_mutex_unlock(&c->lock);
		pthread_join(c->thread, NULL);
	}
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
}

/* ---- opening ------------------------------------------------------------------ */

static int check_version(struct db *db, const struct db_options *options, size_t *ret_version,
			 struct hw_err *e)
{
	int64_t version = 0;
	int r;

	r = db_get_int(db, "PRAGMA user_version", DB_NO_VALUES, &version, e);
	if (r < 0)
		return r;
	if (version < 0 || (uint64_t)version > options->n_migrations)
		return err_text(e, -ENOTSUP,
				"%s: unsupported schema version %lld: this program supports "
				"versions up to %zu; was it written by a newer program?",
				db->path, (long long)version, options->n_migrations);
	if (version == 0 && options->must_exist)
		return err_text(e, -ENODATA, "%s has no tables", db->path);
	*ret_version = (size_t)version;
	return 0;
}

/* Creates the file, because SQLite would create a file that all users can read, and closes it before
 * SQLite opens it: closing it later would release SQLite's locks. */
static int prepare_file(const char *path, const struct db_options *options, struct hw_err *e)
{
	autoclose int fd = -1;
	struct stat st;

	fd = open(path, O_RDWR | (options->must_exist ? 0 : O_CREAT) | O_CLOEXEC | O_NOFOLLOW,
		  DB_MODE);
	if (fd < 0 && errno == ENOENT && options->must_exist)
		return err_text(e, -ENODATA, "%s does not exist", path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, -errno, "open %s", path);
	/* SQLite would delete the write-ahead log of an empty file */
	if (st.st_size == 0 && options->must_exist)
		return err_text(e, -ENODATA, "%s is empty", path);
	return 0;
}

/* quick_check finds pages that were overwritten or cut off; unlike integrity_check it does not
 * compare indexes with their tables, which would take much longer. */
static int check_pages(struct db *db, struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { .db = db };
	const char *text;
	int r;

	r = db_query(db, "PRAGMA quick_check(1)", DB_NO_VALUES, &q, e);
	if (r < 0)
		return r;
	r = db_step(&q, e);
	if (r < 0)
		return r;
	text = db_text(&q, 0);
	if (str_equal(text, "ok"))
		return 0;
	text = strrchr(text, '\n') ? strrchr(text, '\n') + 1 : text; /* the first line is a title */
	return err_text(e, -EUCLEAN, "%s is damaged: %.256s", db->path, text);
}

static int migrate(struct db *db, const struct db_options *options, size_t version,
		   struct hw_err *e)
{
	for (; version < options->n_migrations; version++) {
		AUTO(db_transaction_done) struct db_transaction change = { 0 };
		char set_version[64];
		int r;

		r = db_begin(db, &change, e);
		snprintf(set_version, sizeof(set_version), "PRAGMA user_version = %zu",
			 version + 1);
		if (r == 0)
			r = db_exec(db, options->migrations[version], e);
		if (r == 0)
			r = db_exec(db, set_version, e);
		if (r == 0)
			r = db_commit(&change, e);
		if (r < 0)
			return err_ctx(e, "migrate the schema to version %zu", version + 1);
	}
	return 0;
}

static int open_handle(struct db *db, const char *path, const char *vfs, int flags, int busy_ms,
		       struct hw_err *e)
{
	int code;

	db->path = str_copy(path);
	db->vfs = vfs;
	code = sqlite3_open_v2(path, &db->handle, flags | SQLITE_OPEN_NOMUTEX, vfs);
	if (code != SQLITE_OK)
		return db_error(db, code, "open", e);
	sqlite3_extended_result_codes(db->handle, 1);
	sqlite3_busy_timeout(db->handle, busy_ms);
	return 0;
}

/* Without the space, or on a file system that cannot allocate it, there is no reserve. */
static void reserve_log(const char *path)
{
	autofree char *name = str_printf("%s-wal", path);
	autoclose int fd = -1;

	fd = open(name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, LOG_RESERVE) < 0)
		log_debug("%s: allocate: %s", name, strerror(errno));
}

static int open_with(const char *vfs, const char *path, const struct db_options *options,
		     struct db **ret_db, struct hw_err *e)
{
	AUTO(db_close) struct db *db = NULL;
	size_t version = 0;
	int r;

	r = prepare_file(path, options, e);
	if (r < 0)
		return r;
	db = mem_new(sizeof(*db));
	r = open_handle(db, path, vfs, SQLITE_OPEN_READWRITE, options->busy_ms, e);
	if (r < 0)
		return r;
	/* If the file is rejected, closing must not write to it: no checkpoint of the write-ahead
	 * log. */
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	r = check_version(db, options, &version, e);
	if (r == 0 && options->check && version > 0)
		r = check_pages(db, e);
	if (r < 0)
		return r;
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
	r = db_exec(db,
		    CACHE "PRAGMA journal_mode = WAL; PRAGMA journal_size_limit = " LOG_BYTES_MAX,
		    e);
	if (r < 0)
		return r;
	start_checkpoints(db);
	r = db_exec(db,
		    options->durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL",
		    e);
	if (r < 0)
		return r;
	r = migrate(db, options, version, e);
	if (r < 0)
		return r;
	if (options->reserve)
		reserve_log(path);
	*ret_db = take_ptr(db);
	return 0;
}

/* SQLite keeps an index of the write-ahead log in the file PATH-shm, which the first handle truncates and
 * writes again. On a full disk that fails, because other programs use the blocks at once. Then the index is
 * in memory, and other processes cannot open the database. */
static int try_open(const char *path, const struct db_options *options, struct db **ret_db,
		    struct hw_err *e)
{
	int r;

	r = open_with("unix", path, options, ret_db, e);
	return r == -ENOSPC ? open_with("unix-excl", path, options, ret_db, e) : r;
}

static int read_through(const char *path, const char *suffix, struct hw_err *e)
{
	autofree char *name = str_printf("%s%s", path, suffix);
	autoclose int fd = -1;
	char room[READ_BYTES];
	ssize_t n;

	fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_set(e, -errno, "open %s", name);
	do
		n = read(fd, room, sizeof(room));
	while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 ? err_set(e, -errno, "read %s", name) : 0;
}

/* SQLite reports some errors of read(), such as EIO, as SQLITE_CORRUPT, and quick_check reports all as
 * damaged pages. So the files are read before they are called damaged. If that succeeds, the error may
 * have been a temporary one. */
int db_open(const char *path, const struct db_options *options, struct db **ret_db,
	    struct hw_err *e)
{
	int r;

	r = try_open(path, options, ret_db, e);
	if (r != -EUCLEAN)
		return r;
	r = read_through(path, "", e);
	if (r == 0)
		r = read_through(path, "-wal", e);
	/* if the file system is damaged, the files may be intact after its repair */
	return r < 0 ? err_replace(e, -EUCLEAN, -EIO) : try_open(path, options, ret_db, e);
}

int db_open_reader(struct db *first, int busy_ms, struct db **ret_db, struct hw_err *e)
{
	AUTO(db_close) struct db *db = mem_new(sizeof(*db));
	int r;

	r = open_handle(db, first->path, first->vfs, SQLITE_OPEN_READONLY, busy_ms, e);
	if (r < 0)
		return r;
	r = db_exec(db, CACHE, e);
	if (r < 0)
		return r;
	*ret_db = take_ptr(db);
	return 0;
}

void db_close(struct db *db)
{
	if (!db)
		return;
	if (db->writes)
		stop_checkpoints(db);
	sqlite3_close(db->handle);
	free(db->path);
	free(db);
}
