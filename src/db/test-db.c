/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db/test-db.c - databases in a folder of their own: schemas, statements, transactions
 */
#include "db/db.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs the ones above */
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/str.h"

static const char *const v1[] = { "CREATE TABLE t (k TEXT PRIMARY KEY, n INTEGER, b BLOB)" };
static const char *const v2[] = {
	"CREATE TABLE t (k TEXT PRIMARY KEY, n INTEGER, b BLOB)",
	"ALTER TABLE t ADD COLUMN more TEXT; UPDATE t SET more = 'was ' || k",
};
static const char *const broken[] = {
	"CREATE TABLE t (k TEXT PRIMARY KEY, n INTEGER, b BLOB)",
	"ALTER TABLE t ADD COLUMN more TEXT; INSERT INTO absent VALUES (1)",
};

static const struct db_options first = { v1, ARRAY_SIZE(v1), .durable = true, .busy_ms = 50 };
static const struct db_options second = { v2, ARRAY_SIZE(v2), .durable = true, .busy_ms = 50 };
static const struct db_options bad = { broken, ARRAY_SIZE(broken), .durable = true };

struct place {
	char dir[64];
	char path[80];
};

static int place_make(void **state)
{
	struct place *p = mem_new(sizeof(*p));

	snprintf(p->dir, sizeof(p->dir), "%.40s/db.XXXXXX", str_or(getenv("TMPDIR"), "/tmp"));
	*state = p;
	if (!mkdtemp(p->dir))
		return -1;
	snprintf(p->path, sizeof(p->path), "%s/x.db", p->dir);
	return 0;
}

static int place_remove(void **state)
{
	static const char *const names[] = { "x.db", "x.db-wal", "x.db-shm", "x.db-journal",
					     "filler" };
	struct place *p = *state;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		autofree char *path = str_printf("%s/%s", p->dir, names[i]);

		unlink(path);
	}
	umount2(p->dir, MNT_DETACH); /* one test has mounted something */
	r = rmdir(p->dir);
	free(p);
	return r;
}

static struct db *opened(void **state, const struct db_options *options)
{
	struct place *p = *state;
	struct hw_err e = { 0 };
	struct db *db = NULL;

	if (db_open(p->path, options, &db, &e) < 0)
		fail_msg("%s", e.msg);
	return db;
}

static int64_t number(struct db *db, const char *sql)
{
	struct hw_err e = { 0 };
	int64_t n = -1;

	if (db_get_int(db, sql, DB_NO_VALUES, &n, &e) < 0)
		fail_msg("%s", e.msg);
	return n;
}

static void run(struct db *db, const char *sql)
{
	struct hw_err e = { 0 };

	if (db_run(db, sql, DB_NO_VALUES, &e) < 0)
		fail_msg("%s", e.msg);
}

static void new_file(void **state)
{
	struct place *p = *state;
	AUTO(db_close) struct db *db = opened(state, &first);
	AUTO(db_query_done) struct db_query q = { 0 };
	struct hw_err e;
	struct stat st;

	assert_int_equal(number(db, "PRAGMA user_version"), 1);
	assert_int_equal(number(db, "PRAGMA synchronous"), 2); /* FULL */
	assert_int_equal(db_query(db, "PRAGMA journal_mode", DB_NO_VALUES, &q, &e), 0);
	assert_int_equal(db_step(&q, &e), 1);
	assert_string_equal(db_text(&q, 0), "wal");
	assert_int_equal(stat(p->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void values_come_back(void **state)
{
	AUTO(db_close) struct db *db = opened(state, &first);
	AUTO(db_query_done) struct db_query q = { 0 };
	struct hw_err e;
	size_t len = 0;

	assert_int_equal(db_run(db, "INSERT INTO t VALUES (?, ?, ?)",
				DB_VALUES(DB_TEXT("a'b"), DB_INT(INT64_MIN), DB_BLOB("x\0y", 3)),
				&e),
			 0);
	assert_int_equal(db_changes(db), 1);
	assert_int_equal(db_run(db, "INSERT INTO t VALUES (?, ?, ?)",
				DB_VALUES(DB_TEXT("b"), DB_NULL, DB_TEXT(NULL)), &e),
			 0);
	assert_int_equal(db_query(db, "SELECT k, n, b FROM t ORDER BY k", DB_NO_VALUES, &q, &e), 0);
	assert_int_equal(db_step(&q, &e), 1);
	assert_string_equal(db_text(&q, 0), "a'b");
	assert_true(db_int(&q, 1) == INT64_MIN);
	assert_memory_equal(db_blob(&q, 2, &len), "x\0y", 3);
	assert_int_equal(len, 3);
	assert_int_equal(db_step(&q, &e), 1);
	assert_true(db_is_null(&q, 1));
	assert_int_equal(db_int(&q, 1), 0);
	assert_string_equal(db_text(&q, 2), "");
	assert_int_equal(db_step(&q, &e), 0);
}

static void wrong_statements(void **state)
{
	AUTO(db_close) struct db *db = opened(state, &first);
	struct hw_err e = { 0 };

	assert_int_equal(db_run(db, "SELECT x FROM absent", DB_NO_VALUES, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "no such table: absent"));
	assert_int_equal(db_run(db, "DELETE FROM t WHERE k = ?", DB_NO_VALUES, &e), -EINVAL);
	run(db, "INSERT INTO t VALUES ('a', 1, NULL)");
	assert_int_equal(db_run(db, "INSERT INTO t VALUES ('a', 2, NULL)", DB_NO_VALUES, &e),
			 -EEXIST);
}

static void change_is_rolled_back(void **state)
{
	AUTO(db_close) struct db *db = opened(state, &first);
	struct hw_err e;

	{
		AUTO(db_change_done) struct db_change change = { 0 };

		assert_int_equal(db_begin(db, &change, &e), 0);
		run(db, "INSERT INTO t VALUES ('a', 1, NULL)");
		assert_int_equal(number(db, "SELECT count(*) FROM t"), 1);
	}
	assert_int_equal(number(db, "SELECT count(*) FROM t"), 0);
	{
		AUTO(db_change_done) struct db_change change = { 0 };

		assert_int_equal(db_begin(db, &change, &e), 0);
		run(db, "INSERT INTO t VALUES ('a', 1, NULL)");
		assert_int_equal(db_commit(&change, &e), 0);
	}
	assert_int_equal(number(db, "SELECT count(*) FROM t"), 1);
}

static void migrates(void **state)
{
	struct db *db = opened(state, &first);

	run(db, "INSERT INTO t VALUES ('a', 1, NULL)");
	db_close(db);
	for (int i = 0; i < 2; i++) { /* the second time there is nothing to do */
		db = opened(state, &second);
		assert_int_equal(number(db, "PRAGMA user_version"), 2);
		assert_int_equal(number(db, "SELECT count(*) FROM t WHERE more = 'was a'"), 1);
		db_close(db);
	}
}

static void migration_that_fails(void **state)
{
	struct place *p = *state;
	struct db *db = opened(state, &first);
	struct hw_err e = { 0 };

	run(db, "INSERT INTO t VALUES ('a', 1, NULL)");
	db_close(db);
	assert_int_equal(db_open(p->path, &bad, &db, &e), -EINVAL);
	assert_true(str_starts(e.msg, "bring the schema to version 2: "));
	db = opened(state, &first);
	assert_int_equal(number(db, "PRAGMA user_version"), 1);
	assert_int_equal(number(db, "SELECT count(*) FROM t"), 1);
	db_close(db);
}

static void whole_file(const char *path, struct buf *ret)
{
	struct hw_err e = { 0 };

	if (file_read(AT_FDCWD, path, 1 << 24, ret, &e) < 0)
		fail_msg("%s", e.msg);
}

/* A file of another program's, without a write-ahead log. */
static void make_foreign(const char *path, const char *sql)
{
	sqlite3 *handle = NULL;

	assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
	assert_int_equal(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(handle);
}

static void newer_schema(void **state)
{
	struct place *p = *state;
	AUTO(buf_done) struct buf before = { 0 }, after = { 0 };
	autofree char *log = str_printf("%s-wal", p->path);
	struct hw_err e = { 0 };
	struct db *db = NULL;

	make_foreign(p->path, "CREATE TABLE other (x); PRAGMA user_version = 7");
	whole_file(p->path, &before);
	assert_int_equal(db_open(p->path, &second, &db, &e), -ENOTSUP);
	assert_null(db);
	assert_non_null(strstr(e.msg, "version 7, but this program knows only up to 2"));
	whole_file(p->path, &after);
	assert_int_equal(before.len, after.len);
	assert_memory_equal(before.data, after.data, before.len);
	assert_int_equal(access(log, F_OK), -1);
}

/* A newer program that was killed: what it did last is in its log alone. */
static void newer_schema_in_the_log(void **state)
{
	struct place *p = *state;
	struct buf before[2] = { 0 }, after[2] = { 0 };
	autofree char *log = str_printf("%s-wal", p->path);
	struct hw_err e = { 0 };
	struct db *db = NULL;
	pid_t pid;

	db_close(opened(state, &first));
	pid = fork();
	if (pid == 0) {
		make_foreign(p->path, "PRAGMA wal_autocheckpoint = 0");
		db = opened(state, &second);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	whole_file(p->path, &before[0]);
	whole_file(log, &before[1]);
	assert_true(before[1].len > 0);
	assert_int_equal(db_open(p->path, &first, &db, &e), -ENOTSUP);
	whole_file(p->path, &after[0]);
	whole_file(log, &after[1]);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(before[i].len, after[i].len);
		assert_memory_equal(before[i].data, after[i].data, before[i].len);
		buf_done(&before[i]);
		buf_done(&after[i]);
	}
	db_close(opened(state, &second));
}

static void not_a_database(void **state)
{
	struct place *p = *state;
	static char noise[8192];
	struct hw_err e = { 0 };
	struct db *db = NULL;

	memset(noise, 'n', sizeof(noise));
	assert_int_equal(file_replace(AT_FDCWD, p->path, noise, sizeof(noise), 0600, 0, &e), 0);
	assert_int_equal(db_open(p->path, &first, &db, &e), -EUCLEAN);
	assert_non_null(strstr(e.msg, "file is not a database"));
	assert_int_equal(db_open("/nonexistent/x.db", &first, &db, &e), -ENOENT);
}

static void somebody_else_writes(void **state)
{
	AUTO(db_close) struct db *db = opened(state, &first), *other = opened(state, &first);
	AUTO(db_change_done) struct db_change change = { 0 }, second_change = { 0 };
	struct hw_err e;

	assert_int_equal(db_begin(db, &change, &e), 0);
	assert_int_equal(db_begin(other, &second_change, &e), -EBUSY);
	assert_int_equal(number(other, "SELECT count(*) FROM t"), 0); /* readers go on */
}

static void no_space(void **state)
{
	struct place *p = *state;
	struct hw_err e = { 0 };
	struct db *db;
	int r = 0;

	if (mount("none", p->dir, "tmpfs", 0, "size=256k") < 0)
		skip();
	db = opened(state, &first);
	for (int i = 0; i < 1000 && r == 0; i++)
		r = db_run(db, "INSERT INTO t VALUES (?, 0, zeroblob(4000))",
			   DB_VALUES(DB_BLOB(&i, sizeof(i))), &e);
	assert_int_equal(r, -ENOSPC);
	db_close(db);
	db = opened(state, &first);
	assert_true(number(db, "SELECT count(*) FROM t") > 5);
	db_close(db);
}

/* Killed by SIGKILL after a commit: the next one to open it finds what was committed, no more. */
static void killed(void **state)
{
	struct db *db;
	struct hw_err e;
	pid_t pid = fork();

	if (pid == 0) {
		struct db_change change = { 0 };

		db = opened(state, &first);
		run(db, "INSERT INTO t VALUES ('a', 1, NULL)");
		if (db_begin(db, &change, &e) == 0)
			run(db, "INSERT INTO t VALUES ('b', 1, NULL)");
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	db = opened(state, &first);
	assert_int_equal(number(db, "SELECT count(*) FROM t"), 1);
	db_close(db);
}

#define TEST(name, f)                                                                              \
	{                                                                                          \
		name, f, place_make, place_remove                                                  \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("db: a new file has the newest schema, a log and mode 0600", new_file),
		TEST("db: values come back as they were given", values_come_back),
		TEST("db: a wrong statement says what is wrong", wrong_statements),
		TEST("db: a change that is not committed is rolled back", change_is_rolled_back),
		TEST("db: an older schema is brought up to date, once", migrates),
		TEST("db: a migration that fails changes nothing", migration_that_fails),
		TEST("db: a newer schema is refused and the file not touched", newer_schema),
		TEST("db: a newer schema that is only in the log is refused too",
		     newer_schema_in_the_log),
		TEST("db: a file that is no database is refused", not_a_database),
		TEST("db: while another writes, a writer gives up and a reader goes on",
		     somebody_else_writes),
		TEST("db: a full disk is an error, and what was there stays", no_space),
		TEST("db: after a kill there is what was committed", killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
