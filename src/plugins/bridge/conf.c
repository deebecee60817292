/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/bridge/conf.c - the configuration of the bridge plugin
 *
 * Rules: what upstream's plugin refuses is refused with its text and code 7.
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cni/name.h"
#include "plugins/bridge/bridge.h"

#define VLAN_MAX 4094

#define AT(member)  HW_AT(struct bridge_conf, member)
#define HAS(member) HW_HAS(struct bridge_conf, member)

static const struct hw_field trunk_fields[] = {
	{ "id", HW_INT, HW_AT(struct bridge_trunk, id), .has = HW_HAS(struct bridge_trunk, has_id),
	  .help = "one VLAN" },
	{ "minID", HW_INT, HW_AT(struct bridge_trunk, min),
	  .has = HW_HAS(struct bridge_trunk, has_min), .help = "the first of several" },
	{ "maxID", HW_INT, HW_AT(struct bridge_trunk, max),
	  .has = HW_HAS(struct bridge_trunk, has_max), .help = "the last of them" },
	{ 0 },
};

/* The members below args.cni and runtimeConfig are members of the whole. */
static const struct hw_field cni_args_fields[] = {
	{ "mac", HW_STRING, AT(args_mac), .help = "MAC address of the pod's interface" },
	{ 0 },
};

static const struct hw_field args_fields[] = {
	{ "cni", HW_OBJECT, 0, .sub = cni_args_fields, .help = "as the runtime's user says" },
	{ 0 },
};

static const struct hw_field runtime_fields[] = {
	{ "mac", HW_STRING, AT(runtime_mac), .help = "MAC address of the pod's interface" },
	{ 0 },
};

const struct hw_field bridge_fields[] = {
	{ "bridge", HW_STRING, AT(bridge), .def = "\"cni0\"", .help = "name of the bridge" },
	{ "isGateway", HW_BOOL, AT(is_gateway),
	  .help = "give the bridge the gateway's address, and forward" },
	{ "isDefaultGateway", HW_BOOL, AT(is_default_gateway),
	  .help = "isGateway, and the pod's default route leads there" },
	{ "forceAddress", HW_BOOL, AT(force_address),
	  .help = "replace an address of the bridge that is in the way" },
	{ "ipMasq", HW_BOOL, AT(ip_masq),
	  .help = "give what the pod sends to other networks the host's address" },
	{ "ipMasqBackend", HW_STRING, AT(ip_masq_backend),
	  .help = "iptables or nftables; done by nftables in both cases" },
	{ "mtu", HW_INT, AT(mtu),
	  .help = "MTU of the bridge, when it is made, and of the pod's link; 0: the kernel's" },
	{ "hairpinMode", HW_BOOL, AT(hairpin),
	  .help = "let frames leave by the port that they came in by" },
	{ "promiscMode", HW_BOOL, AT(promisc), .help = "make the bridge promiscuous" },
	{ "vlan", HW_INT, AT(vlan),
	  .help = "VLAN of the pod's untagged frames, 1 to 4094; 0: none" },
	{ "vlanTrunk", HW_LIST, AT(trunk), .has = HAS(has_trunk), .sub = trunk_fields,
	  .size = sizeof(struct bridge_trunk), .help = "VLANs of the pod's tagged frames" },
	{ "preserveDefaultVlan", HW_BOOL, AT(preserve_default_vlan),
	  .help = "keep the bridge's default VLAN on the port beside these" },
	{ "macspoofchk", HW_BOOL, AT(mac_spoof_check),
	  .help = "drop what the pod sends with another MAC address than its own" },
	{ "enabledad", HW_BOOL, AT(dad), .help = "wait for IPv6's duplicate address detection" },
	{ "disableContainerInterface", HW_BOOL, AT(disable_container_interface),
	  .help = "leave the pod's interface down" },
	{ "portIsolation", HW_BOOL, AT(isolation),
	  .help = "let the pod reach only ports that are not isolated" },
	{ "args", HW_OBJECT, 0, .sub = args_fields, .help = "arguments of the runtime's user" },
	{ "runtimeConfig", HW_OBJECT, 0, .sub = runtime_fields,
	  .help = "what the runtime says, by capability" },
	{ "ipam", HW_OBJECT, AT(ipam), .sub = ipam_fields,
	  .help = "who gives the pod its addresses; without, it has none" },
	{ "dns", HW_OBJECT, AT(dns), .sub = ipam_dns_fields,
	  .help = "for the result, instead of IPAM's" },
	{ 0 },
};

static int invalid(struct hw_err *e, const char *text)
{
	return err_cni(e, HW_CNI_INVALID_CONFIG, "%s", text);
}

/**
 * bridge_conf_rules() - what the pod is to have in nftables
 */
struct pod_rules bridge_conf_rules(const struct bridge_conf *conf)
{
	return (struct pod_rules){ .masq = conf->ip_masq,
				   .backend = conf->ip_masq_backend,
				   .mac_check = conf->mac_spoof_check };
}

/* For the kernel a name with % in it is a pattern: it would make another bridge each time. */
static int check_name(const char *bridge, struct hw_err *e)
{
	struct hw_err why;

	if (name_check_ifname(bridge, &why) < 0)
		return err_cni(e, HW_CNI_INVALID_CONFIG, "invalid bridge name \"%s\": %s", bridge,
			       why.msg);
	if (strchr(bridge, '%'))
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "invalid bridge name \"%s\": it contains a %%", bridge);
	return 0;
}

/**
 * bridge_conf_check() - refuse what cannot work
 */
int bridge_conf_check(const struct bridge_conf *conf, struct hw_err *e)
{
	struct pod_rules rules = bridge_conf_rules(conf);

	int r = check_name(conf->bridge, e);
	if (r < 0)
		return r;
	if (conf->vlan < 0 || conf->vlan > VLAN_MAX)
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "invalid VLAN ID %d (must be between 0 and %d)", conf->vlan,
			       VLAN_MAX);
	r = bridge_vlan_check_conf(conf, e);
	if (r < 0)
		return r;
	if (conf->hairpin && conf->promisc)
		return invalid(e, "cannot set hairpin mode and promiscuous mode at the same time");
	if (conf->disable_container_interface && !str_empty(conf->ipam.type))
		return invalid(e, "cannot use IPAM when DisableContainerInterface flag is set");
	return pod_rules_check_conf(&rules, e);
}

/**
 * bridge_conf_is_gateway() - is the host to be the pods' gateway?
 */
bool bridge_conf_is_gateway(const struct bridge_conf *conf)
{
	return conf->is_gateway || conf->is_default_gateway;
}

/**
 * bridge_conf_mac() - the MAC that was asked for; the last source that has one wins
 */
int bridge_conf_mac(const struct hw_call *call, struct hw_mac *ret_mac, struct hw_err *e)
{
	static const char *const keys[] = { "MAC", NULL };
	AUTO(hw_strings_free) struct hw_strings values = { 0 };
	const struct bridge_conf *conf = call->conf;
	struct hw_mac mac = { 0 };

	int r = hw_args_parse(call->args, keys, &values, e);
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
		return err_cni(e, HW_CNI_INVALID_CONFIG, "MAC address \"%s\" is not of six bytes",
			       text);
	*ret_mac = mac;
	return 0;
}
