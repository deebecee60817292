/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/netns.h - network namespaces by path
 *
 * What:  open a namespace safely, step into it and back.
 * Rules: setns() moves the calling thread alone, so only single-threaded
 *        programs (plugins) use netns_enter(); a daemon sends a child or a
 *        dedicated thread. Descriptors are CLOEXEC and belong to the caller.
 */
#ifndef NET_NETNS_H
#define NET_NETNS_H

#include "base/err.h"
#include "base/mem.h"

/* -ENOENT when the path is not there, -EINVAL when it is no namespace. */
int netns_open(const char *path, int *ret_fd, struct hw_err *e);
/* For DEL. Return: 1 with the namespace, 0 when it is already gone, or was never given. */
int netns_find(const char *path, int *ret_fd, struct hw_err *e);

/* Where netns_enter() came from; the cleanup attribute leads back. */
struct netns_home {
	int fd; /* -1: nowhere to go */
};

/*
 *	AUTO(netns_leave) struct netns_home home = NETNS_HOME;
 *	r = netns_enter(fd, &home, e);
 */
#define NETNS_HOME                                                                                 \
	{                                                                                          \
		.fd = -1                                                                           \
	}
int netns_enter(int fd, struct netns_home *home, struct hw_err *e);
void netns_leave(struct netns_home *home);

AUTO_VALUE_DEFINE(netns_leave, struct netns_home);

#endif
