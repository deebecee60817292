/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/config/fetch-uid.h - find a user ID for the process that talks to registries
 *
 * What:  an ID of the range that systemd uses for users without an entry in passwd(5)
 *        (DynamicUser=). No user or group has it: neither in the files of this node, nor a
 *        user that systemd has allocated. The process gets a group with the same number.
 * Rules: only files are read. A lookup with getpwuid() may ask a directory in the network,
 *        which may fail or wait for minutes when the node boots, and these have no users in
 *        this range.
 */
#ifndef CRI_CONFIG_FETCH_UID_H
#define CRI_CONFIG_FETCH_UID_H

#include <stdint.h>

#include "base/err.h"

/* @root: where etc/passwd and the other files are; "/". Return: 0; -EUSERS: no ID is free; or another
 * negative errno: a file cannot be read */
int fetch_uid_find(const char *root, uint32_t *ret_uid, struct hw_err *e);

#endif
