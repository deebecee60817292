/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/ptp.c - plugin ptp: connects the pod and the host by a veth pair
 *
 * What:  a veth pair without a bridge: the host routes each pod's addresses to
 *        the pair, and the pod routes everything to the host.
 * How:   the host end has the gateway's address. When an address is added in the
 *        pod, the kernel adds a route to its network. ADD replaces that route by
 *        two routes: one to the gateway, on the link, and one to the network, via
 *        the gateway.
 * Rules: the host's routes have our protocol number; the kernel deletes them
 *        together with the link. Only pod and host are on the link, so
 *        duplicate address detection is not needed.
 */
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <hawser/plugin.h>

#include "base/err.h"
#include "base/ip.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/iface/forwarding.h"
#include "net/iface/iface.h"
#include "net/rtnl/addr.h"
#include "net/rtnl/link.h"
#include "net/rtnl/route.h"
#include "net/rtnl/rtnl.h"
#include "plugins/plugins.h"
#include "plugins/pod/check-pair.h"
#include "plugins/pod/ipam.h"
#include "plugins/pod/link.h"
#include "plugins/pod/rules.h"

#define POD_IFACE 1 /* index of the pod's interface in the result, after the host end */

struct ptp_conf {
	bool ip_masq;
	char *ip_masq_backend;
	struct hw_strings ip_masq_exclude;
	int mtu;
	struct ipam_conf ipam;
	struct ipam_dns dns;
};

static const struct hw_field ptp_fields[] = {
	{ "ipMasq", HW_BOOL, HW_AT(struct ptp_conf, ip_masq),
	  .help = "masquerade the pod's traffic to other networks" },
	{ "ipMasqBackend", HW_STRING, HW_AT(struct ptp_conf, ip_masq_backend),
	  .help = "iptables or nftables; nftables is used in both cases" },
	{ "ipMasqExclude", HW_STRINGS, HW_AT(struct ptp_conf, ip_masq_exclude),
	  .help = "networks to which the pod's traffic is not masqueraded" },
	{ "mtu", HW_INT, HW_AT(struct ptp_conf, mtu),
	  .help = "MTU of the veth pair; 0: kernel default" },
	{ "ipam", HW_OBJECT, HW_AT(struct ptp_conf, ipam), .sub = ipam_fields,
	  .help = "IPAM plugin; required" },
	{ "dns", HW_OBJECT, HW_AT(struct ptp_conf, dns), .sub = ipam_dns_fields,
	  .help = "DNS settings of the result; they replace those of the IPAM plugin" },
	{ 0 },
};

static struct pod_rules ptp_rules(const struct ptp_conf *conf)
{
	return (struct pod_rules){ .masq = conf->ip_masq,
				   .backend = conf->ip_masq_backend,
				   .exclude = &conf->ip_masq_exclude };
}

static int check_conf(const struct ptp_conf *conf, struct hw_err *e)
{
	struct pod_rules rules = ptp_rules(conf);
	int r;

	r = pod_rules_check_conf(&rules, e);
	return r < 0 ? r : ipam_require(&conf->ipam, e);
}

/* ---- routes --------------------------------------------------------------------------------- */

static struct hw_prefix host_prefix(const struct hw_ip *ip)
{
	return (struct hw_prefix){ *ip, (uint8_t)ip_bits(ip) };
}

/* Route in the pod: to the gateway, on the link. */
static struct route gateway_route(const struct hw_ipconf *ip)
{
	return (struct route){ .dst = host_prefix(&ip->gateway),
			       .scope = RT_SCOPE_LINK,
			       .src = ip->address.ip };
}

/* Route in the pod: to the network, via the gateway. */
static struct route network_route(const struct hw_ipconf *ip)
{
	return (struct route){ .dst = ip->address, .gw = ip->gateway, .src = ip->address.ip };
}

/* Route on the host: to the pod, on the link. */
static struct route pod_route(const struct hw_ipconf *ip)
{
	return (struct route){ .dst = host_prefix(&ip->address.ip),
			       .scope = RT_SCOPE_HOST,
			       .proto = ROUTE_PROTO_HAWSER };
}

/* Return: false if an address earlier in the list has the same gateway */
static bool is_new_gateway(const struct hw_result *result, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (hw_ip_equal(&result->ips[i].gateway, &result->ips[index].gateway))
			return false;
	return true;
}

/* Return: false if an address earlier in the list is in the same network, or if the network
 * consists of a single address and so needs no route */
static bool is_new_network(const struct hw_result *result, size_t index)
{
	const struct hw_prefix *address = &result->ips[index].address;

	for (size_t i = 0; i < index; i++)
		if (result->ips[i].address.len == address->len &&
		    hw_prefix_contains(&result->ips[i].address, &address->ip))
			return false;
	return address->len < ip_bits(&address->ip);
}

/* ---- ADD ----------------------------------------------------------------------------------- */

static int allocate_addresses(struct hw_call *call, const struct pod_link *l, struct hw_err *e)
{
	const struct ptp_conf *conf = call->conf;
	const struct hw_result *result = call->result;
	char text[HW_PREFIX_TEXT];
	int r;

	r = ipam_add(call, &conf->ipam, POD_IFACE, e);
	for (size_t i = 0; r >= 0 && i < result->n_ips; i++) {
		if (!result->ips[i].gateway.family)
			return err_text(e, -EINVAL, "IPAM plugin returned no gateway for %s",
					hw_prefix_format(&result->ips[i].address, text));
	}
	if (r >= 0 && forwarding_enable(l->nl, result, e) < 0)
		return err_ctx(e, "could not enable IP forwarding");
	return r;
}

static int add_pod_routes(const struct pod_link *l, const struct hw_result *result,
			  struct hw_err *e)
{
	for (size_t i = 0; i < result->n_ips; i++) {
		const struct hw_ipconf *ip = &result->ips[i];
		struct route kernel_route = { .dst = ip->address, .scope = RT_SCOPE_NOWHERE };
		struct route gateway = gateway_route(ip), network = network_route(ip);

		if (is_new_network(result, i))
			route_put_del(l->pod_nl, &l->pod, &kernel_route);
		if (is_new_gateway(result, i))
			route_put_add(l->pod_nl, &l->pod, &gateway);
		if (is_new_network(result, i))
			route_put_add_only(l->pod_nl, &l->pod, &network);
	}
	return rtnl_commit(l->pod_nl, e);
}

/* Adds the gateway addresses and the routes to the pod. A crash may have left a route to the same
 * address; it is replaced. */
static int add_host_routes(const struct pod_link *l, const struct hw_result *result,
			   struct hw_err *e)
{
	for (size_t i = 0; i < result->n_ips; i++) {
		const struct hw_ipconf *ip = &result->ips[i];
		struct hw_prefix gateway = host_prefix(&ip->gateway);
		struct route pod = pod_route(ip);

		if (is_new_gateway(result, i))
			addr_put_add(l->nl, &l->host, &gateway, IFA_F_NODAD);
		route_put_replace(l->nl, &l->host, &pod);
	}
	return rtnl_commit(l->nl, e);
}

static int ptp_add(struct hw_call *call, struct hw_err *e)
{
	AUTO(pod_link_done) struct pod_link l = POD_LINK_INIT;
	const struct ptp_conf *conf = call->conf;
	const struct pod_link_options link_options = { .mtu = conf->mtu };
	const struct iface_options options = { .dad = IFACE_DAD_SKIP };
	struct pod_rules rules = ptp_rules(conf);
	int r;

	r = check_conf(conf, e);
	if (r < 0)
		return r;
	r = pod_link_open(&l, call, e);
	if (r < 0)
		return r;
	r = pod_link_plan(&l, call, true, e);
	if (r < 0)
		return r;
	hw_result_free(call->result);
	call->result = hw_result_new();
	r = allocate_addresses(call, &l, e);
	if (r < 0)
		return r;
	r = pod_link_create(&l, call, &link_options, e);
	if (r < 0)
		return r;
	pod_link_report(call, &l.host, NULL);
	pod_link_report(call, &l.pod, call->netns);
	r = iface_configure(l.pod_nl, l.netns_fd, &l.pod, call->result, &options, e);
	if (r < 0)
		return r;
	r = add_pod_routes(&l, call->result, e);
	if (r < 0)
		return r;
	r = add_host_routes(&l, call->result, e);
	if (r < 0)
		return r;
	r = pod_rules_add(call, &rules, &l.pod.mac, e);
	if (r < 0)
		return r;
	ipam_override_dns(call, &conf->dns);
	return 0;
}

/* ---- CHECK --------------------------------------------------------------------------------- */

static int require_route(const struct route_list *list, const struct route *want,
			 const struct link *link, struct hw_err *e)
{
	char text[ROUTE_TEXT];

	if (route_find(list, want))
		return 0;
	return err_text(e, -ENOENT, "interface %s lacks the route %s", link->name,
			route_format(want, link, text));
}

static int check_pod(const struct pod_link *l, const struct hw_result *prev, struct hw_err *e)
{
	AUTO(route_list_done) struct route_list list = { 0 };
	int r;

	r = iface_check(l->pod_nl, &l->pod, prev, e);
	if (r >= 0)
		r = route_get(l->pod_nl, &l->pod, AF_UNSPEC, 0, &list, e);
	for (size_t i = 0; r >= 0 && i < prev->n_ips; i++) {
		struct route gateway = gateway_route(&prev->ips[i]);
		struct route network = network_route(&prev->ips[i]);

		if (is_new_gateway(prev, i))
			r = require_route(&list, &gateway, &l->pod, e);
		if (r >= 0 && is_new_network(prev, i))
			r = require_route(&list, &network, &l->pod, e);
	}
	return r;
}

static int check_host(const struct pod_link *l, const struct hw_result *prev, struct hw_err *e)
{
	AUTO(route_list_done) struct route_list routes = { 0 };
	AUTO(addr_list_done) struct addr_list addresses = { 0 };
	char text[HW_PREFIX_TEXT];
	int r;

	r = addr_get(l->nl, &l->host, AF_UNSPEC, &addresses, e);
	if (r >= 0)
		r = route_get(l->nl, &l->host, AF_UNSPEC, 0, &routes, e);
	for (size_t i = 0; r >= 0 && i < prev->n_ips; i++) {
		struct hw_prefix gateway = host_prefix(&prev->ips[i].gateway);
		struct route pod = pod_route(&prev->ips[i]);

		if (!addr_list_has(&addresses, &gateway))
			return err_text(e, -EADDRNOTAVAIL, "interface %s lacks the address %s",
					l->host.name, hw_prefix_format(&gateway, text));
		r = require_route(&routes, &pod, &l->host, e);
	}
	return r < 0 ? r : pod_check_forwarding(prev, e);
}

static int check_own(const struct pod_link *l, struct hw_call *call, struct hw_err *e)
{
	int r;

	r = check_pod(l, call->prev, e);
	return r < 0 ? r : check_host(l, call->prev, e);
}

static int ptp_check(struct hw_call *call, struct hw_err *e)
{
	const struct ptp_conf *conf = call->conf;
	struct pod_rules rules = ptp_rules(conf);
	const struct pod_check check = {
		.ipam = &conf->ipam, .rules = &rules, .mtu = conf->mtu, .own = check_own
	};
	int r;

	r = check_conf(conf, e);
	return r < 0 ? r : pod_check(call, &check, e);
}

/* ---- other verbs -------------------------------------------------------------------------- */

static int ptp_del(struct hw_call *call, struct hw_err *e)
{
	const struct ptp_conf *conf = call->conf;
	struct pod_rules rules = ptp_rules(conf);

	return pod_link_teardown(call, &conf->ipam, &rules, e);
}

static int ptp_gc(struct hw_call *call, struct hw_err *e)
{
	const struct ptp_conf *conf = call->conf;

	return ipam_delegate(call, &conf->ipam, "GC", e);
}

static int ptp_status(struct hw_call *call, struct hw_err *e)
{
	const struct ptp_conf *conf = call->conf;
	struct pod_rules rules = ptp_rules(conf);
	int r;

	r = check_conf(conf, e);
	if (r < 0)
		return r;
	r = pod_rules_status(&rules, e);
	return r < 0 ? r : ipam_delegate(call, &conf->ipam, "STATUS", e);
}

const struct hw_plugin ptp_plugin = {
	.size = sizeof(struct hw_plugin),
	.name = "ptp",
	.summary = "connects the pod and the host by a veth pair and routes",
	.add = ptp_add,
	.del = ptp_del,
	.check = ptp_check,
	.gc = ptp_gc,
	.status = ptp_status,
	.fields = ptp_fields,
	.conf_size = sizeof(struct ptp_conf),
	.record = true,
	.created_fields = pod_link_record_fields,
	.created_size = sizeof(struct pod_link_record),
	.repair = pod_rules_repair,
};
