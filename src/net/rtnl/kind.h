/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/kind.h - link kinds and their attributes
 *
 * What:  one const entry per kind: its name, and functions that encode and decode the
 *        attributes of this kind. net/rtnl/link.h handles all other attributes.
 * Rules: a member that is 0 gets the kernel's default. If the kernel also accepts 0 as
 *        a value, -1 selects the value 0.
 */
#ifndef NET_RTNL_KIND_H
#define NET_RTNL_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include <hawser/addr.h>

struct link;
struct link_new;
struct nlattr;
struct nlmsghdr;

struct kind_bridge {
	bool vlan_filtering;
	int default_pvid; /* VLAN of untagged frames on new ports; -1: none */
};

struct kind_macvlan {
	uint32_t mode;	       /* MACVLAN_MODE_..., required */
	uint32_t bc_queue_len; /* length of the queue for broadcast and multicast frames */
};

struct kind_ipvlan {
	uint16_t mode; /* IPVLAN_MODE_...; 0 is IPVLAN_MODE_L2 */
};

struct kind_vlan {
	uint16_t id;
};

struct kind_vrf {
	uint32_t table;
};

struct kind_vxlan {
	uint32_t id;
	uint16_t port;	    /* UDP port, in host byte order */
	struct hw_ip local; /* local address of the tunnels */
	bool nolearning;    /* do not learn forwarding entries from traffic */
};

/* Only for reading a link and for net/rtnl/tun.h: netlink cannot create a tun. */
struct kind_tun {
	bool tap; /* true: a tap; false: a tun */
	bool persistent;
	bool multi_queue;
	int64_t owner, group; /* -1: none */
};

/* Used both for creating and for reading a link; the link's kind selects the member. */
union kind_data {
	struct kind_bridge bridge;
	struct kind_macvlan macvlan;
	struct kind_ipvlan ipvlan;
	struct kind_vlan vlan;
	struct kind_vrf vrf;
	struct kind_vxlan vxlan;
	struct kind_tun tun;
};

struct kind {
	const char *name;
	const union kind_data *initial; /* initial value of data for decode(); NULL: zeros */
	/* Puts the content of IFLA_INFO_DATA; NULL: nothing to put. */
	void (*put)(struct nlmsghdr *m, const struct link_new *new);
	/* Decodes one attribute of IFLA_INFO_DATA, ignores unknown ones; NULL: nothing to
	 * decode. */
	void (*decode)(const struct nlattr *attr, struct link *link);
};

const struct kind *kind_find(const char *name); /* NULL: unknown kind */

#endif
