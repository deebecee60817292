/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/file.c - files: bounded reads, atomic replacement, locks, free space, directory walks
 *
 * How:   a new version of a file is written under a temporary name in the same
 *        directory and renamed; until then the old file is unchanged, even if
 *        the disk is full. Each file has one fixed temporary name, and a lock on
 *        that temporary file serialises concurrent writers.
 *        Locks are flock(): they belong to the open file, so they are released
 *        when the process ends and also work between threads. A lock with a
 *        deadline is polled with growing pauses, because only a signal could
 *        interrupt a blocking flock(), and signals belong to the calling program.
 */
#include "base/os/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"

#define OPEN_RETRIES_MAX  1000
#define FILE_READ_STEP	  4096
#define FILE_TEMP_WAIT	  10000 /* ms to wait while another process writes the same file */
#define FILE_LOCK_NAP_MAX 4	/* ms; most locks are held for less than 1 ms */

static int read_all(int fd, const char *name, size_t max, struct buf *ret, struct hw_err *e)
{
	AUTO(buf_done) struct buf b = { 0 };

	for (;;) {
		size_t step = b.len < FILE_READ_STEP ? FILE_READ_STEP : b.len;
		ssize_t n;

		/* try to read one byte more than the limit, to detect a larger file */
		if (step > max - b.len)
			step = max - b.len + 1;
		n = read(fd, buf_reserve(&b, step), step);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, -errno, "read %s", name);
		if (n == 0)
			break;
		buf_commit(&b, (size_t)n);
		if (b.len > max)
			return err_text(e, -EFBIG, "read %s: larger than %zu bytes", name, max);
	}
	*ret = b;
	b = (struct buf){ 0 };
	return 0;
}

/* O_NONBLOCK: a FIFO in place of the file must not block the open. */
int file_read(int dir, const char *path, size_t max, struct buf *ret, struct hw_err *e)
{
	autoclose int fd = -1;
	struct stat st;

	fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return err_set(e, -errno, "open %s", path);
	if (fstat(fd, &st) < 0)
		return err_set(e, -errno, "stat %s", path);
	if (S_ISDIR(st.st_mode))
		return err_set(e, -EISDIR, "read %s", path);
	if (!S_ISREG(st.st_mode))
		return err_text(e, -EINVAL, "read %s: not a regular file", path);
	return read_all(fd, path, max, ret, e);
}

int file_read_if_exists(int dir, const char *path, size_t max, struct buf *ret, struct hw_err *e)
{
	int r;

	r = file_read(dir, path, max, ret, e);
	if (r == -ENOENT)
		return 0;
	return r < 0 ? r : 1;
}

int file_read_fd(int fd, size_t max, struct buf *ret, struct hw_err *e)
{
	return read_all(fd, "input", max, ret, e);
}

void file_open_missing_stdio(int flags)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0) /* open() returns the lowest unused number: fd */
			(void)!open("/dev/null", fd == STDOUT_FILENO ? O_PATH : flags);
}

int file_flush_stdout(struct hw_err *e)
{
	if (fflush(stdout) != 0)
		return err_set(e, -errno, "write to standard output");
	if (ferror(stdout)) /* the errno of the write that failed is lost */
		return err_set(e, -EIO, "write to standard output");
	return 0;
}

int file_write_fd(int fd, const void *data, size_t len, struct hw_err *e)
{
	const char *at = data;

	while (len > 0) {
		ssize_t n;

		n = write(fd, at, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, -errno, "write");
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int file_write_value(int dir, const char *path, const char *value, struct hw_err *e)
{
	autoclose int fd = -1;

	fd = openat(dir, path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open %s", path);
	if (write(fd, value, strlen(value)) < 0)
		return err_set(e, -errno, "write \"%.80s\" to %s", value, path);
	return 0;
}

static size_t directory_len(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Each file has one temporary name, so that the next writer or file_remove() finds the file that a
 * dead writer left. The name is truncated to NAME_MAX. */
static char *temp_name(const char *path)
{
	size_t dir_len = directory_len(path);

	return str_printf("%.*s.%.250s~", (int)dir_len, path, path + dir_len);
}

/* Writes the temporary file, which is new, or was left by a writer that died. */
static int write_temp(int fd, const void *data, size_t len, mode_t mode, unsigned flags,
		      struct hw_err *e)
{
	struct stat was;
	int copy, r;

	if (fstat(fd, &was) < 0 || (was.st_size > 0 && ftruncate(fd, 0) < 0))
		return err_set(e, -errno, "truncate");
	r = file_write_fd(fd, data, len, e);
	if (r < 0)
		return r;
	if ((was.st_mode & 07777) != mode && fchmod(fd, mode) < 0)
		return err_set(e, -errno, "chmod");
	if ((flags & FILE_SYNC) && fsync(fd) < 0)
		return err_set(e, -errno, "fsync");
	/* A network file system may report a full disk only when a descriptor is closed. Close a
	 * copy: fd must stay open, because it holds the lock against other writers. */
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0 || close(copy) < 0)
		return err_set(e, -errno, "close");
	return 0;
}

int file_replace(int dir, const char *path, const void *data, size_t len, mode_t mode,
		 unsigned flags, struct hw_err *e)
{
	autofree char *temp = temp_name(path), *parent = NULL;
	autoclose int fd = -1, parent_fd = -1;
	int r;

	r = file_lock(dir, temp, true, time_deadline(FILE_TEMP_WAIT), &fd, e);
	if (r < 0)
		return err_ctx(e, "write %s", path);
	r = write_temp(fd, data, len, mode, flags, e);
	if (r == 0 && renameat(dir, temp, dir, path) < 0)
		r = err_set(e, -errno, "rename %s", temp);
	if (r < 0) {
		unlinkat(dir, temp, 0);
		return err_ctx(e, "write %s", path);
	}
	if (!(flags & FILE_SYNC))
		return 0;
	parent = str_ncopy(path, directory_len(path));
	parent_fd = openat(dir, *parent ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent_fd < 0 || fsync(parent_fd) < 0)
		return err_set(e, -errno, "fsync the directory of %s", path);
	return 0;
}

int file_open_in_root(int root, const char *path, int flags)
{
	const struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
	};

	/* openat2() may fail with EAGAIN for a path with ".." while any process on this machine
	 * renames files, see openat2(2). */
	for (int i = 0; i < OPEN_RETRIES_MAX; i++) {
		long fd;

		fd = syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof(how));
		if (fd >= 0)
			return (int)fd;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
	}
	return -EAGAIN;
}

bool file_is_temporary(const char *name)
{
	return name[0] == '.' && name[1] && str_ends(name + 1, "~");
}

static int make_directory(int dir, const char *path, mode_t mode, struct hw_err *e)
{
	struct stat st;

	if (mkdirat(dir, path, mode) == 0)
		return 0;
	if (errno != EEXIST)
		return err_set(e, -errno, "create directory %s", path);
	if (fstatat(dir, path, &st, 0) < 0)
		return err_set(e, -errno, "create directory %s", path);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, -ENOTDIR, "create directory %s", path);
	return 0;
}

int file_mkdirs(int dir, const char *path, mode_t mode, struct hw_err *e)
{
	int r;

	r = make_directory(dir, path, mode, e);
	if (r != -ENOENT)
		return r;
	for (const char *end = path; *end; end++) {
		autofree char *parent = NULL;

		if (*end != '/' || end == path || end[-1] == '/')
			continue;
		parent = str_ncopy(path, (size_t)(end - path));
		r = make_directory(dir, parent, mode, e);
		if (r < 0)
			return r;
	}
	return make_directory(dir, path, mode, e);
}

/* Return: 1 if @path is still the file that is open as @fd; 0 if it was removed or replaced; or a
 * negative errno */
static int is_same_file(int dir, const char *path, int fd, struct hw_err *e)
{
	struct stat ours, there;

	if (fstat(fd, &ours) < 0)
		return err_set(e, -errno, "stat %s", path);
	if (fstatat(dir, path, &there, 0) < 0)
		return errno == ENOENT ? 0 : err_set(e, -errno, "stat %s", path);
	return ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

/* ENOTDIR means that a parent is not a directory. */
static bool is_absent(int error)
{
	return error == ENOENT || error == ENOTDIR;
}

/* Removes a temporary file if its writer is dead: a running writer holds the lock. If another file
 * has the path now, the writer has renamed the locked file, and the file at the path may belong to
 * the next writer. */
static int remove_temp(int dir, const char *temp, struct hw_err *e)
{
	autoclose int fd = -1;
	int r;

	fd = openat(dir, temp, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return is_absent(errno) ? 0 : err_set(e, -errno, "open %s", temp);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : err_set(e, -errno, "lock %s", temp);
	r = is_same_file(dir, temp, fd, e);
	if (r > 0 && unlinkat(dir, temp, 0) < 0)
		return err_set(e, -errno, "remove %s", temp);
	return r < 0 ? r : 0;
}

int file_remove(int dir, const char *path, struct hw_err *e)
{
	autofree char *temp = temp_name(path);
	int r;

	r = remove_temp(dir, temp, e);
	if (r < 0)
		return r;
	if (unlinkat(dir, path, 0) < 0 && !is_absent(errno))
		return err_set(e, -errno, "remove %s", path);
	return 0;
}

/* @byte: the byte to lock with F_OFD_SETLK; NULL: the file, with flock() */
static int lock_with_deadline(int fd, const char *path, bool exclusive, const struct flock *byte,
			      int64_t deadline, struct hw_err *e)
{
	for (int nap = 1;; nap = nap < FILE_LOCK_NAP_MAX ? nap * 2 : FILE_LOCK_NAP_MAX) {
		int left;

		if ((byte ? fcntl(fd, F_OFD_SETLK, byte)
			  : flock(fd, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB)) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_set(e, -errno, "lock %s", path);
		left = time_left_ms(deadline);
		if (left == 0)
			return err_text(e, -ETIMEDOUT, "lock %s: timed out waiting for the lock",
					path);
		time_sleep(left > 0 && left < nap ? left : nap);
	}
}

/* A lock on a file that was removed during the wait protects nothing, so the path is opened again
 * until the locked file is the one that has this path. */
int file_lock(int dir, const char *path, bool exclusive, int64_t deadline, int *ret_fd,
	      struct hw_err *e)
{
	int r = 0;

	while (r == 0) {
		autoclose int fd = -1;

		fd = openat(dir, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0)
			return err_set(e, -errno, "open %s", path);
		r = lock_with_deadline(fd, path, exclusive, NULL, deadline, e);
		if (r < 0)
			return r;
		r = is_same_file(dir, path, fd, e);
		if (r > 0)
			*ret_fd = take_fd(fd);
	}
	return r < 0 ? r : 0;
}

int file_lock_byte(int fd, int64_t offset, int64_t deadline, struct hw_err *e)
{
	struct flock byte = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = offset, .l_len = 1
	};

	return lock_with_deadline(fd, "a byte", true, &byte, deadline, e);
}

static uint64_t block_bytes(uint64_t blocks, uint64_t size)
{
	uint64_t bytes;

	return __builtin_mul_overflow(blocks, size, &bytes) ? UINT64_MAX : bytes;
}

int file_space(int fd, struct file_space *ret_space, struct hw_err *e)
{
	struct statvfs fs;

	if (fstatvfs(fd, &fs) < 0)
		return err_set(e, -errno, "query free disk space");
	*ret_space = (struct file_space){
		.bytes_free = block_bytes(fs.f_bavail, fs.f_frsize),
		.bytes = block_bytes(fs.f_blocks, fs.f_frsize),
		.inodes_free = fs.f_favail,
		.inodes = fs.f_files,
	};
	return 0;
}

struct dir_listing {
	struct dir_name {
		char *name;
		unsigned char type;
	} * v;
	size_t n, room;
};

static void listing_done(struct dir_listing *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->v[i].name);
	free(list->v);
}
AUTO_VALUE_DEFINE(listing_done, struct dir_listing);

static int compare_names(const void *a, const void *b)
{
	const struct dir_name *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int read_sorted(DIR *d, const char *path, struct dir_listing *list, struct hw_err *e)
{
	for (;;) {
		const struct dirent *entry;

		errno = 0;
		entry = readdir(d);
		if (!entry && errno)
			return err_set(e, -errno, "read directory %s", path);
		if (!entry)
			break;
		if (str_equal(entry->d_name, ".") || str_equal(entry->d_name, ".."))
			continue;
		if (list->n == list->room) {
			list->room = list->room ? 2 * list->room : 16;
			list->v = mem_resize(list->v, list->room, sizeof(*list->v));
		}
		list->v[list->n++] =
			(struct dir_name){ .name = str_copy(entry->d_name), .type = entry->d_type };
	}
	if (list->n > 1)
		qsort(list->v, list->n, sizeof(*list->v), compare_names);
	return 0;
}

static void close_dir(DIR *d)
{
	if (d)
		closedir(d);
}
AUTO_DEFINE(close_dir, DIR);

int file_walk(int dir, const char *path,
	      int (*each)(void *ctx, const struct file_entry *entry, struct hw_err *e), void *ctx,
	      struct hw_err *e)
{
	AUTO(listing_done) struct dir_listing list = { 0 };
	autoclose int fd = -1;
	AUTO(close_dir) DIR *d = NULL;
	struct stat st;
	int r;

	fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		d = fdopendir(fd);
	if (!d)
		return err_set(e, -errno, "open directory %s", path);
	take_fd(fd); /* d owns the descriptor now */
	r = read_sorted(d, path, &list, e);
	for (size_t i = 0; r == 0 && i < list.n; i++) {
		struct file_entry entry = { dirfd(d), list.v[i].name, list.v[i].type };

		if (entry.type == DT_UNKNOWN) { /* some file systems do not report the type */
			if (fstatat(entry.dir, entry.name, &st, AT_SYMLINK_NOFOLLOW) == 0)
				entry.type = IFTODT(st.st_mode);
			else if (errno == ENOENT)
				continue; /* the entry no longer exists */
			else
				return err_set(e, -errno, "stat %s", entry.name);
		}
		r = each(ctx, &entry, e);
	}
	return r;
}

static int sweep_entry(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	(void)ctx;
	if (entry->type != DT_REG || !file_is_temporary(entry->name))
		return 0;
	return remove_temp(entry->dir, entry->name, e);
}

int file_sweep(int dir, const char *path, struct hw_err *e)
{
	int r;

	r = file_walk(dir, path, sweep_entry, NULL, e);
	return r == -ENOENT ? 0 : r;
}
