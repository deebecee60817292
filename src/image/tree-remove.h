/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/tree-remove.h - a folder goes, with all that is in it
 *
 * Rules: no link is followed, nothing outside of it is touched.
 */
#ifndef IMAGE_TREE_REMOVE_H
#define IMAGE_TREE_REMOVE_H

#include "base/err.h"

int tree_remove(int dir, const char *name, struct hw_err *e);

#endif
