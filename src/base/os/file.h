/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/file.h - whole files: bounded reads, atomic replacement, locks, walks
 *
 * Paths are relative to a directory descriptor (AT_FDCWD for none). All
 * descriptors are CLOEXEC.
 */
#ifndef BASE_OS_FILE_H
#define BASE_OS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"

/* The whole of a regular file; more than max bytes is -EFBIG. -ENOENT comes back as such. *ret is
 * overwritten, on success only. */
int file_read(int dir, const char *path, size_t max, struct buf *ret, struct hw_err *e);
/* The same from a descriptor of any kind, to its end. */
int file_read_fd(int fd, size_t max, struct buf *ret, struct hw_err *e);
/* /dev/null, opened with @flags, for each of 0, 1 and 2 that is closed: else the next file that is
 * opened would be taken for it. With O_PATH using it fails as before. */
void file_fill_standard(int flags);
int file_write_fd(int fd, const void *data, size_t len, struct hw_err *e);
/* This thread's network namespace, opened; -1 with errno. */
int file_own_netns(void);

enum { FILE_SYNC = 1 << 0 }; /* fsync file and directory */

/* Write a temporary file beside it, then rename: readers see all of the old or all of the new. The
 * mode is exact, whatever the umask. A writer that dies leaves .NAME~, which file_is_temporary()
 * knows and which the next file_replace() or file_remove() of that path clears away. */
int file_replace(int dir, const char *path, const void *data, size_t len, mode_t mode,
		 unsigned flags, struct hw_err *e);
bool file_is_temporary(const char *name);

int file_mkdirs(int dir, const char *path, mode_t mode, struct hw_err *e); /* mkdir -p */
/* Absent is success; returns 1 when there was nothing. Clears away .NAME~ too. */
int file_remove(int dir, const char *path, struct hw_err *e);

/* Open (and make) the file, then flock() it; exclusive or shared. -ETIMEDOUT at the deadline. */
int file_lock(int dir, const char *path, bool exclusive, int64_t deadline, int *ret_fd,
	      struct hw_err *e);

/* Calls back for each entry except . and .., in byte order. A positive answer ends the walk and is
 * returned, a negative one too. -ENOENT when the directory is missing. */
struct file_entry {
	int dir; /* its directory */
	const char *name;
	unsigned char type; /* DT_REG, DT_DIR, DT_LNK ...; never DT_UNKNOWN */
};
int file_walk(int dir, const char *path,
	      int (*each)(void *ctx, const struct file_entry *entry, struct hw_err *e), void *ctx,
	      struct hw_err *e);

/* Remove every .NAME~ of a directory whose writer is dead. */
int file_sweep(int dir, const char *path, struct hw_err *e);

#endif
