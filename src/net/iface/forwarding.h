/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/iface/forwarding.h - enable IP forwarding on the host
 */
#ifndef NET_IFACE_FORWARDING_H
#define NET_IFACE_FORWARDING_H

#include "base/err.h"

struct rtnl;

/* nl: a socket in the current namespace; reading the setting by netlink is cheaper than looking up
 * the sysctl. family: AF_INET or AF_INET6.
 * Return: 0; 1 if forwarding was enabled already; or a negative errno */
int forwarding_enable(struct rtnl *nl, int family, struct hw_err *e);

#endif
