/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/tree-usage.h - how much disk space a directory with all its contents uses
 */
#ifndef BASE_OS_TREE_USAGE_H
#define BASE_OS_TREE_USAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct tree_usage {
	uint64_t bytes, inodes; /* with the directory itself */
};

#define TREE_USAGE_DEPTH 100 /* directories that are nested more deeply are not counted */

/* Counts a directory and its contents. A file with several names counts once if all of them are in the
 * directory. Symbolic links are not followed; other file systems are not entered. The contents may change
 * meanwhile. @go_on: called before each entry; false ends the count. Return: 0; -ECANCELED; -ENOENT if the
 * directory does not exist; or another negative errno */
int tree_usage(const char *path, bool (*go_on)(void *ctx), void *ctx, struct tree_usage *ret,
	       struct hw_err *e);

#endif
