/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/remove-tree.h - remove a directory with all its contents
 */
#ifndef BASE_OS_REMOVE_TREE_H
#define BASE_OS_REMOVE_TREE_H

#include "base/err.h"

/* Removes a directory and its contents, or a file of any other type. @name has no slash. Symbolic
 * links are not followed; nothing outside the directory is changed. Several threads may remove the same one.
 * Return: 0, also if @name does not exist; or a negative errno */
int remove_tree(int dir, const char *name, struct hw_err *e);

#endif
