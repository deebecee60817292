/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/firewall/firewall.c - the firewall plugin: allows pods' traffic on the host
 *
 * What:  allows a pod to send to any address and to receive the replies, even if the host
 *        forwards nothing by default. ingressPolicy separates bridges from each other, or
 *        all pods from each other.
 * How:   each address of a pod is an element of our own nftables map, which marks the
 *        packets of that address. One rule in the FORWARD chain of iptables accepts
 *        packets with the mark. If firewalld is running, the addresses are added as
 *        sources to one of its zones instead of that rule.
 * Rules: ADD decides whether firewalld is used, and records the decision.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/ip.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/forward/forward.h"
#include "net/nft/nft.h"
#include "net/rtnl/link.h"
#include "net/rtnl/rtnl.h"
#include "plugins/firewall/firewall.h"
#include "plugins/firewall/firewalld.h"

#define PORTMAP_BIT 13 /* portmap marks packets with this bit: FORWARD must not accept them */
#define ADMIN_MAX   28 /* the longest chain name that iptables accepts */

/* ---- configuration and record ---------------------------------------------------------------- */

static const struct hw_field firewall_fields[] = {
	{ "backend", HW_STRING, HW_AT(struct firewall_conf, backend),
	  .help = "iptables or firewalld; default: firewalld if it is running" },
	{ "iptablesAdminChainName", HW_STRING, HW_AT(struct firewall_conf, admin),
	  .has = HW_HAS(struct firewall_conf, has_admin), .def = "\"CNI-ADMIN\"",
	  .help = "the administrator's chain; its rules apply before ours; created empty if it "
		  "is missing" },
	{ "firewalldZone", HW_STRING, HW_AT(struct firewall_conf, zone), .def = "\"trusted\"",
	  .help = "zone to which the pod's addresses are added" },
	{ "ingressPolicy", HW_STRING, HW_AT(struct firewall_conf, policy),
	  .help = "open: no restriction; same-bridge: drop traffic from other "
		  "bridges that have a policy; isolated: also drop traffic from other pods on "
		  "the bridge" },
	{ "forwardMarkBit", HW_INT, HW_AT(struct firewall_conf, bit), .def = "12", .min = 0,
	  .max = 31,
	  .help = "bit of the packet mark that FORWARD accepts; 13 is reserved for portmap" },
	{ 0 },
};

const struct hw_field firewall_record_fields[] = {
	{ "ips", HW_STRINGS, HW_AT(struct firewall_record, ips) },
	{ "bit", HW_INT, HW_AT(struct firewall_record, bit) },
	{ "admin", HW_STRING, HW_AT(struct firewall_record, admin) },
	{ "create", HW_BOOL, HW_AT(struct firewall_record, create) },
	{ "zone", HW_STRING, HW_AT(struct firewall_record, zone) },
	{ "bridge", HW_STRING, HW_AT(struct firewall_record, bridge) },
	{ "policy", HW_STRING, HW_AT(struct firewall_record, policy) },
	{ "isPods", HW_BOOL, HW_AT(struct firewall_record, owned_by_pod) },
	{ 0 },
};

/* Is the name valid in iptables, and not the name of a target or of a built-in chain? */
static bool is_chain_name(const char *name)
{
	static const char *const reserved[] = { "ACCEPT", "DROP",    "QUEUE", "RETURN",
						"INPUT",  "FORWARD", "OUTPUT" };

	for (size_t i = 0; i < ARRAY_SIZE(reserved); i++)
		if (str_equal(name, reserved[i]))
			return false;
	for (const char *c = name; *c; c++)
		if (*c <= ' ' || *c > '~' || *c == '"')
			return false;
	return *name && *name != '-' && *name != '!' && strlen(name) <= ADMIN_MAX;
}

static int check_conf(const struct firewall_conf *conf, struct hw_err *e)
{
	const char *policy = str_or(conf->policy, "");

	if (*policy && !str_equal(policy, "open") && !str_equal(policy, "same-bridge") &&
	    !str_equal(policy, "isolated"))
		return err_cni(e, HW_CNI_INVALID_CONFIG, "unknown ingress policy: \"%s\"", policy);
	if (!is_chain_name(str_or(conf->admin, "")))
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "iptablesAdminChainName \"%s\" is not a valid chain name",
			       str_or(conf->admin, ""));
	if (conf->bit == PORTMAP_BIT)
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "forwardMarkBit %d is reserved: portmap marks packets to masquerade "
			       "with it",
			       conf->bit);
	return 0;
}

/* ---- ADD ------------------------------------------------------------------------------------- */

static void record_addresses(struct firewall_record *record, const struct hw_result *result)
{
	char text[HW_IP_TEXT];

	for (size_t i = 0; result && i < result->n_ips; i++)
		strings_add(&record->ips, hw_ip_format(&result->ips[i].address.ip, text));
}

/* As in upstream, firewalld is used if the configuration says so, or if it is running and the
 * configuration does not say iptables. An unusable bus is detected here, before the record says
 * that there is something to undo.
 * Return: 1 if firewalld is to be used, 0 if not */
static int choose_firewalld(const struct firewall_conf *conf, struct hw_err *e)
{
	AUTO(firewalld_close) struct firewalld *firewalld = NULL;
	int r;

	if (str_equal(conf->backend, "iptables"))
		return 0;
	r = firewalld_open(&firewalld, e);
	if (r < 0 || !str_equal(conf->backend, "firewalld"))
		return r;
	return firewalld ? 1
			 : err_text(e, -ENOENT, "backend is firewalld, but there is no system bus");
}

/* The bridge is the first interface of the result. If that interface is not a bridge, it belongs to
 * the pod alone. */
static int record_bridge(struct firewall_record *record, const struct firewall_conf *conf,
			 const struct hw_result *prev, struct hw_err *e)
{
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	struct link link;
	int r;

	if (str_empty(conf->policy) || str_equal(conf->policy, "open"))
		return 0;
	if (!prev->n_ifaces)
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "interface needs to be set for ingress policy \"%s\", make sure to "
			       "chain \"firewall\" plugin with \"bridge\"",
			       conf->policy);
	r = rtnl_open(-1, &nl, e);
	if (r >= 0)
		r = link_get(nl, str_or(prev->ifaces[0].name, ""), &link, e);
	if (r < 0)
		return err_ctx(e, "ingress policy %s", conf->policy);
	record->policy = str_copy(conf->policy);
	record->bridge = str_copy(link.name);
	record->owned_by_pod = !str_equal(link.kind, "bridge");
	return 0;
}

static int fill_record(struct hw_call *call, struct hw_err *e)
{
	const struct firewall_conf *conf = call->conf;
	struct firewall_record *record = call->created;
	int r;

	r = check_conf(conf, e);
	if (r < 0)
		return r;
	if (!call->prev)
		return err_text(e, -EINVAL, "missing prevResult from earlier plugin");
	r = record_bridge(record, conf, call->prev, e);
	if (r < 0)
		return r;
	r = choose_firewalld(conf, e);
	if (r < 0)
		return r;
	record->zone = r > 0 ? str_copy(conf->zone) : NULL;
	record->admin = r > 0 ? NULL : str_copy(conf->admin);
	record->create = r == 0 && (conf->has_admin || str_equal(conf->backend, "iptables"));
	record->bit = conf->bit;
	record_addresses(record, call->prev);
	return 0;
}

/* Deletes the elements of a policy that the bridge had before and that no pod has any more. */
static int delete_stale_policy(struct hw_call *call, struct hw_err *e)
{
	const struct firewall_record *record = call->created;
	AUTO(nft_close) struct nft *nft = NULL;
	int r;

	if (!call->prev->n_ifaces || !str_empty(call->prev->ifaces[0].sandbox) ||
	    str_empty(call->prev->ifaces[0].name))
		return 0;
	r = nft_open(&nft, e);
	return r < 0 ? r
		     : firewall_policy_delete_stale(nft, call, call->prev->ifaces[0].name,
						    record->policy, e);
}

static int firewall_add(struct hw_call *call, struct hw_err *e)
{
	int r;

	r = fill_record(call, e);
	if (r < 0)
		return r;
	r = hw_record_save(call, e);
	if (r < 0)
		return r;
	r = firewall_rules_add(call, call->created, e);
	return r < 0 ? r : delete_stale_policy(call, e);
}

/* ---- DEL ------------------------------------------------------------------------------------- */

struct owned_addresses {
	const char *owner;
	struct firewall_record *record;
};

static int record_owned_address(void *ctx, const struct nft_elem *elem, struct hw_err *e)
{
	struct hw_ip ip = { .family = str_equal(elem->set, "allow4") ? AF_INET : AF_INET6 };
	const struct owned_addresses *owned = ctx;
	char text[HW_IP_TEXT];

	(void)e;
	if (!str_equal(elem->owner, owned->owner) || elem->key.len != ip_bits(&ip) / 8)
		return 0;
	memcpy(ip.bytes, elem->key.v, elem->key.len);
	strings_add(&owned->record->ips, hw_ip_format(&ip, text));
	return 0;
}

static int firewall_del(struct hw_call *call, struct hw_err *e)
{
	int r;

	static const char *const sets[] = { "allow4", "allow6", "protected", "samebridge",
					    "isolated" };
	const struct firewall_conf *conf = call->conf;
	struct firewall_record *record = call->created;
	AUTO(nft_close) struct nft *nft = NULL;
	char owner[NFT_OWNER];
	struct owned_addresses owned = { owner, record };
	struct hw_ip ip;
	struct hw_err ignored;

	if (call->recorded)
		return firewall_rules_remove(call, record, e);
	/* Without a record, our elements are found by their owner. Their addresses are also the
	 * sources to remove from firewalld. Rules of upstream's plugin are found only by the
	 * addresses. */
	record_addresses(record, call->prev);
	if (choose_firewalld(conf, &ignored) > 0)
		record->zone = str_copy(conf->zone);
	nft_owner(call->network, call->container_id, call->ifname, owner);
	r = nft_open(&nft, e);
	for (size_t i = 0; r >= 0 && i < 2; i++)
		r = nft_list(nft, NFT_INET, sets[i], record_owned_address, &owned, e);
	if (r >= 0)
		r = firewall_rules_remove(call, record, e);
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(sets); i++)
		r = nft_del_owned(nft, NFT_INET, sets[i], owner, e);
	for (size_t i = 0; r >= 0 && i < record->ips.n; i++)
		if (hw_ip_parse(record->ips.v[i], &ip, &ignored) >= 0)
			r = forward_remove_upstream_rules(nft, &ip, e);
	return r;
}

/* ---- the other verbs ------------------------------------------------------------------------- */

static int firewall_check(struct hw_call *call, struct hw_err *e)
{
	AUTO(nft_close) struct nft *nft = NULL;
	char text[HW_IP_TEXT];
	int r;

	r = check_conf(call->conf, e);
	if (r < 0)
		return r;
	if (!call->prev)
		return err_text(e, -EINVAL, "missing prevResult from earlier plugin");
	if (call->recorded)
		return firewall_rules_check(call, call->created, e);
	/* No record: upstream's plugin added the rules, or the record is lost. */
	r = nft_open(&nft, e);
	for (size_t i = 0; r >= 0 && i < call->prev->n_ips; i++) {
		const struct hw_ip *ip = &call->prev->ips[i].address.ip;

		r = forward_has_upstream_rules(nft, ip, e);
		if (r == 0)
			return err_text(e, -ENOENT,
					"no record of this attachment, and no rules of upstream's "
					"firewall plugin for %s",
					hw_ip_format(ip, text));
	}
	return r < 0 ? r : 0;
}

static int set_found(void *ctx, const struct nft_elem *elem, struct hw_err *e)
{
	(void)elem;
	(void)e;
	*(bool *)ctx = true;
	return 0;
}

/* Checks that our rules can be loaded and that no other chain of the host drops packets of pods. */
static int firewall_status(struct hw_call *call, struct hw_err *e)
{
	const struct firewall_conf *conf = call->conf;
	AUTO(firewalld_close) struct firewalld *firewalld = NULL;
	AUTO(nft_close) struct nft *nft = NULL;
	bool has_ipv6 = false; /* at least one pod has an IPv6 address */
	int runs = 0;
	int r;

	r = check_conf(conf, e);
	if (r >= 0 && !str_equal(conf->backend, "iptables"))
		r = runs = firewalld_open(&firewalld, e);
	if (r < 0)
		return r;
	if (!runs && str_equal(conf->backend, "firewalld"))
		return err_cni(e, HW_CNI_NOT_AVAILABLE, "firewalld is not running");
	r = nft_open(&nft, e);
	if (r >= 0)
		r = nft_can_load(nft, NFT_INET, e);
	if (r >= 0)
		r = nft_list(nft, NFT_INET, "allow6", set_found, &has_ipv6, e);
	if (r >= 0)
		r = forward_check_native(nft, 1U << conf->bit, has_ipv6, runs ? "firewalld" : NULL,
					 e);
	if (r >= 0 && !runs)
		r = forward_check_legacy(1U << conf->bit, has_ipv6, e);
	return r < 0 ? err_recode(e, HW_CNI_NOT_AVAILABLE) : 0;
}

static int firewall_repair(struct hw_call *call, struct hw_err *e)
{
	return firewall_rules_add(call, call->created, e);
}

static const char *const firewall_versions[] = { "0.4.0", "1.0.0", "1.1.0", NULL };

const struct hw_plugin firewall_plugin = {
	.size = sizeof(struct hw_plugin),
	.name = "firewall",
	.summary = "allows a pod's addresses through the host's firewall",
	.add = firewall_add,
	.del = firewall_del,
	.check = firewall_check,
	.status = firewall_status,
	.versions = firewall_versions,
	.fields = firewall_fields,
	.conf_size = sizeof(struct firewall_conf),
	.record = true,
	.created_fields = firewall_record_fields,
	.created_size = sizeof(struct firewall_record),
	.repair = firewall_repair,
};
