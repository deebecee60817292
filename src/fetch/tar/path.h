/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/path.h - paths of a layer's members
 *
 * What:  as archives write them into a form that can be looked up below a
 *        root: relative, without empty parts, "." and "..".
 */
#ifndef FETCH_TAR_PATH_H
#define FETCH_TAR_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define PATH_SIZE 4096 /* with the NUL: what one call of the kernel takes */

int path_clean(const char *path, char ret_path[PATH_SIZE], struct hw_err *e);
const char *path_name(const char *clean); /* behind the last slash */
void path_parent(const char *clean, char ret_path[PATH_SIZE]);

/* What a name means in a layer (OCI image-spec, layer.md, "Whiteouts"). */
enum path_kind {
	PATH_PLAIN,
	PATH_WHITEOUT, /* .wh.NAME: there is no NAME */
	PATH_OPAQUE,   /* .wh..wh..opq: there is nothing of below in this folder */
	PATH_AUFS,     /* .wh..wh.*, also as a folder: notes of AUFS to itself */
};

enum path_kind path_kind(const char *clean);
int path_hidden(const char *clean, const char **ret_name, struct hw_err *e);

#endif
