/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/bridge/check.c - CHECK of the bridge plugin
 *
 * What:  finds what an administrator may have changed since the ADD, each kind of
 *        change with its own message: the bridge, the port, the pod's interface.
 */
#include <errno.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/iface/iface.h"
#include "net/rtnl/addr.h"
#include "net/rtnl/rtnl.h"
#include "plugins/bridge/bridge.h"
#include "plugins/pod/check.h"
#include "plugins/pod/link.h"

static int check_bridge(struct rtnl *nl, const struct hw_call *call, struct link *ret_bridge,
			struct hw_err *e)
{
	const struct bridge_conf *conf = call->conf;
	const struct pod_link_record *record = call->created;
	const struct hw_iface *iface = NULL;
	bool promisc;

	for (size_t i = 0; !iface && i < call->prev->n_ifaces; i++)
		if (str_equal(call->prev->ifaces[i].name, conf->bridge) &&
		    str_empty(call->prev->ifaces[i].sandbox))
			iface = &call->prev->ifaces[i];
	if (!iface)
		return err_text(e, -EINVAL, "prevResult has no bridge %s", conf->bridge);
	int r = bridge_get(nl, conf->bridge, ret_bridge, e);
	if (r == -ENODEV)
		return err_text(e, r, "bridge %s is missing", conf->bridge);
	if (r >= 0)
		r = pod_check_mac(iface, ret_bridge, e);
	if (r < 0)
		return r;
	promisc = ret_bridge->flags & IFF_PROMISC;
	if (promisc != conf->promisc)
		return err_text(e, -EINVAL, "bridge %s is %spromiscuous", conf->bridge,
				promisc ? "" : "not ");
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
			return err_text(e, -EINVAL, "%s of port %s is %s", flags[i].name,
					port->name, flags[i].got ? "on" : "off");
	return bridge_vlan_check(nl, conf, port, e);
}

/* Each gateway of the pod must be an address of the bridge, or of the gateway link in the VLAN. */
static int check_gateways(struct rtnl *nl, const struct bridge_conf *conf,
			  const struct hw_result *prev, const struct link *bridge, struct hw_err *e)
{
	AUTO(addr_list_done) struct addr_list list = { 0 };
	struct link link = *bridge;
	char text[HW_PREFIX_TEXT];

	int r = conf->vlan ? bridge_vlan_check_gateway(nl, conf, bridge, &link, e) : 0;
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

	if (str_empty(conf->ipam.type)) {
		if (!conf->disable_container_interface && !(l->pod.flags & IFF_UP))
			return err_text(e, -ENETDOWN, "container interface %s is down",
					l->pod.name);
		return 0;
	}
	int r = iface_check(l->pod_nl, &l->pod, call->prev, e);
	if (r >= 0)
		r = pod_check_sysctl(l, call, AF_INET, "arp_notify", "1", e);
	if (r >= 0)
		r = pod_check_sysctl(l, call, AF_INET6, "accept_dad", conf->dad ? "1" : "0", e);
	if (r >= 0 && conf->dad)
		r = pod_check_sysctl(l, call, AF_INET6, "enhanced_dad", "1", e);
	return r;
}

int bridge_check(struct hw_call *call, struct hw_err *e)
{
	AUTO(pod_link_done) struct pod_link l = POD_LINK_INIT;
	const struct bridge_conf *conf = call->conf;
	struct pod_rules rules = bridge_conf_rules(conf);
	struct link bridge;

	int r = bridge_conf_check(conf, e);
	if (r >= 0)
		r = ipam_delegate(call, &conf->ipam, "CHECK", e);
	if (r >= 0)
		r = pod_check_pair(&l, call, conf->bridge, conf->mtu, e);
	if (r >= 0)
		r = check_bridge(l.nl, call, &bridge, e);
	if (r >= 0)
		r = check_port(l.nl, conf, &bridge, &l.host, e);
	if (r >= 0 && bridge_conf_is_gateway(conf))
		r = check_gateways(l.nl, conf, call->prev, &bridge, e);
	if (r >= 0)
		r = check_pod(&l, call, e);
	return r < 0 ? r : pod_rules_check(call, &rules, e);
}
