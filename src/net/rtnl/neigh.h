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
	struct hw_mac mac; /* empty for a proxy */
	uint16_t state;	   /* NUD_...; 0 when adding: NUD_PERMANENT */
	uint8_t flags;	   /* NTF_PROXY: reply on behalf of this address; else 0 */
};

/* Replaces an existing entry for the address. */
void neigh_put_add(struct rtnl *nl, const struct link *link, const struct neigh *neigh);
/* By address and NTF_PROXY; the request fails with -ENOENT if there is no such entry. */
void neigh_put_del(struct rtnl *nl, const struct link *link, const struct neigh *neigh);

/* flags: NTF_PROXY or 0. Return: 0, -ENOENT if there is no such entry, or another negative errno */
int neigh_get(struct rtnl *nl, const struct link *link, const struct hw_ip *ip, uint8_t flags,
	      struct neigh *ret_neigh, struct hw_err *e);

#endif
