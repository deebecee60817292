/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/route.h - routes
 *
 * What:  add, replace and delete single routes; list those of one link.
 * Rules: route_put_*() put their request into the batch of net/rtnl/rtnl.h; nothing
 *        happens before rtnl_commit(). Zero in a struct route means the default.
 *
 *	struct route r = { .dst = pod, .scope = RT_SCOPE_LINK, .proto = ROUTE_PROTO_HAWSER };
 *	route_put_replace(nl, &veth, &r);
 *	return rtnl_commit(nl, e);
 */
#ifndef NET_RTNL_ROUTE_H
#define NET_RTNL_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/addr.h>

#include "base/err.h"
#include "base/mem.h"

struct link;
struct rtnl;

/* Who made a route or rule: ours on the host carry this number (rtm_protocol), so that they can be
 * told from everybody else's. Inside pods routes are RTPROT_BOOT, as upstream's plugins make them. */
#define ROUTE_PROTO_HAWSER 104

struct route {
	struct hw_prefix dst; /* family needed; 0.0.0.0/0 and ::/0 are default routes; host bits are
				 ignored */
	struct hw_ip gw;      /* none: directly on the link; may be IPv6 for an IPv4 route */
	struct hw_ip src;     /* preferred source; none: the kernel chooses */
	int oif;	/* its link, as route_get() found it; route_put_*() take a link instead */
	uint32_t table; /* 0: RT_TABLE_MAIN */
	uint32_t priority;    /* metric; 0: the kernel's default, which IPv6 shows as 1024 */
	uint32_t mtu, advmss; /* 0: that of the link */
	uint8_t scope; /* RT_SCOPE_...; 0 is universe. For route_put_del() RT_SCOPE_NOWHERE is
				 any scope */
	uint8_t type;  /* RTN_...; 0: RTN_UNICAST; RTN_BLACKHOLE and its like have no link */
	uint8_t proto; /* who made it; 0: RTPROT_BOOT when adding, anybody when deleting */
	bool onlink;   /* believe that the gateway is on the link */
};

struct route_list {
	struct route *v;
	size_t n;
};

/* link NULL: a route without a device (RTN_BLACKHOLE).
 * add: -EEXIST when exactly this route is there; one with another gateway goes beside it, which is
 *      what upstream's plugins do (IPv6: both become one route with two next hops).
 * add_only: -EEXIST when the table has any route to dst with this metric.
 * replace: instead of the first one to dst with this metric, or as a new one: for callers to whom a
 *      route that is there already is as good as one of their own.
 * del: the first that matches what is said; -ESRCH when there is none. */
void route_put_add(struct rtnl *nl, const struct link *link, const struct route *route);
void route_put_add_only(struct rtnl *nl, const struct link *link, const struct route *route);
void route_put_replace(struct rtnl *nl, const struct link *link, const struct route *route);
void route_put_del(struct rtnl *nl, const struct link *link, const struct route *route);

/* The routes of one link in one table, and no others: the kernel itself filters. family: AF_INET,
 * AF_INET6 or AF_UNSPEC for both, IPv4 first. table 0 is RT_TABLE_MAIN; a table that does not exist
 * is empty. A route with several next hops is listed once for each that goes through the link. */
int route_get(struct rtnl *nl, const struct link *link, int family, uint32_t table,
	      struct route_list *ret_list, struct hw_err *e);

/* What a packet from here to this address would take; -ENETUNREACH, -EHOSTUNREACH, ... when there is
 * no way. */
int route_to(struct rtnl *nl, const struct hw_ip *dst, struct route *ret_route, struct hw_err *e);

/* The first route with the dst, gw, table and priority of like; NULL when there is none. */
const struct route *route_find(const struct route_list *list, const struct route *like);
/* The first route to this network; NULL when there is none. */
const struct route *route_find_dst(const struct route_list *list, const struct hw_prefix *dst);
void route_list_done(struct route_list *list);

/* "10.0.0.0/8 via 10.1.2.1 dev eth0 metric 0 (Scope: universe, Table: 254)", as upstream writes a
 * route in its errors. link may be NULL. */
#define ROUTE_TEXT 200
const char *route_format(const struct route *route, const struct link *link, char buf[ROUTE_TEXT]);

AUTO_VALUE_DEFINE(route_list_done, struct route_list);

#endif
