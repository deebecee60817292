/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/file.c - whole files: bounded reads, atomic replacement, locks, walks
 *
 * How:   a replaced file is written under another name in the same directory
 *        and renamed; until then the old one stands, also when the disk is full.
 *        That name is always the same, and two writers take turns by a lock on it.
 *        Locks are flock(): tied to the open file, so they end with the process
 *        and also work between threads. Waiting for one is trying again with
 *        growing pauses, because a blocking flock() could only be ended by a
 *        signal, and signals belong to the host program.
 */
#include "base/os/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"

#define FILE_READ_STEP	  4096
#define FILE_TEMP_WAIT	  10000 /* ms, for another writer of the same file */
#define FILE_LOCK_NAP_MAX 4	/* ms: most are held for less than one */

static int file_read_all(int fd, const char *name, size_t max, struct buf *ret, struct hw_err *e)
{
	AUTO(buf_done) struct buf b = { 0 };

	for (;;) {
		size_t step = b.len < FILE_READ_STEP ? FILE_READ_STEP : b.len;
		ssize_t n;

		/* one byte more than allowed shows that there is more */
		if (step > max - b.len)
			step = max - b.len + 1;
		n = read(fd, buf_reserve(&b, step), step);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, -errno, "read %s", name);
		if (n == 0)
			break;
		buf_added(&b, (size_t)n);
		if (b.len > max)
			return err_text(e, -EFBIG, "read %s: more than %zu bytes", name, max);
	}
	*ret = b;
	b = (struct buf){ 0 };
	return 0;
}

/**
 * file_read() - the whole of a regular file
 *
 * Opened without blocking: a FIFO put where a file is expected must not hang us.
 */
int file_read(int dir, const char *path, size_t max, struct buf *ret, struct hw_err *e)
{
	autoclose int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return err_set(e, -errno, "open %s", path);
	if (fstat(fd, &st) < 0)
		return err_set(e, -errno, "stat %s", path);
	if (S_ISDIR(st.st_mode))
		return err_set(e, -EISDIR, "read %s", path);
	if (!S_ISREG(st.st_mode))
		return err_text(e, -EINVAL, "read %s: not a regular file", path);
	return file_read_all(fd, path, max, ret, e);
}

int file_read_fd(int fd, size_t max, struct buf *ret, struct hw_err *e)
{
	return file_read_all(fd, "input", max, ret, e);
}

void file_fill_standard(int flags)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", flags); /* takes the lowest number: fd */
}

int file_write_fd(int fd, const void *data, size_t len, struct hw_err *e)
{
	const char *at = data;

	while (len > 0) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, -errno, "write");
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

static size_t file_dir_len(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) + 1 : 0;
}

/* One name per file, so that its next writer or file_remove() clears away what a dead writer left.
 * Cut where it would exceed NAME_MAX. */
static char *file_temp_name(const char *path)
{
	size_t dir_len = file_dir_len(path);

	return str_printf("%.*s.%.250s~", (int)dir_len, path, path + dir_len);
}

/* A network file system may say only when a descriptor is closed that there is no room; ours stays
 * open, because its lock keeps other writers away until the file has its name. */
static int file_flush(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	return copy < 0 ? -1 : close(copy);
}

/* The file is a new one, or what a writer that died left. */
static int file_temp_write(int fd, const void *data, size_t len, mode_t mode, unsigned flags,
			   struct hw_err *e)
{
	struct stat was;
	int r;

	if (fstat(fd, &was) < 0 || (was.st_size > 0 && ftruncate(fd, 0) < 0))
		return err_set(e, -errno, "truncate");
	r = file_write_fd(fd, data, len, e);
	if (r < 0)
		return r;
	if ((was.st_mode & 07777) != mode && fchmod(fd, mode) < 0)
		return err_set(e, -errno, "chmod");
	if ((flags & FILE_SYNC) && fsync(fd) < 0)
		return err_set(e, -errno, "fsync");
	if (file_flush(fd) < 0)
		return err_set(e, -errno, "close");
	return 0;
}

static int file_sync_dir_of(int dir, const char *path, struct hw_err *e)
{
	autofree char *name = str_ncopy(path, file_dir_len(path));
	autoclose int fd = openat(dir, *name ? name : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fsync(fd) < 0)
		return err_set(e, -errno, "fsync the directory of %s", path);
	return 0;
}

/**
 * file_replace() - the whole of a file, atomically
 *
 * After a failure the old file stands as it was, except that with FILE_SYNC the
 * new one may stand and only its directory could not be synced.
 */
int file_replace(int dir, const char *path, const void *data, size_t len, mode_t mode,
		 unsigned flags, struct hw_err *e)
{
	autofree char *temp = file_temp_name(path);
	autoclose int fd = -1;
	int r = file_lock(dir, temp, true, time_deadline(FILE_TEMP_WAIT), &fd, e);

	if (r < 0)
		return err_ctx(e, "write %s", path);
	r = file_temp_write(fd, data, len, mode, flags, e);
	if (r == 0 && renameat(dir, temp, dir, path) < 0)
		r = err_set(e, -errno, "rename %s", temp);
	if (r < 0) {
		unlinkat(dir, temp, 0);
		return err_ctx(e, "write %s", path);
	}
	return flags & FILE_SYNC ? file_sync_dir_of(dir, path, e) : 0;
}

/** file_is_temporary() - was @name, without its directory, made by file_replace()? */
bool file_is_temporary(const char *name)
{
	return name[0] == '.' && name[1] && str_ends(name + 1, "~");
}

static int file_mkdir(int dir, const char *path, mode_t mode, struct hw_err *e)
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

/** file_mkdirs() - a directory with all above it; one that is there keeps its mode */
int file_mkdirs(int dir, const char *path, mode_t mode, struct hw_err *e)
{
	int r = file_mkdir(dir, path, mode, e);

	if (r != -ENOENT)
		return r;
	for (const char *end = path; *end; end++) {
		autofree char *parent = NULL;

		if (*end != '/' || end == path || end[-1] == '/')
			continue;
		parent = str_ncopy(path, (size_t)(end - path));
		r = file_mkdir(dir, parent, mode, e);
		if (r < 0)
			return r;
	}
	return file_mkdir(dir, path, mode, e);
}

/* 1: @fd is still the file of that name; 0: it was removed or replaced meanwhile. */
static int file_is_still(int dir, const char *path, int fd, struct hw_err *e)
{
	struct stat ours, there;

	if (fstat(fd, &ours) < 0)
		return err_set(e, -errno, "stat %s", path);
	if (fstatat(dir, path, &there, 0) < 0)
		return errno == ENOENT ? 0 : err_set(e, -errno, "stat %s", path);
	return ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

/* No such file: there may be a file where its directory would be. */
static bool is_absent(int error)
{
	return error == ENOENT || error == ENOTDIR;
}

/* Only that of a writer that died: one that lives holds the lock. Not the file of that name any
 * more: it has its final name by now, and the next writer may be at work. */
static int file_remove_temp(int dir, const char *temp, struct hw_err *e)
{
	autoclose int fd = openat(dir, temp, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int r;

	if (fd < 0)
		return is_absent(errno) ? 0 : err_set(e, -errno, "open %s", temp);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : err_set(e, -errno, "lock %s", temp);
	r = file_is_still(dir, temp, fd, e);
	if (r > 0 && unlinkat(dir, temp, 0) < 0)
		return err_set(e, -errno, "remove %s", temp);
	return r < 0 ? r : 0;
}

/** file_remove() - no such file any more, nor what a writer that died left beside it */
int file_remove(int dir, const char *path, struct hw_err *e)
{
	autofree char *temp = file_temp_name(path);
	int r = file_remove_temp(dir, temp, e);

	if (r < 0)
		return r;
	if (unlinkat(dir, path, 0) == 0)
		return 0;
	if (is_absent(errno))
		return 1;
	return err_set(e, -errno, "remove %s", path);
}

/**
 * file_own_netns() - a descriptor of this thread's network namespace
 *
 * Any socket tells it. What /proc has of a new process must be made first, which takes longer; it
 * is for whom sockets do not tell: who may not administer the namespace.
 *
 * Return: the descriptor, or -1 with errno
 */
int file_own_netns(void)
{
	autoclose int any = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int fd = any < 0 ? -1 : ioctl(any, SIOCGSKNS);

	return fd < 0 ? open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC) : fd;
}

static int file_flock(int fd, const char *path, bool exclusive, int64_t deadline, struct hw_err *e)
{
	for (int nap = 1;; nap = nap < FILE_LOCK_NAP_MAX ? nap * 2 : FILE_LOCK_NAP_MAX) {
		int left;

		if (flock(fd, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_set(e, -errno, "lock %s", path);
		left = time_left_ms(deadline);
		if (left == 0)
			return err_text(e, -ETIMEDOUT, "lock %s: others held it all the time",
					path);
		time_sleep(left > 0 && left < nap ? left : nap);
	}
}

/**
 * file_lock() - lock the file of a name, made when it is not there
 * @ret_fd: close it to unlock
 *
 * A file that somebody removed while we waited locks nothing any more, so the
 * name is opened again until file and name agree.
 */
int file_lock(int dir, const char *path, bool exclusive, int64_t deadline, int *ret_fd,
	      struct hw_err *e)
{
	int r = 0;

	while (r == 0) {
		autoclose int fd =
			openat(dir, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

		if (fd < 0)
			return err_set(e, -errno, "open %s", path);
		r = file_flock(fd, path, exclusive, deadline, e);
		if (r < 0)
			return r;
		r = file_is_still(dir, path, fd, e);
		if (r > 0)
			*ret_fd = take_fd(fd);
	}
	return r < 0 ? r : 0;
}

struct walk {
	struct walk_name {
		char *name;
		unsigned char type;
	} * v;
	size_t n, room;
};

static void walk_done(struct walk *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->v[i].name);
	free(w->v);
}
AUTO_VALUE_DEFINE(walk_done, struct walk);

static void walk_add(struct walk *w, const struct dirent *d)
{
	if (w->n == w->room) {
		w->room = w->room ? 2 * w->room : 16;
		w->v = mem_resize(w->v, w->room, sizeof(*w->v));
	}
	w->v[w->n++] = (struct walk_name){ .name = str_copy(d->d_name), .type = d->d_type };
}

static int walk_compare(const void *a, const void *b)
{
	const struct walk_name *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int walk_collect(DIR *d, const char *path, struct walk *w, struct hw_err *e)
{
	for (;;) {
		const struct dirent *entry;

		errno = 0;
		entry = readdir(d);
		if (!entry && errno)
			return err_set(e, -errno, "read directory %s", path);
		if (!entry)
			break;
		if (!str_equal(entry->d_name, ".") && !str_equal(entry->d_name, ".."))
			walk_add(w, entry);
	}
	if (w->n > 1)
		qsort(w->v, w->n, sizeof(*w->v), walk_compare);
	return 0;
}

/* Some file systems do not say what an entry is. 0: it is gone. */
static int walk_type(int dir, struct walk_name *name, struct hw_err *e)
{
	struct stat st;

	if (name->type != DT_UNKNOWN)
		return 1;
	if (fstatat(dir, name->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_set(e, -errno, "stat %s", name->name);
	name->type = IFTODT(st.st_mode);
	return 1;
}

static void dir_close(DIR *d)
{
	if (d)
		closedir(d);
}
AUTO_DEFINE(dir_close, DIR);

static int dir_open(int dir, const char *path, DIR **ret_dir, struct hw_err *e)
{
	autoclose int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		return err_set(e, -errno, "open directory %s", path);
	take_fd(fd);
	*ret_dir = d;
	return 0;
}

/** file_walk() - each entry of a directory, in byte order of the names */
int file_walk(int dir, const char *path,
	      int (*each)(void *ctx, const struct file_entry *entry, struct hw_err *e), void *ctx,
	      struct hw_err *e)
{
	AUTO(walk_done) struct walk w = { 0 };
	AUTO(dir_close) DIR *d = NULL;
	int r = dir_open(dir, path, &d, e);

	if (r == 0)
		r = walk_collect(d, path, &w, e);
	for (size_t i = 0; r == 0 && i < w.n; i++) {
		struct file_entry entry = { .dir = dirfd(d), .name = w.v[i].name };

		r = walk_type(dirfd(d), &w.v[i], e);
		if (r <= 0)
			continue;
		entry.type = w.v[i].type;
		r = each(ctx, &entry, e);
	}
	return r;
}

static int sweep_entry(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	(void)ctx;
	if (entry->type != DT_REG || !file_is_temporary(entry->name))
		return 0;
	return file_remove_temp(entry->dir, entry->name, e);
}

/** file_sweep() - clear a directory of what writers that died left; a missing one is clear */
int file_sweep(int dir, const char *path, struct hw_err *e)
{
	int r = file_walk(dir, path, sweep_entry, NULL, e);

	return r == -ENOENT ? 0 : r;
}
