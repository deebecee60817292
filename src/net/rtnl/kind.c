/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/kind.c - link kinds and their attributes
 *
 * How:   an optional value is put into the request only if it is not 0; otherwise the
 *        kernel's default applies.
 */
#include "net/rtnl/kind.h"

#include <arpa/inet.h>
#include <assert.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>

#include "base/mem.h"
#include "base/str.h"
#include "net/rtnl/addr.h"
#include "net/rtnl/link.h"
#include "net/rtnl/rtnl.h"

static void kind_put_u32(struct nlmsghdr *m, uint16_t type, uint32_t value)
{
	if (value)
		mnl_attr_put_u32(m, type, value);
}

/* The peer has its own header. A peer must have no master: the kernel would ignore it. A peer must
 * not be up: the kernel would bring it up before the two ends are connected, which fails. */
static void kind_put_veth(struct nlmsghdr *m, const struct link_new *new)
{
	const struct link_new *peer = new->peer;
	struct nlattr *nest;

	if (!peer)
		return;
	assert(!peer->master && !peer->up);
	nest = mnl_attr_nest_start(m, VETH_INFO_PEER);
	mnl_nlmsg_put_extra_header(m, sizeof(struct ifinfomsg));
	link_put_new_attrs(m, peer);
	mnl_attr_nest_end(m, nest);
}

static void kind_put_bridge(struct nlmsghdr *m, const struct link_new *new)
{
	const struct kind_bridge *bridge = &new->data.bridge;

	if (bridge->vlan_filtering)
		mnl_attr_put_u8(m, IFLA_BR_VLAN_FILTERING, 1);
	if (bridge->default_pvid)
		mnl_attr_put_u16(m, IFLA_BR_VLAN_DEFAULT_PVID,
				 bridge->default_pvid < 0 ? 0 : bridge->default_pvid);
}

static void kind_decode_bridge(const struct nlattr *attr, struct link *link)
{
	switch (mnl_attr_get_type(attr)) {
	case IFLA_BR_VLAN_FILTERING:
		link->data.bridge.vlan_filtering = rtnl_attr_number(attr) != 0;
		break;
	case IFLA_BR_VLAN_DEFAULT_PVID:
		link->data.bridge.default_pvid = rtnl_attr_number(attr);
		if (link->data.bridge.default_pvid == 0)
			link->data.bridge.default_pvid = -1;
		break;
	}
}

static void kind_put_macvlan(struct nlmsghdr *m, const struct link_new *new)
{
	mnl_attr_put_u32(m, IFLA_MACVLAN_MODE, new->data.macvlan.mode);
	kind_put_u32(m, IFLA_MACVLAN_BC_QUEUE_LEN, new->data.macvlan.bc_queue_len);
}

static void kind_decode_macvlan(const struct nlattr *attr, struct link *link)
{
	switch (mnl_attr_get_type(attr)) {
	case IFLA_MACVLAN_MODE:
		link->data.macvlan.mode = rtnl_attr_number(attr);
		break;
	case IFLA_MACVLAN_BC_QUEUE_LEN:
		link->data.macvlan.bc_queue_len = rtnl_attr_number(attr);
		break;
	}
}

static void kind_put_ipvlan(struct nlmsghdr *m, const struct link_new *new)
{
	mnl_attr_put_u16(m, IFLA_IPVLAN_MODE, new->data.ipvlan.mode);
}

static void kind_decode_ipvlan(const struct nlattr *attr, struct link *link)
{
	if (mnl_attr_get_type(attr) == IFLA_IPVLAN_MODE)
		link->data.ipvlan.mode = rtnl_attr_number(attr);
}

static void kind_put_vlan(struct nlmsghdr *m, const struct link_new *new)
{
	mnl_attr_put_u16(m, IFLA_VLAN_ID, new->data.vlan.id);
}

static void kind_decode_vlan(const struct nlattr *attr, struct link *link)
{
	if (mnl_attr_get_type(attr) == IFLA_VLAN_ID)
		link->data.vlan.id = rtnl_attr_number(attr);
}

static void kind_put_vrf(struct nlmsghdr *m, const struct link_new *new)
{
	mnl_attr_put_u32(m, IFLA_VRF_TABLE, new->data.vrf.table);
}

static void kind_decode_vrf(const struct nlattr *attr, struct link *link)
{
	if (mnl_attr_get_type(attr) == IFLA_VRF_TABLE)
		link->data.vrf.table = rtnl_attr_number(attr);
}

static void kind_put_vxlan(struct nlmsghdr *m, const struct link_new *new)
{
	const struct kind_vxlan *vxlan = &new->data.vxlan;

	mnl_attr_put_u32(m, IFLA_VXLAN_ID, vxlan->id);
	kind_put_u32(m, IFLA_VXLAN_LINK, new->parent);
	if (vxlan->port)
		mnl_attr_put_u16(m, IFLA_VXLAN_PORT, htons(vxlan->port));
	if (vxlan->local.family == AF_INET)
		mnl_attr_put(m, IFLA_VXLAN_LOCAL, 4, vxlan->local.bytes);
	if (vxlan->local.family == AF_INET6)
		mnl_attr_put(m, IFLA_VXLAN_LOCAL6, 16, vxlan->local.bytes);
	mnl_attr_put_u8(m, IFLA_VXLAN_LEARNING, !vxlan->nolearning);
}

static void kind_decode_vxlan(const struct nlattr *attr, struct link *link)
{
	switch (mnl_attr_get_type(attr)) {
	case IFLA_VXLAN_ID:
		link->data.vxlan.id = rtnl_attr_number(attr);
		break;
	case IFLA_VXLAN_LINK:
		link->parent = rtnl_attr_number(attr);
		break;
	case IFLA_VXLAN_PORT:
		link->data.vxlan.port = ntohs(rtnl_attr_number(attr));
		break;
	case IFLA_VXLAN_LOCAL:
		addr_decode_ip(attr, AF_INET, &link->data.vxlan.local);
		break;
	case IFLA_VXLAN_LOCAL6:
		addr_decode_ip(attr, AF_INET6, &link->data.vxlan.local);
		break;
	case IFLA_VXLAN_LEARNING:
		link->data.vxlan.nolearning = rtnl_attr_number(attr) == 0;
		break;
	}
}

/* The kernel omits owner and group if they are not set; the initial value -1 then remains. */
static void kind_decode_tun(const struct nlattr *attr, struct link *link)
{
	switch (mnl_attr_get_type(attr)) {
	case IFLA_TUN_TYPE:
		link->data.tun.tap = rtnl_attr_number(attr) == IFF_TAP;
		break;
	case IFLA_TUN_PERSIST:
		link->data.tun.persistent = rtnl_attr_number(attr) != 0;
		break;
	case IFLA_TUN_MULTI_QUEUE:
		link->data.tun.multi_queue = rtnl_attr_number(attr) != 0;
		break;
	case IFLA_TUN_OWNER:
		link->data.tun.owner = rtnl_attr_number(attr);
		break;
	case IFLA_TUN_GROUP:
		link->data.tun.group = rtnl_attr_number(attr);
		break;
	}
}

static const union kind_data kind_no_owner = { .tun = { .owner = -1, .group = -1 } };

static const struct kind kinds[] = {
	{ .name = "bridge", .put = kind_put_bridge, .decode = kind_decode_bridge },
	{ .name = "dummy" },
	{ .name = "ifb" },
	{ .name = "ipvlan", .put = kind_put_ipvlan, .decode = kind_decode_ipvlan },
	{ .name = "macvlan", .put = kind_put_macvlan, .decode = kind_decode_macvlan },
	{ .name = "tun", .decode = kind_decode_tun, .initial = &kind_no_owner },
	{ .name = "veth", .put = kind_put_veth },
	{ .name = "vlan", .put = kind_put_vlan, .decode = kind_decode_vlan },
	{ .name = "vrf", .put = kind_put_vrf, .decode = kind_decode_vrf },
	{ .name = "vxlan", .put = kind_put_vxlan, .decode = kind_decode_vxlan },
};

const struct kind *kind_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (str_equal(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}
