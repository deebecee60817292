/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/route.c - routes
 *
 * How:   routes are listed with a dump that the kernel filters by link, table and
 *        family. Such a dump does not contain cached routes (RTM_F_CLONED).
 */
#include "net/rtnl/route.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/ip.h"
#include "net/rtnl/addr.h"
#include "net/rtnl/link.h"
#include "net/rtnl/rtnl.h"

#define ROUTE_METRIC_V6 1024 /* IP6_RT_PRIO_USER, which is not in the kernel's public headers */

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

/* If the gateway and the destination have different families, the gateway is put into a different
 * attribute, a struct rtvia. */
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
	struct nlattr *metrics;

	if (route->dst.len)
		route_put_ip(m, RTA_DST, &dst);
	route_put_gw(m, route);
	route_put_ip(m, RTA_PREFSRC, &route->src);
	if (link)
		mnl_attr_put_u32(m, RTA_OIF, link->index);
	mnl_attr_put_u32(m, RTA_TABLE, route_table(route->table));
	if (route->priority)
		mnl_attr_put_u32(m, RTA_PRIORITY, route->priority);
	if (!route->mtu && !route->advmss)
		return;
	metrics = mnl_attr_nest_start(m, RTA_METRICS);
	if (route->mtu)
		mnl_attr_put_u32(m, RTAX_MTU, route->mtu);
	if (route->advmss)
		mnl_attr_put_u32(m, RTAX_ADVMSS, route->advmss);
	mnl_attr_nest_end(m, metrics);
}

static void route_put_new(struct rtnl *nl, uint16_t flags, const struct link *link,
			  const struct route *route, const char *verb)
{
	route_put(nl, RTM_NEWROUTE, NLM_F_CREATE | flags, link, route,
		  route->proto ? route->proto : RTPROT_BOOT,
		  route->type ? route->type : RTN_UNICAST, verb);
}

void route_put_add(struct rtnl *nl, const struct link *link, const struct route *route)
{
	route_put_new(nl, 0, link, route, "add");
}

void route_put_add_only(struct rtnl *nl, const struct link *link, const struct route *route)
{
	route_put_new(nl, NLM_F_EXCL, link, route, "add");
}

void route_put_replace(struct rtnl *nl, const struct link *link, const struct route *route)
{
	route_put_new(nl, NLM_F_REPLACE, link, route, "replace");
}

void route_put_del(struct rtnl *nl, const struct link *link, const struct route *route)
{
	route_put(nl, RTM_DELROUTE, 0, link, route, route->proto, route->type, "delete");
}

/* ---- lists and lookups ------------------------------------------------------------------- */

static void route_decode_metrics(const struct nlattr *metrics, struct route *route)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, metrics) {
		if (mnl_attr_validate(attr, MNL_TYPE_U32) < 0)
			continue;
		if (mnl_attr_get_type(attr) == RTAX_MTU)
			route->mtu = mnl_attr_get_u32(attr);
		if (mnl_attr_get_type(attr) == RTAX_ADVMSS)
			route->advmss = mnl_attr_get_u32(attr);
	}
}

static void route_decode_attr(const struct nlattr *attr, struct route *route)
{
	const struct rtvia *via = mnl_attr_get_payload(attr);
	uint8_t family = route->dst.ip.family;

	switch (mnl_attr_get_type(attr)) {
	case RTA_DST:
		addr_decode_ip(attr, family, &route->dst.ip);
		break;
	case RTA_GATEWAY:
		addr_decode_ip(attr, family, &route->gw);
		break;
	case RTA_VIA:
		if (mnl_attr_get_payload_len(attr) != sizeof(*via) + 16 ||
		    via->rtvia_family != AF_INET6)
			break;
		route->gw = (struct hw_ip){ .family = AF_INET6 };
		memcpy(route->gw.bytes, via->rtvia_addr, 16);
		break;
	case RTA_PREFSRC:
		addr_decode_ip(attr, family, &route->src);
		break;
	case RTA_OIF:
		route->oif = (int)mnl_attr_get_u32(attr);
		break;
	case RTA_TABLE:
		route->table = mnl_attr_get_u32(attr);
		break;
	case RTA_PRIORITY:
		route->priority = mnl_attr_get_u32(attr);
		break;
	case RTA_METRICS:
		route_decode_metrics(attr, route);
		break;
	}
}

static void route_append(struct route_list *list, const struct route *route)
{
	list->v = mem_resize(list->v, list->n + 1, sizeof(*list->v));
	list->v[list->n++] = *route;
}

/* Appends one route per next hop; the next hops differ in link, gateway and flags. */
static void route_append_hops(struct route_list *list, const struct route *route,
			      const struct nlattr *multipath)
{
	const struct rtnexthop *hop = mnl_attr_get_payload(multipath);
	size_t left = mnl_attr_get_payload_len(multipath);

	while (left >= sizeof(*hop) && hop->rtnh_len >= sizeof(*hop) && hop->rtnh_len <= left) {
		struct route one = *route;
		const struct nlattr *attr;
		size_t step = RTNH_ALIGN(hop->rtnh_len);

		one.oif = hop->rtnh_ifindex;
		one.onlink = hop->rtnh_flags & RTNH_F_ONLINK;
		mnl_attr_for_each_payload((const void *)RTNH_DATA(hop),
					  hop->rtnh_len - sizeof(*hop))
			route_decode_attr(attr, &one);
		route_append(list, &one);
		if (step >= left)
			break;
		left -= step;
		hop = (const struct rtnexthop *)((const char *)hop + step);
	}
}

static int route_collect(void *ctx, const struct nlmsghdr *answer, struct hw_err *e)
{
	const struct rtmsg *head = mnl_nlmsg_get_payload(answer);
	struct route r = { .dst = { .ip.family = head->rtm_family, .len = head->rtm_dst_len },
			   .table = head->rtm_table,
			   .scope = head->rtm_scope,
			   .type = head->rtm_type,
			   .proto = head->rtm_protocol,
			   .onlink = head->rtm_flags & RTNH_F_ONLINK };
	const struct nlattr *attr, *multipath = NULL;

	(void)e;
	if (answer->nlmsg_type != RTM_NEWROUTE)
		return 0;
	mnl_attr_for_each(attr, answer, sizeof(*head)) {
		if (mnl_attr_get_type(attr) == RTA_MULTIPATH)
			multipath = attr;
		else
			route_decode_attr(attr, &r);
	}
	if (multipath)
		route_append_hops(ctx, &r, multipath);
	else
		route_append(ctx, &r);
	return 0;
}

int route_get(struct rtnl *nl, const struct link *link, int family, uint32_t table,
	      struct route_list *ret_list, struct hw_err *e)
{
	static const uint8_t families[] = { AF_INET, AF_INET6 };
	AUTO(route_list_done) struct route_list list = { 0 };
	size_t n = 0;

	table = route_table(table);
	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		struct rtmsg head = { .rtm_family = families[i] };
		struct nlmsghdr *m;
		struct hw_err why;
		int r;

		if (family != AF_UNSPEC && family != families[i])
			continue;
		m = rtnl_put(nl, RTM_GETROUTE, NLM_F_DUMP, &head, sizeof(head),
			     "list routes of %s in table %u", link->name, table);
		mnl_attr_put_u32(m, RTA_TABLE, table);
		mnl_attr_put_u32(m, RTA_OIF, link->index);
		r = rtnl_query(nl, route_collect, &list, &why);
		/* the table may not exist, and the kernel may not support IPv6 */
		if (r < 0 && r != -ENOENT && r != -EOPNOTSUPP) {
			*e = why;
			return r;
		}
	}
	/* The dump includes all next hops of a multipath route: drop the next hops on other
	 * links. */
	for (size_t i = 0; i < list.n; i++)
		if (list.v[i].oif == link->index)
			list.v[n++] = list.v[i];
	list.n = n;
	*ret_list = list;
	list = (struct route_list){ 0 };
	return 0;
}

int route_lookup(struct rtnl *nl, const struct hw_ip *dst, struct route *ret_route,
		 struct hw_err *e)
{
	AUTO(route_list_done) struct route_list list = { 0 };
	struct rtmsg head = { .rtm_family = dst->family, .rtm_dst_len = (uint8_t)ip_bits(dst) };
	char text[HW_IP_TEXT];
	struct nlmsghdr *m = rtnl_put(nl, RTM_GETROUTE, 0, &head, sizeof(head), "find route to %s",
				      hw_ip_format(dst, text));
	int r;

	mnl_attr_put(m, RTA_DST, ip_bits(dst) / 8, dst->bytes);
	r = rtnl_query(nl, route_collect, &list, e);
	if (r < 0)
		return r;
	if (!list.n)
		return err_set(e, -ENETUNREACH, "find route to %s", text);
	*ret_route = list.v[0];
	return 0;
}

static bool route_same_network(const struct hw_prefix *a, const struct hw_prefix *b)
{
	return a->len == b->len && hw_prefix_contains(a, &b->ip);
}

/* The kernel reports the default metric of IPv6 routes as 1024. */
static uint32_t route_metric(const struct route *route)
{
	return route->priority || route->dst.ip.family == AF_INET ? route->priority
								  : ROUTE_METRIC_V6;
}

const struct route *route_find(const struct route_list *list, const struct route *like)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct route *r = &list->v[i];

		if (route_same_network(&r->dst, &like->dst) && hw_ip_equal(&r->gw, &like->gw) &&
		    r->table == route_table(like->table) && route_metric(r) == route_metric(like))
			return r;
	}
	return NULL;
}

const struct route *route_find_dst(const struct route_list *list, const struct hw_prefix *dst)
{
	for (size_t i = 0; i < list->n; i++)
		if (route_same_network(&list->v[i].dst, dst))
			return &list->v[i];
	return NULL;
}

void route_list_done(struct route_list *list)
{
	free(list->v);
	*list = (struct route_list){ 0 };
}
