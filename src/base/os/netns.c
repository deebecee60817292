/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/netns.c - network namespaces: enter, and leave again
 */
#include "base/os/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"

/* SIOCGSKNS is faster than /proc, where the kernel must first create the entries of a new process.
 * /proc is the fallback for callers without CAP_NET_ADMIN. */
int netns_open_own(void)
{
	autoclose int any = -1;
	int fd;

	any = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	fd = any < 0 ? -1 : ioctl(any, SIOCGSKNS);
	return fd < 0 ? open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC) : fd;
}

int netns_enter(int fd, struct netns_home *home, struct hw_err *e)
{
	autoclose int here = -1;

	here = netns_open_own();
	if (here < 0)
		return err_set(e, -errno, "open our own network namespace");
	if (setns(fd, CLONE_NEWNET) < 0)
		return err_set(e, -errno, "enter network namespace");
	home->fd = take_fd(here);
	return 0;
}

void netns_leave(struct netns_home *home)
{
	if (home->fd < 0)
		return;
	if (setns(home->fd, CLONE_NEWNET) < 0) {
		log_error("cannot return to our own network namespace: %m");
		abort();
	}
	mem_close_fd(&home->fd);
}
