/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/iface/forwarding.h - enable IP forwarding on the host
 */
#ifndef NET_IFACE_FORWARDING_H
#define NET_IFACE_FORWARDING_H

#include "base/err.h"

struct rtnl;

/* Enable forwarding in the current namespace.
 * nl: a socket in that namespace. Reading the current setting by netlink is cheaper than opening
 * the sysctl's file. family: AF_INET or AF_INET6.
 * Return: 0 if forwarding was enabled now, 1 if it was already enabled, or a negative errno */
int forwarding_enable(struct rtnl *nl, int family, struct hw_err *e);

#endif
