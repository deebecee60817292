/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/member.h - the members of a layer as files, folders, links and devices
 *
 * What:  makes one member below a root, with its owner, mode, extended
 *        attributes and times; and the marks that overlayfs knows for what a
 *        layer takes away.
 * Rules: what is in the place of a new member goes first, be it a whole tree; a
 *        folder over a folder changes its attributes only.
 *        A whiteout speaks of the layers below: what its own layer has of that
 *        name stays, before or after it (OCI image-spec, layer.md).
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
	bool replaced;	 /* a member was made in the place of another */
	bool opaque;	 /* the root itself is */
	int64_t skipped; /* extended attributes that are not for us to set */
};

/* A file is left open in *ret_fd, to be written and given to member_set_attributes(); else *ret_fd is -1. */
int member_create(struct member_writer *m, const struct tar_entry *entry, const char *path,
		  int *ret_fd, struct hw_err *e);
int member_set_attributes(struct member_writer *m, int fd, const struct tar_entry *entry,
			  struct hw_err *e);
bool member_allows_xattr(const char *name); /* others are skipped */
int member_create_whiteout(struct member_writer *m, const char *path, struct hw_err *e);
int member_set_opaque(struct member_writer *m, const char *path, struct hw_err *e);

#endif
