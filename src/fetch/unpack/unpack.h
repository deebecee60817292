/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/unpack.h - unpacks a layer's archive into a directory, in overlayfs's form
 *
 * What:  reads the bytes of an archive, creates its members below a root, and computes the layer's
 *        diff ID and its recipe at the same time.
 * Rules: nothing outside the root is changed, whatever the archive contains.
 *        After an error the root has an incomplete layer, which the caller must remove
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
#include "image/protocol/unpacked.h"

#define UNPACK_BYTES_MAX   (INT64_C(64) << 30)
#define UNPACK_ENTRIES_MAX 1000000

struct unpack_options {
	int root;	 /* an empty directory; borrowed */
	int recipe;	 /* file for the recipe; -1: none; borrowed */
	int64_t bytes;	 /* limit of the archive's size and of each file's size */
	int64_t entries; /* limit of the number of members and implied directories */
	int64_t reserve; /* bytes of the file system that stay free */
	bool sync;	 /* write everything to disk before unpack_finish() returns */
};

struct unpack;

/* Reads OpenSSL's configuration file: call it before confine(). */
struct unpack *unpack_new(const struct unpack_options *options);
void unpack_free(struct unpack *u); /* keeps the files */
/* The next bytes of the archive. Return: 0; -EINVAL, -EBADMSG: malformed archive; -EOPNOTSUPP:
 * unsupported member type; -EFBIG: a limit is exceeded; -ENOSPC; or the error of a system call that
 * creates a member */
int unpack_feed(struct unpack *u, const void *data, size_t len, struct hw_err *e);
/* The archive is complete. @diff_id: expected; NULL: any. @ret_unpacked: for unpacked_done().
 * Return: 0; -EBADMSG: diff ID mismatch; -EINVAL: truncated archive; or negative errno */
int unpack_finish(struct unpack *u, const char *diff_id, struct unpacked *ret_unpacked,
		  struct hw_err *e);

AUTO_DEFINE(unpack_free, struct unpack);

#endif
