/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/link.h - network interfaces
 *
 * What:  read one link, by name or index; create, change and delete links.
 * How:   link_put_new() and link_set_*() add their request to the batch of
 *        net/rtnl/rtnl.h; nothing happens before rtnl_commit().
 *        One request creates a complete veth pair: each end in its final namespace,
 *        the host's end up and attached to its bridge:
 *
 *	struct link_new pod = { .name = "eth0", .netns_fd = fd, .mtu = 1400 };
 *	struct link_new host = { .name = "veth1a2b3c4d", .kind = "veth", .peer = &pod,
 *				 .master = bridge.index, .mtu = 1400, .up = true };
 *	struct link port;
 *
 *	link_put_new(nl, &host);
 *	bridge_port_set(nl, &(struct link){ .name = "veth1a2b3c4d" }, true, false);
 *	return link_get(nl, "veth1a2b3c4d", &port, e);
 *
 *        This example calls send() only once: link_get() adds its request to the
 *        batch, sends the batch and returns the first error.
 * Rules: a link whose index is 0 in struct link is addressed by its name. So one
 *        batch can create a link and change it.
 */
#ifndef NET_RTNL_LINK_H
#define NET_RTNL_LINK_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include <hawser/addr.h>

#include "base/err.h"
#include "net/rtnl/kind.h"

struct nlmsghdr;
struct rtnl;

/* State of a link that is a port of a bridge */
struct link_port {
	bool hairpin;  /* frames may leave through the port on which they arrived */
	bool isolated; /* the port can only reach ports that are not isolated */
	bool learning;
	bool flood;    /* unicast frames to unknown addresses are also sent to this port */
	uint8_t state; /* BR_STATE_... of linux/if_bridge.h */
};

struct link {
	int index; /* 0: the link is addressed by its name */
	char name[IF_NAMESIZE];
	char kind[16];	   /* "veth", "bridge"; "" for lo and hardware */
	unsigned flags;	   /* IFF_UP, IFF_PROMISC, IFF_ALLMULTI, ... */
	uint8_t operstate; /* IF_OPER_UP, ... of linux/if.h */
	uint32_t mtu;
	uint32_t txqlen;
	uint32_t group;
	struct hw_mac mac;
	int master;	       /* index of the bridge or VRF of which the link is a port; 0: none */
	char port_of[16];      /* the master's kind; "" if there is no master */
	struct link_port port; /* set if port_of is "bridge" */
	int parent;	       /* index of a veth's peer, or of the lower link; 0: none */
	int parent_nsid;       /* ID of the parent's namespace; -1: the same namespace */
	bool ipv6;	       /* the kernel has IPv6, and IPv6 is not disabled on this link */
	bool accept_ra;	       /* the sysctl accept_ra is not 0 */
	unsigned promiscuity;  /* number of users of promiscuous mode, such as tcpdump */
	union kind_data data;
};

/* A link to create. Members that are zero get the kernel's default. The parent is in the namespace
 * of the socket, even if netns_fd selects another namespace for the new link. */
struct link_new {
	const char *name;
	const char *kind;
	uint32_t mtu;
	struct hw_mac mac;
	int txqlen;	 /* transmit queue length; 0: the kernel's default; -1: a length of 0 */
	uint32_t queues; /* number of queues in each direction */
	uint32_t group;
	int parent;   /* index of the lower link of a macvlan, ipvlan, vlan or vxlan */
	int master;   /* index of a bridge or VRF; must be 0 for a veth's peer */
	int netns_fd; /* namespace of the new link; 0: the namespace of the socket */
	bool up;      /* bring the link up; must be false for a veth's peer */
	const struct link_new *peer; /* veth: the other end; its kind is ignored */
	union kind_data data;
};

/* Return: 0, -ENODEV if there is no such link, or another negative errno */
int link_get(struct rtnl *nl, const char *name, struct link *ret_link, struct hw_err *e);
int link_get_index(struct rtnl *nl, int index, struct link *ret_link, struct hw_err *e);
/* Like link_get() and link_get_index(), but a missing link is not an error. Return: 1 if found, 0 if
 * not, or a negative errno */
int link_find(struct rtnl *nl, const char *name, struct link *ret_link, struct hw_err *e);
int link_find_index(struct rtnl *nl, int index, struct link *ret_link, struct hw_err *e);
/* Read only name, index and MAC address, with ioctl(). link_get() waits for the kernel's lock that
 * every change of a link on the host holds; this function does not. Use it only for a link that is
 * known to exist: for an unknown name the kernel tries to load a module. Return: the same as
 * link_get() */
int link_get_brief(struct rtnl *nl, const char *name, struct link *ret_link, struct hw_err *e);

/* Create a link. The request fails with -EEXIST if the name is taken, and with -EOPNOTSUPP and the
 * kernel's text if the kernel does not support the kind. */
void link_put_new(struct rtnl *nl, const struct link_new *new);
/* Put the attributes that links of all kinds have; for net/rtnl/kind.c */
void link_put_new_attrs(struct nlmsghdr *m, const struct link_new *new);

void link_set_up(struct rtnl *nl, const struct link *link);
void link_set_down(struct rtnl *nl, const struct link *link);
void link_set_promisc(struct rtnl *nl, const struct link *link, bool on);
void link_set_allmulti(struct rtnl *nl, const struct link *link, bool on);
/* master: its index must be set; NULL: detach the link from its master */
void link_set_master(struct rtnl *nl, const struct link *link, const struct link *master);
void link_set_mac(struct rtnl *nl, const struct link *link, const struct hw_mac *mac);
void link_set_mtu(struct rtnl *nl, const struct link *link, uint32_t mtu);
void link_set_txqlen(struct rtnl *nl, const struct link *link, uint32_t txqlen);
/* Move the link to another namespace; the kernel brings it down. */
void link_set_netns(struct rtnl *nl, const struct link *link, int netns_fd);
/* The index of the link must be set. Before Linux 6.2 the link must be down. */
void link_rename(struct rtnl *nl, const struct link *link, const char *name);
/* Start a request that changes the link; the caller then puts the attributes to change. flags: new
 * values of the IFF_... flags in mask; what: the change, such as "mtu 1400", for error texts */
struct nlmsghdr *link_put_change(struct rtnl *nl, const struct link *link, unsigned flags,
				 unsigned mask, const char *what, ...)
	__attribute__((format(printf, 5, 6)));

/* Delete a link; a missing link is not an error. link_delete() returns as soon as the link can no
 * longer be found; a helper process (net/sender.h) waits for the kernel's cleanup, which takes tens
 * of milliseconds. link_delete_sync() waits for the cleanup itself. */
int link_delete(struct rtnl *nl, const char *name, struct hw_err *e);
int link_delete_sync(struct rtnl *nl, const char *name, struct hw_err *e);

#endif
