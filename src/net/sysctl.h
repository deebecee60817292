/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/sysctl.h - read and write sysctls, the files under /proc/sys
 *
 * How:   /proc/sys/net shows the namespace of the thread that opens the file, so
 *        the file is opened inside the namespace netns_fd. Both -1 and SYSCTL_POD
 *        mean the current namespace; SYSCTL_POD is for a caller that has entered
 *        a pod's namespace to set several sysctls.
 * Rules: threads may call these functions at the same time. During a call with a
 *        netns_fd, the calling thread alone is in that namespace.
 *        A name is relative to /proc/sys with "/" between its parts, such as
 *        "net/ipv4/ip_forward". If its first separator is ".", dots and slashes
 *        are swapped: "net.ipv4.conf.eth0/100.forwarding" is a sysctl of
 *        interface eth0.100. Names with empty parts, "." or ".." fail with
 *        -EINVAL.
 */
#ifndef NET_SYSCTL_H
#define NET_SYSCTL_H

#include <stdbool.h>

#include "base/err.h"

#define SYSCTL_POD (-2)

/* Read the value without its final newline; the caller frees it. Return: 0, -ENOENT if the sysctl
 * does not exist, or another negative errno */
int sysctl_read(int netns_fd, const char *name, char **ret_value, struct hw_err *e);
/* Return: 0 if the value was written; 1 if the sysctl already has the value, so that nothing was
 * written (this works with a read-only /proc/sys); or a negative errno */
int sysctl_write(int netns_fd, const char *name, const char *value, struct hw_err *e);
/* After the sysctls of a pod: lets a sender process (net/sender.h) close the private procfs in which
 * they were looked up. Closing it waits for an RCU grace period; otherwise the exit of this process
 * waits. */
void sysctl_release(void);
/* Compares two values word by word: the kernel separates numbers with tabs, people use spaces. */
bool sysctl_equal(const char *a, const char *b);

/* Read or write net/ipv4/conf/LINK/KEY or net/ipv6/conf/LINK/KEY; a dot in the link's name needs no
 * escaping here.
 *	sysctl_write_conf(netns_fd, AF_INET6, "eth0", "accept_dad", "0", e); */
int sysctl_read_conf(int netns_fd, int family, const char *link, const char *key, char **ret_value,
		     struct hw_err *e);
int sysctl_write_conf(int netns_fd, int family, const char *link, const char *key,
		      const char *value, struct hw_err *e);

#endif
