/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/archive/archive.h - random access to the files of a tar archive of images
 *
 * What:  reads the archive once to find the offsets of its files, and reads files on request.
 *        Nothing is unpacked: names of members are never used as paths on this machine.
 * Rules: a link can only lead to another member of the archive. If the name of a member escapes the
 *        archive, the archive is rejected.
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
#define ARCHIVE_PATH_MAX    1024 /* members with longer paths are ignored: no image needs them */

struct archive;

struct archive_file {
	int64_t at, size;
};

/* Scan an archive. @fd: the file, read from its beginning; borrowed. Return: 0; -EBADMSG:
 * not a tar archive, or malformed; -EFBIG: too many members; or negative errno */
int archive_open(int fd, struct archive **ret_archive, struct hw_err *e);
void archive_free(struct archive *a);

AUTO_DEFINE(archive_free, struct archive);

/* Find a file. @path: path of a file or of a link to a file. Return: NULL if not found */
const struct archive_file *archive_find(const struct archive *a, const char *path);
/* Read a small file completely. Return: 0; -EBADMSG: not found; -EFBIG: larger than
 * MANIFEST_SIZE_MAX */
int archive_read(const struct archive *a, const char *path, struct buf *ret, struct hw_err *e);
/* Pass the bytes of a file to write(), in order. The file may have any size. */
int archive_stream(const struct archive *a, const struct archive_file *file, source_write *write,
		   void *ctx, struct hw_err *e);

/* Record that the file @path contains the blob with @digest. The digest is verified later, when the
 * blob is read. A blob that is not recorded is expected at its path in an OCI image layout. */
void archive_set_blob_path(struct archive *a, const char *digest, const char *path);
/* Return: path at which the blob is expected, valid as long as @a and @space. @space: an empty
 * buffer that may hold the text; the caller frees it */
const char *archive_blob_path(const struct archive *a, const char *digest, struct buf *space);

/* Resolve the job's image. image->names: the names as written in the archive. */
int archive_resolve_oci(struct archive *a, const struct fetch_job *job,
			struct resolved_image *image, struct hw_err *e);
int archive_resolve_docker(struct archive *a, const struct fetch_job *job,
			   struct resolved_image *image, struct hw_err *e);

#endif
