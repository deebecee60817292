/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/firewall/conf.c - the firewall plugin's configuration and record
 */
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "plugins/firewall/firewall.h"

#define PORTMAP_BIT 13 /* what it marks FORWARD must not take for a pod's */
#define ADMIN_MAX   28 /* iptables takes no longer name of a chain */

const struct hw_field firewall_fields[] = {
	{ "backend", HW_STRING, HW_AT(struct firewall_conf, backend),
	  .help = "iptables or firewalld; none: firewalld where it runs" },
	{ "iptablesAdminChainName", HW_STRING, HW_AT(struct firewall_conf, admin),
	  .def = "\"CNI-ADMIN\"",
	  .help = "chain whose rules come first; made, empty, where it is missing" },
	{ "firewalldZone", HW_STRING, HW_AT(struct firewall_conf, zone), .def = "\"trusted\"",
	  .help = "zone that the pod's addresses are put into" },
	{ "ingressPolicy", HW_STRING, HW_AT(struct firewall_conf, policy),
	  .help = "open; same-bridge: nothing from other bridges that have a policy; isolated: "
		  "nothing from other pods of the bridge either" },
	{ "forwardMarkBit", HW_INT, HW_AT(struct firewall_conf, bit), .def = "12", .min = 0,
	  .max = 31,
	  .help = "bit of the packet mark by which FORWARD knows pods; not 13, which is "
		  "portmap's" },
	{ 0 },
};

const struct hw_field firewall_made_fields[] = {
	{ "ips", HW_STRINGS, HW_AT(struct firewall_made, ips) },
	{ "bit", HW_INT, HW_AT(struct firewall_made, bit) },
	{ "admin", HW_STRING, HW_AT(struct firewall_made, admin) },
	{ "zone", HW_STRING, HW_AT(struct firewall_made, zone) },
	{ "bridge", HW_STRING, HW_AT(struct firewall_made, bridge) },
	{ "policy", HW_STRING, HW_AT(struct firewall_made, policy) },
	{ "isPods", HW_BOOL, HW_AT(struct firewall_made, is_pods) },
	{ 0 },
};

/* What iptables would not take as a name, or takes for something else */
static bool is_chain_name(const char *name)
{
	static const char *const taken[] = { "ACCEPT", "DROP",	  "QUEUE", "RETURN",
					     "INPUT",  "FORWARD", "OUTPUT" };

	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		if (str_equal(name, taken[i]))
			return false;
	for (const char *c = name; *c; c++)
		if (*c <= ' ' || *c > '~' || *c == '"')
			return false;
	return *name && *name != '-' && *name != '!' && strlen(name) <= ADMIN_MAX;
}

/**
 * firewall_conf_check() - refuse what upstream refuses, and a chain that iptables would not take
 */
int firewall_conf_check(const struct firewall_conf *conf, struct hw_err *e)
{
	const char *policy = str_or(conf->policy, "");

	if (*policy && !str_equal(policy, "open") && !str_equal(policy, "same-bridge") &&
	    !str_equal(policy, "isolated"))
		return err_cni(e, HW_CNI_INVALID_CONFIG, "unknown ingress policy: \"%s\"", policy);
	if (!is_chain_name(str_or(conf->admin, "")))
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "iptablesAdminChainName \"%s\" cannot be the name of a chain",
			       str_or(conf->admin, ""));
	if (conf->bit == PORTMAP_BIT)
		return err_cni(
			e, HW_CNI_INVALID_CONFIG,
			"forwardMarkBit %d is the bit by which portmap knows what to masquerade",
			conf->bit);
	return 0;
}
