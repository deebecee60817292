/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/kind.h - what is special to each kind of link
 *
 * What:  one const entry per kind: its name, how the part of a message that is
 *        its own is written, and how it is read. net/rtnl/link.h does the rest.
 * Rules: in a zeroed struct every value is the kernel's own choice; where 0 is
 *        a value that one may want, -1 stands for it.
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
	uint32_t mode;	       /* MACVLAN_MODE_..., needed */
	uint32_t bc_queue_len; /* of broadcasts and multicasts */
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
	uint16_t port;	    /* UDP, in our byte order */
	struct hw_ip local; /* the node's end of the tunnels */
	bool nolearning;    /* forwarding entries are written, not learnt */
};

/* Only read: a tun is not made by netlink (net/rtnl/tun.h). */
struct kind_tun {
	bool tap; /* else a tun */
	bool persistent;
	bool multi_queue;
	int64_t owner, group; /* -1: none */
};

/* The same to make a link and to look at one; which member counts is said by the link's kind. */
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
	const union kind_data *initial; /* before decode(); NULL: zeros */
	/* What goes into IFLA_INFO_DATA; NULL: nothing. */
	void (*put)(struct nlmsghdr *m, const struct link_new *new);
	/* One attribute of IFLA_INFO_DATA, of any type; NULL: nothing to be read. */
	void (*decode)(const struct nlattr *attr, struct link *link);
};

const struct kind *kind_find(const char *name); /* NULL: one that we know nothing special of */

#endif
