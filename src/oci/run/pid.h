/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/run/pid.h - process IDs that other programs have written to files, and facts about processes
 */
#ifndef OCI_RUN_PID_H
#define OCI_RUN_PID_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Reads a file that contains a number from 0 to INT_MAX, and perhaps a newline. Return: 1; 0 if there is no
 * such file; -EBADMSG if it contains something else; or another negative errno */
int pid_read_file(int dir, const char *name, int *ret_n, struct hw_err *e);

/* The parent of a process. A process that has not been waited for keeps its number, so if its parent is the
 * one that is expected, it is no other process. Return: the parent; 0 if there is no such process; or a
 * negative errno */
pid_t pid_get_parent(pid_t pid);

/* Whether a process has a file open whose path matches, for example str_equal(PATH, name). Compares names,
 * because the files themselves may be on a file system that does not answer. Return: 1; 0 if not, or if there
 * is no such process; or a negative errno */
int pid_has_open(pid_t pid, bool (*matches)(const char *path, const char *name), const char *name);

/* Counts the open files of a process, and those that are sockets. Adds to *files and *sockets. Return: 0, also
 * if there is no such process; -E2BIG if *files would be over @max; or another negative errno */
int pid_count_files(pid_t pid, uint64_t max, uint64_t *files, uint64_t *sockets);

#endif
