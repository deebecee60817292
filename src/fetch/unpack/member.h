/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/member.h - creates a layer's members: files, directories, links, devices, whiteouts
 *
 * What:  creates one member below a root, with owner, mode, extended attributes and times. Creates
 *        whiteouts and opaque directories in the format of overlayfs.
 * Rules: a member replaces an existing file or tree of the same name, except that a directory does
 *        not replace an existing directory, but only changes its attributes.
 *        A whiteout applies to the layers below: it does not remove a member of its own layer,
 *        whichever of the two comes first (OCI image-spec, layer.md).
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
	bool opaque;	 /* the root is opaque; overlayfs ignores this attribute of a root */
	int64_t skipped; /* extended attributes that were not set */
};

/* All paths must come from path_clean(). Each function returns 0 or negative errno. */

/* Create a member. *ret_fd: a file that is open for writing; the caller writes the data, then calls
 * member_set_attributes(). -1: the member has no data and is complete */
int member_create(struct member_writer *m, const struct tar_entry *entry, const char *path,
		  int *ret_fd, struct hw_err *e);
/* Set owner, mode, extended attributes and times of an open file or directory. */
int member_set_attributes(struct member_writer *m, int fd, const struct tar_entry *entry,
			  struct hw_err *e);
/* Create a whiteout. @path: path of the member .wh.NAME */
int member_create_whiteout(struct member_writer *m, const char *path, struct hw_err *e);
/* Mark a directory opaque. @path: path of the member .wh..wh..opq */
int member_set_opaque(struct member_writer *m, const char *path, struct hw_err *e);

/* May a member have this extended attribute? Others are skipped: they would control overlayfs or
 * the host's security modules. */
bool member_allows_xattr(const char *name);

#endif
