/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/tun.h - make a persistent tun or tap
 *
 * The one kind that netlink cannot make; once there it is a link as any other.
 */
#ifndef NET_RTNL_TUN_H
#define NET_RTNL_TUN_H

#include "base/err.h"
#include "net/rtnl/kind.h"

/* netns_fd: where; -1: where we are. A name that is taken is -EEXIST. data->persistent is implied;
 * owner and group are -1 where anybody with CAP_NET_ADMIN may use it. */
int tun_make(int netns_fd, const char *name, const struct kind_tun *data, struct hw_err *e);

#endif
