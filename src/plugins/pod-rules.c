/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod-rules.c - what a pod has in nftables: ipMasq, macspoofchk
 */
#include "plugins/pod-rules.h"

#include <errno.h>
#include <linux/netfilter.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/ip.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/nft-foreign.h"
#include "net/nft.h"
#include "plugins/pod-link.h"

/**
 * pod_rules_check_conf() - refuse what upstream's plugins refuse
 */
int pod_rules_check_conf(const struct pod_rules *rules, struct hw_err *e)
{
	if (!rules->masq || str_empty(rules->backend) || str_equal(rules->backend, "iptables") ||
	    str_equal(rules->backend, "nftables"))
		return 0;
	return err_text(e, -EINVAL, "unknown ipmasq backend \"%s\"", rules->backend);
}

/**
 * pod_rules_status() - could an ADD do what the configuration asks for?
 */
int pod_rules_status(const struct pod_rules *rules, struct hw_err *e)
{
	AUTO(nft_close) struct nft *nft = NULL;

	if (!rules->masq && !rules->mac_check)
		return 0;
	int r = nft_open(&nft, e);
	if (r >= 0 && rules->masq)
		r = nft_can_load(nft, NFT_INET, e);
	if (r >= 0 && rules->mac_check)
		r = nft_can_load(nft, NFT_BRIDGE, e);
	if (r >= 0)
		return 0;
	autofree char *why = str_copy(e->msg);
	return err_cni(e, HW_CNI_NOT_AVAILABLE, "%s", why);
}

/* ---- elements ----------------------------------------------------------------------------- */

/* The address; and its network, unless that is the address itself. */
static void add_masq(struct nft_elems *elems, const struct hw_prefix *address)
{
	struct nft_elem pod = nft_elem_for("masq", &address->ip, NFT_OWNED);
	struct nft_elem network = nft_elem_for("own", &address->ip, NFT_SHARED);

	nft_key_ip(&pod, &address->ip);
	nft_elems_add_once(elems, pod);
	if (address->len == ip_bits(&address->ip))
		return;
	nft_key_network(&network, address);
	nft_key_network(&network, address);
	nft_elems_add_once(elems, network);
}

static void add_mac(struct nft_elems *elems, const char *host, const struct hw_mac *mac)
{
	struct nft_elem right = nft_elem(NFT_BRIDGE, "mac_ok", NFT_OWNED);
	struct nft_elem checked = nft_elem(NFT_BRIDGE, "mac_checked", NFT_OWNED);

	nft_key_ifname(&right, host);
	nft_key_mac(&right, mac);
	nft_elems_add(elems, right);
	nft_key_ifname(&checked, host);
	nft_elems_add(elems, checked);
}

static void fill(struct nft_elems *elems, const struct hw_call *call,
		 const struct pod_link_made *made)
{
	struct hw_prefix address;
	struct hw_mac mac;
	struct hw_err torn;

	nft_owner(call->network, call->container_id, call->ifname, elems->owner);
	for (size_t i = 0; i < made->masq.n; i++)
		if (hw_prefix_parse(made->masq.v[i], &address, &torn) >= 0)
			add_masq(elems, &address);
	if (made->host && made->mac && hw_mac_parse(made->mac, &mac, &torn) >= 0)
		add_mac(elems, made->host, &mac);
}

static int write_elems(struct hw_call *call, struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems elems = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;

	fill(&elems, call, call->made);
	if (!elems.n)
		return 0;
	int r = nft_open(&nft, e);
	return r < 0 ? r : nft_add(nft, elems.v, elems.n, elems.owner, NULL, e);
}

static void note_addresses(struct pod_link_made *made, const struct hw_result *result)
{
	char text[HW_PREFIX_TEXT];

	for (size_t i = 0; i < result->n_ips; i++)
		strings_add(&made->masq, hw_prefix_format(&result->ips[i].address, text));
}

static int remove_elems(const struct hw_call *call, const struct pod_link_made *made,
			struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems elems = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;

	fill(&elems, call, made);
	if (!elems.n)
		return 0;
	int r = nft_open(&nft, e);
	return r < 0 ? r : nft_del(nft, elems.v, elems.n, elems.owner, e);
}

/**
 * pod_rules_add() - ADD's part of it
 */
int pod_rules_add(struct hw_call *call, const struct pod_rules *rules, const struct hw_mac *mac,
		  struct hw_err *e)
{
	struct pod_link_made *made = call->made;
	char text[HW_MAC_TEXT];
	int r = 0;

	if (rules->masq)
		note_addresses(made, call->result);
	if (rules->mac_check)
		made->mac = str_copy(hw_mac_format(mac, text));
	if (call->earlier)
		r = remove_elems(call, call->earlier, e);
	if (r < 0 || (!made->masq.n && !made->mac))
		return r;
	r = hw_record_save(call, e);
	return r < 0 ? r : write_elems(call, e);
}

/* ---- what Go's plugins make ------------------------------------------------------------------ */

static int end_gos_masq(struct nft *nft, const struct hw_call *call, struct hw_err *e)
{
	static const char *const parents[] = { "POSTROUTING", NULL };
	autofree char *attachment = str_printf("%s%s", call->network, call->container_id);
	autofree char *instance = str_printf("%s:%s", call->ifname, call->container_id);
	struct nft_place rules = { NFPROTO_INET, "cni_plugins_masquerade", "masq_checks" };
	char chain[] = "CNI-0123456789abcdef01234567";
	char comment[] = "0123456789abcdef-0123456789abcdef";
	struct nft_place v4 = { NFPROTO_IPV4, "nat", chain }, v6 = { NFPROTO_IPV6, "nat", chain };

	hash_hex(attachment, 24, chain + 4);
	hash_hex(call->network, 16, comment);
	hash_hex(instance, 16, comment + 17);
	comment[16] = '-';
	int r = nft_foreign_drop_chain(nft, &v4, parents, e);
	if (r >= 0)
		r = nft_foreign_drop_chain(nft, &v6, parents, e);
	return r < 0 ? r : nft_foreign_drop_rules(nft, &rules, comment, e);
}

static int end_gos_mac_check(struct nft *nft, const struct hw_call *call, struct hw_err *e)
{
	static const char *const all[] = { "PREROUTING", NULL };
	autofree char *port = str_printf("cni-br-iface-%s-%s", call->container_id, call->ifname);
	autofree char *mac = str_printf("%s-mac", port);
	const char *const one[] = { port, NULL };

	int r = nft_foreign_drop_chain(nft, &(struct nft_place){ NFPROTO_BRIDGE, "nat", port }, all,
				       e);
	if (r < 0)
		return r;
	return nft_foreign_drop_chain(nft, &(struct nft_place){ NFPROTO_BRIDGE, "nat", mac }, one,
				      e);
}

/* Without a record: by the owner, and by the names that Go's plugins give. */
static int end_unrecorded(const struct hw_call *call, const struct pod_rules *rules,
			  struct hw_err *e)
{
	AUTO(nft_close) struct nft *nft = NULL;
	char owner[NFT_OWNER];

	nft_owner(call->network, call->container_id, call->ifname, owner);
	int r = nft_open(&nft, e);
	if (r >= 0 && rules->masq)
		r = nft_sweep(nft, NFT_INET, "masq4", owner, e);
	if (r >= 0 && rules->masq)
		r = nft_sweep(nft, NFT_INET, "masq6", owner, e);
	if (r >= 0 && rules->masq)
		r = end_gos_masq(nft, call, e);
	if (r >= 0 && rules->mac_check)
		r = nft_sweep(nft, NFT_BRIDGE, "mac_checked", owner, e);
	if (r >= 0 && rules->mac_check)
		r = nft_sweep(nft, NFT_BRIDGE, "mac_ok", owner, e);
	if (r >= 0 && rules->mac_check)
		r = end_gos_mac_check(nft, call, e);
	return r;
}

/**
 * pod_rules_end() - DEL's part of it
 */
int pod_rules_end(struct hw_call *call, const struct pod_rules *rules, struct hw_err *e)
{
	if (call->recorded)
		return remove_elems(call, call->made, e);
	return rules->masq || rules->mac_check ? end_unrecorded(call, rules, e) : 0;
}

/* ---- CHECK and repair ------------------------------------------------------------------------ */

/**
 * pod_rules_check() - is all that the record says still there?
 */
int pod_rules_check(struct hw_call *call, struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems elems = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;

	fill(&elems, call, call->made);
	if (!elems.n)
		return 0;
	int r = nft_open(&nft, e);
	return r < 0 ? r : nft_check(nft, elems.v, elems.n, elems.owner, e);
}

/**
 * pod_rules_repair() - put back what the record says
 */
int pod_rules_repair(struct hw_call *call, struct hw_err *e)
{
	return write_elems(call, e);
}
