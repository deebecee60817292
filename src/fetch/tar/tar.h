/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/tar.h - streaming tar reader without I/O: bytes in, members out
 *
 * What:  reads ustar, PAX, GNU long names, base-256 numbers, and sparse files in all four formats.
 *        Go's archive/tar, which wrote most layers, reads the same formats.
 * How:   tar_feed() takes bytes in pieces of any size and calls the sink. For each member it calls
 *        entry() once, data() any number of times, and end() once. It calls other() for all bytes
 *        of the archive that are not file data. data() and other() together receive every byte of
 *        the archive, in order.
 * Rules: an error of a sink function stops the reader. Sizes are bounded before anything is
 *        allocated. Where tar readers differ, this one behaves like Go's: global PAX headers are
 *        ignored, links and directories have no data, bytes after the end of the archive are not
 *        interpreted.
 */
#ifndef FETCH_TAR_TAR_H
#define FETCH_TAR_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/err.h"
#include "base/mem.h"

#define TAR_BLOCK     512
#define TAR_EXTRA_MAX (1 << 20) /* maximum size of a PAX header or long name, as in Go */
#define TAR_MAP_MAX   (4 << 20) /* maximum size of a sparse map in text form */
#define TAR_HOLES_MAX (1 << 16) /* maximum number of pieces of a sparse file */

enum tar_type {
	TAR_FILE,
	TAR_HARDLINK,
	TAR_SYMLINK,
	TAR_CHAR,
	TAR_BLOCKDEV,
	TAR_DIR,
	TAR_FIFO,
};

struct tar_xattr {
	char *name;
	void *value;
	size_t len;
};

struct tar_piece {
	int64_t offset, len;
};

/* A member; valid until the sink's end() has returned. */
struct tar_entry {
	enum tar_type type;
	char *path;   /* unchanged from the archive: may be absolute or contain ".." */
	char *target; /* target of a link; "" for other types */
	mode_t mode;  /* permission, set-user-ID, set-group-ID and sticky bits */
	uid_t uid;
	gid_t gid;
	struct timespec mtime;
	unsigned int major, minor; /* device number, for devices only */
	int64_t size;		   /* size of the file */
	int64_t stored;		   /* bytes of data in the archive; fewer if the file is sparse */
	struct tar_piece *pieces;  /* the stored parts of the file; at most one if not sparse */
	size_t n_pieces;
	struct tar_xattr *xattrs;
	size_t n_xattrs;
};

/* Each function returns 0 or negative errno. @offset: position of the data in the file. */
struct tar_sink {
	int (*entry)(void *ctx, const struct tar_entry *entry, struct hw_err *e);
	int (*data)(void *ctx, int64_t offset, const void *data, size_t len, struct hw_err *e);
	int (*end)(void *ctx, struct hw_err *e);
	int (*other)(void *ctx, const void *data, size_t len, struct hw_err *e);
};

struct tar;

struct tar *tar_new(const struct tar_sink *sink, void *ctx); /* both are borrowed */
void tar_free(struct tar *t);
/* Read the next bytes of the archive. After an error the reader must not be used again.
 * Return: 0; -EINVAL: malformed archive; -EOPNOTSUPP: unsupported type; or the sink's error */
int tar_feed(struct tar *t, const void *data, size_t len, struct hw_err *e);
/* Skip the data of the current member. Allowed only before tar_feed() has received any of the data.
 * Return: 0; -EINVAL: the reader is not at the start of a member's data; or the error of end() */
int tar_skip(struct tar *t, struct hw_err *e);
/* To be called at the end of the archive. As in Go, missing zero blocks at the end and missing
 * padding of the last block are not an error: some programs omit them. Return: 0, or -EINVAL:
 * truncated */
int tar_finish(struct tar *t, struct hw_err *e);

AUTO_DEFINE(tar_free, struct tar);

#endif
