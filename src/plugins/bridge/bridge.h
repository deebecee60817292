/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/bridge/bridge.h - internal interfaces of the bridge plugin
 *
 * bridge.c  the CNI verbs
 * conf.c    configuration
 * device.c  the bridge and its gateway addresses
 * vlan.c    VLANs of ports, and the gateway link inside a VLAN
 */
#ifndef PLUGINS_BRIDGE_BRIDGE_H
#define PLUGINS_BRIDGE_BRIDGE_H

#include <hawser/plugin.h>

#include "net/rtnl/link.h"
#include "plugins/pod/ipam.h"
#include "plugins/pod/rules.h"

struct rtnl;

/* ---- the configuration: conf.c ----------------------------------------------------- */

#define BRIDGE_VLAN_MAX 4094

struct bridge_trunk {
	bool has_id, has_min, has_max;
	int id, min, max;
};

struct bridge_conf {
	char *bridge;
	bool is_gateway, is_default_gateway, force_address;
	bool ip_masq;
	char *ip_masq_backend;
	struct hw_strings ip_masq_exclude;
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

/* Refuse an invalid configuration, with CNI code 7. */
int bridge_conf_check(const struct bridge_conf *conf, struct hw_err *e);
struct pod_rules bridge_conf_rules(const struct bridge_conf *conf);
/* Get the MAC address requested for the pod's end; length 0: none requested. runtimeConfig takes
 * precedence over args.cni, and args.cni over CNI_ARGS. */
int bridge_conf_mac(const struct hw_call *call, struct hw_mac *ret_mac, struct hw_err *e);
/* Is the host the pods' gateway? isDefaultGateway implies isGateway. */
bool bridge_conf_is_gateway(const struct bridge_conf *conf);

/* ---- the bridge device: device.c ------------------------------------------------------- */

/* Create the bridge if it does not exist, and bring it up. */
int bridge_ensure(struct rtnl *nl, const struct bridge_conf *conf, struct link *ret_bridge,
		  struct hw_err *e);
/* Look up the bridge.
 * Return: 1 if found, 0 if there is no link of this name; -EEXIST if the link is not a bridge */
int bridge_find(struct rtnl *nl, const char *name, struct link *ret_bridge, struct hw_err *e);
/* Add each gateway address of the result to a link, and enable forwarding.
 * @link: the bridge, or the gateway link of the VLAN */
int bridge_ensure_gateways(struct rtnl *nl, const struct bridge_conf *conf,
			   const struct hw_result *result, const struct link *link,
			   struct hw_err *e);

/* ---- VLANs: vlan.c --------------------------------------------------------------------- */

/* Does the configuration need a bridge that filters VLANs? */
bool bridge_vlan_wanted(const struct bridge_conf *conf);
/* Refuse invalid trunk entries, and a bridge name for which the name of the gateway link is too
 * long. */
int bridge_vlan_check_conf(const struct bridge_conf *conf, struct hw_err *e);
/* Configure a port to carry the VLANs of the configuration. All other VLANs are removed from the
 * port, unless preserveDefaultVlan is set. */
int bridge_vlan_configure(struct rtnl *nl, const struct bridge_conf *conf, const struct link *port,
			  struct hw_err *e);
/* CHECK: does the port carry the VLANs of the configuration? Other VLANs are allowed only if
 * preserveDefaultVlan is set. */
int bridge_vlan_check(struct rtnl *nl, const struct bridge_conf *conf, const struct link *port,
		      struct hw_err *e);
/* Create the gateway link if it does not exist, and bring it up. The gateway link is the host's
 * interface inside the VLAN, for example "cni0.100". */
int bridge_vlan_ensure_gateway(struct rtnl *nl, const struct bridge_conf *conf,
			       const struct link *bridge, struct link *ret_link, struct hw_err *e);
/* CHECK: does the gateway link exist, is it up and connected to the bridge? */
int bridge_vlan_check_gateway(struct rtnl *nl, const struct bridge_conf *conf,
			      const struct link *bridge, struct link *ret_link, struct hw_err *e);

extern const struct hw_plugin bridge_plugin;

#endif
