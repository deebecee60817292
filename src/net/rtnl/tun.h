/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/tun.h - create persistent tun and tap interfaces
 *
 * This is the only kind of link that netlink cannot create. Once created, it can be
 * changed and deleted like any other link (net/rtnl/link.h).
 */
#ifndef NET_RTNL_TUN_H
#define NET_RTNL_TUN_H

#include "base/err.h"
#include "net/rtnl/kind.h"

/* Create a tun or tap in the namespace netns_fd (-1: the current one), to which a program can
 * attach later. The interface is always persistent; data->persistent is ignored. If owner and group
 * are -1, only processes with CAP_NET_ADMIN may attach.
 * Return: 0, -EEXIST if the name is taken, or another negative errno. If the call fails, no
 * interface is left behind. */
int tun_create(int netns_fd, const char *name, const struct kind_tun *data, struct hw_err *e);

#endif
