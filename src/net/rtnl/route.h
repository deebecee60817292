/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/route.h - routes
 *
 * What:  add, replace and delete routes; list the routes of one link.
 * Rules: route_put_*() add their request to the batch of net/rtnl/rtnl.h; nothing
 *        happens before rtnl_commit(). Zero members of a struct route mean the
 *        default.
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

/* The origin (rtm_protocol) of hawser's routes and rules on the host, which distinguishes them from
 * those of other programs. Routes inside pods have RTPROT_BOOT, as in upstream. */
#define ROUTE_PROTO_HAWSER 104

struct route {
	struct hw_prefix
		dst;	   /* family required; 0.0.0.0/0 and ::/0 are default routes; host bits are
				 ignored */
	struct hw_ip gw;   /* unset: directly on the link; an IPv4 route may have an IPv6 gateway */
	struct hw_ip src;  /* preferred source address; unset: the kernel chooses */
	int oif;	   /* index of the link, set by route_get(); route_put_*() ignore it */
	uint32_t table;	   /* 0: RT_TABLE_MAIN */
	uint32_t priority; /* metric; 0: the kernel's default, which IPv6 shows as 1024 */
	uint32_t mtu, advmss; /* 0: the default of the link */
	uint8_t scope;	      /* RT_SCOPE_...; 0: RT_SCOPE_UNIVERSE. For route_put_del()
				 RT_SCOPE_NOWHERE means any scope */
	uint8_t type;	      /* RTN_...; 0: RTN_UNICAST; RTN_BLACKHOLE and similar have no link */
	uint8_t proto;	      /* origin; 0: RTPROT_BOOT when adding, any origin when deleting */
	bool onlink;	      /* treat the gateway as directly reachable on the link */
};

struct route_list {
	struct route *v;
	size_t n;
};

/* link NULL: a route without a device (RTN_BLACKHOLE).
 * add: fails with -EEXIST if exactly this route exists. An existing route with another gateway is
 *      kept, as in upstream (IPv6: both become one route with two next hops).
 * add_only: fails with -EEXIST if the table has any route to dst with this metric.
 * replace: replaces the first route to dst with this metric; if no such route exists, adds one.
 * del: deletes the first route that matches the nonzero members and the scope; fails with -ESRCH if
 *      no route matches. */
void route_put_add(struct rtnl *nl, const struct link *link, const struct route *route);
void route_put_add_only(struct rtnl *nl, const struct link *link, const struct route *route);
void route_put_replace(struct rtnl *nl, const struct link *link, const struct route *route);
void route_put_del(struct rtnl *nl, const struct link *link, const struct route *route);

/* List the routes of one link in one table. family: AF_INET, AF_INET6, or AF_UNSPEC for both, IPv4
 * first. table: 0 means RT_TABLE_MAIN; a table that does not exist is treated as empty. A route
 * with several next hops is listed once for each next hop on the link. The caller frees the list
 * with route_list_done(). */
int route_get(struct rtnl *nl, const struct link *link, int family, uint32_t table,
	      struct route_list *ret_list, struct hw_err *e);

/* Find the route that the kernel uses for a packet from this host to dst. Return: 0, or a negative
 * errno, such as -ENETUNREACH or -EHOSTUNREACH if there is no route */
int route_lookup(struct rtnl *nl, const struct hw_ip *dst, struct route *ret_route,
		 struct hw_err *e);

/* Return: the first route that has the same dst, gw, table and priority as like, or NULL */
const struct route *route_find(const struct route_list *list, const struct route *like);
/* Return: the first route to this network, or NULL */
const struct route *route_find_dst(const struct route_list *list, const struct hw_prefix *dst);
void route_list_done(struct route_list *list);

/* Format a route as in upstream's error texts: "10.0.0.0/8 via 10.1.2.1 dev eth0 metric 0 (Scope:
 * universe, Table: 254)". link may be NULL. Return: buf */
#define ROUTE_TEXT 200
const char *route_format(const struct route *route, const struct link *link, char buf[ROUTE_TEXT]);

AUTO_VALUE_DEFINE(route_list_done, struct route_list);

#endif
