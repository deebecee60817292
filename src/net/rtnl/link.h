/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/link.h - network interfaces
 *
 * What:  look at one link, by name or index; make, change and delete links.
 * How:   link_put_new(), link_put_delete() and link_set_*() put their request
 *        into the batch of net/rtnl/rtnl.h; nothing happens before rtnl_commit().
 *        A veth pair is made whole by one request, each end in its final
 *        namespace, the first up and at its bridge:
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
 *        That is one send: link_get() takes along what was put before it, and
 *        fails with the first error.
 * Rules: a struct link whose index is 0 is meant by its name: one that is made
 *        in the same batch can be changed there.
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

/* A link as port of a bridge. */
struct link_port {
	bool hairpin;  /* frames may leave by the port that they came in by */
	bool isolated; /* it reaches only ports that are not isolated */
	bool learning;
	bool flood;    /* unicast frames to unknown addresses leave here */
	uint8_t state; /* BR_STATE_... of linux/if_bridge.h */
};

struct link {
	int index; /* 0: the link is meant by its name */
	char name[IF_NAMESIZE];
	char kind[16];	   /* "veth", "bridge"; "" for lo and hardware */
	unsigned flags;	   /* IFF_UP, IFF_PROMISC, IFF_ALLMULTI, ... */
	uint8_t operstate; /* IF_OPER_UP, ... of linux/if.h */
	uint32_t mtu;
	uint32_t txqlen;
	uint32_t group;
	struct hw_mac mac;
	int master;	       /* index of the bridge or VRF that it is a port of; 0: none */
	char port_of[16];      /* the master's kind; "" without */
	struct link_port port; /* when port_of is "bridge" */
	int parent;	       /* index of a veth's other end, or of what it is made on; 0: none */
	int parent_nsid;       /* where parent is, by this namespace's number for it; -1: here */
	bool ipv6;	       /* the kernel has IPv6, and it is not disabled on this link */
	bool accept_ra;	       /* the sysctl of that name is not 0 */
	unsigned promiscuity; /* how many want it to be promiscuous, bridges and tcpdump included */
	union kind_data data;
};

/* A link to be made. What is zero is the kernel's own choice. */
struct link_new {
	const char *name;
	const char *kind;
	uint32_t mtu;
	struct hw_mac mac;
	int txqlen;	 /* -1: no queue, 0 */
	uint32_t queues; /* in each direction */
	uint32_t group;
	int parent;   /* index of what it is made on: macvlan, ipvlan, vlan, vxlan */
	int master;   /* index; the kernel cannot do this for a veth's peer */
	int netns_fd; /* where it will be, with parent and netlink socket staying here; 0: here */
	bool up;      /* nor this */
	const struct link_new *peer; /* veth: the other end; its kind is not looked at */
	union kind_data data;
};

/* -ENODEV when there is none. */
int link_get(struct rtnl *nl, const char *name, struct link *ret_link, struct hw_err *e);
int link_get_index(struct rtnl *nl, int index, struct link *ret_link, struct hw_err *e);
/* Only name, index and MAC, of a link that is known to be there: asked without the lock that every
 * change of links on the machine holds. (For a name that does not exist the kernel would look for a
 * module.) */
int link_look(struct rtnl *nl, const char *name, struct link *ret_link, struct hw_err *e);

/* A name that is taken is -EEXIST; a kind that the kernel lacks is -EOPNOTSUPP and says so. */
void link_put_new(struct rtnl *nl, const struct link_new *new);
void link_put_new_attrs(struct nlmsghdr *m, const struct link_new *new); /* for net/rtnl/kind.c */

void link_set_up(struct rtnl *nl, const struct link *link);
void link_set_down(struct rtnl *nl, const struct link *link);
void link_set_promisc(struct rtnl *nl, const struct link *link, bool on);
void link_set_allmulti(struct rtnl *nl, const struct link *link, bool on);
void link_set_master(struct rtnl *nl, const struct link *link,
		     const struct link *master); /* which has its index; NULL: none */
void link_set_mac(struct rtnl *nl, const struct link *link, const struct hw_mac *mac);
void link_set_mtu(struct rtnl *nl, const struct link *link, uint32_t mtu);
void link_set_txqlen(struct rtnl *nl, const struct link *link, uint32_t txqlen);
void link_set_netns(struct rtnl *nl, const struct link *link, int netns_fd);
void link_rename(struct rtnl *nl, const struct link *link, const char *name); /* by index */
void link_put_delete(struct rtnl *nl, const struct link *link);
struct nlmsghdr *link_put_change(struct rtnl *nl, const struct link *link, unsigned flags,
				 unsigned mask, const char *what, ...)
	__attribute__((format(printf, 5, 6))); /* for more attributes, as net/rtnl/bridge.c does */

/* Delete; a link that is not there is a success. The first returns as soon as nobody can find
 * the link any more, while a process of its own waits for the kernel to tidy up; the second waits
 * itself, for tens of milliseconds. */
int link_delete(struct rtnl *nl, const char *name, struct hw_err *e);
int link_delete_now(struct rtnl *nl, const char *name, struct hw_err *e);

#endif
