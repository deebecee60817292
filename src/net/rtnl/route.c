/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/route.c - routes
 *
 * What:  add, replace and delete single routes.
 * Not:   lists of routes are in route-list.c.
 */
#include "net/rtnl/route.h"

#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

#include "base/ip.h"
#include "net/rtnl/link.h"
#include "net/rtnl/rtnl.h"

static uint32_t route_table(uint32_t table)
{
	return table ? table : RT_TABLE_MAIN;
}

static const char *route_scope_name(uint8_t scope, char buf[8])
{
	switch (scope) {
	case RT_SCOPE_UNIVERSE:
		return "universe";
	case RT_SCOPE_SITE:
		return "site";
	case RT_SCOPE_LINK:
		return "link";
	case RT_SCOPE_HOST:
		return "host";
	case RT_SCOPE_NOWHERE:
		return "nowhere";
	}
	snprintf(buf, 8, "%u", scope);
	return buf;
}

/** route_format() - a route as upstream writes it in its errors; @link may be NULL */
const char *route_format(const struct route *route, const struct link *link, char buf[ROUTE_TEXT])
{
	char dst[HW_PREFIX_TEXT], gw[HW_IP_TEXT], scope[8];

	snprintf(buf, ROUTE_TEXT, "%s%s%s%s%s metric %u (Scope: %s, Table: %u)",
		 hw_prefix_format(&route->dst, dst), route->gw.family ? " via " : "",
		 hw_ip_format(&route->gw, gw), link ? " dev " : "", link ? link->name : "",
		 route->priority, route_scope_name(route->scope, scope), route_table(route->table));
	return buf;
}

static void route_put_ip(struct nlmsghdr *m, uint16_t type, const struct hw_ip *ip)
{
	if (ip->family)
		mnl_attr_put(m, type, ip_bits(ip) / 8, ip->bytes);
}

/* A gateway of the other family has an attribute of its own, a struct rtvia. */
static void route_put_gw(struct nlmsghdr *m, const struct route *route)
{
	uint16_t family = route->gw.family;
	size_t len = ip_bits(&route->gw) / 8;
	uint8_t via[sizeof(family) + 16];

	if (family == 0 || family == route->dst.ip.family) {
		route_put_ip(m, RTA_GATEWAY, &route->gw);
		return;
	}
	memcpy(via, &family, sizeof(family));
	memcpy(via + sizeof(family), route->gw.bytes, len);
	mnl_attr_put(m, RTA_VIA, sizeof(family) + len, via);
}

static void route_put_metrics(struct nlmsghdr *m, const struct route *route)
{
	struct nlattr *nest;

	if (!route->mtu && !route->advmss)
		return;
	nest = mnl_attr_nest_start(m, RTA_METRICS);
	if (route->mtu)
		mnl_attr_put_u32(m, RTAX_MTU, route->mtu);
	if (route->advmss)
		mnl_attr_put_u32(m, RTAX_ADVMSS, route->advmss);
	mnl_attr_nest_end(m, nest);
}

/* What a request to add and one to delete have in common. */
static void route_put(struct rtnl *nl, uint16_t type, uint16_t flags, const struct link *link,
		      const struct route *route, uint8_t proto, uint8_t kind, const char *verb)
{
	struct rtmsg head = { .rtm_family = route->dst.ip.family,
			      .rtm_dst_len = route->dst.len,
			      .rtm_protocol = proto,
			      .rtm_scope = route->scope,
			      .rtm_type = kind,
			      .rtm_flags = route->onlink ? RTNH_F_ONLINK : 0 };
	struct hw_ip dst = prefix_network(&route->dst);
	char text[ROUTE_TEXT];
	struct nlmsghdr *m =
		rtnl_put(nl, type, flags, &head, sizeof(head), "failed to %s route '%s'", verb,
			 route_format(route, link, text));

	if (route->dst.len)
		route_put_ip(m, RTA_DST, &dst);
	route_put_gw(m, route);
	route_put_ip(m, RTA_PREFSRC, &route->src);
	if (link)
		mnl_attr_put_u32(m, RTA_OIF, link->index);
	mnl_attr_put_u32(m, RTA_TABLE, route_table(route->table));
	if (route->priority)
		mnl_attr_put_u32(m, RTA_PRIORITY, route->priority);
	route_put_metrics(m, route);
}

static void route_put_new(struct rtnl *nl, uint16_t flags, const struct link *link,
			  const struct route *route, const char *verb)
{
	route_put(nl, RTM_NEWROUTE, NLM_F_CREATE | flags, link, route,
		  route->proto ? route->proto : RTPROT_BOOT,
		  route->type ? route->type : RTN_UNICAST, verb);
}

/**
 * route_put_add() - put "add this route" into the batch
 * @link: its device; NULL for a route that has none
 *
 * Fails with -EEXIST when exactly this route is there. One to the same network
 * with another gateway stays beside it, as upstream has it.
 */
void route_put_add(struct rtnl *nl, const struct link *link, const struct route *route)
{
	route_put_new(nl, 0, link, route, "add");
}

/** route_put_add_only() - as route_put_add(), but -EEXIST with any to that network and metric */
void route_put_add_only(struct rtnl *nl, const struct link *link, const struct route *route)
{
	route_put_new(nl, NLM_F_EXCL, link, route, "add");
}

/** route_put_replace() - as route_put_add(), instead of the first one to that network and metric */
void route_put_replace(struct rtnl *nl, const struct link *link, const struct route *route)
{
	route_put_new(nl, NLM_F_REPLACE, link, route, "replace");
}

/**
 * route_put_del() - put "delete this route" into the batch
 *
 * What is zero in @route matches any, but the scope: RT_SCOPE_NOWHERE does.
 * Fails with -ESRCH when there is none.
 */
void route_put_del(struct rtnl *nl, const struct link *link, const struct route *route)
{
	route_put(nl, RTM_DELROUTE, 0, link, route, route->proto, route->type, "delete");
}
