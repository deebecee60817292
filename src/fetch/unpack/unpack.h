/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/unpack.h - a layer's archive into a folder, in the form that overlayfs knows
 *
 * What:  takes the bytes of an archive, makes its members below a root, and
 *        computes on the way the layer's diff id and its recipe.
 * Rules: nothing outside of the root is touched, whatever the archive says.
 *        After an error the root holds a part of the layer: it is of no use, and
 *        the caller's to remove (remove_tree()).
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
	int root;	 /* an empty folder; borrowed */
	int recipe;	 /* a file to write the recipe to; -1: none; borrowed */
	int64_t bytes;	 /* of the archive, and of each file, at most */
	int64_t entries; /* of members, and folders that they imply, at most */
	int64_t reserve; /* bytes of the file system that stay free */
	bool sync;	 /* all of it on disk before unpack_finish() returns */
};

struct unpack;

struct unpack *unpack_new(const struct unpack_options *options);
void unpack_free(struct unpack *u);
int unpack_feed(struct unpack *u, const void *data, size_t len, struct hw_err *e);
int unpack_finish(struct unpack *u, const char *diff_id, struct unpacked *ret_unpacked,
		  struct hw_err *e);

AUTO_DEFINE(unpack_free, struct unpack);

#endif
