/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/tun.h - create persistent tun and tap interfaces
 *
 * The one kind that netlink cannot create; afterwards it is a link like any other.
 */
#ifndef NET_RTNL_TUN_H
#define NET_RTNL_TUN_H

#include "base/err.h"
#include "net/rtnl/kind.h"

/* Create a tun or tap in the namespace netns_fd (-1: the current one), to which a program can
 * attach later. It is always persistent, data->persistent is ignored; with owner and group -1
 * only processes with CAP_NET_ADMIN may attach.
 * Return: 0, -EEXIST if the name is taken, or another negative errno and nothing is left. */
int tun_create(int netns_fd, const char *name, const struct kind_tun *data, struct hw_err *e);

#endif
