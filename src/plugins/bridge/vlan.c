/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/bridge/vlan.c - VLANs of a pod's port
 *
 * What:  "vlan" is the VLAN of untagged frames, "vlanTrunk" those of tagged
 *        ones; with "vlan" the gateway is a link of its own inside the VLAN.
 * How:   the VLANs of a trunk are a set of bits, so that overlapping entries
 *        do not matter; the kernel gets rows of them.
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
#include "plugins/pod/furniture.h"

#define VLAN_DEFAULT 1 /* of untagged frames at a trunk port */
#define VLAN_MAX     4094
#define NAME_DIGITS  8

struct vlan_set {
	bool has[VLAN_MAX + 2]; /* the last one is never set */
};

static bool is_vlan(int id)
{
	return id >= 1 && id <= VLAN_MAX;
}

static const char *trunk_problem(const struct bridge_trunk *t)
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

/**
 * bridge_vlan_gateway_name() - what the host's link inside the VLAN is called
 */
char *bridge_vlan_gateway_name(const struct bridge_conf *conf)
{
	return str_printf("%s.%d", conf->bridge, conf->vlan);
}

/**
 * bridge_vlan_check_conf() - are the entries of a trunk sensible, and is there a name for a gateway?
 */
int bridge_vlan_check_conf(const struct bridge_conf *conf, struct hw_err *e)
{
	const struct bridge_trunk *trunk = conf->trunk.v;
	autofree char *gateway = bridge_vlan_gateway_name(conf);

	if (conf->vlan && bridge_conf_is_gateway(conf) && strlen(gateway) >= IF_NAMESIZE)
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "invalid bridge name \"%s\": that of the VLAN's gateway, \"%s\", "
			       "would be too long",
			       conf->bridge, gateway);
	for (size_t i = 0; i < conf->trunk.n; i++) {
		const char *problem = trunk_problem(&trunk[i]);

		if (problem)
			return err_cni(e, HW_CNI_INVALID_CONFIG, "%s", problem);
	}
	return 0;
}

/**
 * bridge_vlan_wanted() - does a bridge for this configuration filter VLANs?
 */
bool bridge_vlan_wanted(const struct bridge_conf *conf)
{
	return conf->vlan || conf->has_trunk;
}

/* The VLAN of untagged frames stays one, also when the trunk names it. */
static void collect_trunk(const struct bridge_conf *conf, struct vlan_set *set)
{
	const struct bridge_trunk *trunk = conf->trunk.v;

	*set = (struct vlan_set){ 0 };
	for (size_t i = 0; i < conf->trunk.n; i++) {
		for (int id = trunk[i].min; trunk[i].has_min && id <= trunk[i].max; id++)
			set->has[id] = true;
		if (trunk[i].has_id)
			set->has[trunk[i].id] = true;
	}
	set->has[conf->vlan ? conf->vlan : VLAN_DEFAULT] = false;
}

/* Calls back for each row of VLANs that the port is to carry. */
static int each_wanted(const struct bridge_conf *conf,
		       int (*each)(void *ctx, const struct bridge_vlan *vlan, struct hw_err *e),
		       void *ctx, struct hw_err *e)
{
	struct bridge_vlan untagged = { .pvid = true, .untagged = true };
	struct vlan_set set;
	int r = 0;

	untagged.id = conf->vlan ? conf->vlan : VLAN_DEFAULT;
	collect_trunk(conf, &set);
	if (conf->vlan || conf->trunk.n)
		r = each(ctx, &untagged, e);
	for (uint16_t id = 1; r >= 0 && id <= VLAN_MAX; id++) {
		struct bridge_vlan row = { .id = id };

		if (!set.has[id])
			continue;
		while (set.has[id + 1])
			id++;
		row.last = id;
		r = each(ctx, &row, e);
	}
	return r;
}

struct port {
	struct rtnl *nl;
	const struct link *link;
	const struct bridge_vlan_list *list;
	unsigned wanted; /* how many VLANs */
};

static int put_vlan(void *ctx, const struct bridge_vlan *vlan, struct hw_err *e)
{
	const struct port *port = ctx;

	(void)e;
	bridge_vlan_add(port->nl, port->link, vlan);
	return 0;
}

/**
 * bridge_vlan_configure() - let a port carry the VLANs of the configuration
 */
int bridge_vlan_configure(struct rtnl *nl, const struct bridge_conf *conf, const struct link *port,
			  struct hw_err *e)
{
	AUTO(bridge_vlan_list_done) struct bridge_vlan_list list = { 0 };
	struct port p = { nl, port, &list, 0 };

	if (!conf->vlan && !conf->trunk.n)
		return 0;
	int r = bridge_vlan_get(nl, port, &list, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < list.n && !conf->preserve_default_vlan; i++)
		bridge_vlan_del(nl, port, &list.v[i]);
	(void)each_wanted(conf, put_vlan, &p, e);
	r = rtnl_commit(nl, e);
	return r < 0 ? err_ctx(e, "failed to setup vlan on interface \"%s\"", port->name) : 0;
}

static int check_vlan(void *ctx, const struct bridge_vlan *vlan, struct hw_err *e)
{
	bool row = vlan->last > vlan->id;
	struct port *port = ctx;

	port->wanted += row ? vlan->last - vlan->id + 1u : 1;
	if (bridge_vlan_list_has(port->list, vlan))
		return 0;
	if (row)
		return err_text(e, -EINVAL, "port %s does not carry the VLANs %u to %u tagged",
				port->link->name, vlan->id, vlan->last);
	return err_text(e, -EINVAL, "port %s does not carry VLAN %u %s", port->link->name, vlan->id,
			vlan->untagged ? "untagged" : "tagged");
}

/* Once it has all that it should have. */
static int check_no_more(const struct port *port, struct hw_err *e)
{
	unsigned carried = 0;

	for (size_t i = 0; i < port->list->n; i++)
		carried += port->list->v[i].last - port->list->v[i].id + 1u;
	if (carried == port->wanted)
		return 0;
	return err_text(e, -EINVAL, "port %s carries %u VLANs instead of %u", port->link->name,
			carried, port->wanted);
}

/**
 * bridge_vlan_check() - CHECK: does the port carry what it should, and nothing else?
 */
int bridge_vlan_check(struct rtnl *nl, const struct bridge_conf *conf, const struct link *port,
		      struct hw_err *e)
{
	AUTO(bridge_vlan_list_done) struct bridge_vlan_list list = { 0 };
	struct port p = { nl, port, &list, 0 };

	if (!conf->vlan && !conf->trunk.n)
		return 0;
	int r = bridge_vlan_get(nl, port, &list, e);
	if (r >= 0)
		r = each_wanted(conf, check_vlan, &p, e);
	return r < 0 || conf->preserve_default_vlan ? r : check_no_more(&p, e);
}

/* ---- the gateway's link -------------------------------------------------------------- */

/* Its other end, which is a port of the bridge: found by name after a crash. */
static void name_gateway_port(const struct bridge_conf *conf, const char *gateway, char *ret_name)
{
	const char *parts[] = { "gateway", conf->bridge, gateway };
	char hex[NAME_DIGITS + 1];

	hash_parts(parts, ARRAY_SIZE(parts), NAME_DIGITS, hex);
	snprintf(ret_name, IF_NAMESIZE, "veth%s", hex);
}

/**
 * bridge_vlan_gateway() - the host's link inside the VLAN, there and up
 */
int bridge_vlan_gateway(struct rtnl *nl, const struct bridge_conf *conf, const struct link *bridge,
			struct link *ret_link, struct hw_err *e)
{
	autofree char *name = bridge_vlan_gateway_name(conf);
	/* It carries nothing but its VLAN. */
	struct bridge_conf only = { .vlan = conf->vlan,
				    .preserve_default_vlan = conf->preserve_default_vlan };
	struct link_new gateway = { .name = name, .mtu = bridge->mtu };
	char port_name[IF_NAMESIZE];
	struct link port;
	int r;

	name_gateway_port(conf, name, port_name);
	if (link_get(nl, name, ret_link, e) == -ENODEV) {
		struct link_new new = { .name = port_name,
					.kind = "veth",
					.peer = &gateway,
					.master = bridge->index,
					.mtu = bridge->mtu,
					.up = true };

		r = furniture_note("veth", name, NULL, e);
		if (r < 0)
			return r;
		link_put_new(nl, &new);
		r = rtnl_commit(nl, e);
		if (r < 0 && r != -EEXIST)
			return err_ctx(e, "failed to create vlan gateway \"%s\"", name);
	}
	r = link_get(nl, port_name, &port, e);
	if (r >= 0 && bridge_vlan_check(nl, &only, &port, e) < 0)
		r = bridge_vlan_configure(nl, &only, &port, e);
	if (r < 0 && r != -ENODEV) /* one that Go's plugin made has a port of another name */
		return r;
	r = link_get(nl, name, ret_link, e);
	if (r >= 0 && !(ret_link->flags & IFF_UP))
		link_set_up(nl, ret_link);
	return r < 0 ? r : rtnl_commit(nl, e);
}

/**
 * bridge_vlan_check_gateway() - CHECK: is the host's link inside the VLAN there, up and connected?
 */
int bridge_vlan_check_gateway(struct rtnl *nl, const struct bridge_conf *conf,
			      const struct link *bridge, struct link *ret_link, struct hw_err *e)
{
	/* one that Go's plugin made carries more */
	struct bridge_conf only = { .vlan = conf->vlan, .preserve_default_vlan = true };
	autofree char *name = bridge_vlan_gateway_name(conf);
	struct link port = { 0 };

	int r = link_get(nl, name, ret_link, e);
	if (r == -ENODEV)
		return err_text(e, r, "the gateway's interface %s is missing", name);
	if (r >= 0 && !(ret_link->flags & IFF_UP))
		return err_text(e, -ENETDOWN, "the gateway's interface %s is down", name);
	if (r >= 0 && ret_link->parent)
		r = link_get_index(nl, ret_link->parent, &port, e);
	if (r < 0 && r != -ENODEV)
		return r;
	if (port.master != bridge->index)
		return err_text(e, -EINVAL,
				"the gateway's interface %s is not connected to bridge %s", name,
				bridge->name);
	if (!(port.flags & IFF_UP))
		return err_text(e, -ENETDOWN, "port %s of the gateway's interface %s is down",
				port.name, name);
	return bridge_vlan_check(nl, &only, &port, e);
}
