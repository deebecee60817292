/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/bridge/vlan.c - VLANs of a pod's port, and the gateway link inside a VLAN
 *
 * What:  "vlan" is the VLAN of untagged frames; "vlanTrunk" lists the VLANs of
 *        tagged frames. With "vlan" the gateway addresses are on a separate link
 *        inside the VLAN, the gateway link: one end of a veth pair whose other end
 *        is a port of the bridge.
 * How:   the VLANs of a trunk are collected as a set, so that entries may overlap;
 *        the set is sent to the kernel as ranges.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/rtnl/bridge.h"
#include "net/rtnl/rtnl.h"
#include "plugins/bridge/bridge.h"
#include "plugins/pod/host-objects.h"

#define VLAN_DEFAULT 1 /* VLAN of untagged frames on a port that has only a trunk */
#define NAME_DIGITS  8

static bool is_vlan(int id)
{
	return id >= 1 && id <= BRIDGE_VLAN_MAX;
}

static const char *find_trunk_error(const struct bridge_trunk *t)
{
	if (t->has_min && t->has_max) {
		if (!is_vlan(t->min))
			return "incorrect trunk minID parameter";
		if (!is_vlan(t->max))
			return "incorrect trunk maxID parameter";
		if (t->max < t->min)
			return "minID is greater than maxID in trunk parameter";
	} else if (t->has_max) {
		return "minID and maxID should be configured simultaneously, minID is missing";
	} else if (t->has_min) {
		return "minID and maxID should be configured simultaneously, maxID is missing";
	}
	return t->has_id && !is_vlan(t->id) ? "incorrect trunk id parameter" : NULL;
}

/* For example "cni0.100". */
static char *format_gateway_name(const struct bridge_conf *conf)
{
	return str_printf("%s.%d", conf->bridge, conf->vlan);
}

int bridge_vlan_check_conf(const struct bridge_conf *conf, struct hw_err *e)
{
	const struct bridge_trunk *trunk = conf->trunk.v;
	autofree char *gateway = format_gateway_name(conf);

	if (conf->vlan && bridge_conf_is_gateway(conf) && strlen(gateway) >= IF_NAMESIZE)
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "invalid bridge name \"%s\": the name of the VLAN's gateway "
			       "interface, \"%s\", is too long",
			       conf->bridge, gateway);
	for (size_t i = 0; i < conf->trunk.n; i++) {
		const char *error = find_trunk_error(&trunk[i]);

		if (error)
			return err_cni(e, HW_CNI_INVALID_CONFIG, "%s", error);
	}
	return 0;
}

bool bridge_vlan_wanted(const struct bridge_conf *conf)
{
	return conf->vlan || conf->has_trunk;
}

static void add_range(struct bridge_vlan_list *list, struct bridge_vlan range)
{
	list->v = mem_resize(list->v, list->n + 1, sizeof(*list->v));
	list->v[list->n++] = range;
}

/* Lists the VLANs that a port must carry. The VLAN of untagged frames is the first; it is not
 * repeated as a tagged VLAN, even if the trunk contains it. */
static void collect_wanted(const struct bridge_conf *conf, struct bridge_vlan_list *list)
{
	bool tagged[BRIDGE_VLAN_MAX + 2] = { false }; /* the last entry is never set */
	const struct bridge_trunk *trunk = conf->trunk.v;
	uint16_t untagged = (uint16_t)(conf->vlan ? conf->vlan : VLAN_DEFAULT);

	for (size_t i = 0; i < conf->trunk.n; i++) {
		for (int id = trunk[i].min; trunk[i].has_min && id <= trunk[i].max; id++)
			tagged[id] = true;
		if (trunk[i].has_id)
			tagged[trunk[i].id] = true;
	}
	tagged[untagged] = false;
	add_range(list, (struct bridge_vlan){ untagged, untagged, .pvid = true, .untagged = true });
	for (uint16_t id = 1; id <= BRIDGE_VLAN_MAX; id++) {
		uint16_t first = id;

		if (!tagged[id])
			continue;
		while (tagged[id + 1])
			id++;
		add_range(list, (struct bridge_vlan){ .id = first, .last = id });
	}
}

int bridge_vlan_configure(struct rtnl *nl, const struct bridge_conf *conf, const struct link *port,
			  struct hw_err *e)
{
	AUTO(bridge_vlan_list_done) struct bridge_vlan_list list = { 0 }, wanted = { 0 };
	int r;

	if (!conf->vlan && !conf->trunk.n)
		return 0;
	r = bridge_vlan_get(nl, port, &list, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < list.n && !conf->preserve_default_vlan; i++)
		bridge_vlan_del(nl, port, &list.v[i]);
	collect_wanted(conf, &wanted);
	for (size_t i = 0; i < wanted.n; i++)
		bridge_vlan_add(nl, port, &wanted.v[i]);
	r = rtnl_commit(nl, e);
	return r < 0 ? err_ctx(e, "failed to setup vlan on interface \"%s\"", port->name) : 0;
}

int bridge_vlan_check(struct rtnl *nl, const struct bridge_conf *conf, const struct link *port,
		      struct hw_err *e)
{
	AUTO(bridge_vlan_list_done) struct bridge_vlan_list list = { 0 }, wanted = { 0 };
	unsigned n_carried = 0, n_wanted = 0;
	int r;

	if (!conf->vlan && !conf->trunk.n)
		return 0;
	r = bridge_vlan_get(nl, port, &list, e);
	if (r < 0)
		return r;
	collect_wanted(conf, &wanted);
	for (size_t i = 0; i < wanted.n; i++) {
		const struct bridge_vlan *vlan = &wanted.v[i];

		n_wanted += vlan->last - vlan->id + 1u;
		if (bridge_vlan_list_has(&list, vlan))
			continue;
		if (vlan->last > vlan->id)
			return err_text(e, -EINVAL, "port %s does not carry VLANs %u to %u tagged",
					port->name, vlan->id, vlan->last);
		return err_text(e, -EINVAL, "port %s does not carry VLAN %u %s", port->name,
				vlan->id, vlan->untagged ? "untagged" : "tagged");
	}
	if (conf->preserve_default_vlan)
		return 0;
	/* The port carries all wanted VLANs. If the counts differ, it carries others too. */
	for (size_t i = 0; i < list.n; i++)
		n_carried += list.v[i].last - list.v[i].id + 1u;
	if (n_carried != n_wanted)
		return err_text(e, -EINVAL, "port %s: VLAN count mismatch: got %u, want %u",
				port->name, n_carried, n_wanted);
	return 0;
}

/* ---- the gateway link ----------------------------------------------------------------- */

/* Creates the pair as upstream does: the gateway link is its main end, the port of the bridge is the
 * peer. */
static int create_gateway(struct rtnl *nl, const struct bridge_conf *conf, const char *name,
			  const struct link *bridge, struct link *ret_link, struct hw_err *e)
{
	const char *parts[] = { "gateway", conf->bridge, name };
	char hex[NAME_DIGITS + 1], port[IF_NAMESIZE];
	struct link_new peer = { .name = port, .mtu = bridge->mtu };
	struct link_new new = { .name = name, .kind = "veth", .peer = &peer, .mtu = bridge->mtu };
	int r;

	hash_parts(parts, ARRAY_SIZE(parts), NAME_DIGITS, hex);
	snprintf(port, sizeof(port), "veth%s", hex);
	r = host_object_create_link(nl, &new, ret_link, e);
	return r < 0 ? err_ctx(e, "failed to create vlan gateway \"%s\"", name) : 0;
}

/* Connects the port of the gateway link to the bridge, if it has no master, and to the VLAN. The port
 * may carry other VLANs, too, if upstream's plugin created it. */
static int connect_gateway(struct rtnl *nl, const struct bridge_conf *conf,
			   const struct link *bridge, const struct link *gateway, struct hw_err *e)
{
	int r;

	/* The port carries only the VLAN "vlan", not the trunk. */
	struct bridge_conf only = { .vlan = conf->vlan,
				    .preserve_default_vlan = conf->preserve_default_vlan };
	struct bridge_conf least = { .vlan = conf->vlan, .preserve_default_vlan = true };
	struct link port;

	if (!str_equal(gateway->kind, "veth") || !gateway->parent || gateway->parent_nsid >= 0)
		return 0;
	r = link_get_index(nl, gateway->parent, &port, e);
	if (r < 0)
		return r;
	if (!port.master)
		link_set_master(nl, &port, bridge);
	if (!(port.flags & IFF_UP))
		link_set_up(nl, &port);
	r = rtnl_commit(nl, e);
	if (r < 0)
		return r;
	return bridge_vlan_check(nl, &least, &port, e) < 0
		       ? bridge_vlan_configure(nl, &only, &port, e)
		       : 0;
}

int bridge_vlan_ensure_gateway(struct rtnl *nl, const struct bridge_conf *conf,
			       const struct link *bridge, struct link *ret_link, struct hw_err *e)
{
	autofree char *name = format_gateway_name(conf);
	int r;

	r = link_find(nl, name, ret_link, e);
	if (r == 0 || (r > 0 && !(ret_link->flags & IFF_UP)))
		r = create_gateway(nl, conf, name, bridge, ret_link, e);
	if (r < 0)
		return r;
	r = connect_gateway(nl, conf, bridge, ret_link, e);
	if (r < 0)
		return r;
	if (!(ret_link->flags & IFF_UP))
		link_set_up(nl, ret_link);
	return rtnl_commit(nl, e);
}

int bridge_vlan_check_gateway(struct rtnl *nl, const struct bridge_conf *conf,
			      const struct link *bridge, struct link *ret_link, struct hw_err *e)
{
	int r;

	/* Allow other VLANs: the port of a gateway link that upstream's plugin created carries
	 * more. */
	struct bridge_conf only = { .vlan = conf->vlan, .preserve_default_vlan = true };
	autofree char *name = format_gateway_name(conf);
	struct link port = { 0 };

	r = link_find(nl, name, ret_link, e);
	if (r < 0)
		return r;
	if (r == 0)
		return err_text(e, -ENODEV, "gateway interface %s is missing", name);
	if (!(ret_link->flags & IFF_UP))
		return err_text(e, -ENETDOWN, "gateway interface %s is down", name);
	if (ret_link->parent)
		r = link_find_index(nl, ret_link->parent, &port, e);
	if (r < 0)
		return r;
	if (port.master != bridge->index)
		return err_text(e, -EINVAL, "gateway interface %s is not connected to bridge %s",
				name, bridge->name);
	if (!(port.flags & IFF_UP))
		return err_text(e, -ENETDOWN, "port %s of gateway interface %s is down", port.name,
				name);
	return bridge_vlan_check(nl, &only, &port, e);
}
