/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/link.c - network interfaces
 *
 * How:   reads one link with one RTM_GETLINK request, never with a dump of all links.
 *        The request excludes IPv6 statistics from the reply.
 */
#include "net/rtnl/link.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_link.h>
#include <linux/ipv6.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/ethernet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/str.h"
#include "base/time.h"
#include "net/rtnl/rtnl.h"

#define LINK_DELETE_MS 1000 /* after this time assume that the helper process was killed */
#define LINK_POLL_US   50   /* interval between two checks whether the link still exists */

static void link_decode_data(const struct nlattr *nest, const struct kind *kind, struct link *link)
{
	const struct nlattr *attr;

	if (!kind || !kind->decode)
		return;
	if (kind->initial)
		link->data = *kind->initial;
	mnl_attr_for_each_nested(attr, nest)
		kind->decode(attr, link);
}

static void link_decode_port(const struct nlattr *nest, struct link_port *port)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, nest)
		switch (mnl_attr_get_type(attr)) {
		case IFLA_BRPORT_STATE:
			port->state = rtnl_attr_number(attr);
			break;
		case IFLA_BRPORT_MODE:
			port->hairpin = rtnl_attr_number(attr) != 0;
			break;
		case IFLA_BRPORT_ISOLATED:
			port->isolated = rtnl_attr_number(attr) != 0;
			break;
		case IFLA_BRPORT_LEARNING:
			port->learning = rtnl_attr_number(attr) != 0;
			break;
		case IFLA_BRPORT_UNICAST_FLOOD:
			port->flood = rtnl_attr_number(attr) != 0;
			break;
		}
}

/* In the kernel's messages the attribute with the kind precedes the kind's data. */
static void link_decode_info(const struct nlattr *info, struct link *link)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, info)
		switch (mnl_attr_get_type(attr)) {
		case IFLA_INFO_KIND:
			rtnl_attr_text(attr, link->kind, sizeof(link->kind));
			break;
		case IFLA_INFO_DATA:
			link_decode_data(attr, kind_find(link->kind), link);
			break;
		case IFLA_INFO_SLAVE_KIND:
			rtnl_attr_text(attr, link->port_of, sizeof(link->port_of));
			break;
		case IFLA_INFO_SLAVE_DATA:
			if (str_equal(link->port_of, "bridge"))
				link_decode_port(attr, &link->port);
			break;
		}
}

/* IFLA_INET6_CONF is an array of the link's IPv6 sysctls. */
static void link_decode_families(const struct nlattr *families, struct link *link)
{
	const struct nlattr *family, *attr;

	mnl_attr_for_each_nested(family, families) {
		if (mnl_attr_get_type(family) != AF_INET6)
			continue;
		mnl_attr_for_each_nested(attr, family) {
			const int32_t *conf = mnl_attr_get_payload(attr);

			if (mnl_attr_get_type(attr) != IFLA_INET6_CONF ||
			    mnl_attr_get_payload_len(attr) <= DEVCONF_DISABLE_IPV6 * sizeof(*conf))
				continue;
			link->ipv6 = conf[DEVCONF_DISABLE_IPV6] == 0;
			link->accept_ra = conf[DEVCONF_ACCEPT_RA] != 0;
		}
	}
}

static void link_decode_attr(const struct nlattr *attr, struct link *link)
{
	size_t len = mnl_attr_get_payload_len(attr);

	switch (mnl_attr_get_type(attr)) {
	case IFLA_IFNAME:
		rtnl_attr_text(attr, link->name, sizeof(link->name));
		break;
	case IFLA_MTU:
		link->mtu = rtnl_attr_number(attr);
		break;
	case IFLA_TXQLEN:
		link->txqlen = rtnl_attr_number(attr);
		break;
	case IFLA_GROUP:
		link->group = rtnl_attr_number(attr);
		break;
	case IFLA_OPERSTATE:
		link->operstate = rtnl_attr_number(attr);
		break;
	case IFLA_PROMISCUITY:
		link->promiscuity = rtnl_attr_number(attr);
		break;
	case IFLA_MASTER:
		link->master = rtnl_attr_number(attr);
		break;
	case IFLA_LINK:
		link->parent = rtnl_attr_number(attr);
		break;
	case IFLA_LINK_NETNSID:
		link->parent_nsid = rtnl_attr_number(attr);
		break;
	case IFLA_ADDRESS:
		if (len > sizeof(link->mac.bytes))
			break;
		link->mac.len = len;
		memcpy(link->mac.bytes, mnl_attr_get_payload(attr), len);
		break;
	case IFLA_LINKINFO:
		link_decode_info(attr, link);
		break;
	case IFLA_AF_SPEC:
		link_decode_families(attr, link);
		break;
	}
}

static int link_decode(void *ctx, const struct nlmsghdr *answer, struct hw_err *e)
{
	const struct ifinfomsg *head = mnl_nlmsg_get_payload(answer);
	struct link *link = ctx;
	const struct nlattr *attr;

	(void)e;
	if (answer->nlmsg_type != RTM_NEWLINK)
		return 0;
	link->index = head->ifi_index;
	link->flags = head->ifi_flags;
	mnl_attr_for_each(attr, answer, sizeof(*head))
		link_decode_attr(attr, link);
	return 0;
}

static int link_query(struct rtnl *nl, struct nlmsghdr *m, struct link *ret_link, struct hw_err *e)
{
	struct link link = { .parent_nsid = -1 };
	int r;

	mnl_attr_put_u32(m, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
	r = rtnl_query(nl, link_decode, &link, e);
	if (r < 0)
		return r;
	*ret_link = link;
	return r;
}

int link_get(struct rtnl *nl, const char *name, struct link *ret_link, struct hw_err *e)
{
	struct ifinfomsg head = { .ifi_family = AF_UNSPEC };
	struct nlmsghdr *m;

	if (strlen(name) >= IF_NAMESIZE)
		return err_set(e, -ENODEV, "find interface %s", name);
	m = rtnl_put(nl, RTM_GETLINK, 0, &head, sizeof(head), "find interface %s", name);
	mnl_attr_put_strz(m, IFLA_IFNAME, name);
	return link_query(nl, m, ret_link, e);
}

int link_get_index(struct rtnl *nl, int index, struct link *ret_link, struct hw_err *e)
{
	struct ifinfomsg head = { .ifi_family = AF_UNSPEC, .ifi_index = index };

	return link_query(nl,
			  rtnl_put(nl, RTM_GETLINK, 0, &head, sizeof(head),
				   "find interface with index %d", index),
			  ret_link, e);
}

static int link_found(int r)
{
	if (r == -ENODEV)
		return 0;
	return r < 0 ? r : 1;
}

int link_find(struct rtnl *nl, const char *name, struct link *ret_link, struct hw_err *e)
{
	return link_found(link_get(nl, name, ret_link, e));
}

int link_find_index(struct rtnl *nl, int index, struct link *ret_link, struct hw_err *e)
{
	return link_found(link_get_index(nl, index, ret_link, e));
}

int link_get_brief(struct rtnl *nl, const char *name, struct link *ret_link, struct hw_err *e)
{
	struct ifreq request = { 0 };
	struct link link = { 0 };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	snprintf(link.name, sizeof(link.name), "%s", name);
	if (ioctl(rtnl_fd(nl), SIOCGIFINDEX, &request) < 0)
		return err_set(e, -errno, "read index of interface %s", name);
	link.index = request.ifr_ifindex;
	if (ioctl(rtnl_fd(nl), SIOCGIFHWADDR, &request) < 0)
		return err_set(e, -errno, "read MAC address of interface %s", name);
	link.mac.len = ETH_ALEN;
	memcpy(link.mac.bytes, request.ifr_hwaddr.sa_data, ETH_ALEN);
	*ret_link = link;
	return 0;
}

void link_put_new_attrs(struct nlmsghdr *m, const struct link_new *new)
{
	mnl_attr_put_strz(m, IFLA_IFNAME, new->name);
	if (new->mtu)
		mnl_attr_put_u32(m, IFLA_MTU, new->mtu);
	if (new->mac.len)
		mnl_attr_put(m, IFLA_ADDRESS, new->mac.len, new->mac.bytes);
	if (new->txqlen)
		mnl_attr_put_u32(m, IFLA_TXQLEN, new->txqlen < 0 ? 0 : new->txqlen);
	if (new->queues) {
		mnl_attr_put_u32(m, IFLA_NUM_TX_QUEUES, new->queues);
		mnl_attr_put_u32(m, IFLA_NUM_RX_QUEUES, new->queues);
	}
	if (new->group)
		mnl_attr_put_u32(m, IFLA_GROUP, new->group);
	if (new->parent)
		mnl_attr_put_u32(m, IFLA_LINK, new->parent);
	if (new->master)
		mnl_attr_put_u32(m, IFLA_MASTER, new->master);
	if (new->netns_fd)
		mnl_attr_put_u32(m, IFLA_NET_NS_FD, new->netns_fd);
}

void link_put_new(struct rtnl *nl, const struct link_new *new)
{
	const struct kind *kind = kind_find(new->kind);
	struct ifinfomsg head = { .ifi_flags = new->up ? IFF_UP : 0,
				  .ifi_change = new->up ? IFF_UP : 0 };
	struct nlattr *info, *data;
	struct nlmsghdr *m;

	m = rtnl_put(nl, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &head, sizeof(head),
		     "create %s interface %s", new->kind, new->name);
	link_put_new_attrs(m, new);
	info = mnl_attr_nest_start(m, IFLA_LINKINFO);
	mnl_attr_put_strz(m, IFLA_INFO_KIND, new->kind);
	if (kind && kind->put) {
		data = mnl_attr_nest_start(m, IFLA_INFO_DATA);
		kind->put(m, new);
		mnl_attr_nest_end(m, data);
	}
	mnl_attr_nest_end(m, info);
}

/* Starts a request whose error texts begin with "VERB interface NAME WHAT". */
static struct nlmsghdr *link_put_request(struct rtnl *nl, const struct link *link, unsigned flags,
					 unsigned mask, const char *verb, const char *what)
{
	struct ifinfomsg head = { .ifi_index = link->index,
				  .ifi_flags = flags,
				  .ifi_change = mask };
	struct nlmsghdr *m = rtnl_put(nl, RTM_NEWLINK, 0, &head, sizeof(head), "%s interface %s %s",
				      verb, link->name, what);

	if (link->index == 0)
		mnl_attr_put_strz(m, IFLA_IFNAME, link->name);
	return m;
}

struct nlmsghdr *link_put_change(struct rtnl *nl, const struct link *link, unsigned flags,
				 unsigned mask, const char *what, ...)
{
	char text[80];
	va_list ap;

	va_start(ap, what);
	vsnprintf(text, sizeof(text), what, ap);
	va_end(ap);
	return link_put_request(nl, link, flags, mask, "set", text);
}

void link_set_up(struct rtnl *nl, const struct link *link)
{
	link_put_change(nl, link, IFF_UP, IFF_UP, "up");
}

void link_set_down(struct rtnl *nl, const struct link *link)
{
	link_put_change(nl, link, 0, IFF_UP, "down");
}

void link_set_promisc(struct rtnl *nl, const struct link *link, bool on)
{
	link_put_change(nl, link, on ? IFF_PROMISC : 0, IFF_PROMISC, "promisc %s",
			on ? "on" : "off");
}

void link_set_allmulti(struct rtnl *nl, const struct link *link, bool on)
{
	link_put_change(nl, link, on ? IFF_ALLMULTI : 0, IFF_ALLMULTI, "allmulticast %s",
			on ? "on" : "off");
}

void link_set_master(struct rtnl *nl, const struct link *link, const struct link *master)
{
	mnl_attr_put_u32(
		link_put_change(nl, link, 0, 0, "master %s", master ? master->name : "none"),
		IFLA_MASTER, master ? master->index : 0);
}

void link_set_mac(struct rtnl *nl, const struct link *link, const struct hw_mac *mac)
{
	char text[HW_MAC_TEXT];

	mnl_attr_put(link_put_change(nl, link, 0, 0, "mac %s", hw_mac_format(mac, text)),
		     IFLA_ADDRESS, mac->len, mac->bytes);
}

void link_set_mtu(struct rtnl *nl, const struct link *link, uint32_t mtu)
{
	mnl_attr_put_u32(link_put_change(nl, link, 0, 0, "mtu %" PRIu32, mtu), IFLA_MTU, mtu);
}

void link_set_txqlen(struct rtnl *nl, const struct link *link, uint32_t txqlen)
{
	mnl_attr_put_u32(link_put_change(nl, link, 0, 0, "txqlen %" PRIu32, txqlen), IFLA_TXQLEN,
			 txqlen);
}

void link_set_netns(struct rtnl *nl, const struct link *link, int netns_fd)
{
	mnl_attr_put_u32(link_put_request(nl, link, 0, 0, "move", "to another namespace"),
			 IFLA_NET_NS_FD, netns_fd);
}

void link_rename(struct rtnl *nl, const struct link *link, const char *name)
{
	char what[80];

	assert(link->index);
	snprintf(what, sizeof(what), "to %s", name);
	mnl_attr_put_strz(link_put_request(nl, link, 0, 0, "rename", what), IFLA_IFNAME, name);
}

static void link_put_delete(struct rtnl *nl, const struct link *link)
{
	struct ifinfomsg head = { .ifi_index = link->index };
	struct nlmsghdr *m = rtnl_put(nl, RTM_DELLINK, 0, &head, sizeof(head),
				      "delete interface %s", link->name);

	if (link->index == 0)
		mnl_attr_put_strz(m, IFLA_IFNAME, link->name);
}

int link_delete_sync(struct rtnl *nl, const char *name, struct hw_err *e)
{
	struct link link = { 0 };
	int r;

	if (strlen(name) >= sizeof(link.name))
		return 0;
	snprintf(link.name, sizeof(link.name), "%s", name);
	link_put_delete(nl, &link);
	r = rtnl_commit(nl, e);
	return r == -ENODEV ? 0 : r;
}

/*
 * Waits until the link can no longer be found. Polls instead of waiting for the kernel's
 * notification (RTNLGRP_LINK), because the kernel sends that an RCU grace period after the
 * deletion. Polls with an ioctl() that needs no lock, because the deletion holds the lock long
 * after the link has disappeared.
 * Return: 0 if deleted, 1 if the link still exists at the deadline, or a negative errno
 */
static int link_wait_deleted(struct rtnl *nl, const struct link *link, struct hw_err *e)
{
	int64_t deadline = time_deadline(LINK_DELETE_MS);
	int r = 1;

	while (r > 0 && !time_has_passed(deadline)) {
		struct ifreq request = { .ifr_ifindex = link->index };

		if (ioctl(rtnl_fd(nl), SIOCGIFNAME, &request) < 0 && errno == ENODEV)
			return 0;
		r = rtnl_finish(nl, LINK_POLL_US, e);
	}
	return r;
}

int link_delete(struct rtnl *nl, const char *name, struct hw_err *e)
{
	struct link link;
	int r;

	r = link_find(nl, name, &link, e);
	if (r <= 0)
		return r;
	link_put_delete(nl, &link);
	/* If the helper process cannot be started, or was killed, delete the link here and wait. */
	r = rtnl_start(nl) < 0 ? 1 : link_wait_deleted(nl, &link, e);
	if (r > 0)
		r = rtnl_commit(nl, e);
	rtnl_discard(nl);
	return r == -ENODEV ? 0 : r;
}
