/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db/db.c - SQLite databases: schema migration, statements, transactions
 *
 * How:   the schema version is stored in PRAGMA user_version and checked before
 *        anything is written. Each migration sets its version number in the same
 *        transaction. The journal is a write-ahead log. Caches are small, so that
 *        the daemon uses little memory.
 */
#include "db/db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/str.h"

#define DB_MODE 0600

struct db {
	sqlite3 *handle;
	char *path;
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

/* Sets the last error of this handle: "PATH: ACTION: MESSAGE", with SQLite's message. */
static int db_error(struct db *db, int code, const char *action, struct hw_err *e)
{
	int error = db_errno(db, code);
	const char *message = db->handle ? sqlite3_errmsg(db->handle) : sqlite3_errstr(code);

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
	if (r == 0)
		ret_change->db = db;
	return r;
}

int db_commit(struct db_transaction *c, struct hw_err *e)
{
	int r;

	r = db_exec(c->db, "COMMIT", e);
	if (r == 0)
		c->db = NULL;
	return r;
}

void db_transaction_done(struct db_transaction *c)
{
	/* after some errors SQLite has already rolled back */
	if (c->db && !sqlite3_get_autocommit(c->db->handle))
		sqlite3_exec(c->db->handle, "ROLLBACK", NULL, NULL, NULL);
	c->db = NULL;
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
	if (version < 0 || (uint64_t)version > options->n_migrations) {
		/* closing must not write to the file: no checkpoint of the write-ahead log */
		sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
		return err_text(e, -ENOTSUP,
				"%s: unsupported schema version %lld: this program supports "
				"versions up to %zu; was it written by a newer program?",
				db->path, (long long)version, options->n_migrations);
	}
	*ret_version = (size_t)version;
	return 0;
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

static int open_handle(struct db *db, const char *path, int flags, int busy_ms, struct hw_err *e)
{
	int code;

	db->path = str_copy(path);
	code = sqlite3_open_v2(path, &db->handle, flags | SQLITE_OPEN_NOMUTEX, NULL);
	if (code != SQLITE_OK)
		return db_error(db, code, "open", e);
	sqlite3_extended_result_codes(db->handle, 1);
	sqlite3_busy_timeout(db->handle, busy_ms);
	return 0;
}

int db_open(const char *path, const struct db_options *options, struct db **ret_db,
	    struct hw_err *e)
{
	AUTO(db_close) struct db *db = NULL;
	size_t version = 0;
	int fd, r;

	/* Create the file here, because SQLite would create a file that all users can read. Close
	 * it before SQLite opens it: closing it later would release SQLite's locks. */
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, DB_MODE);
	if (fd < 0)
		return err_set(e, -errno, "open %s", path);
	close(fd);
	db = mem_new(sizeof(*db));
	r = open_handle(db, path, SQLITE_OPEN_READWRITE, options->busy_ms, e);
	if (r < 0)
		return r;
	r = check_version(db, options, &version, e);
	if (r < 0)
		return r;
	r = db_exec(db,
		    "PRAGMA cache_size = -128; PRAGMA temp_store = MEMORY;"
		    "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 256;",
		    e);
	if (r < 0)
		return r;
	r = db_exec(db,
		    options->durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL",
		    e);
	if (r < 0)
		return r;
	r = migrate(db, options, version, e);
	if (r < 0)
		return r;
	*ret_db = take_ptr(db);
	return 0;
}

int db_open_reader(struct db *first, int busy_ms, struct db **ret_db, struct hw_err *e)
{
	AUTO(db_close) struct db *db = mem_new(sizeof(*db));
	int r;

	r = open_handle(db, first->path, SQLITE_OPEN_READONLY, busy_ms, e);
	if (r < 0)
		return r;
	r = db_exec(db, "PRAGMA cache_size = -128; PRAGMA temp_store = MEMORY", e);
	if (r < 0)
		return r;
	*ret_db = take_ptr(db);
	return 0;
}

void db_close(struct db *db)
{
	if (!db)
		return;
	sqlite3_close(db->handle);
	free(db->path);
	free(db);
}
