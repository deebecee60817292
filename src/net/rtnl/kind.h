/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/kind.h - link kinds and their attributes
 *
 * What:  one const entry per kind: its name, and how its part of a message is
 *        encoded and decoded. net/rtnl/link.h does the rest.
 * Rules: a zero member gets the kernel's default; where 0 itself is a valid
 *        choice, -1 stands for it.
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
	int default_pvid; /* the VLAN of untagged frames at a new port; -1: none */
};

struct kind_macvlan {
	uint32_t mode;	       /* MACVLAN_MODE_..., required */
	uint32_t bc_queue_len; /* queue of broadcast and multicast frames */
};

struct kind_ipvlan {
	uint16_t mode; /* IPVLAN_MODE_...: L2 is 0 */
};

struct kind_vlan {
	uint16_t id;
};

struct kind_vrf {
	uint32_t table;
};

struct kind_vxlan {
	uint32_t id;
	uint16_t port;	    /* UDP, host byte order */
	struct hw_ip local; /* local address of the tunnels */
	bool nolearning;    /* forwarding entries are configured, not learnt */
};

/* Only for reading: netlink cannot create a tun, net/rtnl/tun.h does. */
struct kind_tun {
	bool tap; /* else a tun */
	bool persistent;
	bool multi_queue;
	int64_t owner, group; /* -1: none */
};

/* Both for creating and for reading a link; the link's kind selects the member. */
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
	const union kind_data *initial; /* value before decode(); NULL: zeros */
	/* Puts the content of IFLA_INFO_DATA; NULL: nothing to put. */
	void (*put)(struct nlmsghdr *m, const struct link_new *new);
	/* Decodes one attribute of IFLA_INFO_DATA, known or unknown; NULL: nothing to decode. */
	void (*decode)(const struct nlattr *attr, struct link *link);
};

const struct kind *kind_find(const char *name); /* NULL: unknown kind */

#endif
