/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/netns.h - network namespaces by path
 *
 * What:  open a namespace safely; enter it and return.
 * Rules: setns() moves the calling thread alone, so only single-threaded
 *        programs (plugins) use netns_enter(); a daemon uses a child process or
 *        a dedicated thread. Descriptors are CLOEXEC and belong to the caller.
 */
#ifndef NET_NETNS_H
#define NET_NETNS_H

#include "base/err.h"
#include "base/mem.h"

/* Return: 0, -ENOENT if the path does not exist, -EINVAL if it is not a namespace, or another
 * negative errno. The error texts are upstream's (facts 4.0.1). */
int netns_open(const char *path, int *ret_fd, struct hw_err *e);
/* For DEL. Return: 1 with the namespace; 0 if the path is empty, does not exist, or is not a
 * namespace any more; or a negative errno. */
int netns_find(const char *path, int *ret_fd, struct hw_err *e);

/* The namespace that netns_enter() left; netns_leave() returns to it. */
struct netns_home {
	int fd; /* -1: netns_enter() was not called, or failed */
};

/*
 *	AUTO(netns_leave) struct netns_home home = NETNS_HOME;
 *	r = netns_enter(fd, &home, e);
 */
#define NETNS_HOME                                                                                 \
	{                                                                                          \
		.fd = -1                                                                           \
	}
/* Move this thread into the namespace fd. Return: 0, or a negative errno and the thread has not
 * moved. */
int netns_enter(int fd, struct netns_home *home, struct hw_err *e);
/* Return to the namespace of before netns_enter(); calling it twice is harmless. Aborts when it
 * fails: the program must not continue in a pod's namespace. */
void netns_leave(struct netns_home *home);

AUTO_VALUE_DEFINE(netns_leave, struct netns_home);

#endif
