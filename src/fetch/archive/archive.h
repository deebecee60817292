/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/archive/archive.h - the files in a tar archive of images, where they lie
 *
 * What:  reads the archive once, remembers where its files are, and reads those that
 *        are asked for. Nothing is unpacked: the names in it are names of the
 *        archive, and no path of this machine is ever made from them.
 * Rules: links lead to other members only. A member whose name leaves the archive
 *        makes all of it bad.
 *        When it is open, any thread may read.
 */
#ifndef FETCH_ARCHIVE_ARCHIVE_H
#define FETCH_ARCHIVE_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "fetch/source/source.h"

#define ARCHIVE_MEMBERS_MAX (1 << 14)
#define ARCHIVE_PATH_MAX    1024 /* a longer one is nothing that an image has */

struct archive;

struct archive_file {
	int64_t at, size;
};

/* @fd is borrowed, and is a file: it is read from the beginning. */
int archive_open(int fd, struct archive **ret_archive, struct hw_err *e);
void archive_free(struct archive *a);

AUTO_DEFINE(archive_free, struct archive);

const struct archive_file *archive_find(const struct archive *a, const char *path); /* or NULL */
/* All of a small file. -EBADMSG: there is none of that name; -EFBIG */
int archive_read(const struct archive *a, const char *path, struct buf *ret, struct hw_err *e);
/* All of any file, in pieces. */
int archive_stream(const struct archive *a, const struct archive_file *file,
		   int (*take)(void *ctx, const void *data, size_t len, struct hw_err *e),
		   void *ctx, struct hw_err *e);

/* Blobs are found by digest: an OCI layout has them by that name, of the others it is said. */
void archive_name_blob(struct archive *a, const char *digest, const char *path);
const char *archive_blob_path(const struct archive *a, const char *digest, struct buf *space);

/* What the job's image consists of, in either kind of archive; the names are as they are there. */
int archive_resolve_oci(struct archive *a, const struct job *job, struct resolved_image *f,
			struct hw_err *e);
int archive_resolve_docker(struct archive *a, const struct job *job, struct resolved_image *f,
			   struct hw_err *e);

#endif
