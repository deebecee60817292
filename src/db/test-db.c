/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db/test-db.c - SQLite databases: schema migration, statements, transactions
 */
#include "db/db.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/os/thread.h"
#include "base/str.h"
#include "base/time.h"

static const char *const v1[] = { "CREATE TABLE t (k TEXT PRIMARY KEY, n INTEGER, b BLOB)" };
static const char *const v2[] = {
	"CREATE TABLE t (k TEXT PRIMARY KEY, n INTEGER, b BLOB)",
	"ALTER TABLE t ADD COLUMN more TEXT; UPDATE t SET more = 'was ' || k",
};
static const char *const broken[] = {
	"CREATE TABLE t (k TEXT PRIMARY KEY, n INTEGER, b BLOB)",
	"ALTER TABLE t ADD COLUMN more TEXT; INSERT INTO absent VALUES (1)",
};

static const struct db_options options_v1 = { v1, ARRAY_SIZE(v1), .durable = true, .busy_ms = 50 };
static const struct db_options options_v2 = { v2, ARRAY_SIZE(v2), .durable = true, .busy_ms = 50 };
static const struct db_options options_broken = { broken, ARRAY_SIZE(broken), .durable = true };

struct db_fixture {
	char dir[64];
	char path[80];
};

static int fixture_setup(void **state)
{
	struct db_fixture *p = mem_new(sizeof(*p));

	snprintf(p->dir, sizeof(p->dir), "%.40s/db.XXXXXX", str_or(getenv("TMPDIR"), "/tmp"));
	*state = p;
	if (!mkdtemp(p->dir))
		return -1;
	snprintf(p->path, sizeof(p->path), "%s/x.db", p->dir);
	return 0;
}

static int fixture_teardown(void **state)
{
	static const char *const names[] = { "x.db", "x.db-wal", "x.db-shm", "x.db-journal",
					     "filler" };
	struct db_fixture *p = *state;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		autofree char *path = str_printf("%s/%s", p->dir, names[i]);

		unlink(path);
	}
	umount2(p->dir, MNT_DETACH); /* for the test that mounts a tmpfs */
	r = rmdir(p->dir);
	free(p);
	return r;
}

static struct db *open_db(void **state, const struct db_options *options)
{
	struct db_fixture *p = *state;
	struct hw_err e = { 0 };
	struct db *db = NULL;

	if (db_open(p->path, options, &db, &e) < 0)
		fail_msg("%s", e.msg);
	return db;
}

static int64_t get_int(struct db *db, const char *sql)
{
	struct hw_err e = { 0 };
	int64_t n = -1;

	if (db_get_int(db, sql, DB_NO_VALUES, &n, &e) < 0)
		fail_msg("%s", e.msg);
	return n;
}

static void run_sql(struct db *db, const char *sql)
{
	struct hw_err e = { 0 };

	if (db_run(db, sql, DB_NO_VALUES, &e) < 0)
		fail_msg("%s", e.msg);
}

static void new_file(void **state)
{
	struct db_fixture *p = *state;
	AUTO(db_close) struct db *db = open_db(state, &options_v1);
	AUTO(db_query_done) struct db_query q = { 0 };
	struct hw_err e;
	struct stat st;

	assert_int_equal(get_int(db, "PRAGMA user_version"), 1);
	assert_int_equal(get_int(db, "PRAGMA synchronous"), 2); /* FULL */
	assert_int_equal(db_query(db, "PRAGMA journal_mode", DB_NO_VALUES, &q, &e), 0);
	assert_int_equal(db_step(&q, &e), 1);
	assert_string_equal(db_text(&q, 0), "wal");
	assert_int_equal(stat(p->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void values_come_back(void **state)
{
	AUTO(db_close) struct db *db = open_db(state, &options_v1);
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
	AUTO(db_close) struct db *db = open_db(state, &options_v1);
	struct hw_err e = { 0 };

	assert_int_equal(db_run(db, "SELECT x FROM absent", DB_NO_VALUES, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "no such table: absent"));
	assert_int_equal(db_run(db, "DELETE FROM t WHERE k = ?", DB_NO_VALUES, &e), -EINVAL);
	run_sql(db, "INSERT INTO t VALUES ('a', 1, NULL)");
	assert_int_equal(db_run(db, "INSERT INTO t VALUES ('a', 2, NULL)", DB_NO_VALUES, &e),
			 -EEXIST);
}

static void change_is_rolled_back(void **state)
{
	AUTO(db_close) struct db *db = open_db(state, &options_v1);
	struct hw_err e;

	{
		AUTO(db_transaction_done) struct db_transaction change = { 0 };

		assert_int_equal(db_begin(db, &change, &e), 0);
		run_sql(db, "INSERT INTO t VALUES ('a', 1, NULL)");
		assert_int_equal(get_int(db, "SELECT count(*) FROM t"), 1);
	}
	assert_int_equal(get_int(db, "SELECT count(*) FROM t"), 0);
	{
		AUTO(db_transaction_done) struct db_transaction change = { 0 };

		assert_int_equal(db_begin(db, &change, &e), 0);
		run_sql(db, "INSERT INTO t VALUES ('a', 1, NULL)");
		assert_int_equal(db_commit(&change, &e), 0);
	}
	assert_int_equal(get_int(db, "SELECT count(*) FROM t"), 1);
}

static void migrates(void **state)
{
	struct db *db = open_db(state, &options_v1);

	run_sql(db, "INSERT INTO t VALUES ('a', 1, NULL)");
	db_close(db);
	for (int i = 0; i < 2; i++) { /* opening it again migrates nothing */
		db = open_db(state, &options_v2);
		assert_int_equal(get_int(db, "PRAGMA user_version"), 2);
		assert_int_equal(get_int(db, "SELECT count(*) FROM t WHERE more = 'was a'"), 1);
		db_close(db);
	}
}

static void migration_that_fails(void **state)
{
	struct db_fixture *p = *state;
	struct db *db = open_db(state, &options_v1);
	struct hw_err e = { 0 };

	run_sql(db, "INSERT INTO t VALUES ('a', 1, NULL)");
	db_close(db);
	assert_int_equal(db_open(p->path, &options_broken, &db, &e), -EINVAL);
	assert_true(str_starts(e.msg, "migrate the schema to version 2: "));
	db = open_db(state, &options_v1);
	assert_int_equal(get_int(db, "PRAGMA user_version"), 1);
	assert_int_equal(get_int(db, "SELECT count(*) FROM t"), 1);
	db_close(db);
}

static void read_file(const char *path, struct buf *ret)
{
	struct hw_err e = { 0 };

	if (file_read(AT_FDCWD, path, 1 << 24, ret, &e) < 0)
		fail_msg("%s", e.msg);
}

/* Runs statements without db.c, as another program would, and without a write-ahead log. */
static void run_foreign(const char *path, const char *sql)
{
	sqlite3 *handle = NULL;

	assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
	assert_int_equal(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(handle);
}

static void newer_schema(void **state)
{
	struct db_fixture *p = *state;
	AUTO(buf_done) struct buf before = { 0 }, after = { 0 };
	autofree char *log = str_printf("%s-wal", p->path);
	struct hw_err e = { 0 };
	struct db *db = NULL;

	run_foreign(p->path, "CREATE TABLE other (x); PRAGMA user_version = 7");
	read_file(p->path, &before);
	assert_int_equal(db_open(p->path, &options_v2, &db, &e), -ENOTSUP);
	assert_null(db);
	assert_non_null(strstr(
		e.msg, "unsupported schema version 7: this program supports versions up to 2"));
	read_file(p->path, &after);
	assert_int_equal(before.len, after.len);
	assert_memory_equal(before.data, after.data, before.len);
	assert_int_equal(access(log, F_OK), -1);
}

/* A newer program was killed: the newer schema is only in the write-ahead log. */
static void newer_schema_in_the_log(void **state)
{
	struct db_fixture *p = *state;
	struct buf before[2] = { 0 }, after[2] = { 0 };
	autofree char *log = str_printf("%s-wal", p->path);
	struct hw_err e = { 0 };
	struct db *db = NULL;
	pid_t pid;

	db_close(open_db(state, &options_v1));
	pid = fork();
	if (pid == 0) {
		run_foreign(p->path, "PRAGMA wal_autocheckpoint = 0");
		db = open_db(state, &options_v2);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	read_file(p->path, &before[0]);
	read_file(log, &before[1]);
	assert_true(before[1].len > 0);
	assert_int_equal(db_open(p->path, &options_v1, &db, &e), -ENOTSUP);
	read_file(p->path, &after[0]);
	read_file(log, &after[1]);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(before[i].len, after[i].len);
		assert_memory_equal(before[i].data, after[i].data, before[i].len);
		buf_done(&before[i]);
		buf_done(&after[i]);
	}
	db_close(open_db(state, &options_v2));
}

static void not_a_database(void **state)
{
	struct db_fixture *p = *state;
	static char noise[8192];
	struct hw_err e = { 0 };
	struct db *db = NULL;

	memset(noise, 'n', sizeof(noise));
	assert_int_equal(file_replace(AT_FDCWD, p->path, noise, sizeof(noise), 0600, 0, &e), 0);
	assert_int_equal(db_open(p->path, &options_v1, &db, &e), -EUCLEAN);
	assert_non_null(strstr(e.msg, "file is not a database"));
	assert_int_equal(db_open("/nonexistent/x.db", &options_v1, &db, &e), -ENOENT);
}

static void another_handle_writes(void **state)
{
	AUTO(db_close)
	struct db *db = open_db(state, &options_v1), *other = open_db(state, &options_v1);
	AUTO(db_transaction_done) struct db_transaction change = { 0 }, second_change = { 0 };
	struct hw_err e;

	assert_int_equal(db_begin(db, &change, &e), 0);
	assert_int_equal(db_begin(other, &second_change, &e), -EBUSY);
	assert_int_equal(get_int(other, "SELECT count(*) FROM t"), 0); /* readers do not block */
}

static void no_space(void **state)
{
	struct db_fixture *p = *state;
	struct hw_err e = { 0 };
	struct db *db;
	int r = 0;

	if (mount("none", p->dir, "tmpfs", 0, "size=256k") < 0)
		skip();
	db = open_db(state, &options_v1);
	for (int i = 0; i < 1000 && r == 0; i++)
		r = db_run(db, "INSERT INTO t VALUES (?, 0, zeroblob(4000))",
			   DB_VALUES(DB_BLOB(&i, sizeof(i))), &e);
	assert_int_equal(r, -ENOSPC);
	db_close(db);
	db = open_db(state, &options_v1);
	assert_true(get_int(db, "SELECT count(*) FROM t") > 5);
	db_close(db);
}

/* Its first change is committed, but only in the log; the second one is not committed. */
static void kill_writer(void **state, const struct db_options *options)
{
	struct db *db;
	struct hw_err e;
	pid_t pid = fork();

	if (pid == 0) {
		struct db_transaction change = { 0 };

		db = open_db(state, options);
		run_sql(db, "INSERT INTO t VALUES ('a', 1, NULL)");
		if (db_begin(db, &change, &e) == 0)
			run_sql(db, "INSERT INTO t VALUES ('b', 1, NULL)");
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* After a SIGKILL the database has all committed changes and no others. */
static void killed_writer(void **state)
{
	struct db *db;

	kill_writer(state, &options_v1);
	db = open_db(state, &options_v1);
	assert_int_equal(get_int(db, "SELECT count(*) FROM t"), 1);
	db_close(db);
}

static void fill_disk(const struct db_fixture *p)
{
	autofree char *path = str_printf("%s/filler", p->dir);
	autoclose int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	static const char zeros[4096];

	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	assert_int_equal(errno, ENOSPC);
}

/* The blocks that SQLite frees when it opens a database are used by another program. */
static void opened_on_a_full_disk(void **state)
{
	static const struct db_options options = { v1, ARRAY_SIZE(v1), .busy_ms = 50,
						   .reserve = true };
	struct db_fixture *p = *state;
	autofree char *index = str_printf("%s-shm", p->path);
	struct hw_err e = { 0 };
	struct db *db, *reader;

	if (mount("none", p->dir, "tmpfs", 0, "size=4m") < 0)
		skip();
	db_close(open_db(state, &options));
	kill_writer(state, &options);
	assert_int_equal(truncate(index, 3), 0);
	fill_disk(p);
	db = open_db(state, &options);
	assert_int_equal(get_int(db, "SELECT count(*) FROM t"), 1);
	run_sql(db, "INSERT INTO t VALUES ('c', 1, NULL)");
	assert_int_equal(db_open_reader(db, 50, &reader, &e), 0);
	assert_int_equal(get_int(reader, "SELECT count(*) FROM t"), 2);
	db_close(reader);
	db_close(db);
	db = open_db(state, &options);
	assert_int_equal(get_int(db, "SELECT count(*) FROM t"), 2);
	db_close(db);
}

/* ---- checkpoints ---------------------------------------------------------------- */

#define PAGE 4096

/* SQLite's writes to the database file, which only a checkpoint makes. */
static struct {
	ino_t inode;
	pthread_t committer;
	atomic_int by_committer, by_others;
	atomic_int error; /* errno of all of them; 0: they succeed */
	atomic_bool hold; /* they wait while this is set */
} writes;

static ssize_t watch_write(int fd, const void *data, size_t len, off_t offset)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || st.st_ino != writes.inode)
		return pwrite(fd, data, len, offset);
	atomic_fetch_add(pthread_equal(pthread_self(), writes.committer) ? &writes.by_committer
									 : &writes.by_others,
			 1);
	while (atomic_load(&writes.hold))
		time_sleep(1);
	if (atomic_load(&writes.error)) {
		errno = atomic_load(&writes.error);
		return -1;
	}
	return pwrite(fd, data, len, offset);
}

/* Which of the two SQLite uses depends on how it was built. */
static void set_write(sqlite3_syscall_ptr f)
{
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

	assert_int_equal(vfs->xSetSystemCall(vfs, "pwrite", f), SQLITE_OK);
	assert_int_equal(vfs->xSetSystemCall(vfs, "pwrite64", f), SQLITE_OK);
}

static void watch_writes(void **state)
{
	struct db_fixture *p = *state;
	struct stat st;

	assert_int_equal(stat(p->path, &st), 0);
	writes.inode = st.st_ino;
	writes.committer = pthread_self();
	writes.by_committer = writes.by_others = writes.error = 0;
	writes.hold = false;
	set_write((sqlite3_syscall_ptr)watch_write);
}

static int checkpoint_teardown(void **state)
{
	set_write(NULL);
	return fixture_teardown(state);
}

/* Makes @n commits of more than one page each. */
static void commit_many(struct db *db, int n)
{
	for (int i = 0; i < n; i++)
		run_sql(db, "INSERT INTO t VALUES (hex(randomblob(8)), 1, zeroblob(4000))");
}

/* Waits until another thread has written to the database @n times. */
static void await_writes(int n)
{
	int64_t deadline = time_deadline(20000);

	while (atomic_load(&writes.by_others) < n) {
		assert_true(!time_has_passed(deadline));
		time_sleep(1);
	}
}

static off_t log_size(void **state)
{
	struct db_fixture *p = *state;
	autofree char *log = str_printf("%s-wal", p->path);
	struct stat st = { 0 };

	return stat(log, &st) < 0 ? -1 : st.st_size;
}

static size_t count_threads(void)
{
	struct stat st;

	assert_int_equal(stat("/proc/self/task", &st), 0);
	return st.st_nlink - 2;
}

static void thread_checkpoints(void **state)
{
	struct db *db = open_db(state, &options_v1);
	size_t threads = count_threads();

	watch_writes(state);
	commit_many(db, 50);
	assert_int_equal(count_threads(), threads);
	commit_many(db, 250);
	await_writes(200);
	assert_int_equal(count_threads(), threads + 1);
	assert_int_equal(writes.by_committer, 0);
	db_close(db);
	assert_int_equal(count_threads(), threads);
	assert_int_equal(log_size(state), -1);
}

/* With a commit that waits, this test would not end. */
static void commits_do_not_wait(void **state)
{
	struct db *db = open_db(state, &options_v1);

	watch_writes(state);
	writes.hold = true;
	commit_many(db, 100);
	await_writes(1);
	commit_many(db, 100);
	assert_int_equal(get_int(db, "SELECT count(*) FROM t"), 200);
	assert_int_equal(writes.by_others, 1);
	writes.hold = false;
	db_close(db);
	assert_true(writes.by_committer + writes.by_others > 200);
}

struct reader {
	struct db *db;
	atomic_bool stop;
	int rounds;
};

static void *read_often(void *arg)
{
	struct reader *reader = arg;

	for (; !atomic_load(&reader->stop); reader->rounds++, time_sleep(1))
		if (get_int(reader->db, "SELECT count(*) FROM t WHERE n = 1") < 0)
			return reader;
	return NULL;
}

static void log_is_bounded(void **state)
{
	static const struct db_options options = { v1, ARRAY_SIZE(v1), .busy_ms = 50 };
	struct db *db = open_db(state, &options);
	struct reader reader = { 0 };
	off_t longest = 0;
	pthread_t thread;
	struct hw_err e;
	void *failed;

	assert_int_equal(db_open_reader(db, 50, &reader.db, &e), 0);
	assert_int_equal(thread_start(read_often, &reader, &thread, &e), 0);
	for (int i = 0; i < 2000; i++) { /* 19 pages each, without a pause */
		run_sql(db,
			"INSERT OR REPLACE INTO t VALUES (hex(randomblob(1)), 1, zeroblob(57000))");
		if (log_size(state) > longest)
			longest = log_size(state);
	}
	reader.stop = true;
	pthread_join(thread, &failed);
	assert_null(failed);
	assert_true(reader.rounds > 0);
	assert_true(longest > 256 * PAGE);
	assert_true(longest < 8 * 1024 * PAGE); /* a busy machine may delay the reader */
	db_close(reader.db);
	db_close(db);
	assert_int_equal(log_size(state), -1);
}

/* Reads with SQLite alone, as another program does. */
static int foreign_int(const char *path, const char *sql)
{
	sqlite3_stmt *stmt = NULL;
	sqlite3 *handle = NULL;
	int n;

	assert_int_equal(sqlite3_open_v2(path, &handle, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(handle, sql, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	n = sqlite3_column_int(stmt, 0);
	sqlite3_finalize(stmt);
	sqlite3_close(handle);
	return n;
}

#define DAMAGED "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"

static void closed_database_is_complete(void **state)
{
	struct db_fixture *p = *state;
	struct db *db = open_db(state, &options_v1);

	commit_many(db, 600);
	db_close(db);
	assert_int_equal(log_size(state), -1);
	assert_int_equal(foreign_int(p->path, "SELECT count(*) FROM t"), 600);
	assert_int_equal(foreign_int(p->path, DAMAGED), 0);
}

static void failed_checkpoint(void **state)
{
	struct db_fixture *p = *state;
	struct db *db = open_db(state, &options_v1);
	autofree char *log = str_printf("%s/filler", p->dir);
	autoclose int before = dup(STDERR_FILENO);
	autoclose int fd = open(log, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	AUTO(buf_done) struct buf text = { 0 };

	assert_true(before >= 0 && fd >= 0);
	watch_writes(state);
	writes.error = ENOSPC;
	dup2(fd, STDERR_FILENO);
	commit_many(db, 600);
	dup2(before, STDERR_FILENO);
	assert_true(writes.by_others > 1);
	assert_int_equal(writes.by_committer, 0);
	read_file(log, &text);
	buf_putc(&text, '\0');
	assert_non_null(strstr(text.data, "x.db: checkpoint: database or disk is full"));
	assert_null(strstr(strstr(text.data, "checkpoint") + 1, "checkpoint"));
	writes.error = 0;
	db_close(db);
	assert_int_equal(log_size(state), -1);
	assert_int_equal(foreign_int(p->path, "SELECT count(*) FROM t"), 600);
}

/* The child reports each commit; the parent kills it after some of them. */
static void killed_during_checkpoints(void **state)
{
	struct db_fixture *p = *state;
	int reported = 0;

	for (int round = 0; round < 5; round++) {
		int pipe_fds[2];
		pid_t pid;
		char byte;

		assert_int_equal(pipe(pipe_fds), 0);
		pid = fork();
		if (pid == 0) {
			struct db *db = open_db(state, &options_v1);

			for (;;) {
				commit_many(db, 1);
				if (write(pipe_fds[1], "", 1) != 1)
					_exit(1);
			}
		}
		close(pipe_fds[1]);
		for (int i = 0; i < 125 + 37 * round; i++, reported++)
			assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
		kill(pid, SIGKILL);
		while (read(pipe_fds[0], &byte, 1) == 1)
			reported++;
		close(pipe_fds[0]);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		db_close(open_db(state, &options_v1));
		assert_in_range(foreign_int(p->path, "SELECT count(*) FROM t"), reported,
				reported + round + 1); /* a kill may hide one report */
		assert_int_equal(foreign_int(p->path, DAMAGED), 0);
	}
}

/* ---- lost and damaged files ------------------------------------------------------- */

static void missing_schema(void **state)
{
	struct db_fixture *p = *state;
	struct db_options options = options_v1;
	struct db *db = NULL;
	struct hw_err e;
	struct stat st;

	options.must_exist = true;
	assert_int_equal(db_open(p->path, &options, &db, &e), -ENODATA);
	assert_int_equal(stat(p->path, &st), -1);
	assert_int_equal(file_replace(AT_FDCWD, p->path, "", 0, 0600, 0, &e), 0);
	assert_int_equal(db_open(p->path, &options, &db, &e), -ENODATA);
	assert_int_equal(stat(p->path, &st), 0);
	assert_int_equal(st.st_size, 0);
	db_close(open_db(state, &options_v1));
	db_close(open_db(state, &options));
}

/* Overwrites pages of the table; the header and the schema stay readable. */
static void damaged_page(void **state)
{
	struct db_fixture *p = *state;
	struct db_options options = options_v1;
	char page[4096];
	struct db *db = open_db(state, &options_v1);
	struct hw_err e;
	int fd;

	for (int i = 0; i < 200; i++) {
		char key[160];

		snprintf(key, sizeof(key), "%0150d", i);
		assert_int_equal(
			db_run(db, "INSERT INTO t (k) VALUES (?)", DB_VALUES(DB_TEXT(key)), &e), 0);
	}
	db_close(db);
	fd = open(p->path, O_WRONLY | O_CLOEXEC);
	memset(page, 0x5a, sizeof(page));
	assert_int_equal(pwrite(fd, page, sizeof(page), 5 * sizeof(page)), sizeof(page));
	close(fd);
	db = NULL;
	options.check = true;
	assert_int_equal(db_open(p->path, &options, &db, &e), -EUCLEAN);
	db_close(open_db(state, &options_v1)); /* not noticed without the check */
}

/* Reads of this part of a file fail, those of SQLite and all others. */
static struct {
	dev_t device;
	ino_t inode;
	off_t first, last; /* bytes */
	int left;	   /* number of reads that fail; -1: all */
	int error;
} unreadable;

static bool read_fails(int fd, size_t len, off_t at)
{
	struct stat st;

	if (unreadable.left == 0 || fstat(fd, &st) < 0 || st.st_ino != unreadable.inode ||
	    st.st_dev != unreadable.device)
		return false;
	if (at > unreadable.last || at + (off_t)len <= unreadable.first || at >= st.st_size)
		return false;
	unreadable.left -= unreadable.left > 0;
	errno = unreadable.error;
	return true;
}

/* Replaces the function of the C library. */
ssize_t read(int fd, void *data, size_t len)
{
	bool fails = unreadable.left != 0 && read_fails(fd, len, lseek(fd, 0, SEEK_CUR));

	return fails ? -1 : syscall(SYS_read, fd, data, len);
}

static ssize_t fail_pread(int fd, void *data, size_t len, off_t offset)
{
	return read_fails(fd, len, offset) ? -1 : pread(fd, data, len, offset);
}

static void set_pread(sqlite3_syscall_ptr f)
{
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

	assert_int_equal(vfs->xSetSystemCall(vfs, "pread", f), SQLITE_OK);
	assert_int_equal(vfs->xSetSystemCall(vfs, "pread64", f), SQLITE_OK);
}

static int read_error_teardown(void **state)
{
	set_pread(NULL);
	unreadable.left = 0;
	return fixture_teardown(state);
}

/* Makes each page of a file unreadable, one at a time. */
static void try_pages(const char *path, const char *file, int error)
{
	struct db_options options = options_v1;
	struct db *db = NULL;
	struct hw_err e;
	struct stat st;

	options.check = true;
	assert_int_equal(stat(file, &st), 0);
	assert_true(st.st_size > PAGE);
	for (off_t at = 0; at < st.st_size; at += PAGE) {
		unreadable.device = st.st_dev;
		unreadable.inode = st.st_ino;
		unreadable.first = at;
		unreadable.last = at + PAGE - 1;
		unreadable.left = -1;
		unreadable.error = error;
		assert_int_equal(db_open(path, &options, &db, &e), -EIO);
		assert_non_null(strstr(e.msg, path));
	}
	unreadable.left = 0;
}

/* SQLite reports an unreadable page of the log as SQLITE_CORRUPT. The check reports those of the
 * database, except the first, which is also read before. */
static void read_errors(void **state)
{
	static const int errors[] = { EIO, EUCLEAN }; /* EUCLEAN: the file system is damaged */
	struct db_fixture *p = *state;
	autofree char *log = str_printf("%s-wal", p->path);
	struct db *db;

	db = open_db(state, &options_v1);
	commit_many(db, 20);
	db_close(db);
	set_pread((sqlite3_syscall_ptr)fail_pread);
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		try_pages(p->path, p->path, errors[i]);
	kill_writer(state, &options_v1); /* leaves a log */
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		try_pages(p->path, log, errors[i]);
	unreadable.first = 0;
	unreadable.left = 1; /* it passes, so the second attempt succeeds */
	db = open_db(state, &options_v1);
	assert_int_equal(unreadable.left, 0);
	assert_int_equal(get_int(db, "SELECT count(*) FROM t"), 21);
	db_close(db);
}

#define TEST(name, f)                                                                              \
	{                                                                                          \
		name, f, fixture_setup, fixture_teardown                                           \
	}
#define CHECKPOINT_TEST(name, f)                                                                   \
	{                                                                                          \
		name, f, fixture_setup, checkpoint_teardown                                        \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("db: a new file has the newest schema, a write-ahead log and mode 0600",
		     new_file),
		TEST("db: values are read back unchanged", values_come_back),
		TEST("db: invalid statements and violated constraints are reported",
		     wrong_statements),
		TEST("db: a change that is not committed is rolled back", change_is_rolled_back),
		TEST("db: an older schema is migrated only once", migrates),
		TEST("db: a migration that fails changes nothing", migration_that_fails),
		TEST("db: a newer schema is rejected and the file is not changed", newer_schema),
		TEST("db: a newer schema that is only in the write-ahead log is rejected, too",
		     newer_schema_in_the_log),
		TEST("db: a file that is not a database is rejected", not_a_database),
		TEST("db: a file without a schema is rejected if it must exist", missing_schema),
		TEST("db: damage in the middle of a file is found by the check", damaged_page),
		{ "db: a file that cannot be read is not reported as damaged", read_errors,
		  fixture_setup, read_error_teardown },
		TEST("db: while another handle writes, a writer times out and a reader succeeds",
		     another_handle_writes),
		TEST("db: a write to a full disk fails, and committed rows are kept", no_space),
		TEST("db: after the process is killed, committed changes are kept", killed_writer),
		TEST("db: after a kill it can be opened and changed on a full disk",
		     opened_on_a_full_disk),
		CHECKPOINT_TEST("db: a thread of its own runs checkpoints, none of the commits",
				thread_checkpoints),
		CHECKPOINT_TEST("db: commits do not wait for a checkpoint", commits_do_not_wait),
		TEST("db: the log stays short beside a reader if commits follow without a pause",
		     log_is_bounded),
		TEST("db: closing after many commits leaves a complete database and no log",
		     closed_database_is_complete),
		CHECKPOINT_TEST("db: a checkpoint that fails is logged once, and commits succeed",
				failed_checkpoint),
		TEST("db: a kill between commits and checkpoints loses no commit",
		     killed_during_checkpoints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
