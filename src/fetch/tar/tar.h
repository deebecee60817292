/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/tar.h - a tar archive, without I/O: bytes in, members out
 *
 * What:  ustar, PAX, GNU's long names, base-256 numbers, and sparse files in all
 *        four forms; what Go's archive/tar reads, since that made the layers.
 * How:   tar_feed() takes bytes in pieces of any size and calls the sink: for
 *        each member entry(), data() as often as needed, end(); and other() for
 *        every byte of the archive that is not a file's data. data() and other()
 *        together have every byte, in order.
 * Rules: a call of the sink that fails ends the reading. A size is bounded
 *        before anything is allocated. Where readers differ, it is as in Go:
 *        global PAX headers mean nothing, links and folders have no data, what
 *        follows the end of the archive is not looked at.
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
#define TAR_EXTRA_MAX (1 << 20) /* of one PAX header or long name, as in Go */
#define TAR_MAP_MAX   (4 << 20) /* of a sparse file's map as text */
#define TAR_HOLES_MAX (1 << 16) /* of one file */

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

/* A member; lives until the sink's end() has returned. */
struct tar_entry {
	enum tar_type type;
	char *path;   /* as it is written there: may be absolute, or have ".." in it */
	char *target; /* of a link; else "" */
	mode_t mode;  /* permissions, set-user-id and the like */
	uid_t uid;
	gid_t gid;
	struct timespec mtime;
	unsigned int major, minor; /* of a device */
	int64_t size;		   /* of the file */
	int64_t stored;		   /* of what the archive has of it: less when it is sparse */
	struct tar_piece *pieces;  /* of a sparse file, what is stored; else one or none */
	size_t n_pieces;
	struct tar_xattr *xattrs;
	size_t n_xattrs;
};

struct tar_sink {
	int (*entry)(void *ctx, const struct tar_entry *entry, struct hw_err *e);
	int (*data)(void *ctx, int64_t offset, const void *data, size_t len, struct hw_err *e);
	int (*end)(void *ctx, struct hw_err *e);
	int (*other)(void *ctx, const void *data, size_t len, struct hw_err *e);
};

struct tar;

struct tar *tar_new(const struct tar_sink *sink, void *ctx);
void tar_free(struct tar *t);
int tar_feed(struct tar *t, const void *data, size_t len, struct hw_err *e);
int tar_skip(struct tar *t, struct hw_err *e); /* the data of the member at hand does not come */
int tar_finish(struct tar *t, struct hw_err *e);

AUTO_DEFINE(tar_free, struct tar);

#endif
