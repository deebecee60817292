/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db/db.h - a file of tables: SQLite, opened, brought up to date, asked
 *
 * What:  open a database and migrate its schema; run statements with values;
 *        transactions that are rolled back unless they were committed.
 * Rules: a database is used by one thread at a time: its owner has a lock.
 *        Text that a row gives is valid until the next db_step() or db_query_done().
 *        Errors carry a negative errno: -ENOSPC, -EBUSY, -EUCLEAN (damaged) ...
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
	/* The statements that lead from schema version i to i + 1. A new file has version 0. What
	 * has been released is never changed: another entry is added. */
	const char *const *migrations;
	size_t n_migrations;
	bool durable; /* a commit is on disk when it returns; else it may be lost by a power cut */
	int busy_ms;  /* to wait for another process */
};

/* -ENOTSUP: its schema is newer than the last migration; then nothing was changed. */
int db_open(const char *path, const struct db_options *options, struct db **ret_db,
	    struct hw_err *e);
/* Another handle of a database that this process has open, for another thread to read with. (To open
 * and close the file in any other way would take away SQLite's locks on it: they are of the process.) */
int db_open_reader(struct db *first, int busy_ms, struct db **ret_db, struct hw_err *e);
void db_close(struct db *db); /* every query is done */

AUTO_DEFINE(db_close, struct db);

/* ---- statements -------------------------------------------------------------- */

enum db_kind { DB_KIND_NULL, DB_KIND_INT, DB_KIND_TEXT, DB_KIND_BLOB };

struct db_value {
	enum db_kind kind;
	int64_t number;
	const void *data; /* NULL: NULL */
	size_t len;
};

/* clang-format off */
#define DB_INT(n)	  { .kind = DB_KIND_INT, .number = (n) }
#define DB_TEXT(s)	  { .kind = DB_KIND_TEXT, .data = (s) }
#define DB_BLOB(p, size)  { .kind = DB_KIND_BLOB, .data = (p), .len = (size) }
#define DB_NULL		  { .kind = DB_KIND_NULL }
/* clang-format on */
/* The values of a statement's "?", in order; borrowed until the query is done. */
#define DB_VALUES(...)                                                                             \
	(const struct db_value[]){ __VA_ARGS__ },                                                  \
		sizeof((const struct db_value[]){ __VA_ARGS__ }) / sizeof(struct db_value)
#define DB_NO_VALUES NULL, 0

struct db_query {
	struct db *db;
	struct sqlite3_stmt *stmt;
};

int db_query(struct db *db, const char *sql, const struct db_value *values, size_t n,
	     struct db_query *ret_query, struct hw_err *e);
int db_step(struct db_query *q, struct hw_err *e); /* 1: there is a row; 0: no more */
void db_query_done(struct db_query *q);

AUTO_VALUE_DEFINE(db_query_done, struct db_query);

/* Of the row, by column from 0. NULL is 0 and "". */
int64_t db_int(struct db_query *q, int column);
const char *db_text(struct db_query *q, int column);
const void *db_blob(struct db_query *q, int column, size_t *ret_len);
bool db_is_null(struct db_query *q, int column);

/* A statement without rows. Return: 0, or negative errno */
int db_run(struct db *db, const char *sql, const struct db_value *values, size_t n,
	   struct hw_err *e);
int64_t db_changes(struct db *db); /* rows that the last statement changed */
/* The first column of the first row. Return: 1; 0: there is none */
int db_get_int(struct db *db, const char *sql, const struct db_value *values, size_t n,
	       int64_t *ret_number, struct hw_err *e);

/* ---- transactions ------------------------------------------------------------ */

struct db_change {
	struct db *db; /* NULL: ended */
};

int db_begin(struct db *db, struct db_change *ret_change, struct hw_err *e);
int db_commit(struct db_change *c, struct hw_err *e);
void db_change_done(struct db_change *c); /* rolls back unless committed */

AUTO_VALUE_DEFINE(db_change_done, struct db_change);

#endif
