/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/bridge/device.c - the bridge device and its gateway addresses
 *
 * What:  the first ADD creates the bridge, later ADDs use it, and `hawser-plugin
 *        uninstall` removes it.
 * How:   bridge and addresses are looked up before they are created, so that a
 *        typical ADD does not change them. It is not an error if another ADD
 *        creates the same object at the same time.
 * Rules: the MAC address of a bridge that we create does not change. Otherwise the
 *        kernel would use the lowest MAC address of its ports, which changes with the
 *        pods. An existing bridge keeps its MAC address. When a gateway address
 *        is added, that MAC address is set explicitly, as in upstream, so that
 *        it no longer changes.
 */
#include <errno.h>
#include <linux/if_addr.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/ip.h"
#include "base/str.h"
#include "net/iface/forwarding.h"
#include "net/rtnl/addr.h"
#include "net/rtnl/bridge.h"
#include "net/rtnl/rtnl.h"
#include "net/sysctl.h"
#include "plugins/bridge/bridge.h"
#include "plugins/pod/host-objects.h"

static int require_bridge(const struct link *link, struct hw_err *e)
{
	if (str_equal(link->kind, "bridge"))
		return 0;
	return err_text(e, -EEXIST, "\"%s\" already exists but is not a bridge", link->name);
}

int bridge_find(struct rtnl *nl, const char *name, struct link *ret_bridge, struct hw_err *e)
{
	int r;

	r = link_find(nl, name, ret_bridge, e);
	return r > 0 && require_bridge(ret_bridge, e) < 0 ? e->code : r;
}

/* The kernel chooses the MAC address: a new bridge with any other address has no carrier until a port
 * is up, and so gets no link-local address.
 * Return: 1 if created, 0 if the bridge existed */
static int create_bridge(struct rtnl *nl, const struct bridge_conf *conf, struct link *ret_bridge,
			 struct hw_err *e)
{
	struct link_new new = {
		.name = conf->bridge,
		.kind = "bridge",
		.mtu = conf->mtu > 0 ? (uint32_t)conf->mtu : 0,
		.data.bridge.vlan_filtering = bridge_vlan_wanted(conf),
	};
	int created;

	created = host_object_create_link(nl, &new, ret_bridge, e);
	if (created < 0)
		return err_ctx(e, "could not add \"%s\"", conf->bridge);
	return require_bridge(ret_bridge, e) < 0 ? e->code : created;
}

int bridge_ensure(struct rtnl *nl, const struct bridge_conf *conf, struct link *ret_bridge,
		  struct hw_err *e)
{
	struct hw_err ignored;
	bool created = false;
	int r;

	r = bridge_find(nl, conf->bridge, ret_bridge, e);
	if (r == 0 || (r > 0 && !(ret_bridge->flags & IFF_UP))) {
		r = create_bridge(nl, conf, ret_bridge, e);
		created = r > 0;
	}
	if (r < 0)
		return r;
	if (ret_bridge->accept_ra)
		(void)sysctl_write_conf(-1, AF_INET6, conf->bridge, "accept_ra", "0", &ignored);
	if (conf->promisc && !(ret_bridge->flags & IFF_PROMISC))
		link_set_promisc(nl, ret_bridge, true);
	/* Only an address that was set explicitly does not change with the ports. The first ADD that
	 * finds a new bridge sets it, even if another process created the bridge. */
	if (!(ret_bridge->flags & IFF_UP)) {
		link_set_mac(nl, ret_bridge, &ret_bridge->mac);
		link_set_up(nl, ret_bridge);
	}
	/* Now the bridge has its link-local address. As in upstream, its state is then that of its
	 * ports, instead of "unknown". */
	if (created)
		bridge_compute_carrier(nl, ret_bridge);
	return rtnl_commit(nl, e);
}

/* ---- gateway addresses ----------------------------------------------------------------------- */

/* Does an address of the link prevent the addition of @wanted? With IPv4, every other address does; with
 * IPv6, every address of an overlapping network. */
static bool is_conflict(const struct hw_prefix *existing, const struct hw_prefix *wanted)
{
	return existing->ip.family == wanted->ip.family &&
	       (wanted->ip.family == AF_INET || prefix_overlaps(existing, wanted));
}

/* Adds the address @wanted to the link. With forceAddress conflicting addresses are removed, otherwise
 * they are an error.
 * @list: all addresses of the link */
static int add_address(struct rtnl *nl, const struct bridge_conf *conf, const struct link *link,
		       const struct hw_prefix *wanted, const struct addr_list *list,
		       struct hw_err *e)
{
	char text[HW_PREFIX_TEXT];
	int r;

	for (size_t i = 0; i < list->n; i++) {
		if (!is_conflict(&list->v[i].prefix, wanted))
			continue;
		if (!conf->force_address)
			return err_text(e, -EEXIST,
					"\"%s\" already has an IP address different from %s",
					link->name, hw_prefix_format(wanted, text));
		addr_put_del(nl, link, &list->v[i].prefix);
	}
	r = rtnl_commit(nl, e);
	if (r < 0 && r != -EADDRNOTAVAIL) /* -EADDRNOTAVAIL: another ADD removed it first */
		return r;
	addr_put_add(nl, link, wanted, conf->dad ? 0 : IFA_F_NODAD);
	r = rtnl_commit(nl, e);
	if (r < 0 && r != -EEXIST)
		return err_ctx(e, "could not add IP address to \"%s\"", link->name);
	link_set_mac(nl, link, &link->mac);
	r = rtnl_commit(nl, e);
	return r < 0 ? err_ctx(e, "could not set bridge's mac") : 0;
}

int bridge_ensure_gateways(struct rtnl *nl, const struct bridge_conf *conf,
			   const struct hw_result *result, const struct link *link,
			   struct hw_err *e)
{
	AUTO(addr_list_done) struct addr_list list = { 0 };
	int r;

	r = addr_get(nl, link, AF_UNSPEC, &list, e);
	for (size_t i = 0; r >= 0 && i < result->n_ips; i++) {
		const struct hw_ipconf *ip = &result->ips[i];
		struct hw_prefix gateway = { ip->gateway, ip->address.len };

		if (addr_list_has(&list, &gateway))
			continue;
		r = add_address(nl, conf, link, &gateway, &list, e);
		addr_list_done(&list);
		if (r >= 0)
			r = addr_get(nl, link, AF_UNSPEC, &list, e);
	}
	if (r >= 0)
		r = forwarding_enable(nl, result, e);
	return r < 0 ? err_ctx(e, "failed to set bridge addr") : 0;
}
