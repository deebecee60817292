/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/rules.c - ipMasq and macspoofchk: a pod's nftables elements
 */
#include "plugins/pod/rules.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/ip.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/nft/foreign.h"
#include "net/nft/nft.h"
#include "net/nft/postrouting.h"
#include "plugins/pod/host-objects.h"
#include "plugins/pod/link.h"

int pod_rules_check_conf(const struct pod_rules *rules, struct hw_err *e)
{
	struct hw_prefix prefix;
	struct hw_err malformed;

	if (!rules->masq)
		return 0;
	if (!str_empty(rules->backend) && !str_equal(rules->backend, "iptables") &&
	    !str_equal(rules->backend, "nftables"))
		return err_cni(e, HW_CNI_INVALID_CONFIG, "unknown ipmasq backend \"%s\"",
			       rules->backend);
	for (size_t i = 0; rules->exclude && i < rules->exclude->n; i++)
		if (hw_prefix_parse(rules->exclude->v[i], &prefix, &malformed) < 0)
			return err_cni(e, HW_CNI_INVALID_CONFIG, "ipMasqExclude: %s",
				       malformed.msg);
	return 0;
}

int pod_rules_status(const struct pod_rules *rules, struct hw_err *e)
{
	AUTO(nft_close) struct nft *nft = NULL;
	int r;

	if (!rules->masq && !rules->mac_check)
		return 0;
	r = nft_open(&nft, e);
	if (r >= 0 && rules->masq)
		r = nft_can_load(nft, NFT_INET, e);
	if (r >= 0 && rules->mac_check)
		r = nft_can_load(nft, NFT_BRIDGE, e);
	return r < 0 ? err_recode(e, HW_CNI_NOT_AVAILABLE) : 0;
}

/* ---- elements ----------------------------------------------------------------------------- */

/* Appends the elements that the record describes. Malformed addresses in the record are skipped. */
static void add_elems(struct nft_elems *elems, const struct hw_call *call)
{
	const struct pod_link_record *record = call->created;
	struct hw_prefix address;
	struct hw_mac mac;
	struct hw_err malformed;

	nft_owner(call->network, call->container_id, call->ifname, elems->owner);
	for (size_t i = 0; i < record->masq.n; i++) {
		if (hw_prefix_parse(record->masq.v[i], &address, &malformed) < 0)
			continue;
		struct nft_elem pod = nft_elem_for("masq", &address.ip, NFT_OWNED);
		nft_key_ip(&pod, &address.ip);
		nft_data_masq_chain(&pod, &address, &record->exclude);
		nft_elems_add_once(elems, pod);
	}
	if (!record->host || !record->mac || hw_mac_parse(record->mac, &mac, &malformed) < 0)
		return;
	struct nft_elem allowed = nft_elem(NFT_BRIDGE, "mac_ok", NFT_OWNED);
	struct nft_elem checked = nft_elem(NFT_BRIDGE, "mac_checked", NFT_OWNED);
	nft_key_ifname(&allowed, record->host);
	nft_key_mac(&allowed, &mac);
	nft_elems_add_once(elems, allowed);
	nft_key_ifname(&checked, record->host);
	nft_elems_add_once(elems, checked);
}

/* ---- POSTROUTING of iptables ----------------------------------------------------------------- */

static const struct {
	unsigned family;
	const char *name, *set;
} masq_families[] = { { POSTROUTING_IPV4, "ip", "masq4" }, { POSTROUTING_IPV6, "ip6", "masq6" } };

/* Return: the families of which the pod is masqueraded */
static unsigned find_families(const struct nft_elems *elems)
{
	unsigned families = 0;

	for (size_t f = 0; f < ARRAY_SIZE(masq_families); f++)
		if (nft_elems_has_set(elems, masq_families[f].set))
			families |= masq_families[f].family;
	return families;
}

/* Completes the rule of each family of which the pod has an address. Writes a note before the rule is
 * added, so that `hawser-plugin uninstall` removes it. */
static int complete_postrouting(struct nft *nft, const struct nft_elems *elems, struct hw_err *e)
{
	unsigned families = find_families(elems);
	int incomplete, r = 0;

	incomplete = families ? postrouting_find_incomplete(nft, families, e) : 0;
	if (incomplete < 0)
		return incomplete;
	for (size_t f = 0; r >= 0 && f < ARRAY_SIZE(masq_families); f++) {
		autofree char *note = str_printf("%s POSTROUTING", masq_families[f].name);

		if (!((unsigned)incomplete & masq_families[f].family))
			continue;
		r = host_object_record(HOST_OBJECT_MASQUERADE, note, e);
		if (r >= 0)
			r = postrouting_complete(nft, masq_families[f].family, e);
	}
	return r;
}

int pod_rules_host_object_remove(const char *note, struct hw_err *e)
{
	AUTO(nft_close) struct nft *nft = NULL;
	size_t f = str_starts(note, "ip6 ") ? 1 : 0;
	int r;

	r = nft_open(&nft, e);
	if (r < 0)
		return r;
	r = nft_require_empty(nft, masq_families[f].set, "the rule in POSTROUTING is still", e);
	return r < 0 ? r : postrouting_remove(nft, masq_families[f].family, e);
}

/* ---- ADD and repair -------------------------------------------------------------------------- */

static int write_elems(const struct hw_call *call, struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems elems = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;
	int r;

	add_elems(&elems, call);
	if (!elems.n)
		return 0;
	r = nft_open(&nft, e);
	if (r < 0)
		return r;
	r = nft_add(nft, elems.v, elems.n, elems.owner, e);
	return r < 0 ? r : complete_postrouting(nft, &elems, e);
}

/* Copies the networks to the record, in canonical form and without those that another one contains. */
static void record_exclude(struct pod_link_record *record, const struct hw_strings *exclude)
{
	struct hw_prefix prefix, other;
	char text[HW_PREFIX_TEXT];
	struct hw_err ignored;

	for (size_t i = 0; exclude && i < exclude->n; i++) {
		bool contained;

		contained = hw_prefix_parse(exclude->v[i], &prefix, &ignored) < 0;
		for (size_t k = 0; !contained && k < exclude->n; k++)
			contained = k != i &&
				    hw_prefix_parse(exclude->v[k], &other, &ignored) >= 0 &&
				    prefix_overlaps(&prefix, &other) &&
				    (other.len < prefix.len || (other.len == prefix.len && k < i));
		prefix.ip = prefix_network(&prefix);
		if (!contained)
			strings_add(&record->exclude, hw_prefix_format(&prefix, text));
	}
}

int pod_rules_add(struct hw_call *call, const struct pod_rules *rules, const struct hw_mac *mac,
		  struct hw_err *e)
{
	struct pod_link_record *record = call->created;
	char prefix[HW_PREFIX_TEXT], text[HW_MAC_TEXT];
	int r;

	for (size_t i = 0; rules->masq && i < call->result->n_ips; i++)
		strings_add(&record->masq, hw_prefix_format(&call->result->ips[i].address, prefix));
	if (rules->masq)
		record_exclude(record, rules->exclude);
	if (rules->mac_check)
		record->mac = str_copy(hw_mac_format(mac, text));
	if (!record->masq.n && !record->mac)
		return 0;
	r = hw_record_save(call, e);
	return r < 0 ? r : write_elems(call, e);
}

int pod_rules_repair(struct hw_call *call, struct hw_err *e)
{
	return write_elems(call, e);
}

/* ---- rules of upstream's plugins ------------------------------------------------------------- */

struct upstream_names {
	char chain[4 + 24 + 1];	       /* iptables chain of ipMasq */
	char comment[16 + 1 + 16 + 1]; /* start of the comments of ipMasq's nftables rules */
	char *port, *mac;	       /* nftables chains of macspoofchk */
};

static void upstream_names_done(struct upstream_names *names)
{
	free(names->port);
	free(names->mac);
}
AUTO_VALUE_DEFINE(upstream_names_done, struct upstream_names);

static const char iptables_nat[] = "nat";
static const uint8_t families[] = { NFPROTO_IPV4, NFPROTO_IPV6 };
static const struct nft_chain_ref upstream_masq = { NFPROTO_INET, "cni_plugins_masquerade",
						    "masq_checks" };

static struct upstream_names upstream_names(const struct hw_call *call)
{
	autofree char *attachment = str_printf("%s%s", call->network, call->container_id);
	autofree char *instance = str_printf("%s:%s", call->ifname, call->container_id);
	char chain[25], network[17], pod[17];
	struct upstream_names names = { .port = str_printf("cni-br-iface-%s-%s", call->container_id,
							   call->ifname) };

	names.mac = str_printf("%s-mac", names.port);
	hash_hex(attachment, sizeof(chain) - 1, chain);
	hash_hex(call->network, sizeof(network) - 1, network);
	hash_hex(instance, sizeof(pod) - 1, pod);
	snprintf(names.chain, sizeof(names.chain), "CNI-%s", chain);
	snprintf(names.comment, sizeof(names.comment), "%s-%s", network, pod);
	return names;
}

static int delete_upstream_masq(struct nft *nft, const struct upstream_names *names,
				struct hw_err *e)
{
	static const char *const parents[] = { "POSTROUTING", NULL };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(families); i++) {
		struct nft_chain_ref place = { families[i], iptables_nat, names->chain };

		r = nft_foreign_delete_chain(nft, &place, parents, e);
	}
	return r < 0 ? r
		     : nft_foreign_delete_rules_containing(nft, &upstream_masq, names->comment, e);
}

static int delete_upstream_mac_check(struct nft *nft, const struct upstream_names *names,
				     struct hw_err *e)
{
	int r;

	static const char *const port_parents[] = { "PREROUTING", NULL };
	const char *const mac_parents[] = { names->port, NULL };
	struct nft_chain_ref port = { NFPROTO_BRIDGE, "nat", names->port };
	struct nft_chain_ref mac = { NFPROTO_BRIDGE, "nat", names->mac };

	r = nft_foreign_delete_chain(nft, &port, port_parents, e);
	return r < 0 ? r : nft_foreign_delete_chain(nft, &mac, mac_parents, e);
}

/* Return: 1 if upstream's rules masquerade the pod's addresses of that family, 0 if not */
static int has_upstream_masq(struct nft *nft, const struct upstream_names *names, int family,
			     struct hw_err *e)
{
	struct nft_chain_ref place = { families[family == AF_INET6], iptables_nat, names->chain };
	int r;

	r = nft_has_chain(nft, &place, e);
	return r != 0 ? r : nft_foreign_has_rule_containing(nft, &upstream_masq, names->comment, e);
}

/* CHECK without a record: upstream's plugin created the attachment, or the record is lost. */
static int check_unrecorded(const struct hw_call *call, const struct pod_rules *rules,
			    struct hw_err *e)
{
	AUTO(upstream_names_done) struct upstream_names names = upstream_names(call);
	AUTO(nft_close) struct nft *nft = NULL;
	struct nft_chain_ref port = { NFPROTO_BRIDGE, "nat", names.port };
	int r;

	r = nft_open(&nft, e);
	for (size_t i = 0; rules->masq && r >= 0 && i < call->prev->n_ips; i++) {
		const struct hw_ip *ip = &call->prev->ips[i].address.ip;
		char text[HW_IP_TEXT];

		r = has_upstream_masq(nft, &names, ip->family, e);
		if (r == 0)
			return err_text(e, -ENOENT,
					"no attachment record, and no rule of another plugin "
					"masquerades %s",
					hw_ip_format(ip, text));
	}
	if (r >= 0 && rules->mac_check) {
		r = nft_has_chain(nft, &port, e);
		if (r == 0)
			return err_text(e, -ENOENT,
					"no attachment record, and no rule of another plugin "
					"checks the MAC address");
	}
	return r < 0 ? r : 0;
}

/* DEL without a record: finds our elements by their owner, and upstream's rules by their names. */
static int delete_unrecorded(const struct hw_call *call, const struct pod_rules *rules,
			     struct hw_err *e)
{
	AUTO(upstream_names_done) struct upstream_names names = upstream_names(call);
	AUTO(nft_close) struct nft *nft = NULL;
	char owner[NFT_OWNER];
	int r;

	nft_owner(call->network, call->container_id, call->ifname, owner);
	r = nft_open(&nft, e);
	if (r >= 0 && rules->masq) {
		r = nft_del_owned(nft, NFT_INET, "masq4", owner, e);
		if (r >= 0)
			r = nft_del_owned(nft, NFT_INET, "masq6", owner, e);
		if (r >= 0)
			r = delete_upstream_masq(nft, &names, e);
	}
	if (r >= 0 && rules->mac_check) {
		r = nft_del_owned(nft, NFT_BRIDGE, "mac_checked", owner, e);
		if (r >= 0)
			r = nft_del_owned(nft, NFT_BRIDGE, "mac_ok", owner, e);
		if (r >= 0)
			r = delete_upstream_mac_check(nft, &names, e);
	}
	return r;
}

/* ---- DEL and CHECK --------------------------------------------------------------------------- */

int pod_rules_delete(struct hw_call *call, const struct pod_rules *rules, struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems elems = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;
	int r;

	if (!call->recorded)
		return rules->masq || rules->mac_check ? delete_unrecorded(call, rules, e) : 0;
	add_elems(&elems, call);
	if (!elems.n)
		return 0;
	r = nft_open(&nft, e);
	return r < 0 ? r : nft_del(nft, elems.v, elems.n, elems.owner, e);
}

int pod_rules_check(struct hw_call *call, const struct pod_rules *rules, struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems elems = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;
	unsigned masqueraded;
	int r;

	if (!call->recorded && (rules->masq || rules->mac_check))
		return check_unrecorded(call, rules, e);
	add_elems(&elems, call);
	if (!elems.n)
		return 0;
	r = nft_open(&nft, e);
	if (r < 0)
		return r;
	r = nft_check(nft, elems.v, elems.n, elems.owner, e);
	if (r < 0)
		return r;
	masqueraded = find_families(&elems);
	return masqueraded ? postrouting_check(nft, masqueraded, e) : 0;
}
