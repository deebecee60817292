/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/bridge/bridge.c - plugin bridge: connects pods to a bridge of the host
 *
 * What:  creates a veth pair: one end is the pod's interface, the other end is a
 *        port of a bridge. The bridge is created if it does not exist. The pod's
 *        addresses come from an IPAM plugin. Optionally the bridge is the pods'
 *        gateway.
 * How:   ADD first validates its input. Then it saves the record, creates the
 *        bridge, calls IPAM, creates the pair with each end directly in its
 *        namespace, and configures the pod's interface. It does not wait: a pair
 *        with both ends up has a carrier at once, and duplicate address
 *        detection is off unless the configuration enables it, because IPAM does
 *        not allocate an address twice.
 * Rules: the bridge, its addresses and forwarding stay after the last DEL: they
 *        are created once per host. All other objects belong to the attachment;
 *        DEL deletes them and needs only the record. A previous result is
 *        ignored: this plugin is the first one of a chain.
 */
#include <errno.h>
#include <sys/socket.h>

#include <hawser/plugin.h>

#include "base/err.h"
#include "base/ip.h"
#include "base/mem.h"
#include "base/str.h"
#include "cni/result.h"
#include "net/iface/iface.h"
#include "net/rtnl/addr.h"
#include "net/rtnl/bridge.h"
#include "net/rtnl/link.h"
#include "net/rtnl/rtnl.h"
#include "plugins/bridge/bridge.h"
#include "plugins/pod/check-pair.h"
#include "plugins/pod/ipam.h"
#include "plugins/pod/link.h"

#define POD_IFACE 2 /* index of the pod's interface in the result, after bridge and host end */

/* ---- ADD ------------------------------------------------------------------------ */

/* Return: the default route of that family in the result of IPAM, or a new route added to the
 * result */
static struct hw_route *ensure_default_route(struct hw_result *result, int family)
{
	struct hw_route *route;

	for (size_t i = 0; i < result->n_routes; i++) {
		route = &result->routes[i];
		if (route->dst.ip.family == family && route->dst.len == 0)
			return route;
	}
	route = hw_result_add_route(result);
	route->dst.ip.family = (uint8_t)family;
	return route;
}

/* Allocates addresses, and adds the gateway addresses to the host.
 * @ret_vlan_gateway: unchanged if the configuration has no VLAN */
static int allocate_addresses(struct hw_call *call, struct rtnl *nl, const struct link *bridge,
			      struct link *ret_vlan_gateway, struct hw_err *e)
{
	const struct bridge_conf *conf = call->conf;
	struct hw_result *result = call->result;
	char text[HW_PREFIX_TEXT];
	int r;

	r = ipam_add(call, &conf->ipam, POD_IFACE, e);
	if (r < 0 || !result->n_ips || !bridge_conf_is_gateway(conf))
		return r;
	for (size_t i = 0; i < result->n_ips; i++) {
		struct hw_ipconf *ip = &result->ips[i];
		struct hw_ip network = prefix_network(&ip->address);

		/* If IPAM returned no gateway, it is the first address of the network. */
		if (!ip->gateway.family && !ip_next(&network, &ip->gateway))
			return err_text(e, -EINVAL, "network %s has no address for a gateway",
					hw_prefix_format(&ip->address, text));
		if (!conf->is_default_gateway)
			continue;
		struct hw_route *route = ensure_default_route(result, ip->address.ip.family);
		if (!route->gw.family)
			route->gw = ip->gateway;
	}
	if (!conf->vlan)
		return bridge_ensure_gateways(nl, conf, result, bridge, e);
	r = bridge_vlan_ensure_gateway(nl, conf, bridge, ret_vlan_gateway, e);
	if (r < 0)
		return r;
	return bridge_ensure_gateways(nl, conf, result, ret_vlan_gateway, e);
}

/* Creates the pair, adds all interfaces to the result, and configures the pod's interface. */
static int connect_pod(struct hw_call *call, struct pod_link *l, const struct link *bridge,
		       const struct hw_mac *mac, const struct link *vlan_gateway, struct hw_err *e)
{
	const struct bridge_conf *conf = call->conf;
	const struct pod_link_options link_options = {
		.mtu = conf->mtu,
		.mac = *mac,
		.master = bridge->index,
		.hairpin = conf->hairpin,
		.isolated = conf->isolation,
	};
	const struct iface_options options = {
		.dad = conf->dad ? IFACE_DAD_ON : IFACE_DAD_OFF,
		.notify = true,
	};
	struct link bridge_now;
	int r;

	r = pod_link_create(l, call, &link_options, e);
	if (r < 0)
		return r;
	r = bridge_vlan_configure(l->nl, conf, &l->host, e);
	if (r < 0)
		return r;
	/* An existing bridge may take its MAC address from its ports. */
	r = link_get_brief(l->nl, bridge->name, &bridge_now, e);
	if (r < 0)
		return r;
	pod_link_report(call, &bridge_now, NULL);
	pod_link_report(call, &l->host, NULL);
	pod_link_report(call, &l->pod, call->netns);
	if (vlan_gateway->index)
		pod_link_report(call, vlan_gateway, NULL);
	if (conf->disable_container_interface)
		return 0;
	if (!str_empty(conf->ipam.type))
		return iface_configure(l->pod_nl, l->netns_fd, &l->pod, call->result, &options, e);
	link_set_up(l->pod_nl, &l->pod);
	return rtnl_commit(l->pod_nl, e);
}

static int bridge_add(struct hw_call *call, struct hw_err *e)
{
	AUTO(pod_link_done) struct pod_link l = POD_LINK_INIT;
	const struct bridge_conf *conf = call->conf;
	struct pod_rules rules = bridge_conf_rules(conf);
	struct pod_link_record *record = call->created;
	struct link bridge, vlan_gateway = { 0 };
	struct hw_mac mac;
	int r;

	r = bridge_conf_check(conf, e);
	if (r < 0)
		return r;
	r = bridge_conf_mac(call, &mac, e);
	if (r < 0)
		return r;
	r = pod_link_open(&l, call, e);
	if (r < 0)
		return r;
	if (bridge_vlan_wanted(conf))
		r = bridge_vlan_supported(l.nl, e);
	if (r < 0)
		return r;
	r = pod_link_plan(&l, call, !str_empty(conf->ipam.type), e);
	if (r < 0)
		return r;
	r = bridge_ensure(l.nl, conf, &bridge, e);
	if (r < 0)
		return r;
	record->vlan_filtering = bridge.data.bridge.vlan_filtering;
	hw_result_free(call->result);
	call->result = hw_result_new();
	r = allocate_addresses(call, l.nl, &bridge, &vlan_gateway, e);
	if (r < 0)
		return r;
	r = connect_pod(call, &l, &bridge, &mac, &vlan_gateway, e);
	if (r < 0)
		return r;
	r = pod_rules_add(call, &rules, &l.pod.mac, e);
	if (r < 0)
		return r;
	ipam_override_dns(call, &conf->dns);
	return r;
}

/* ---- CHECK ---------------------------------------------------------------------- */

static int check_bridge(struct rtnl *nl, const struct hw_call *call, struct link *ret_bridge,
			struct hw_err *e)
{
	const struct bridge_conf *conf = call->conf;
	const struct pod_link_record *record = call->created;
	const struct hw_iface *iface = NULL;
	bool promisc;
	int r;

	for (size_t i = 0; !iface && i < call->prev->n_ifaces; i++)
		if (str_equal(call->prev->ifaces[i].name, conf->bridge) &&
		    str_empty(call->prev->ifaces[i].sandbox))
			iface = &call->prev->ifaces[i];
	if (!iface)
		return err_text(e, -EINVAL, "prevResult has no bridge %s", conf->bridge);
	r = bridge_find(nl, conf->bridge, ret_bridge, e);
	if (r < 0)
		return r;
	if (r == 0)
		return err_text(e, -ENODEV, "bridge %s is missing", conf->bridge);
	r = pod_check_mac(iface, ret_bridge, e);
	if (r < 0)
		return r;
	promisc = ret_bridge->flags & IFF_PROMISC;
	if (promisc != conf->promisc)
		return err_text(e, -EINVAL, "bridge %s: promiscuous mode mismatch: got %s, want %s",
				conf->bridge, promisc ? "on" : "off", promisc ? "off" : "on");
	if (!(ret_bridge->flags & IFF_UP))
		return err_text(e, -ENETDOWN, "bridge %s is down", conf->bridge);
	if (bridge_vlan_wanted(conf) && record->vlan_filtering &&
	    !ret_bridge->data.bridge.vlan_filtering)
		return err_text(e, -EINVAL, "bridge %s does not filter VLANs", conf->bridge);
	return 0;
}

static int check_port(struct rtnl *nl, const struct bridge_conf *conf, const struct link *bridge,
		      const struct link *port, struct hw_err *e)
{
	const struct {
		const char *name;
		bool got, want;
	} flags[] = {
		{ "hairpin mode", port->port.hairpin, conf->hairpin },
		{ "isolation", port->port.isolated, conf->isolation },
		{ "learning", port->port.learning, true }, /* the kernel's default */
		{ "flooding", port->port.flood, true },
	};

	if (port->master != bridge->index)
		return err_text(e, -EINVAL, "host interface %s is not a port of bridge %s",
				port->name, bridge->name);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (flags[i].got != flags[i].want)
			return err_text(e, -EINVAL, "port %s: %s mismatch: got %s, want %s",
					port->name, flags[i].name, flags[i].got ? "on" : "off",
					flags[i].want ? "on" : "off");
	return bridge_vlan_check(nl, conf, port, e);
}

/* Each gateway of the pod must be an address of the bridge, or of the gateway link in the VLAN. */
static int check_gateways(struct rtnl *nl, const struct bridge_conf *conf,
			  const struct hw_result *prev, const struct link *bridge, struct hw_err *e)
{
	AUTO(addr_list_done) struct addr_list list = { 0 };
	struct link link = *bridge;
	char text[HW_PREFIX_TEXT];
	int r;

	r = conf->vlan ? bridge_vlan_check_gateway(nl, conf, bridge, &link, e) : 0;
	if (r >= 0)
		r = addr_get(nl, &link, AF_UNSPEC, &list, e);
	for (size_t i = 0; r >= 0 && i < prev->n_ips; i++) {
		const struct hw_ipconf *ip = &prev->ips[i];
		struct hw_prefix gateway = { ip->gateway, ip->address.len };

		if (ip->gateway.family && !addr_list_has(&list, &gateway))
			return err_text(e, -EADDRNOTAVAIL, "interface %s lacks the address %s",
					link.name, hw_prefix_format(&gateway, text));
	}
	return r < 0 ? r : pod_check_forwarding(prev, e);
}

static int check_pod(const struct pod_link *l, const struct hw_call *call, struct hw_err *e)
{
	const struct bridge_conf *conf = call->conf;
	int r;

	if (str_empty(conf->ipam.type)) {
		if (!conf->disable_container_interface && !(l->pod.flags & IFF_UP))
			return err_text(e, -ENETDOWN, "container interface %s is down",
					l->pod.name);
		return 0;
	}
	r = iface_check(l->pod_nl, &l->pod, call->prev, e);
	if (r < 0)
		return r;
	r = pod_check_sysctl(l, call, AF_INET, "arp_notify", "1", e);
	if (r < 0)
		return r;
	r = pod_check_sysctl(l, call, AF_INET6, "accept_dad", conf->dad ? "1" : "0", e);
	if (r < 0)
		return r;
	if (conf->dad)
		r = pod_check_sysctl(l, call, AF_INET6, "enhanced_dad", "1", e);
	return r;
}

/* Finds changes to the bridge, the port and the pod's interface since the ADD. Each kind of change
 * has its own message. */
static int check_own(const struct pod_link *l, struct hw_call *call, struct hw_err *e)
{
	const struct bridge_conf *conf = call->conf;
	struct link bridge;
	int r;

	r = check_bridge(l->nl, call, &bridge, e);
	if (r < 0)
		return r;
	r = check_port(l->nl, conf, &bridge, &l->host, e);
	if (r < 0)
		return r;
	if (bridge_conf_is_gateway(conf))
		r = check_gateways(l->nl, conf, call->prev, &bridge, e);
	return r < 0 ? r : check_pod(l, call, e);
}

static int bridge_check(struct hw_call *call, struct hw_err *e)
{
	const struct bridge_conf *conf = call->conf;
	struct pod_rules rules = bridge_conf_rules(conf);
	const struct pod_check check = { .ipam = &conf->ipam,
					 .rules = &rules,
					 .bridge = conf->bridge,
					 .mtu = conf->mtu,
					 .own = check_own };
	int r;

	r = bridge_conf_check(conf, e);
	return r < 0 ? r : pod_check(call, &check, e);
}

/* ---- other verbs ------------------------------------------------------------------- */

static int bridge_del(struct hw_call *call, struct hw_err *e)
{
	const struct bridge_conf *conf = call->conf;
	struct pod_rules rules = bridge_conf_rules(conf);

	return pod_link_teardown(call, &conf->ipam, &rules, e);
}

static int bridge_gc(struct hw_call *call, struct hw_err *e)
{
	const struct bridge_conf *conf = call->conf;

	return ipam_delegate(call, &conf->ipam, "GC", e);
}

static int bridge_status(struct hw_call *call, struct hw_err *e)
{
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	const struct bridge_conf *conf = call->conf;
	struct pod_rules rules = bridge_conf_rules(conf);
	struct link bridge;
	int r;

	r = bridge_conf_check(conf, e);
	if (r < 0)
		return r;
	r = rtnl_open(-1, &nl, e);
	if (r < 0)
		return r;
	if (bridge_vlan_wanted(conf) && bridge_vlan_supported(nl, e) < 0)
		return err_recode(e, HW_CNI_NOT_AVAILABLE);
	r = bridge_find(nl, conf->bridge, &bridge, e);
	if (r < 0)
		return err_recode(e, HW_CNI_NOT_AVAILABLE);
	r = pod_rules_status(&rules, e);
	return r < 0 ? r : ipam_delegate(call, &conf->ipam, "STATUS", e);
}

const struct hw_plugin bridge_plugin = {
	.size = sizeof(struct hw_plugin),
	.name = "bridge",
	.summary = "connects the pod to a bridge of the host",
	.add = bridge_add,
	.del = bridge_del,
	.check = bridge_check,
	.gc = bridge_gc,
	.status = bridge_status,
	.fields = bridge_fields,
	.conf_size = sizeof(struct bridge_conf),
	.record = true,
	.created_fields = pod_link_record_fields,
	.created_size = sizeof(struct pod_link_record),
	.repair = pod_rules_repair,
};
