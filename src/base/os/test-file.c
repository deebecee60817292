/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/test-file.c - files, locks and directory walks
 */
#include "base/os/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "base/time.h"

/* Each test has a new empty directory, which is open as fd. */
struct file_fixture {
	char path[64];
	int fd;
};

static int fixture_setup(void **state)
{
	struct file_fixture *f = mem_new(sizeof(*f));

	snprintf(f->path, sizeof(f->path), "%.40s/file.XXXXXX", str_or(getenv("TMPDIR"), "/tmp"));
	if (!mkdtemp(f->path))
		return -1;
	f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = f;
	return f->fd < 0 ? -1 : 0;
}

static int remove_entry(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	(void)ctx;
	if (entry->type == DT_DIR) {
		file_walk(entry->dir, entry->name, remove_entry, NULL, e);
		return unlinkat(entry->dir, entry->name, AT_REMOVEDIR) < 0 ? -errno : 0;
	}
	return file_remove(entry->dir, entry->name, e);
}

static int fixture_teardown(void **state)
{
	struct file_fixture *f = *state;
	struct hw_err e;
	int r = file_walk(f->fd, ".", remove_entry, NULL, &e);

	if (rmdir(f->path) < 0)
		r = -1;
	close(f->fd);
	free(f);
	return r;
}

static int fixture_dir(void **state)
{
	return ((struct file_fixture *)*state)->fd;
}

static void write_text(int dir, const char *name, const char *text)
{
	struct hw_err e;

	assert_int_equal(file_replace(dir, name, text, strlen(text), 0600, 0, &e), 0);
}

static void assert_holds(int dir, const char *name, const char *text)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err e;

	assert_int_equal(file_read(dir, name, 1 << 20, &b, &e), 0);
	assert_int_equal(b.len, strlen(text));
	if (b.len > 0)
		assert_memory_equal(b.data, text, b.len);
}

static int count_entry(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	(void)entry;
	(void)e;
	++*(int *)ctx;
	return 0;
}

static int count_entries(int dir)
{
	struct hw_err e;
	int n = 0;

	assert_int_equal(file_walk(dir, ".", count_entry, &n, &e), 0);
	return n;
}

/* ---- reading ------------------------------------------------------------------ */

static void reads_up_to_the_limit(void **state)
{
	AUTO(buf_done) struct buf b = { 0 }, none = { 0 };
	struct hw_err e;
	int dir = fixture_dir(state);

	write_text(dir, "f", "0123456789");
	assert_int_equal(file_read(dir, "f", 10, &b, &e), 0);
	assert_string_equal(b.data, "0123456789");
	assert_int_equal(file_read(dir, "f", 9, &none, &e), -EFBIG);
	assert_string_equal(e.msg, "read f: larger than 9 bytes");
	assert_null(none.data);
}

static void reads_large_files(void **state)
{
	static char text[1000001];
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err e;

	memset(text, 't', sizeof(text) - 1);
	write_text(fixture_dir(state), "f", text);
	assert_int_equal(file_read(fixture_dir(state), "f", sizeof(text) - 1, &b, &e), 0);
	assert_int_equal(b.len, sizeof(text) - 1);
	assert_int_equal(strlen(b.data), b.len);
}

static void names_unreadable_files(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };
	int dir = fixture_dir(state);
	struct hw_err e;

	assert_int_equal(file_read(dir, "none", 10, &b, &e), -ENOENT);
	assert_string_equal(e.msg, "open none: No such file or directory");
	assert_int_equal(file_read(dir, ".", 10, &b, &e), -EISDIR);
	assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
	assert_int_equal(file_read(dir, "fifo", 10, &b, &e), -EINVAL);
	assert_string_equal(e.msg, "read fifo: not a regular file");
}

static void reads_an_optional_file(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };
	int dir = fixture_dir(state);
	struct hw_err e;

	assert_int_equal(file_read_if_exists(dir, "none", 10, &b, &e), 0);
	assert_null(b.data);
	assert_int_equal(file_read_if_exists(dir, ".", 10, &b, &e), -EISDIR);
	write_text(dir, "f", "text");
	assert_int_equal(file_read_if_exists(dir, "f", 10, &b, &e), 1);
	assert_string_equal(b.data, "text");
}

static void reads_a_pipe_to_its_end(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err e;
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(file_write_fd(fds[1], "a\0b", 3, &e), 0);
	close(fds[1]);
	assert_int_equal(file_read_fd(fds[0], 3, &b, &e), 0);
	assert_int_equal(b.len, 3);
	close(fds[0]);
	assert_int_equal(file_read_fd(fds[0], 3, &b, &e), -EBADF);
}

static void writes_values(void **state)
{
	int dir = fixture_dir(state);
	struct hw_err e;

	write_text(dir, "f", "old");
	assert_int_equal(file_write_value(dir, "f", "new", &e), 0);
	assert_holds(dir, "f", "new");
	assert_int_equal(file_write_value(dir, "none", "new", &e), -ENOENT);
	assert_string_equal(e.msg, "open none: No such file or directory");
	assert_int_equal(file_write_value(AT_FDCWD, "/proc/self/oom_score_adj", "x", &e), -EINVAL);
	assert_string_equal(e.msg, "write \"x\" to /proc/self/oom_score_adj: Invalid argument");
}

/* ---- replacing ---------------------------------------------------------------- */

static void replaces(void **state)
{
	int dir = fixture_dir(state);
	struct hw_err e;
	struct stat st;
	mode_t before = umask(0077);

	write_text(dir, "f", "old");
	assert_int_equal(file_replace(dir, "f", "new", 3, 0644, FILE_SYNC, &e), 0);
	umask(before);
	assert_holds(dir, "f", "new");
	assert_int_equal(fstatat(dir, "f", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(file_replace(dir, "f", NULL, 0, 0600, 0, &e), 0);
	assert_holds(dir, "f", "");
	assert_int_equal(count_entries(dir), 1);
}

static void replaces_below_a_directory(void **state)
{
	struct file_fixture *f = *state;
	autofree char *path = str_printf("%s/sub/f", f->path);
	struct hw_err e;

	assert_int_equal(file_replace(f->fd, "sub/f", "x", 1, 0600, 0, &e), -ENOENT);
	assert_true(str_starts(e.msg, "write sub/f: open sub/.f~: "));
	assert_int_equal(mkdirat(f->fd, "sub", 0700), 0);
	assert_int_equal(file_replace(AT_FDCWD, path, "x", 1, 0600, FILE_SYNC, &e), 0);
	assert_holds(f->fd, "sub/f", "x");
}

static void replaces_the_longest_name(void **state)
{
	char name[NAME_MAX + 1];

	memset(name, 'n', NAME_MAX);
	name[NAME_MAX] = '\0';
	write_text(fixture_dir(state), name, "x");
	assert_holds(fixture_dir(state), name, "x");
}

static void failure_leaves_nothing(void **state)
{
	int dir = fixture_dir(state);
	struct hw_err e;

	assert_int_equal(mkdirat(dir, "f", 0700), 0);
	assert_int_equal(file_replace(dir, "f", "x", 1, 0600, 0, &e), -EISDIR);
	assert_int_equal(count_entries(dir), 1);
}

static void *replace_repeatedly(void *arg)
{
	char text[5000];
	struct hw_err e;
	int dir = *(int *)arg;

	for (int i = 0; i < 200; i++) {
		memset(text, 'a' + i % 26, sizeof(text));
		if (file_replace(dir, "f", text, sizeof(text), 0600, 0, &e) < 0)
			return arg;
	}
	return NULL;
}

/* Asserts that one writer wrote all of the file. */
static void assert_one_letter(int dir)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err e;

	assert_int_equal(file_read(dir, "f", 5000, &b, &e), 0);
	assert_int_equal(b.len, 5000);
	assert_int_equal(strspn(b.data, (char[]){ b.data[0], '\0' }), 5000);
}

static void readers_see_whole_files(void **state)
{
	int dir = fixture_dir(state);
	pthread_t writers[2];
	void *failed;

	replace_repeatedly(&dir);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&writers[i], NULL, replace_repeatedly, &dir), 0);
	for (int i = 0; i < 200; i++)
		assert_one_letter(dir);
	for (int i = 0; i < 2; i++) {
		pthread_join(writers[i], &failed);
		assert_null(failed);
	}
	assert_int_equal(count_entries(dir), 1);
}

static void recognises_temporary_names(void **state)
{
	(void)state;
	assert_true(file_is_temporary(".f~"));
	assert_true(file_is_temporary(".a.b~"));
	assert_false(file_is_temporary(".f"));
	assert_false(file_is_temporary("f~"));
	assert_false(file_is_temporary("~"));
	assert_false(file_is_temporary("."));
	assert_false(file_is_temporary(""));
}

/* Creates the temporary file that a killed writer leaves. */
static void leave_temporary(int dir, const char *name)
{
	autoclose int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, "half a text", 11), 11);
}

static void file_of_dead_writer_is_reused(void **state)
{
	int dir = fixture_dir(state);

	leave_temporary(dir, ".f~");
	write_text(dir, "f", "new");
	assert_holds(dir, "f", "new");
	assert_int_equal(count_entries(dir), 1);
}

static void file_of_dead_writer_is_removed(void **state)
{
	int dir = fixture_dir(state);
	struct hw_err e;

	write_text(dir, "f", "");
	leave_temporary(dir, ".f~");
	assert_int_equal(file_remove(dir, "f", &e), 0);
	assert_int_equal(count_entries(dir), 0);
}

static void file_of_living_writer_is_kept(void **state)
{
	autoclose int writer = -1;
	int dir = fixture_dir(state);
	struct hw_err e;

	write_text(dir, "f", "");
	assert_int_equal(file_lock(dir, ".f~", true, TIME_NEVER, &writer, &e), 0);
	assert_int_equal(file_remove(dir, "f", &e), 0);
	assert_int_equal(faccessat(dir, ".f~", F_OK, 0), 0);
}

static void sweep_keeps_files_of_living_writers(void **state)
{
	autoclose int writer = -1;
	int dir = fixture_dir(state);
	struct hw_err e;

	write_text(dir, "f", "");
	leave_temporary(dir, ".f~");
	leave_temporary(dir, ".removed~");
	assert_int_equal(file_lock(dir, ".g~", true, TIME_NEVER, &writer, &e), 0);
	assert_int_equal(file_sweep(dir, ".", &e), 0);
	assert_int_equal(count_entries(dir), 2);
	assert_int_equal(faccessat(dir, "f", F_OK, 0), 0);
	assert_int_equal(faccessat(dir, ".g~", F_OK, 0), 0);
	assert_int_equal(file_sweep(dir, "missing", &e), 0);
}

enum { DISK_OK, DISK_CANNOT, DISK_BAD };

/* Calls @run in a child process, with a file system of 64 KiB and 8 inodes. */
static void on_small_disk(void **state, int (*run)(int dir))
{
	struct file_fixture *f = *state;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (unshare(CLONE_NEWNS) < 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount("tmpfs", f->path, "tmpfs", 0, "size=64k,nr_inodes=8") < 0)
			_exit(DISK_CANNOT);
		_exit(run(open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == DISK_CANNOT) {
		print_message("cannot mount a tmpfs\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), DISK_OK);
}

static int replace_on_full_disk(int dir)
{
	static char text[256 << 10];
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err e;

	if (file_replace(dir, "f", "old", 3, 0600, 0, &e) != 0)
		return DISK_BAD;
	if (file_replace(dir, "f", text, sizeof(text), 0600, 0, &e) != -ENOSPC)
		return DISK_BAD;
	if (!str_equal(e.msg, "write f: write: No space left on device"))
		return DISK_BAD;
	if (file_read(dir, "f", 10, &b, &e) < 0 || !str_equal(b.data, "old"))
		return DISK_BAD;
	return count_entries(dir) == 1 ? DISK_OK : DISK_BAD;
}

static void full_disk_leaves_the_old_file(void **state)
{
	on_small_disk(state, replace_on_full_disk);
}

static int query_space(int dir)
{
	static const char text[20 << 10];
	struct file_space empty, used;
	struct hw_err e;

	if (file_space(dir, &empty, &e) < 0 || empty.bytes != 64 << 10 ||
	    empty.bytes_free != empty.bytes || empty.inodes != 8 || empty.inodes_free != 7)
		return DISK_BAD;
	if (file_replace(dir, "f", text, sizeof(text), 0600, 0, &e) < 0 ||
	    file_space(dir, &used, &e) < 0)
		return DISK_BAD;
	return used.bytes == empty.bytes && used.bytes_free == empty.bytes - sizeof(text) &&
			       used.inodes == 8 && used.inodes_free == 6
		       ? DISK_OK
		       : DISK_BAD;
}

static void counts_free_space(void **state)
{
	on_small_disk(state, query_space);
}

/* ---- directories and removal ---------------------------------------------------- */

static void creates_directories(void **state)
{
	struct file_fixture *f = *state;
	autofree char *path = str_printf("%s//x///y/", f->path);
	struct hw_err e;
	struct stat st;

	assert_int_equal(file_mkdirs(f->fd, "a/b/c", 0750, &e), 0);
	assert_int_equal(file_mkdirs(f->fd, "a/b/c", 0700, &e), 0);
	assert_int_equal(fstatat(f->fd, "a/b", &st, 0), 0);
	assert_int_equal(st.st_mode & 0700, 0700);
	assert_int_equal(file_mkdirs(AT_FDCWD, path, 0700, &e), 0);
	assert_int_equal(fstatat(f->fd, "x/y", &st, 0), 0);
	assert_int_equal(file_mkdirs(AT_FDCWD, "/", 0700, &e), 0);
}

static void file_in_place_of_a_directory(void **state)
{
	int dir = fixture_dir(state);
	struct hw_err e;

	write_text(dir, "f", "");
	assert_int_equal(file_mkdirs(dir, "f", 0700, &e), -ENOTDIR);
	assert_int_equal(file_mkdirs(dir, "f/g/h", 0700, &e), -ENOTDIR);
	assert_int_equal(file_mkdirs(dir, "", 0700, &e), -ENOENT);
}

static void removes(void **state)
{
	int dir = fixture_dir(state);
	struct hw_err e;

	write_text(dir, "f", "");
	assert_int_equal(file_remove(dir, "f", &e), 0);
	assert_int_equal(faccessat(dir, "f", F_OK, 0), -1);
	assert_int_equal(file_remove(dir, "f", &e), 0);
	assert_int_equal(file_remove(dir, "no/f", &e), 0);
	write_text(dir, "f", "");
	assert_int_equal(file_remove(dir, "f/g", &e), 0);
	assert_int_equal(mkdirat(dir, "d", 0700), 0);
	assert_int_equal(file_remove(dir, "d", &e), -EISDIR);
}

/* ---- locks ---------------------------------------------------------------------- */

static void exclusive_lock_waits_until_the_deadline(void **state)
{
	autoclose int first = -1, second = -1;
	int dir = fixture_dir(state);
	struct hw_err e;

	assert_int_equal(file_lock(dir, "l", true, TIME_NEVER, &first, &e), 0);
	assert_int_equal(file_lock(dir, "l", true, time_deadline(20), &second, &e), -ETIMEDOUT);
	assert_int_equal(file_lock(dir, "l", false, time_deadline(1), &second, &e), -ETIMEDOUT);
	assert_int_equal(second, -1);
	assert_string_equal(e.msg, "lock l: timed out waiting for the lock");
	close(take_fd(first));
	assert_int_equal(file_lock(dir, "l", true, time_deadline(10000), &second, &e), 0);
}

static void shared_locks_do_not_conflict(void **state)
{
	autoclose int first = -1, second = -1, third = -1;
	int dir = fixture_dir(state);
	struct hw_err e;

	assert_int_equal(file_lock(dir, "l", false, TIME_NEVER, &first, &e), 0);
	assert_int_equal(file_lock(dir, "l", false, time_deadline(10000), &second, &e), 0);
	assert_int_equal(file_lock(dir, "l", true, time_deadline(5), &third, &e), -ETIMEDOUT);
	assert_true(fcntl(first, F_GETFD) & FD_CLOEXEC);
}

static void bytes_are_locked_separately(void **state)
{
	autoclose int first = -1, second = -1, third = -1;
	int dir = fixture_dir(state);
	struct hw_err e;

	assert_int_equal(file_lock(dir, "l", false, TIME_NEVER, &first, &e), 0);
	assert_int_equal(file_lock(dir, "l", false, TIME_NEVER, &second, &e), 0);
	assert_int_equal(file_lock_byte(first, INT64_MAX - 1, TIME_NEVER, &e), 0);
	assert_int_equal(file_lock_byte(second, 0, TIME_NEVER, &e), 0);
	assert_int_equal(file_lock_byte(second, INT64_MAX - 1, time_deadline(5), &e), -ETIMEDOUT);
	close(take_fd(first));
	assert_int_equal(file_lock_byte(second, INT64_MAX - 1, time_deadline(10000), &e), 0);
	assert_int_equal(file_lock(dir, "l", true, time_deadline(5), &third, &e), -ETIMEDOUT);
}

struct lock_holder {
	int dir;
	int fd;
	bool removed;
};

/* Removes the lock file while another thread waits for the lock, then releases the lock. */
static void *remove_lock_file(void *arg)
{
	struct lock_holder *h = arg;
	struct hw_err e;

	time_sleep(20);
	h->removed = file_remove(h->dir, "l", &e) == 0;
	close(h->fd);
	return NULL;
}

static void lock_is_on_the_current_file(void **state)
{
	autoclose int fd = -1;
	struct lock_holder h = { .dir = fixture_dir(state) };
	struct stat ours, there;
	pthread_t thread;
	struct hw_err e;

	assert_int_equal(file_lock(h.dir, "l", true, TIME_NEVER, &h.fd, &e), 0);
	assert_int_equal(pthread_create(&thread, NULL, remove_lock_file, &h), 0);
	assert_int_equal(file_lock(h.dir, "l", true, time_deadline(30000), &fd, &e), 0);
	pthread_join(thread, NULL);
	assert_true(h.removed);
	assert_int_equal(fstat(fd, &ours), 0);
	assert_int_equal(fstatat(h.dir, "l", &there, 0), 0);
	assert_int_equal(ours.st_ino, there.st_ino);
}

static void lock_needs_a_directory(void **state)
{
	struct hw_err e;
	int fd = -1;

	assert_int_equal(file_lock(fixture_dir(state), "no/l", true, TIME_NEVER, &fd, &e), -ENOENT);
	assert_string_equal(e.msg, "open no/l: No such file or directory");
}

/* ---- directory walks ------------------------------------------------------------- */

static int append_entry(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	(void)e;
	buf_printf(ctx, "%s:%d ", entry->name, entry->type);
	return 0;
}

static void walks_in_byte_order(void **state)
{
	AUTO(buf_done) struct buf seen = { 0 };
	autofree char *want = NULL;
	int dir = fixture_dir(state);
	struct hw_err e;

	write_text(dir, "b", "");
	write_text(dir, "B", "");
	write_text(dir, "10", "");
	write_text(dir, "9", "");
	write_text(dir, "\xc3\xa9", "");
	assert_int_equal(symlinkat("b", dir, "link"), 0);
	assert_int_equal(mkdirat(dir, ".d", 0700), 0);
	assert_int_equal(file_walk(dir, ".", append_entry, &seen, &e), 0);
	want = str_printf(".d:%d 10:%d 9:%d B:%d b:%d link:%d \xc3\xa9:%d ", DT_DIR, DT_REG, DT_REG,
			  DT_REG, DT_REG, DT_LNK, DT_REG);
	assert_string_equal(seen.data, want);
}

static int stop_at_two(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	(void)e;
	++*(int *)ctx;
	return str_equal(entry->name, "2") ? 7 : 0;
}

static int refuse(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	(void)ctx;
	return err_text(e, -EPERM, "not %s", entry->name);
}

static void return_value_stops_the_walk(void **state)
{
	int dir = fixture_dir(state), n = 0;
	struct hw_err e;

	write_text(dir, "1", "");
	write_text(dir, "2", "");
	write_text(dir, "3", "");
	assert_int_equal(file_walk(dir, ".", stop_at_two, &n, &e), 7);
	assert_int_equal(n, 2);
	assert_int_equal(file_walk(dir, ".", refuse, NULL, &e), -EPERM);
	assert_string_equal(e.msg, "not 1");
}

static void walks_only_directories(void **state)
{
	int dir = fixture_dir(state), n = 0;
	struct hw_err e;

	write_text(dir, "f", "");
	assert_int_equal(file_walk(dir, "none", count_entry, &n, &e), -ENOENT);
	assert_string_equal(e.msg, "open directory none: No such file or directory");
	assert_int_equal(file_walk(dir, "f", count_entry, &n, &e), -ENOTDIR);
	assert_int_equal(n, 0);
}

#define TEST(sentence, function)                                                                   \
	{                                                                                          \
		sentence, function, fixture_setup, fixture_teardown, NULL                          \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("file: a file with the maximum size is read, a larger one is rejected",
		     reads_up_to_the_limit),
		TEST("file: a large file is read completely", reads_large_files),
		TEST("file: reading a missing file, a directory or a FIFO fails with an error that "
		     "names it",
		     names_unreadable_files),
		TEST("file: reading a missing optional file returns 0", reads_an_optional_file),
		TEST("file: a pipe is read up to EOF", reads_a_pipe_to_its_end),
		TEST("file: a value is written to an existing file, and an error names both",
		     writes_values),
		TEST("file: replacing a file sets contents and mode, and leaves no temporary file",
		     replaces),
		TEST("file: a file in a subdirectory can be replaced", replaces_below_a_directory),
		TEST("file: a file with the longest possible name can be replaced",
		     replaces_the_longest_name),
		TEST("file: a failed replacement leaves no temporary file", failure_leaves_nothing),
		TEST("file: while two writers replace a file, readers see only complete contents",
		     readers_see_whole_files),
		TEST("file: the temporary file of a dead writer is reused by the next one",
		     file_of_dead_writer_is_reused),
		TEST("file: the temporary file of a dead writer is removed with the file",
		     file_of_dead_writer_is_removed),
		TEST("file: removing a file does not disturb a process that is writing it",
		     file_of_living_writer_is_kept),
		TEST("file: a sweep removes only temporary files of dead writers",
		     sweep_keeps_files_of_living_writers),
		TEST("file: names of temporary files are recognised", recognises_temporary_names),
		TEST("file: if the disk is full, the old file is kept and nothing else is left",
		     full_disk_leaves_the_old_file),
		TEST("file: the free space of a file system is counted in bytes and inodes",
		     counts_free_space),
		TEST("file: directories are created with all their parents", creates_directories),
		TEST("file: creating a directory fails if a file has its path",
		     file_in_place_of_a_directory),
		TEST("file: removing a missing file succeeds", removes),
		TEST("file: while a lock is held, acquiring it fails at the deadline",
		     exclusive_lock_waits_until_the_deadline),
		TEST("file: shared locks do not conflict", shared_locks_do_not_conflict),
		TEST("file: each byte of a file can be locked once", bytes_are_locked_separately),
		TEST("file: if a lock file is removed during the wait, the new file is locked",
		     lock_is_on_the_current_file),
		TEST("file: acquiring a lock in a missing directory fails", lock_needs_a_directory),
		TEST("file: a walk lists names in byte order, with the type of each entry",
		     walks_in_byte_order),
		TEST("file: a walk stops if the callback does not return 0",
		     return_value_stops_the_walk),
		TEST("file: a walk of a path that is not a directory fails",
		     walks_only_directories),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
