/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/file.h - files: bounded reads, atomic replacement, locks, free space, directory walks
 *
 * Paths are relative to a directory descriptor (AT_FDCWD: the working directory). All descriptors
 * are CLOEXEC. Unless stated otherwise, functions return 0 or a negative errno.
 */
#ifndef BASE_OS_FILE_H
#define BASE_OS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"

/* Reads a whole regular file. *ret is written on success only; its old contents are not freed.
 * Return: 0; -ENOENT if it does not exist; -EFBIG if it has more than max bytes; -EISDIR or -EINVAL
 * if it is not a regular file */
int file_read(int dir, const char *path, size_t max, struct buf *ret, struct hw_err *e);
/* Like file_read(), but a missing file is not an error. Return: 1 if read; 0 if the file does not
 * exist; or a negative errno */
int file_read_if_exists(int dir, const char *path, size_t max, struct buf *ret, struct hw_err *e);
/* Reads a descriptor of any kind up to EOF, like file_read(). */
int file_read_fd(int fd, size_t max, struct buf *ret, struct hw_err *e);
int file_write_fd(int fd, const void *data, size_t len, struct hw_err *e);

/* Writes to an existing file of the kernel, for example of a cgroup, with a single write(). */
int file_write_value(int dir, const char *path, const char *value, struct hw_err *e);

/* Opens /dev/null for each of the descriptors 0, 1 and 2 that is closed. Otherwise the next opened file
 * would get that number and be used as standard input or output. Writes to standard output still fail
 * with EBADF, as on a closed descriptor: a lost result is an error. Standard input and error are opened
 * with @flags; with O_PATH their reads and writes fail, too. */
void file_open_missing_stdio(int flags);
/* Writes what standard output has buffered. Return: 0; or a negative errno, also if an earlier write has
 * failed */
int file_flush_stdout(struct hw_err *e);

enum { FILE_SYNC = 1 << 0 }; /* fsync file and directory */

/* Replaces a file atomically: readers see either the complete old or the complete new contents. The
 * mode is set exactly, independent of the umask. On failure the old file is unchanged, except that
 * with FILE_SYNC the new file is in place if only the fsync of its directory failed.
 * The data is first written to a temporary file .NAME~ in the same directory. If the writer dies,
 * that file is left; the next file_replace() or file_remove() of the same path, or file_sweep(),
 * removes it. */
int file_replace(int dir, const char *path, const void *data, size_t len, mode_t mode,
		 unsigned flags, struct hw_err *e);
/* Return: true for a name of the form .NAME~. @name must not contain a directory. */
bool file_is_temporary(const char *name);
/* Removes from a directory every .NAME~ whose writer is dead. Succeeds if the directory does not
 * exist. */
int file_sweep(int dir, const char *path, struct hw_err *e);

/* Creates a directory and its parents, like mkdir -p. An existing directory keeps its mode. */
int file_mkdirs(int dir, const char *path, mode_t mode, struct hw_err *e);
/* Removes a file and its .NAME~; succeeds if the file does not exist. */
int file_remove(int dir, const char *path, struct hw_err *e);

/* Opens a file, creating it if needed, and locks it with flock(). Closing *ret_fd releases the
 * lock. If the file is removed or replaced during the wait, the new file with this path is locked.
 * Return: 0; -ETIMEDOUT if the deadline passed */
int file_lock(int dir, const char *path, bool exclusive, int64_t deadline, int *ret_fd,
	      struct hw_err *e);
/* Locks one byte of a file against others that lock the same byte, also beyond the end of the file.
 * Independent of the lock of file_lock(). Closing @fd, which must be open for writing, releases the
 * lock. Return: 0; -ETIMEDOUT if the deadline passed */
int file_lock_byte(int fd, int64_t offset, int64_t deadline, struct hw_err *e);

/* Opens a file below a directory as if that was the root directory: neither a link nor ".." leads out of
 * it, nor into another file system. With O_NOFOLLOW in @flags the last component is not followed if it is
 * a link. Return: a descriptor, or a negative errno */
int file_open_in_root(int root, const char *path, int flags);

/* Free space of a file system, as an unprivileged process sees it. */
struct file_space {
	uint64_t bytes_free, bytes;
	uint64_t inodes_free, inodes; /* both 0 if the file system does not count inodes */
};
/* @fd: any file or directory on the file system; O_PATH suffices */
int file_space(int fd, struct file_space *ret_space, struct hw_err *e);

struct file_entry {
	int dir; /* descriptor of the directory */
	const char *name;
	unsigned char type; /* DT_REG, DT_DIR, DT_LNK ...; never DT_UNKNOWN */
};
/* Calls each() for each entry of a directory except . and .., in byte order of the names. A return
 * value other than 0 stops the walk. Return: the last return value of each(); -ENOENT if the
 * directory does not exist */
int file_walk(int dir, const char *path,
	      int (*each)(void *ctx, const struct file_entry *entry, struct hw_err *e), void *ctx,
	      struct hw_err *e);

#endif
