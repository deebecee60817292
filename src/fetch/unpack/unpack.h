/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/unpack.h - unpacks an archive in the format of an overlayfs layer
 *
 * What:  reads the bytes of an archive, creates its members below a root, and computes the layer's
 *        diff ID and its recipe at the same time.
 * Rules: nothing outside the root is changed, whatever the archive contains.
 *        After an error the root contains an incomplete layer, which the caller must remove
 *        (remove_tree()).
 *
 *	struct unpack *u = unpack_new(&(struct unpack_options){ .root = fd, ... });
 *	while (...)
 *		r = unpack_feed(u, bytes, n, e);
 *	r = unpack_finish(u, diff_id, &unpacked, e);
 */
#ifndef FETCH_UNPACK_UNPACK_H
#define FETCH_UNPACK_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "image/protocol/layer-report.h"

#define UNPACK_BYTES_MAX   (INT64_C(64) << 30)
#define UNPACK_ENTRIES_MAX 1000000

struct unpack_options {
	int root;	 /* an empty directory; borrowed */
	int recipe;	 /* file to write the recipe to, borrowed; -1: none */
	int64_t bytes;	 /* maximum size of the archive and of each file */
	int64_t entries; /* maximum number of members and implied directories */
	int64_t reserve; /* bytes that stay free on the file system */
	bool sync;	 /* write everything to disk before unpack_finish() returns */
};

struct unpack;

/* Reads OpenSSL's configuration file: call it before confine(). */
struct unpack *unpack_new(const struct unpack_options *options);
void unpack_free(struct unpack *u); /* does not remove the files */
/* Unpack the next bytes of the archive. Return: 0; -EINVAL, -EBADMSG: malformed archive;
 * -EOPNOTSUPP: unsupported member type; -EFBIG: a limit is exceeded; -ENOSPC; or the error of a
 * system call that creates a member */
int unpack_feed(struct unpack *u, const void *data, size_t len, struct hw_err *e);
/* To be called at the end of the archive. @diff_id: expected diff ID; NULL: any. @ret_unpacked: to
 * be released with unpacked_done(). Return: 0; -EBADMSG: diff ID mismatch; -EINVAL: truncated
 * archive; or negative errno */
int unpack_finish(struct unpack *u, const char *diff_id, struct unpacked *ret_unpacked,
		  struct hw_err *e);

AUTO_DEFINE(unpack_free, struct unpack);

#endif
