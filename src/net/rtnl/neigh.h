/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/neigh.h - neighbours: which hardware address an IP address has on a link
 *
 * Rules: neigh_put_*() put their request into the batch of net/rtnl/rtnl.h; nothing
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
	struct hw_mac mac; /* none for a proxy */
	uint16_t state;	   /* NUD_...; 0 when adding: NUD_PERMANENT */
	uint8_t flags;	   /* NTF_PROXY: answer for this address; else 0 */
};

/* Replaces what there is for that address. */
void neigh_put_add(struct rtnl *nl, const struct link *link, const struct neigh *neigh);
/* By address and NTF_PROXY; -ENOENT when there is none. */
void neigh_put_del(struct rtnl *nl, const struct link *link, const struct neigh *neigh);

/* flags: NTF_PROXY or 0. -ENOENT when there is none. */
int neigh_get(struct rtnl *nl, const struct link *link, const struct hw_ip *ip, uint8_t flags,
	      struct neigh *ret_neigh, struct hw_err *e);

#endif
