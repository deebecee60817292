/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/namespace.h - namespaces of any kind: recognize and identify
 */
#ifndef BASE_OS_NAMESPACE_H
#define BASE_OS_NAMESPACE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* Identifies a namespace while it exists. */
struct namespace_id {
	dev_t dev;
	ino_t ino;
};

/* @path: a namespace, such as /proc/PID/ns/pid or the file that pins it. Return: 1; 0 if the path
 * does not exist, or is an ordinary file: its bind mount was removed, or never made; or a negative
 * errno */
int namespace_get(const char *path, struct namespace_id *ret_id, struct hw_err *e);
/* Return: whether namespace_get() returns 1 */
bool namespace_exists(const char *path);

#endif
