/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/netns-id.h - the identity of a network namespace
 */
#ifndef CNI_PLUGIN_NETNS_ID_H
#define CNI_PLUGIN_NETNS_ID_H

#include <stdint.h>

#include "base/err.h"

/*
 * Reads what identifies the namespace that a path leads to. The calling thread enters the namespace
 * for a moment.
 * @ret_file:   "DEVICE:INODE", or "" if the path does not exist; freed by the caller. The kernel
 *              uses the number again after the namespace is gone.
 * @ret_cookie: a number that the kernel never uses again before a reboot; 0 if it is unknown,
 *              because the caller may not enter the namespace or the path leads to another file
 */
int netns_id_read(const char *path, char **ret_file, int64_t *ret_cookie, struct hw_err *e);

#endif
