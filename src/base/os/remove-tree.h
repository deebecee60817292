/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/remove-tree.h - a folder goes, with all that is in it
 *
 * Rules: no link is followed, nothing outside of it is touched.
 */
#ifndef BASE_OS_REMOVE_TREE_H
#define BASE_OS_REMOVE_TREE_H

#include "base/err.h"

int remove_tree(int dir, const char *name, struct hw_err *e);

#endif
