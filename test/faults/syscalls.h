/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults/syscalls.h - the system calls by number: name, and how each one fails
 */
#ifndef FAULTS_SYSCALLS_H
#define FAULTS_SYSCALLS_H

#include <stdint.h>

enum { SYSCALL_CANNOT_FAIL = 0 };

const char *syscall_name(uint64_t nr); /* "?" when it is not in the table */
/* The errno to fail it with; SYSCALL_CANNOT_FAIL where a failure would teach nothing. */
int syscall_errno(uint64_t nr, const uint64_t args[6]);
int syscall_errno_parse(const char *name); /* "ENOSPC"; 0 when unknown */

#endif
