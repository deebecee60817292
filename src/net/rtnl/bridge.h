/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/bridge.h - ports of a bridge and their VLANs
 *
 * What:  the flags of a port, and the VLANs that it carries.
 * Rules: bridge_port_set() and bridge_vlan_add/del() put their request into the
 *        batch of net/rtnl/rtnl.h. VLAN requests need the port's index; a port is
 *        a link that has a bridge as its master.
 *        Some kernels have no VLAN filtering, and refuse to make a bridge with
 *        it in fewer words than bridge_vlan_supported() has.
 */
#ifndef NET_RTNL_BRIDGE_H
#define NET_RTNL_BRIDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

struct link;
struct rtnl;

/* One VLAN, or several in a row with the same flags. */
struct bridge_vlan {
	uint16_t id;
	uint16_t last; /* of the row; 0: just the one */
	bool pvid;     /* untagged frames that come in belong to it */
	bool untagged; /* its frames leave without a tag */
};

struct bridge_vlan_list {
	struct bridge_vlan *v; /* in the order of their ids, last always set */
	size_t n;
};

void bridge_port_set(struct rtnl *nl, const struct link *port, bool hairpin, bool isolated);

/* 0, or -EOPNOTSUPP with a text that says what the kernel lacks. */
int bridge_vlan_supported(struct rtnl *nl, struct hw_err *e);
void bridge_vlan_add(struct rtnl *nl, const struct link *port, const struct bridge_vlan *vlan);
void bridge_vlan_del(struct rtnl *nl, const struct link *port, const struct bridge_vlan *vlan);
int bridge_vlan_get(struct rtnl *nl, const struct link *port, struct bridge_vlan_list *ret_list,
		    struct hw_err *e);
bool bridge_vlan_list_has(const struct bridge_vlan_list *list, const struct bridge_vlan *vlan);
void bridge_vlan_list_done(struct bridge_vlan_list *list);

AUTO_VALUE_DEFINE(bridge_vlan_list_done, struct bridge_vlan_list);

#endif
