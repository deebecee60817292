/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db/handle.h - SQLite's own object and its errors, for the files of this folder
 */
#ifndef DB_HANDLE_H
#define DB_HANDLE_H

#include <sqlite3.h>

#include "base/err.h"

struct db {
	sqlite3 *handle;
	char *path;
};

/* What SQLite said last of this database, as an error: "PATH: WHAT: why". */
int db_failed(struct db *db, int code, const char *what, struct hw_err *e);

#endif
