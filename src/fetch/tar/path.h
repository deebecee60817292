/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/path.h - paths of a layer's members
 *
 * What:  converts a member's path to a relative path without empty components, "." and "..", to be
 *        looked up below a root. Recognizes whiteouts.
 */
#ifndef FETCH_TAR_PATH_H
#define FETCH_TAR_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define PATH_SIZE 4096 /* including the NUL: the kernel's limit */

/* Normalize a path. @path: the path in the archive; @ret_path: "" is the root itself.
 * Return: 0; -EINVAL: the path escapes the root; -ENAMETOOLONG */
int path_clean(const char *path, char ret_path[PATH_SIZE], struct hw_err *e);

/* The functions below take a path that path_clean() has returned. */

const char *path_name(const char *clean);		       /* the last component */
void path_parent(const char *clean, char ret_path[PATH_SIZE]); /* "": the root */

/* Meaning of a name in a layer (OCI image-spec, layer.md, "Whiteouts"). */
enum path_kind {
	PATH_PLAIN,
	PATH_WHITEOUT, /* .wh.NAME: hides NAME in the layers below */
	PATH_OPAQUE,   /* .wh..wh..opq: hides the directory's content in the layers below */
	PATH_AUFS,     /* .wh..wh.*, also as a directory: AUFS metadata, ignored */
};

enum path_kind path_kind(const char *clean);
/* Get the name that a whiteout hides. @clean: a path of kind PATH_WHITEOUT; *ret_name points into
 * @clean.
 * Return: 0, or -EINVAL: not a valid file name */
int path_hidden(const char *clean, const char **ret_name, struct hw_err *e);

#endif
