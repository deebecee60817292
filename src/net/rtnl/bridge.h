/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/bridge.h - carrier of a bridge; bridge ports: flags and VLANs
 *
 * Rules: functions that return nothing add their request to the batch of
 *        net/rtnl/rtnl.h. A port is a link whose master is a bridge.
 *        For VLAN requests the index of the port must be set.
 *        On a kernel without VLAN filtering, creating a bridge that filters VLANs
 *        fails with a vague error text. bridge_vlan_supported() returns a clear one.
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

/* One VLAN, or a range of VLANs with the same flags */
struct bridge_vlan {
	uint16_t id;
	uint16_t last; /* last VLAN of the range; 0: only id */
	bool pvid;     /* incoming untagged frames belong to this VLAN */
	bool untagged; /* frames of this VLAN leave the port without a tag */
};

struct bridge_vlan_list {
	struct bridge_vlan *v; /* sorted by id; last is always set */
	size_t n;
};

/* Let the kernel compute the carrier from the state of the ports. A new bridge has a carrier without
 * any port, until the kernel computes it for the first time. The STP priority is set to its
 * default. */
void bridge_compute_carrier(struct rtnl *nl, const struct link *bridge);

void bridge_port_set(struct rtnl *nl, const struct link *port, bool hairpin, bool isolated);

/* Return: 0, or -EOPNOTSUPP with a text that names the missing kernel option */
int bridge_vlan_supported(struct rtnl *nl, struct hw_err *e);
void bridge_vlan_add(struct rtnl *nl, const struct link *port, const struct bridge_vlan *vlan);
void bridge_vlan_del(struct rtnl *nl, const struct link *port, const struct bridge_vlan *vlan);
/* List the VLANs of one port. The caller frees the list with bridge_vlan_list_done(). */
int bridge_vlan_get(struct rtnl *nl, const struct link *port, struct bridge_vlan_list *ret_list,
		    struct hw_err *e);
/* Are all VLANs of this range in the list, with exactly these flags? */
bool bridge_vlan_list_has(const struct bridge_vlan_list *list, const struct bridge_vlan *vlan);
void bridge_vlan_list_done(struct bridge_vlan_list *list);

AUTO_VALUE_DEFINE(bridge_vlan_list_done, struct bridge_vlan_list);

#endif
