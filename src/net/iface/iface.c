/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/iface/iface.c - configure and check a pod's interface from a CNI result
 *
 * How:   sysctls that must be set before an address exists are set first. Then one
 *        batch makes all other changes, in the order that the kernel requires.
 *        iface_route() computes the routes both for ADD and for CHECK.
 * Rules: error texts begin with the same words as upstream's.
 */
#include "net/iface/iface.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/ip.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "net/iface/announce.h"
#include "net/netns.h"
#include "net/rtnl/addr.h"
#include "net/rtnl/link.h"
#include "net/rtnl/route.h"
#include "net/rtnl/rtnl.h"
#include "net/sysctl.h"

#define IFACE_DAD_MS	  5000 /* the same as in upstream; detection takes one or two seconds */
#define IFACE_DAD_STEP_MS 20

/* The first gateway of each family in the result; routes without a gateway use it */
struct iface_gateways {
	struct hw_ip v4, v6;
};

/* Does the result assign the address to this link? */
static bool iface_has_address(const struct hw_result *result, const struct hw_ipconf *ip,
			      const struct link *link)
{
	return ip->has_iface && ip->iface >= 0 && (size_t)ip->iface < result->n_ifaces &&
	       str_equal(result->ifaces[ip->iface].name, link->name);
}

static int iface_validate_result(const struct hw_result *result, const struct link *link,
				 struct hw_err *e)
{
	char text[HW_PREFIX_TEXT];

	if (result->n_ifaces == 0)
		return err_text(e, -EINVAL, "no interfaces to configure");
	for (size_t i = 0; i < result->n_ips; i++)
		if (result->ips[i].has_iface && !iface_has_address(result, &result->ips[i], link))
			return err_text(e, -EINVAL,
					"failed to add IP addr %s to \"%s\": "
					"invalid interface index",
					hw_prefix_format(&result->ips[i].address, text),
					link->name);
	return 0;
}

static struct iface_gateways iface_find_gateways(const struct hw_result *result)
{
	struct iface_gateways found = { 0 };

	for (size_t i = 0; i < result->n_ips; i++) {
		const struct hw_ip *gw = &result->ips[i].gateway;

		if (!result->ips[i].has_iface)
			continue;
		if (gw->family == AF_INET && !found.v4.family)
			found.v4 = *gw;
		if (gw->family == AF_INET6 && !found.v6.family)
			found.v6 = *gw;
	}
	return found;
}

/* Converts a route of the result. A route without a gateway gets one from @gateways. */
static struct route iface_route(const struct hw_route *from, const struct iface_gateways *gateways)
{
	bool v4 = from->dst.ip.family == AF_INET;

	return (struct route){
		.dst = from->dst,
		.gw = from->gw.family ? from->gw
		      : v4	      ? gateways->v4
				      : gateways->v6,
		.table = from->has_table ? (uint32_t)from->table : RT_TABLE_MAIN,
		.priority = (uint32_t)from->priority,
		.mtu = (uint32_t)from->mtu,
		.advmss = (uint32_t)from->advmss,
		.scope = from->has_scope ? (uint8_t)from->scope : RT_SCOPE_UNIVERSE,
	};
}

/* A runtime may have disabled IPv6 in new namespaces; an IPv6 address in the result overrides
 * that. Ignores a kernel without IPv6 (-ENOENT): adding the address then fails with a better
 * error. */
static int iface_enable_ipv6(const struct link *link, struct hw_err *e)
{
	const char *const names[] = { "lo", link->name };
	struct hw_err why;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		r = sysctl_write_conf(SYSCTL_POD, AF_INET6, names[i], "disable_ipv6", "0", &why);
		if (r == -ENOENT)
			return 0;
		if (r >= 0)
			continue;
		*e = why;
		return err_ctx(e, "failed to enable IPv6 for interface \"%s\"", names[i]);
	}
	r = sysctl_write_conf(SYSCTL_POD, AF_INET6, link->name, "keep_addr_on_down", "1", e);
	return r < 0 ? r : 0;
}

/* Writes accept_dad. Value 0 only affects the link-local address, because the addresses of the
 * result have IFA_F_NODAD. Therefore a read-only /proc/sys is not an error if @on is false. */
static int iface_set_dad(const struct link *link, bool on, struct hw_err *e)
{
	struct hw_err why;
	int r = 0;

	if (on)
		r = sysctl_write_conf(SYSCTL_POD, AF_INET6, link->name, "enhanced_dad", "1", &why);
	if (r >= 0)
		r = sysctl_write_conf(SYSCTL_POD, AF_INET6, link->name, "accept_dad",
				      on ? "1" : "0", &why);
	if (r >= 0 || r == -ENOENT)
		return 0;
	if (!on && (r == -EROFS || r == -EACCES || r == -EPERM)) {
		log_debug("%s", why.msg);
		return 0;
	}
	*e = why;
	return r;
}

static int iface_set_sysctls(int netns_fd, const struct link *link, const struct hw_result *result,
			     const struct iface_options *options, struct hw_err *e)
{
	AUTO(netns_leave) struct netns_home home = NETNS_HOME;
	bool dad = options->dad == IFACE_DAD_OFF || options->dad == IFACE_DAD_ON;
	bool ipv6 = false;
	int r;

	for (size_t i = 0; i < result->n_ips; i++)
		if (result->ips[i].has_iface && result->ips[i].address.ip.family == AF_INET6)
			ipv6 = true;
	if (!dad && !ipv6)
		return 0;
	r = netns_enter(netns_fd, &home, e);
	if (r >= 0 && dad)
		r = iface_set_dad(link, options->dad == IFACE_DAD_ON, e);
	if (r >= 0 && ipv6)
		r = iface_enable_ipv6(link, e);
	sysctl_release();
	return r;
}

/* Sets the IPv4 sysctl arp_notify by netlink; IPv6 sysctls cannot be set by netlink. */
static void iface_put_arp_notify(struct rtnl *nl, const struct link *link)
{
	struct nlmsghdr *m = link_put_change(nl, link, 0, 0, "arp_notify 1");
	struct nlattr *families = mnl_attr_nest_start(m, IFLA_AF_SPEC);
	struct nlattr *inet = mnl_attr_nest_start(m, AF_INET);
	struct nlattr *conf = mnl_attr_nest_start(m, IFLA_INET_CONF);

	mnl_attr_put_u32(m, IPV4_DEVCONF_ARP_NOTIFY, 1);
	mnl_attr_nest_end(m, conf);
	mnl_attr_nest_end(m, inet);
	mnl_attr_nest_end(m, families);
}

/* Return: 0, or -EADDRINUSE if duplicate address detection has failed */
static int iface_check_duplicate(const struct addr *a, const struct link *link, struct hw_err *e)
{
	char text[HW_IP_TEXT];

	if (!(a->flags & IFA_F_DADFAILED))
		return 0;
	return err_text(e, -EADDRINUSE, "link %s has address %s in DADFAILED state", link->name,
			hw_ip_format(&a->prefix.ip, text));
}

/* Return: 1 if duplicate address detection is still running, 0 if it has finished, or a negative
 * errno */
static int iface_is_tentative(struct rtnl *nl, const struct link *link, struct hw_err *e)
{
	AUTO(addr_list_done) struct addr_list list = { 0 };
	int r, tentative = 0;

	r = addr_get(nl, link, AF_INET6, &list, e);
	for (size_t i = 0; r >= 0 && i < list.n; i++) {
		r = iface_check_duplicate(&list.v[i], link, e);
		if (list.v[i].flags & IFA_F_TENTATIVE)
			tentative = 1;
	}
	return r < 0 ? r : tentative;
}

/* Waits until duplicate address detection has finished. Without a carrier the kernel postpones
 * detection: then a timeout is not an error. */
static int iface_wait_dad(struct rtnl *nl, const struct link *link, struct hw_err *e)
{
	int64_t deadline = time_deadline(IFACE_DAD_MS);
	struct link now;
	int r;

	for (;;) {
		r = iface_is_tentative(nl, link, e);
		if (r <= 0)
			return r;
		if (time_has_passed(deadline))
			break;
		time_sleep(IFACE_DAD_STEP_MS);
	}
	r = link_get_index(nl, link->index, &now, e);
	if (r < 0 || !(now.flags & IFF_RUNNING))
		return r;
	return err_text(e, -ETIMEDOUT,
			"timed out waiting for duplicate address detection on interface %s",
			link->name);
}

/* @ipv6: duplicate address detection is not running. Before it has ended, no neighbour may learn the
 * address. */
static void iface_announce(int netns_fd, const struct link *link, const struct hw_result *result,
			   bool ipv6)
{
	autofree struct hw_ip *ips = mem_new(result->n_ips * sizeof(*ips));
	size_t n = 0;

	for (size_t i = 0; i < result->n_ips; i++) {
		const struct hw_ipconf *ip = &result->ips[i];

		if (ip->has_iface && (ip->address.ip.family == AF_INET || ipv6))
			ips[n++] = ip->address.ip;
	}
	announce_addresses(netns_fd, link, ips, n);
}

int iface_configure(struct rtnl *nl, int netns_fd, const struct link *link,
		    const struct hw_result *result, const struct iface_options *options,
		    struct hw_err *e)
{
	static const struct iface_options none = { 0 };
	struct iface_gateways gateways = iface_find_gateways(result);
	bool nodad;
	int r;

	options = options ? options : &none;
	nodad = options->dad == IFACE_DAD_SKIP || options->dad == IFACE_DAD_OFF;
	r = iface_validate_result(result, link, e);
	if (r < 0)
		return r;
	r = iface_set_sysctls(netns_fd, link, result, options, e);
	if (r < 0)
		return r;

	/* Addresses, then link up, then routes: a gateway is reachable only if the link has an
	 * address and is up. */
	for (size_t i = 0; i < result->n_ips; i++) {
		const struct hw_ipconf *ip = &result->ips[i];

		if (ip->has_iface)
			addr_put_add(nl, link, &ip->address,
				     nodad && ip->address.ip.family == AF_INET6 ? IFA_F_NODAD : 0);
	}
	link_set_up(nl, link);
	for (size_t i = 0; i < result->n_routes; i++) {
		struct route route = iface_route(&result->routes[i], &gateways);

		route_put_add(nl, link, &route);
	}
	/* With arp_notify, link up would wait until the kernel has sent the announcements. */
	if (options->notify)
		iface_put_arp_notify(nl, link);
	r = rtnl_commit(nl, e);
	if (r >= 0 && gateways.v6.family && !nodad)
		r = iface_wait_dad(nl, link, e);
	if (r >= 0 && options->notify)
		iface_announce(netns_fd, link, result, nodad || gateways.v6.family);
	return r;
}

/* ---- CHECK ------------------------------------------------------------------------------- */

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
					"prefix length is %u, want %u",
					hw_prefix_format(want, text), link->name, a->prefix.len,
					want->len);
		return iface_check_duplicate(a, link, e);
	}
	return err_text(e, -ENOENT, "Failed to match addr %s on interface %s",
			hw_prefix_format(want, text), link->name);
}

static int iface_check_route(struct rtnl *nl, const struct route_list *main,
			     const struct link *link, const struct route *want, struct hw_err *e)
{
	AUTO(route_list_done) struct route_list other = { 0 };
	const struct route *is;
	char text[ROUTE_TEXT];
	int r;

	if (want->table != RT_TABLE_MAIN) {
		r = route_get(nl, link, want->dst.ip.family, want->table, &other, e);
		if (r < 0)
			return r;
	}
	is = route_find(want->table == RT_TABLE_MAIN ? main : &other, want);
	if (!is)
		return err_text(e, -ENOENT, "Expected Route '%s' not found in routing table",
				route_format(want, link, text));

	const struct {
		const char *what;
		uint32_t is, want;
	} numbers[] = {
		{ "MTU", is->mtu, want->mtu },
		{ "advertised MSS", is->advmss, want->advmss },
		/* IPv6 routes have no scope */
		{ "scope", is->scope, want->dst.ip.family == AF_INET ? want->scope : is->scope },
	};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (numbers[i].is != numbers[i].want)
			return err_text(e, -EINVAL, "Expected Route '%s' has %s %u, want %u",
					route_format(want, link, text), numbers[i].what,
					numbers[i].is, numbers[i].want);
	return 0;
}

static int iface_check_ips(struct rtnl *nl, const struct route_list *main, const struct link *link,
			   const struct hw_result *result, struct hw_err *e)
{
	AUTO(addr_list_done) struct addr_list list = { 0 };
	char text[HW_PREFIX_TEXT];
	int r;

	r = addr_get(nl, link, AF_UNSPEC, &list, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < result->n_ips; i++) {
		const struct hw_prefix *want = &result->ips[i].address;
		struct hw_prefix network = { .ip = prefix_network(want), .len = want->len };

		if (!iface_has_address(result, &result->ips[i], link))
			continue;
		r = iface_check_addr(&list, link, want, e);
		if (r < 0)
			return r;
		/* Any route to the network is sufficient: ptp replaces the connected route with a
		 * route through the gateway. */
		if (want->len != ip_bits(&want->ip) && !route_find_dst(main, want))
			return err_text(e, -ENOENT,
					"Expected Route to network %s of interface %s not found",
					hw_prefix_format(&network, text), link->name);
	}
	return 0;
}

int iface_check(struct rtnl *nl, const struct link *link, const struct hw_result *result,
		struct hw_err *e)
{
	struct iface_gateways gateways = iface_find_gateways(result);
	AUTO(route_list_done) struct route_list main = { 0 };
	int r;

	if (!(link->flags & IFF_UP))
		return err_text(e, -ENETDOWN, "interface %s is down", link->name);
	r = route_get(nl, link, AF_UNSPEC, RT_TABLE_MAIN, &main, e);
	if (r < 0)
		return r;
	r = iface_check_ips(nl, &main, link, result, e);
	for (size_t i = 0; r >= 0 && i < result->n_routes; i++) {
		struct route want = iface_route(&result->routes[i], &gateways);

		r = iface_check_route(nl, &main, link, &want, e);
	}
	return r;
}
