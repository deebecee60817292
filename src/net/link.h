/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/link.h - network interfaces
 *
 * What:  look at one link, by name or index, and change it.
 * Rules: link_set_*() put their request into the batch of net/rtnl.h; nothing
 *        happens before rtnl_commit().
 */
#ifndef NET_LINK_H
#define NET_LINK_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include <hawser/addr.h>

#include "base/err.h"

struct rtnl;

struct link {
	int index;
	char name[IF_NAMESIZE];
	char kind[16];	/* "veth", "bridge"; "" for lo and hardware */
	unsigned flags; /* IFF_UP, ... */
	uint32_t mtu;
	struct hw_mac mac;
	bool ipv6; /* the kernel has IPv6, and it is not disabled on this link */
};

/* -ENODEV when there is none. */
int link_get(struct rtnl *nl, const char *name, struct link *ret_link, struct hw_err *e);
int link_get_index(struct rtnl *nl, int index, struct link *ret_link, struct hw_err *e);

void link_set_up(struct rtnl *nl, const struct link *link);
void link_set_down(struct rtnl *nl, const struct link *link);

#endif
