/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/neigh.h - neighbour entries: the MAC address of an IP address on a link
 *
 * Rules: neigh_put_*() add their request to the batch of net/rtnl/rtnl.h; nothing
 *        happens before rtnl_commit().
 */
#ifndef NET_RTNL_NEIGH_H
#define NET_RTNL_NEIGH_H

#include <stdint.h>

#include <hawser/addr.h>

#include "base/err.h"

struct link;
struct rtnl;

struct neigh {
	struct hw_ip ip;
	struct hw_mac mac; /* unset for a proxy entry */
	uint16_t state;	   /* NUD_...; neigh_put_add() takes 0 as NUD_PERMANENT */
	uint8_t flags;	   /* NTF_PROXY: the host replies on behalf of this address; else 0 */
};

/* Add an entry; an existing entry for the address is replaced. */
void neigh_put_add(struct rtnl *nl, const struct link *link, const struct neigh *neigh);
/* Delete the entry with this address and this value of NTF_PROXY. The request fails with -ENOENT if
 * there is no such entry. */
void neigh_put_del(struct rtnl *nl, const struct link *link, const struct neigh *neigh);

/* Read one entry. flags: NTF_PROXY or 0. Return: 1 if found, 0 if not, or a negative errno */
int neigh_get(struct rtnl *nl, const struct link *link, const struct hw_ip *ip, uint8_t flags,
	      struct neigh *ret_neigh, struct hw_err *e);

#endif
