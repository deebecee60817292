/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/netns.h - network namespaces by path
 *
 * What:  open a namespace safely. base/os/netns.h enters it and leaves it again.
 * Rules: descriptors are CLOEXEC and belong to the caller.
 */
#ifndef NET_NETNS_H
#define NET_NETNS_H

#include "base/err.h"
#include "base/os/netns.h"

/* Return: 0, -ENOENT if the path does not exist, -EINVAL if it is not a namespace, or another
 * negative errno. The error texts are the same as upstream's. */
int netns_open(const char *path, int *ret_fd, struct hw_err *e);
/* Like netns_open(), but a missing namespace is not an error; for DEL. Return: 1 if the namespace
 * was opened; 0 if the path is empty, does not exist, or is no longer a namespace; or a negative
 * errno */
int netns_find(const char *path, int *ret_fd, struct hw_err *e);

#endif
