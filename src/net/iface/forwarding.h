/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/iface/forwarding.h - IP forwarding of the host
 */
#ifndef NET_IFACE_FORWARDING_H
#define NET_IFACE_FORWARDING_H

#include "base/err.h"

struct rtnl;

/* Let the host forward packets of that family; 1 when it does already. nl: where we are */
int forwarding_enable(struct rtnl *nl, int family, struct hw_err *e);

#endif
