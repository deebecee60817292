/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/archive/archive.h - random access to the files of a tar archive of images
 *
 * What:  reads the archive once to find the offsets of its files, and reads files on request.
 *        Nothing is unpacked: names of members are never used as paths of this machine.
 * Rules: links are resolved to other members only. An archive with a member whose name escapes the
 *        archive is rejected as a whole.
 *        Any thread may read an open archive.
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
#define ARCHIVE_PATH_MAX    1024 /* members with longer paths are ignored: images have none */

struct archive;

struct archive_file {
	int64_t at, size;
};

/* @fd: a file, read from its beginning; borrowed. Return: 0; -EINVAL, -EBADMSG: not a tar archive,
 * or malformed; -EFBIG: too many members; or negative errno */
int archive_open(int fd, struct archive **ret_archive, struct hw_err *e);
void archive_free(struct archive *a);

AUTO_DEFINE(archive_free, struct archive);

/* @path: of a file or of a link to one. Return: NULL: not found */
const struct archive_file *archive_find(const struct archive *a, const char *path);
/* Read a whole document. Return: 0; -EBADMSG: not found; -EFBIG: larger than MANIFEST_SIZE_MAX */
int archive_read(const struct archive *a, const char *path, struct buf *ret, struct hw_err *e);
/* Pass on the bytes of a file of any size. */
int archive_stream(const struct archive *a, const struct archive_file *file, source_write *write,
		   void *ctx, struct hw_err *e);

/* The blob of @digest is in the file @path; the caller need not know that the digest is right.
 * Blobs without this have the name of an OCI image layout. */
void archive_set_blob_path(struct archive *a, const char *digest, const char *path);
/* Return: expected path of the blob; @space: for the text, to be freed by the caller */
const char *archive_blob_path(const struct archive *a, const char *digest, struct buf *space);

/* Resolve the job's image. image->names are as in the archive. */
int archive_resolve_oci(struct archive *a, const struct job *job, struct resolved_image *image,
			struct hw_err *e);
int archive_resolve_docker(struct archive *a, const struct job *job, struct resolved_image *image,
			   struct hw_err *e);

#endif
