/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/netns.h - network namespaces: enter, and leave again
 *
 * Rules: setns() moves only the calling thread, so only single-threaded
 *        programs (plugins) use netns_enter(); a daemon uses a child process or
 *        a dedicated thread. Descriptors are CLOEXEC and belong to the caller.
 */
#ifndef BASE_OS_NETNS_H
#define BASE_OS_NETNS_H

#include "base/err.h"
#include "base/mem.h"

/* Return: a descriptor of the calling thread's network namespace, or -1 with errno */
int netns_open_own(void);

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
/* Move this thread into the namespace fd. Return: 0; or a negative errno, then the thread has not
 * moved */
int netns_enter(int fd, struct netns_home *home, struct hw_err *e);
/* Return to the namespace that netns_enter() left; a second call does nothing. Aborts the process
 * on failure: the program must not continue in a pod's namespace. */
void netns_leave(struct netns_home *home);

AUTO_VALUE_DEFINE(netns_leave, struct netns_home);

#endif
