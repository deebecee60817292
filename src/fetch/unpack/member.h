/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/member.h - creates a layer's members: files, directories, links, devices, whiteouts
 *
 * What:  creates one member below a root, with owner, mode, extended attributes and times; and
 *        overlayfs's form of whiteouts and opaque directories.
 * Rules: a member replaces an existing file or tree of the same name, except that a directory over
 *        a directory only changes its attributes.
 *        A whiteout applies to the layers below: it does not remove a member of its own layer,
 *        whichever comes first (OCI image-spec, layer.md).
 */
#ifndef FETCH_UNPACK_MEMBER_H
#define FETCH_UNPACK_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "fetch/tar/tar.h"
#include "fetch/unpack/tree.h"

struct member_writer {
	struct tree tree;
	bool replaced;	 /* a member has replaced another one */
	bool opaque;	 /* the root is opaque; overlayfs ignores the mark there */
	int64_t skipped; /* extended attributes that were not set */
};

/* Paths are from path_clean(). Each returns 0 or negative errno. */

/* *ret_fd: a file, open for writing; after writing it call member_set_attributes(). -1: the member
 * has no data and is complete */
int member_create(struct member_writer *m, const struct tar_entry *entry, const char *path,
		  int *ret_fd, struct hw_err *e);
/* Set owner, mode, extended attributes and times of an open file or directory. */
int member_set_attributes(struct member_writer *m, int fd, const struct tar_entry *entry,
			  struct hw_err *e);
/* @path: of the member .wh.NAME */
int member_create_whiteout(struct member_writer *m, const char *path, struct hw_err *e);
/* @path: of the member .wh..wh..opq */
int member_set_opaque(struct member_writer *m, const char *path, struct hw_err *e);

/* Other extended attributes, which would control overlayfs or the host's security modules, are
 * skipped. */
bool member_allows_xattr(const char *name);

#endif
