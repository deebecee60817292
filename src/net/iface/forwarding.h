/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/iface/forwarding.h - enable IP forwarding on the host
 */
#ifndef NET_IFACE_FORWARDING_H
#define NET_IFACE_FORWARDING_H

#include <hawser/result.h>

struct rtnl;

/* Enable forwarding in the current namespace, for the address families of the result.
 * nl: a socket in that namespace. Reading the current settings by netlink is cheaper than opening
 * the files of the sysctls.
 * Return: 0 if forwarding was enabled now, 1 if it was already enabled, or a negative errno */
int forwarding_enable(struct rtnl *nl, const struct hw_result *result, struct hw_err *e);

#endif
