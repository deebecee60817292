/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/mount.h - remove mounts
 */
#ifndef BASE_OS_MOUNT_H
#define BASE_OS_MOUNT_H

#include "base/err.h"

/* Removes all mounts at @path, also if they are in use. Links are not followed. Return: 0, also if
 * there is no mount or no such file; or a negative errno */
int mount_detach(const char *path, struct hw_err *e);

#endif
