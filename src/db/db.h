/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db/db.h - SQLite databases: schema migration, statements, transactions
 *
 * What:  open a database and migrate its schema; run statements with parameters;
 *        transactions that are rolled back unless they are committed.
 * Rules: only one thread at a time may use a handle; callers must use a lock.
 *        Text and blobs of a row are valid until the next db_step() or
 *        db_query_done(). Unless stated otherwise, functions that return int return
 *        0 or a negative errno: -ENOSPC, -EBUSY (locked by another handle), -EUCLEAN
 *        (damaged), -EEXIST (constraint violated), -EINVAL (invalid statement) ...
 *        Commits do not wait for checkpoints of the write-ahead log: a thread runs
 *        them, and logs a failure. It starts with the first checkpoint. Only while
 *        commits follow each other without a pause, one of them waits for each
 *        4 MiB of log.
 *
 *	AUTO(db_query_done) struct db_query q = { 0 };
 *	r = db_query(db, "SELECT size FROM files WHERE name = ?", DB_VALUES(DB_TEXT(name)), &q, e);
 *	while (r >= 0 && (r = db_step(&q, e)) > 0)
 *		sum += db_int(&q, 0);
 */
#ifndef DB_DB_H
#define DB_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

struct db;

struct db_options {
	/* migrations[i] contains the statements that change schema version i to i + 1. A new file
	 * has version 0. Never change a released migration: append a new one. */
	const char *const *migrations;
	size_t n_migrations;
	bool durable;	 /* committed data is on disk; false: a power cut may lose it */
	int busy_ms;	 /* ms to wait for a lock of another handle or process */
	bool must_exist; /* fail with -ENODATA, and change nothing, if there is no schema yet */
	bool check;	 /* read the whole file, and fail with -EUCLEAN if it is damaged */
	bool reserve; /* allocate the write-ahead log, so that small changes succeed on a full disk */
};

/* Opens a database, creating it with mode 0600 if needed, and migrates its schema.
 * On a full disk other processes may be unable to open it until db_close().
 * Return: 0; -ENODATA: see must_exist; -ENOTSUP, with the file unchanged, if its schema is newer than
 * the last migration; -EUCLEAN if the file can be read, but is damaged or not a database */
int db_open(const char *path, const struct db_options *options, struct db **ret_db,
	    struct hw_err *e);
/* Opens a second handle of an open database, for reading in another thread. Close it before the
 * first handle. Never open and close the file in any other way: that would release SQLite's locks,
 * because POSIX locks belong to the process. */
int db_open_reader(struct db *first, int busy_ms, struct db **ret_db, struct hw_err *e);
/* Accepts NULL. All queries must have ended. The last handle of a database copies the write-ahead
 * log to the database and deletes it. */
void db_close(struct db *db);

AUTO_DEFINE(db_close, struct db);

/* ---- statements -------------------------------------------------------------- */

enum db_kind { DB_KIND_NULL, DB_KIND_INT, DB_KIND_TEXT, DB_KIND_BLOB };

struct db_value {
	enum db_kind kind;
	int64_t number;
	const void *data; /* a NULL pointer is SQL's NULL */
	size_t len;
};

/* clang-format off */
#define DB_INT(n)	  { .kind = DB_KIND_INT, .number = (n) }
#define DB_TEXT(s)	  { .kind = DB_KIND_TEXT, .data = (s) }
#define DB_BLOB(p, size)  { .kind = DB_KIND_BLOB, .data = (p), .len = (size) }
#define DB_NULL		  { .kind = DB_KIND_NULL }
/* clang-format on */
/* One value for each "?" of a statement, in order. They must stay valid until db_query_done(). */
#define DB_VALUES(...)                                                                             \
	(const struct db_value[]){ __VA_ARGS__ },                                                  \
		sizeof((const struct db_value[]){ __VA_ARGS__ }) / sizeof(struct db_value)
#define DB_NO_VALUES NULL, 0

struct db_query {
	struct db *db;
	struct sqlite3_stmt *stmt;
};

/* Prepares a statement and binds its values; db_step() runs it. */
int db_query(struct db *db, const char *sql, const struct db_value *values, size_t n,
	     struct db_query *ret_query, struct hw_err *e);
/* Advances to the next row. Return: 1 if there is a row; 0 after the last row */
int db_step(struct db_query *q, struct hw_err *e);
void db_query_done(struct db_query *q);

AUTO_VALUE_DEFINE(db_query_done, struct db_query);

/* Columns of the current row, counted from 0. SQL's NULL is read as 0 and "". */
int64_t db_int(struct db_query *q, int column);
const char *db_text(struct db_query *q, int column);
const void *db_blob(struct db_query *q, int column, size_t *ret_len);
bool db_is_null(struct db_query *q, int column);

/* Runs a statement and ignores its rows. */
int db_run(struct db *db, const char *sql, const struct db_value *values, size_t n,
	   struct hw_err *e);
int64_t db_changes(struct db *db); /* number of rows that the last statement changed */
/* Reads the first column of the first row. Return: 1 if there is a row; 0 if not, with
 * *ret_number unchanged */
int db_get_int(struct db *db, const char *sql, const struct db_value *values, size_t n,
	       int64_t *ret_number, struct hw_err *e);

/* ---- transactions ------------------------------------------------------------ */

struct db_transaction {
	struct db *db; /* NULL: already committed, or not begun */
};

/* Begins a transaction. Other handles and processes cannot write until it ends. */
int db_begin(struct db *db, struct db_transaction *ret_change, struct hw_err *e);
/* If db_commit() fails, call db_transaction_done() to roll back. */
int db_commit(struct db_transaction *c, struct hw_err *e);
void db_transaction_done(struct db_transaction *c); /* rolls back, unless committed */

AUTO_VALUE_DEFINE(db_transaction_done, struct db_transaction);

#endif
