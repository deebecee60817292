/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db/query.c - statements with values, and the rows that they give
 */
#include "db/db.h"

#include <errno.h>
#include <string.h>

#include "db/handle.h"

static int query_bind(sqlite3_stmt *stmt, int at, const struct db_value *v)
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

/**
 * db_query() - prepare a statement with its values
 * @values: one for each "?"; what they point to stays until the query is done
 *
 * Return: 0, or negative errno
 */
int db_query(struct db *db, const char *sql, const struct db_value *values, size_t n,
	     struct db_query *ret_query, struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { .db = db };
	int code = sqlite3_prepare_v2(db->handle, sql, -1, &q.stmt, NULL);

	if (code != SQLITE_OK)
		return db_failed(db, code, sql, e);
	if ((size_t)sqlite3_bind_parameter_count(q.stmt) != n)
		return err_text(e, -EINVAL, "%s: %s: it wants another number of values", db->path,
				sql);
	for (size_t i = 0; i < n; i++) {
		code = query_bind(q.stmt, (int)i + 1, &values[i]);
		if (code != SQLITE_OK)
			return db_failed(db, code, sql, e);
	}
	*ret_query = (struct db_query){ db, take_ptr(q.stmt) };
	return 0;
}

/** db_step() - go to the next row */
int db_step(struct db_query *q, struct hw_err *e)
{
	int code = sqlite3_step(q->stmt);

	if (code == SQLITE_ROW)
		return 1;
	return code == SQLITE_DONE ? 0 : db_failed(q->db, code, sqlite3_sql(q->stmt), e);
}

/** db_query_done() - no more rows are wanted */
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

/** db_run() - run a statement whose rows, if any, do not matter */
int db_run(struct db *db, const char *sql, const struct db_value *values, size_t n,
	   struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { 0 };
	int r = db_query(db, sql, values, n, &q, e);

	while (r >= 0 && (r = db_step(&q, e)) > 0)
		;
	return r;
}

int64_t db_changes(struct db *db)
{
	return sqlite3_changes64(db->handle);
}

/** db_get_int() - ask for one number */
int db_get_int(struct db *db, const char *sql, const struct db_value *values, size_t n,
	       int64_t *ret_number, struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { 0 };
	int r = db_query(db, sql, values, n, &q, e);

	if (r == 0)
		r = db_step(&q, e);
	if (r > 0)
		*ret_number = db_int(&q, 0);
	return r;
}
