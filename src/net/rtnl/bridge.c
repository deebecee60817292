/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/bridge.c - carrier of a bridge; bridge ports: flags and VLANs
 *
 * How:   port flags are set by a change of the link, so a port can be addressed by its
 *        name, and can be created in the same batch. VLANs are changed and listed with
 *        RTM_NEWVLAN, RTM_DELVLAN and RTM_GETVLAN (Linux 5.6). These accept ranges, and
 *        a dump can be limited to one port. The older RTM_GETLINK of family AF_BRIDGE
 *        lists all ports of the host.
 */
#include "net/rtnl/bridge.h"

#include <errno.h>
#include <linux/if_bridge.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "net/rtnl/link.h"
#include "net/rtnl/rtnl.h"

#define DEFAULT_PRIORITY 0x8000

/* The kernel computes the carrier whenever the priority is set, even to the same value. */
void bridge_compute_carrier(struct rtnl *nl, const struct link *bridge)
{
	struct nlmsghdr *m = link_put_change(nl, bridge, 0, 0, "priority %d", DEFAULT_PRIORITY);
	struct nlattr *info = mnl_attr_nest_start(m, IFLA_LINKINFO), *data;

	mnl_attr_put_strz(m, IFLA_INFO_KIND, "bridge");
	data = mnl_attr_nest_start(m, IFLA_INFO_DATA);
	mnl_attr_put_u16(m, IFLA_BR_PRIORITY, DEFAULT_PRIORITY);
	mnl_attr_nest_end(m, data);
	mnl_attr_nest_end(m, info);
}

void bridge_port_set(struct rtnl *nl, const struct link *port, bool hairpin, bool isolated)
{
	struct nlmsghdr *m = link_put_change(nl, port, 0, 0, "hairpin %s, isolated %s",
					     hairpin ? "on" : "off", isolated ? "on" : "off");
	struct nlattr *info = mnl_attr_nest_start(m, IFLA_LINKINFO), *data;

	mnl_attr_put_strz(m, IFLA_INFO_SLAVE_KIND, "bridge");
	data = mnl_attr_nest_start(m, IFLA_INFO_SLAVE_DATA);
	mnl_attr_put_u8(m, IFLA_BRPORT_MODE, hairpin);
	mnl_attr_put_u8(m, IFLA_BRPORT_ISOLATED, isolated);
	mnl_attr_nest_end(m, data);
	mnl_attr_nest_end(m, info);
}

static uint16_t bridge_vlan_last(const struct bridge_vlan *vlan)
{
	return vlan->last ? vlan->last : vlan->id;
}

static void bridge_put_vlan(struct rtnl *nl, uint16_t type, const struct link *port,
			    const struct bridge_vlan *vlan, const char *verb)
{
	struct br_vlan_msg head = { .family = AF_BRIDGE, .ifindex = port->index };
	struct bridge_vlan_info info = { .vid = vlan->id };
	uint16_t last = bridge_vlan_last(vlan);
	struct nlattr *entry;
	struct nlmsghdr *m;

	if (vlan->pvid)
		info.flags |= BRIDGE_VLAN_INFO_PVID;
	if (vlan->untagged)
		info.flags |= BRIDGE_VLAN_INFO_UNTAGGED;
	m = rtnl_put(nl, type, 0, &head, sizeof(head), "%s VLANs %u-%u of port %s", verb, vlan->id,
		     last, port->name);
	entry = mnl_attr_nest_start(m, BRIDGE_VLANDB_ENTRY);
	mnl_attr_put(m, BRIDGE_VLANDB_ENTRY_INFO, sizeof(info), &info);
	if (last != vlan->id)
		mnl_attr_put_u16(m, BRIDGE_VLANDB_ENTRY_RANGE, last);
	mnl_attr_nest_end(m, entry);
}

void bridge_vlan_add(struct rtnl *nl, const struct link *port, const struct bridge_vlan *vlan)
{
	bridge_put_vlan(nl, RTM_NEWVLAN, port, vlan, "add");
}

void bridge_vlan_del(struct rtnl *nl, const struct link *port, const struct bridge_vlan *vlan)
{
	bridge_put_vlan(nl, RTM_DELVLAN, port, vlan, "delete");
}

static void bridge_decode_vlan(const struct nlattr *entry, struct bridge_vlan_list *list)
{
	const struct bridge_vlan_info *info = NULL;
	const struct nlattr *attr;
	uint16_t last = 0;

	mnl_attr_for_each_nested(attr, entry)
		if (mnl_attr_get_type(attr) == BRIDGE_VLANDB_ENTRY_INFO &&
		    mnl_attr_get_payload_len(attr) == sizeof(*info))
			info = mnl_attr_get_payload(attr);
		else if (mnl_attr_get_type(attr) == BRIDGE_VLANDB_ENTRY_RANGE)
			last = rtnl_attr_number(attr);
	if (!info)
		return;
	list->v = mem_resize(list->v, list->n + 1, sizeof(*list->v));
	list->v[list->n++] = (struct bridge_vlan){
		.id = info->vid,
		.last = last ? last : info->vid,
		.pvid = info->flags & BRIDGE_VLAN_INFO_PVID,
		.untagged = info->flags & BRIDGE_VLAN_INFO_UNTAGGED,
	};
}

static int bridge_collect_vlans(void *ctx, const struct nlmsghdr *answer, struct hw_err *e)
{
	const struct nlattr *attr;

	(void)e;
	mnl_attr_for_each(attr, answer, sizeof(struct br_vlan_msg))
		if (mnl_attr_get_type(attr) == BRIDGE_VLANDB_ENTRY)
			bridge_decode_vlan(attr, ctx);
	return 0;
}

int bridge_vlan_get(struct rtnl *nl, const struct link *port, struct bridge_vlan_list *ret_list,
		    struct hw_err *e)
{
	struct br_vlan_msg head = { .family = AF_BRIDGE, .ifindex = port->index };
	AUTO(bridge_vlan_list_done) struct bridge_vlan_list list = { 0 };
	int r;

	rtnl_put(nl, RTM_GETVLAN, NLM_F_DUMP, &head, sizeof(head), "list VLANs of port %s",
		 port->name);
	r = rtnl_query(nl, bridge_collect_vlans, &list, e);
	if (r < 0)
		return r;
	*ret_list = list;
	list = (struct bridge_vlan_list){ 0 };
	return 0;
}

bool bridge_vlan_list_has(const struct bridge_vlan_list *list, const struct bridge_vlan *vlan)
{
	unsigned next = vlan->id;

	for (size_t i = 0; i < list->n; i++) {
		const struct bridge_vlan *v = &list->v[i];

		if (v->id <= next && next <= v->last && v->pvid == vlan->pvid &&
		    v->untagged == vlan->untagged)
			next = v->last + 1;
	}
	return next > bridge_vlan_last(vlan);
}

void bridge_vlan_list_done(struct bridge_vlan_list *list)
{
	free(list->v);
	*list = (struct bridge_vlan_list){ 0 };
}

/* Requests the VLANs of lo. lo is not a port, so the request always fails; the errno shows whether
 * the kernel supports VLANs. */
static int bridge_probe_vlans(struct rtnl *nl)
{
	AUTO(bridge_vlan_list_done) struct bridge_vlan_list list = { 0 };
	struct hw_err e;

	return bridge_vlan_get(nl, &(struct link){ .index = 1, .name = "lo" }, &list, &e);
}

int bridge_vlan_supported(struct rtnl *nl, struct hw_err *e)
{
	struct link_new invalid = { .name = "hawser", .kind = "bridge", .mac.len = 1 };
	struct hw_err ignored;
	int r;

	r = bridge_probe_vlans(nl);
	if (r == -EOPNOTSUPP) {
		/* The bridge module may not be loaded yet. A request for a bridge with an invalid
		 * MAC address makes the kernel load it, and fails. */
		link_put_new(nl, &invalid);
		rtnl_commit(nl, &ignored);
		r = bridge_probe_vlans(nl);
	}
	if (r != -EOPNOTSUPP)
		return 0;
	return err_text(e, r,
			"this kernel has no bridge VLAN filtering (CONFIG_BRIDGE_VLAN_FILTERING)");
}
