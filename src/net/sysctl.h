/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/sysctl.h - the files under /proc/sys
 *
 * What:  read a value, write one unless it is there already.
 * How:   what /proc/sys/net shows is that of the task which opens the file, so
 *        the file is opened inside the namespace; netns_fd -1 is where we are, as
 *        is SYSCTL_POD for whoever has entered a pod's to set more than one.
 * Rules: for single-threaded programs (see net/netns.h).
 *        A name is relative to /proc/sys with "/" between its parts; when its
 *        first separator is ".", dots and slashes mean each other:
 *        "net.ipv4.conf.eth0/100.forwarding" is that of eth0.100. Names with
 *        empty parts, "." or ".." are -EINVAL.
 */
#ifndef NET_SYSCTL_H
#define NET_SYSCTL_H

#include <stdbool.h>

#include "base/err.h"

#define SYSCTL_POD (-2)

/* The value without its line end, to be freed by the caller. -ENOENT when there is no such file. */
int sysctl_read(int netns_fd, const char *name, char **ret_value, struct hw_err *e);
/* 0 when it was written, 1 when it was there already and nothing was written (so that a read-only
 * /proc/sys does not matter). */
int sysctl_write(int netns_fd, const char *name, const char *value, struct hw_err *e);
/* Do both mean the same? Numbers may be parted by spaces or tabs. */
bool sysctl_equal(const char *a, const char *b);

/* The same for net/ipv4/conf/LINK/KEY or net/ipv6/conf/LINK/KEY; a link's name needs no care here.
 *	sysctl_write_conf(netns_fd, AF_INET6, "eth0", "accept_dad", "0", e); */
int sysctl_read_conf(int netns_fd, int family, const char *link, const char *key, char **ret_value,
		     struct hw_err *e);
int sysctl_write_conf(int netns_fd, int family, const char *link, const char *key,
		      const char *value, struct hw_err *e);

#endif
