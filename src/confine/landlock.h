/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine/landlock.h - restrict a process to reading certain files
 *
 * What:  the process can then open only the listed files, for reading, and change nothing in the
 *        file system by name. It cannot listen on TCP ports, send signals to other processes, or
 *        connect to abstract unix sockets of other processes. Open descriptors are not affected.
 * Rules: the process must have one thread and no_new_privs. On a kernel without Landlock, or if a
 *        seccomp filter refuses it, nothing happens; on an older kernel, some of the restrictions
 *        are missing.
 */
#ifndef CONFINE_LANDLOCK_H
#define CONFINE_LANDLOCK_H

#include <stddef.h>

#include "base/err.h"

/* @paths: files and directories with all that is below them; those that do not exist are skipped.
 * Return: 0, or negative errno */
int landlock_allow_reading(const char *const *paths, size_t n, struct hw_err *e);

#endif
