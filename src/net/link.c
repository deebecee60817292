/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/link.c - network interfaces
 *
 * What:  look at one link, by name or index, and change it.
 * How:   one RTM_GETLINK for one link, never a dump of all; statistics are
 *        left out of the answer, as they are most of it.
 */
#include "net/link.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/ipv6.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

#include "net/rtnl.h"

/* Attributes that fit a fixed buffer; what does not fit is not what we ask for. */
static void link_copy_text(const struct nlattr *attr, char *ret, size_t size)
{
	if (mnl_attr_validate(attr, MNL_TYPE_STRING) >= 0)
		snprintf(ret, size, "%.*s", (int)mnl_attr_get_payload_len(attr),
			 mnl_attr_get_str(attr));
}

static void link_decode_mac(const struct nlattr *attr, struct hw_mac *ret_mac)
{
	size_t len = mnl_attr_get_payload_len(attr);

	if (len > sizeof(ret_mac->bytes))
		return;
	ret_mac->len = len;
	memcpy(ret_mac->bytes, mnl_attr_get_payload(attr), len);
}

static void link_decode_kind(const struct nlattr *info, struct link *link)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, info)
		if (mnl_attr_get_type(attr) == IFLA_INFO_KIND)
			link_copy_text(attr, link->kind, sizeof(link->kind));
}

/* IFLA_INET6_CONF is an array of the link's sysctls, as they are read by this namespace. */
static bool link_has_ipv6(const struct nlattr *inet6)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, inet6) {
		const int32_t *conf = mnl_attr_get_payload(attr);

		if (mnl_attr_get_type(attr) == IFLA_INET6_CONF &&
		    mnl_attr_get_payload_len(attr) > DEVCONF_DISABLE_IPV6 * sizeof(*conf))
			return conf[DEVCONF_DISABLE_IPV6] == 0;
	}
	return false;
}

static void link_decode_families(const struct nlattr *families, struct link *link)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, families)
		if (mnl_attr_get_type(attr) == AF_INET6)
			link->ipv6 = link_has_ipv6(attr);
}

static void link_decode_attr(const struct nlattr *attr, struct link *link)
{
	switch (mnl_attr_get_type(attr)) {
	case IFLA_IFNAME:
		link_copy_text(attr, link->name, sizeof(link->name));
		break;
	case IFLA_MTU:
		if (mnl_attr_validate(attr, MNL_TYPE_U32) >= 0)
			link->mtu = mnl_attr_get_u32(attr);
		break;
	case IFLA_ADDRESS:
		link_decode_mac(attr, &link->mac);
		break;
	case IFLA_LINKINFO:
		link_decode_kind(attr, link);
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
	struct link link = { 0 };
	int r;

	mnl_attr_put_u32(m, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
	r = rtnl_query(nl, link_decode, &link, e);
	if (r >= 0)
		*ret_link = link;
	return r;
}

/**
 * link_get() - a link by its name
 *
 * Return: 0, -ENODEV when there is none, or another negative errno
 */
int link_get(struct rtnl *nl, const char *name, struct link *ret_link, struct hw_err *e)
{
	struct ifinfomsg head = { .ifi_family = AF_UNSPEC };
	struct nlmsghdr *m;

	if (strlen(name) >= IF_NAMESIZE)
		return err_set(e, -ENODEV, "find link %s", name);
	m = rtnl_put(nl, RTM_GETLINK, 0, &head, sizeof(head), "find link %s", name);
	mnl_attr_put_strz(m, IFLA_IFNAME, name);
	return link_query(nl, m, ret_link, e);
}

/** link_get_index() - a link by its number; otherwise as link_get() */
int link_get_index(struct rtnl *nl, int index, struct link *ret_link, struct hw_err *e)
{
	struct ifinfomsg head = { .ifi_family = AF_UNSPEC, .ifi_index = index };

	return link_query(nl,
			  rtnl_put(nl, RTM_GETLINK, 0, &head, sizeof(head), "find link %d", index),
			  ret_link, e);
}

static void link_set_flags(struct rtnl *nl, const struct link *link, unsigned flags, unsigned mask,
			   const char *what)
{
	struct ifinfomsg head = { .ifi_family = AF_UNSPEC,
				  .ifi_index = link->index,
				  .ifi_flags = flags,
				  .ifi_change = mask };

	rtnl_put(nl, RTM_NEWLINK, 0, &head, sizeof(head), "set link %s %s", link->name, what);
}

/** link_set_up() - put "set the link up" into the batch */
void link_set_up(struct rtnl *nl, const struct link *link)
{
	link_set_flags(nl, link, IFF_UP, IFF_UP, "up");
}

/** link_set_down() - put "set the link down" into the batch */
void link_set_down(struct rtnl *nl, const struct link *link)
{
	link_set_flags(nl, link, 0, IFF_UP, "down");
}
