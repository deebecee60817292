/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/bridge/bridge.h - the parts of the bridge plugin: bridge.c (verbs), conf.c (its
 * configuration), device.c (the bridge itself), vlan.c, check.c
 */
#ifndef PLUGINS_BRIDGE_BRIDGE_H
#define PLUGINS_BRIDGE_BRIDGE_H

#include <hawser/plugin.h>

#include "net/rtnl/link.h"
#include "plugins/pod/ipam.h"
#include "plugins/pod/rules.h"

struct rtnl;

struct bridge_trunk {
	bool has_id, has_min, has_max;
	int id, min, max;
};

struct bridge_conf {
	char *bridge;
	bool is_gateway, is_default_gateway, force_address;
	bool ip_masq;
	char *ip_masq_backend;
	int mtu;
	bool hairpin, promisc, isolation;
	int vlan;
	bool has_trunk;
	struct hw_list trunk; /* struct bridge_trunk */
	bool preserve_default_vlan;
	bool mac_spoof_check;
	bool dad;
	bool disable_container_interface;
	char *args_mac, *runtime_mac;
	struct ipam_conf ipam;
	struct ipam_dns dns;
};

extern const struct hw_field bridge_fields[];

int bridge_conf_check(const struct bridge_conf *conf, struct hw_err *e);
struct pod_rules bridge_conf_rules(const struct bridge_conf *conf);
/* The MAC that the pod's end is to have; none: the kernel's choice */
int bridge_conf_mac(const struct hw_call *call, struct hw_mac *ret_mac, struct hw_err *e);
/* isDefaultGateway is isGateway and more. */
bool bridge_conf_is_gateway(const struct bridge_conf *conf);

/* ---- the bridge ------------------------------------------------------------------ */

/* Make it if it is not there, and bring it up. */
int bridge_ensure(struct rtnl *nl, const struct bridge_conf *conf, struct link *ret_bridge,
		  struct hw_err *e);
/* -ENODEV when there is none; -EEXIST when it is something else. */
int bridge_find(struct rtnl *nl, const char *name, struct link *ret_bridge, struct hw_err *e);
/* Give a link each gateway of the result, and let the host forward. */
int bridge_ensure_gateways(struct rtnl *nl, const struct bridge_conf *conf,
			   const struct hw_result *result, const struct link *link,
			   struct hw_err *e);

/* ---- VLANs ------------------------------------------------------------------------- */

/* Does the configuration have any? */
bool bridge_vlan_wanted(const struct bridge_conf *conf);
int bridge_vlan_check_conf(const struct bridge_conf *conf, struct hw_err *e);
/* The pod's port carries the VLANs of the configuration. */
int bridge_vlan_configure(struct rtnl *nl, const struct bridge_conf *conf, const struct link *port,
			  struct hw_err *e);
int bridge_vlan_check(struct rtnl *nl, const struct bridge_conf *conf, const struct link *port,
		      struct hw_err *e);
/* The link of the host that is inside the VLAN: "cni0.100" */
char *bridge_vlan_gateway_name(const struct bridge_conf *conf);
int bridge_vlan_gateway(struct rtnl *nl, const struct bridge_conf *conf, const struct link *bridge,
			struct link *ret_link, struct hw_err *e);
int bridge_vlan_check_gateway(struct rtnl *nl, const struct bridge_conf *conf,
			      const struct link *bridge, struct link *ret_link, struct hw_err *e);

/* ---- CHECK --------------------------------------------------------------------------- */

int bridge_check(struct hw_call *call, struct hw_err *e);

extern const struct hw_plugin bridge_plugin;

#endif
