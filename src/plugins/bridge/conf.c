/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/bridge/conf.c - the configuration of the bridge plugin
 *
 * Rules: a configuration that upstream's plugin refuses is refused with the same
 *        text, and with CNI code 7.
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cni/name.h"
#include "plugins/bridge/bridge.h"

#define AT(member)  HW_AT(struct bridge_conf, member)
#define HAS(member) HW_HAS(struct bridge_conf, member)

static const struct hw_field trunk_fields[] = {
	{ "id", HW_INT, HW_AT(struct bridge_trunk, id), .has = HW_HAS(struct bridge_trunk, has_id),
	  .help = "a single VLAN ID" },
	{ "minID", HW_INT, HW_AT(struct bridge_trunk, min),
	  .has = HW_HAS(struct bridge_trunk, has_min), .help = "first VLAN ID of a range" },
	{ "maxID", HW_INT, HW_AT(struct bridge_trunk, max),
	  .has = HW_HAS(struct bridge_trunk, has_max), .help = "last VLAN ID of the range" },
	{ 0 },
};

/* args.cni.mac and runtimeConfig.mac are stored in struct bridge_conf itself. So the objects
 * "args", "cni" and "runtimeConfig" have offset 0. */
static const struct hw_field cni_args_fields[] = {
	{ "mac", HW_STRING, AT(args_mac), .help = "MAC address of the pod's interface" },
	{ 0 },
};

static const struct hw_field args_fields[] = {
	{ "cni", HW_OBJECT, 0, .sub = cni_args_fields,
	  .help = "arguments from the user of the runtime" },
	{ 0 },
};

static const struct hw_field runtime_fields[] = {
	{ "mac", HW_STRING, AT(runtime_mac), .help = "MAC address of the pod's interface" },
	{ 0 },
};

const struct hw_field bridge_fields[] = {
	{ "bridge", HW_STRING, AT(bridge), .def = "\"cni0\"", .help = "name of the bridge" },
	{ "isGateway", HW_BOOL, AT(is_gateway),
	  .help = "add the gateway address to the bridge, and enable forwarding" },
	{ "isDefaultGateway", HW_BOOL, AT(is_default_gateway),
	  .help = "like isGateway; also gives the pod a default route via this gateway" },
	{ "forceAddress", HW_BOOL, AT(force_address),
	  .help = "replace a conflicting address of the bridge" },
	{ "ipMasq", HW_BOOL, AT(ip_masq),
	  .help = "masquerade the pod's traffic to other networks" },
	{ "ipMasqBackend", HW_STRING, AT(ip_masq_backend),
	  .help = "iptables or nftables; nftables is used in both cases" },
	{ "ipMasqExclude", HW_STRINGS, AT(ip_masq_exclude),
	  .help = "networks to which the pod's traffic is not masqueraded" },
	{ "mtu", HW_INT, AT(mtu),
	  .help = "MTU of the veth pair, and of the bridge if it is created; 0: kernel default" },
	{ "hairpinMode", HW_BOOL, AT(hairpin),
	  .help = "allow frames to leave by the port on which they arrived" },
	{ "promiscMode", HW_BOOL, AT(promisc), .help = "set the bridge to promiscuous mode" },
	{ "vlan", HW_INT, AT(vlan),
	  .help = "VLAN ID of the pod's untagged frames, 1 to 4094; 0: no VLAN" },
	{ "vlanTrunk", HW_LIST, AT(trunk), .has = HAS(has_trunk), .sub = trunk_fields,
	  .size = sizeof(struct bridge_trunk), .help = "VLAN IDs of the pod's tagged frames" },
	{ "preserveDefaultVlan", HW_BOOL, AT(preserve_default_vlan),
	  .help = "the port also carries the bridge's default VLAN" },
	{ "macspoofchk", HW_BOOL, AT(mac_spoof_check),
	  .help = "drop frames of the pod whose source MAC address is not its own" },
	{ "enabledad", HW_BOOL, AT(dad), .help = "wait for duplicate address detection (IPv6)" },
	{ "disableContainerInterface", HW_BOOL, AT(disable_container_interface),
	  .help = "leave the pod's interface down" },
	{ "portIsolation", HW_BOOL, AT(isolation),
	  .help = "let the pod reach only ports that are not isolated" },
	{ "args", HW_OBJECT, 0, .sub = args_fields,
	  .help = "arguments from the user of the runtime" },
	{ "runtimeConfig", HW_OBJECT, 0, .sub = runtime_fields,
	  .help = "capability arguments of the runtime" },
	{ "ipam", HW_OBJECT, AT(ipam), .sub = ipam_fields,
	  .help = "IPAM plugin; without it the pod gets no addresses" },
	{ "dns", HW_OBJECT, AT(dns), .sub = ipam_dns_fields,
	  .help = "DNS settings of the result; they replace those of the IPAM plugin" },
	{ 0 },
};

struct pod_rules bridge_conf_rules(const struct bridge_conf *conf)
{
	return (struct pod_rules){ .masq = conf->ip_masq,
				   .backend = conf->ip_masq_backend,
				   .exclude = &conf->ip_masq_exclude,
				   .mac_check = conf->mac_spoof_check };
}

int bridge_conf_check(const struct bridge_conf *conf, struct hw_err *e)
{
	struct pod_rules rules = bridge_conf_rules(conf);
	struct hw_err why;
	int r;

	if (name_check_ifname(conf->bridge, &why) < 0)
		return err_cni(e, HW_CNI_INVALID_CONFIG, "invalid bridge name \"%s\": %s",
			       conf->bridge, why.msg);
	/* The kernel treats a name with a % as a pattern: each ADD would create a new bridge. */
	if (strchr(conf->bridge, '%'))
		return err_cni(e, HW_CNI_INVALID_CONFIG, "invalid bridge name \"%s\": contains %%",
			       conf->bridge);
	if (conf->vlan < 0 || conf->vlan > BRIDGE_VLAN_MAX)
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "invalid VLAN ID %d (must be between 0 and %d)", conf->vlan,
			       BRIDGE_VLAN_MAX);
	r = bridge_vlan_check_conf(conf, e);
	if (r < 0)
		return r;
	if (conf->hairpin && conf->promisc)
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "cannot set hairpin mode and promiscuous mode at the same time");
	if (conf->disable_container_interface && !str_empty(conf->ipam.type))
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "cannot use IPAM when DisableContainerInterface flag is set");
	return pod_rules_check_conf(&rules, e);
}

bool bridge_conf_is_gateway(const struct bridge_conf *conf)
{
	return conf->is_gateway || conf->is_default_gateway;
}

int bridge_conf_mac(const struct hw_call *call, struct hw_mac *ret_mac, struct hw_err *e)
{
	int r;

	static const char *const keys[] = { "MAC", NULL };
	AUTO(hw_strings_free) struct hw_strings values = { 0 };
	const struct bridge_conf *conf = call->conf;
	struct hw_mac mac = { 0 };

	r = hw_args_parse(call->args, keys, &values, e);
	if (r < 0)
		return r;
	const char *text = values.v[0];
	if (!str_empty(conf->args_mac))
		text = conf->args_mac;
	if (!str_empty(conf->runtime_mac))
		text = conf->runtime_mac;
	if (!str_empty(text) && hw_mac_parse(text, &mac, e) < 0)
		return err_cni(e, HW_CNI_INVALID_CONFIG, "invalid MAC address \"%s\"", text);
	if (mac.len && mac.len != 6)
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "invalid MAC address \"%s\": got %u bytes, want 6", text,
			       (unsigned)mac.len);
	*ret_mac = mac;
	return 0;
}
