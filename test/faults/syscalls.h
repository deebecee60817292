/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults/syscalls.h - names and typical errors of system calls
 */
#ifndef FAULTS_SYSCALLS_H
#define FAULTS_SYSCALLS_H

#include <stdint.h>

enum { SYSCALL_CANNOT_FAIL = 0 };

/* Return: the name, or "?" if the number is not in the table */
const char *syscall_name(uint64_t nr);

/*
 * Return: the typical errno of a call with these arguments, or SYSCALL_CANNOT_FAIL if it cannot
 * fail or a failure would not be a useful test
 */
int syscall_errno(uint64_t nr, const uint64_t args[6]);

/* Return: the errno of a name such as "ENOSPC", or 0 if unknown */
int syscall_errno_parse(const char *name);

#endif
