/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/cgroup-internal.h - what the files cgroup*.c share
 */
#ifndef OCI_CGROUP_INTERNAL_H
#define OCI_CGROUP_INTERNAL_H

#include "oci/cgroup.h"

/* The directory of a cgroup in a hierarchy. Return: allocated */
char *cgroup_dir(const struct cgroup_hierarchy *h, const char *path);

/* Lists a directory and all directories below it, parents first. Directories that disappear meanwhile
 * are left out, or in the list. Overwrites *ret_dirs without freeing it. */
int cgroup_subtree(const char *dir, struct hw_strings *ret_dirs, struct hw_err *e);

/* Writes a file of a cgroup. Return: 0, or a negative errno, without a message: most callers ignore
 * some of them */
int cgroup_write(const char *dir, const char *name, const char *value);

#endif
