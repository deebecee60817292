/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/iface/check.c - is a pod's interface still as its result says?
 *
 * What:  compare links, addresses and routes with a result, for CHECK.
 * Rules: each drift has a message of its own, which begins as upstream's does.
 */
#include "net/iface/iface.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "base/ip.h"
#include "net/rtnl/addr.h"
#include "net/rtnl/link.h"
#include "net/rtnl/route.h"

static int iface_check_addr(const struct addr_list *list, const struct link *link,
			    const struct hw_prefix *want, struct hw_err *e)
{
	char text[HW_PREFIX_TEXT];

	for (size_t i = 0; i < list->n; i++) {
		const struct addr *a = &list->v[i];

		if (!hw_ip_equal(&a->prefix.ip, &want->ip))
			continue;
		if (a->prefix.len != want->len)
			return err_text(e, -ENOENT,
					"Failed to match addr %s on interface %s: "
					"its prefix length is %u",
					hw_prefix_format(want, text), link->name, a->prefix.len);
		return iface_refuse_duplicate(a, link, e);
	}
	return err_text(e, -ENOENT, "Failed to match addr %s on interface %s",
			hw_prefix_format(want, text), link->name);
}

/* The route that came with the address, or what took its place: ptp leads it by the gateway. */
static int iface_check_network(const struct route_list *main, const struct link *link,
			       const struct hw_prefix *want, struct hw_err *e)
{
	struct hw_prefix network = { .ip = prefix_network(want), .len = want->len };
	char text[HW_PREFIX_TEXT];

	if (want->len == ip_bits(&want->ip) || route_find_dst(main, want))
		return 0;
	return err_text(e, -ENOENT, "Expected Route to network %s of interface %s not found",
			hw_prefix_format(&network, text), link->name);
}

static int iface_compare_route(const struct route *is, const struct route *want,
			       const struct link *link, struct hw_err *e)
{
	const struct {
		const char *what;
		uint32_t is, want;
	} numbers[] = {
		{ "MTU", is->mtu, want->mtu },
		{ "advertised MSS", is->advmss, want->advmss },
		/* IPv6 knows no scopes */
		{ "scope", is->scope, want->dst.ip.family == AF_INET ? want->scope : is->scope },
	};
	char text[ROUTE_TEXT];

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (numbers[i].is != numbers[i].want)
			return err_text(e, -EINVAL, "Expected Route '%s' has %s %u instead of %u",
					route_format(want, link, text), numbers[i].what,
					numbers[i].is, numbers[i].want);
	return 0;
}

static int iface_check_route(struct rtnl *nl, const struct route_list *main,
			     const struct link *link, const struct route *want, struct hw_err *e)
{
	AUTO(route_list_done) struct route_list other = { 0 };
	const struct route *is;
	char text[ROUTE_TEXT];
	int r = 0;

	if (want->table != RT_TABLE_MAIN)
		r = route_get(nl, link, want->dst.ip.family, want->table, &other, e);
	if (r < 0)
		return r;
	is = route_find(want->table == RT_TABLE_MAIN ? main : &other, want);
	if (!is)
		return err_text(e, -ENOENT, "Expected Route '%s' not found in routing table",
				route_format(want, link, text));
	return iface_compare_route(is, want, link, e);
}

static int iface_check_ips(struct rtnl *nl, const struct route_list *main, const struct link *link,
			   const struct hw_result *result, struct hw_err *e)
{
	AUTO(addr_list_done) struct addr_list list = { 0 };
	int r = addr_get(nl, link, AF_UNSPEC, &list, e);

	for (size_t i = 0; r >= 0 && i < result->n_ips; i++) {
		const struct hw_ipconf *ip = &result->ips[i];

		if (!iface_is_of(result, ip, link))
			continue;
		r = iface_check_addr(&list, link, &ip->address, e);
		if (r >= 0)
			r = iface_check_network(main, link, &ip->address, e);
	}
	return r;
}

/**
 * iface_check() - is it still as iface_configure() made it?
 * @nl:     a socket in the pod's namespace
 * @link:   the pod's interface, just got
 * @result: as it was given to iface_configure()
 *
 * That it is up; that it has each address with its length, and a route to the
 * network of each; each route with gateway, table, metric, scope, MTU and
 * advertised MSS. More addresses and routes than those do not matter.
 */
int iface_check(struct rtnl *nl, const struct link *link, const struct hw_result *result,
		struct hw_err *e)
{
	struct iface_gateways gateways = iface_find_gateways(result);
	AUTO(route_list_done) struct route_list main = { 0 };
	int r;

	if (!(link->flags & IFF_UP))
		return err_text(e, -ENETDOWN, "interface %s is down", link->name);
	r = route_get(nl, link, AF_UNSPEC, RT_TABLE_MAIN, &main, e);
	if (r >= 0)
		r = iface_check_ips(nl, &main, link, result, e);
	for (size_t i = 0; r >= 0 && i < result->n_routes; i++) {
		struct route want = iface_route(&result->routes[i], &gateways);

		r = iface_check_route(nl, &main, link, &want, e);
	}
	return r;
}
