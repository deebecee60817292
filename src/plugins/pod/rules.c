/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/rules.c - what a pod has in nftables: ipMasq, macspoofchk
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
#include "plugins/pod/link.h"

/**
 * pod_rules_check_conf() - refuse what upstream's plugins refuse
 */
int pod_rules_check_conf(const struct pod_rules *rules, struct hw_err *e)
{
	if (!rules->masq || str_empty(rules->backend) || str_equal(rules->backend, "iptables") ||
	    str_equal(rules->backend, "nftables"))
		return 0;
	return err_cni(e, HW_CNI_INVALID_CONFIG, "unknown ipmasq backend \"%s\"", rules->backend);
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

static void add_masq(struct nft_elems *elems, const struct hw_prefix *address)
{
	struct nft_elem pod = nft_elem_for("masq", &address->ip, NFT_OWNED);

	nft_key_ip(&pod, &address->ip);
	if (address->len == ip_bits(&address->ip))
		nft_data_jump(&pod, "masqall");
	else
		nft_data_network(&pod, NFT_MASQ, address);
	nft_elems_add_once(elems, pod);
}

static void add_mac(struct nft_elems *elems, const char *host, const struct hw_mac *mac)
{
	struct nft_elem right = nft_elem(NFT_BRIDGE, "mac_ok", NFT_OWNED);
	struct nft_elem checked = nft_elem(NFT_BRIDGE, "mac_checked", NFT_OWNED);

	nft_key_ifname(&right, host);
	nft_key_mac(&right, mac);
	nft_elems_add_once(elems, right);
	nft_key_ifname(&checked, host);
	nft_elems_add_once(elems, checked);
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

static void made_done(struct pod_link_made *made)
{
	hw_field_clear(pod_link_made_fields, made);
}
AUTO_VALUE_DEFINE(made_done, struct pod_link_made);

/* All that the record says; of an ADD on top of another, which did not end, also the other's */
static void fill_recorded(struct nft_elems *elems, const struct hw_call *call)
{
	AUTO(made_done) struct pod_link_made earlier = { 0 };
	const struct pod_link_made *made = call->made;
	struct hw_err torn;

	fill(elems, call, made);
	if (made->earlier && hw_field_decode(pod_link_made_fields, made->earlier,
					     strlen(made->earlier), &earlier, &torn) >= 0)
		fill(elems, call, &earlier);
}

/* All of @v but what @keep has, too */
static int remove_but(struct nft *nft, const struct nft_elems *v, const struct nft_elems *keep,
		      struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems rest = { 0 };

	for (size_t i = 0; i < v->n; i++)
		if (!nft_elems_has(keep, &v->v[i]))
			nft_elems_add(&rest, v->v[i]);
	return rest.n ? nft_del(nft, rest.v, rest.n, v->owner, e) : 0;
}

static int write_elems(struct nft *nft, const struct nft_elems *elems, struct hw_err *e)
{
	return elems->n ? nft_add(nft, elems->v, elems->n, elems->owner, NULL, e) : 0;
}

static int delete_elems(struct nft *nft, const struct nft_elems *elems, struct hw_err *e)
{
	return nft_del(nft, elems->v, elems->n, elems->owner, e);
}

/* Do something with all that the record says, if there is any. */
static int with_recorded(const struct hw_call *call,
			 int (*run)(struct nft *nft, const struct nft_elems *elems,
				    struct hw_err *e),
			 struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems elems = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;

	fill_recorded(&elems, call);
	if (!elems.n)
		return 0;
	int r = nft_open(&nft, e);
	return r < 0 ? r : run(nft, &elems, e);
}

/* First what is new, so that the pod is never without. After a failure: what was there before, and
 * nothing else; that may fail, too. */
static int replace(struct nft *nft, const struct nft_elems *before, const struct nft_elems *after,
		   struct hw_err *e)
{
	struct hw_err again;

	int r = write_elems(nft, after, e);
	if (r >= 0)
		r = remove_but(nft, before, after, e);
	if (r < 0 && before->n && write_elems(nft, before, &again) >= 0)
		(void)remove_but(nft, after, before, &again);
	return r;
}

static void note_addresses(struct pod_link_made *made, const struct hw_result *result)
{
	char text[HW_PREFIX_TEXT];

	for (size_t i = 0; i < result->n_ips; i++)
		strings_add(&made->masq, hw_prefix_format(&result->ips[i].address, text));
}

/* The record first */
static int write_made(struct hw_call *call, struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems before = { 0 }, after = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;

	fill(&after, call, call->made);
	if (call->earlier)
		fill(&before, call, call->earlier);
	if (!after.n && !before.n)
		return 0;
	int r = hw_record_save(call, e);
	if (r >= 0)
		r = nft_open(&nft, e);
	return r < 0 ? r : replace(nft, &before, &after, e);
}

/**
 * pod_rules_add() - ADD's part of it
 */
int pod_rules_add(struct hw_call *call, const struct pod_rules *rules, const struct hw_mac *mac,
		  struct hw_err *e)
{
	struct pod_link_made *made = call->made;
	char text[HW_MAC_TEXT];

	if (rules->masq)
		note_addresses(made, call->result);
	if (rules->mac_check)
		made->mac = str_copy(hw_mac_format(mac, text));
	int r = write_made(call, e);
	if (r >= 0)
		free(take_ptr(made->earlier));
	return r;
}

/* ---- what Go's plugins make ------------------------------------------------------------------ */

/* By the names that they give */
struct gos {
	char chain[4 + 24 + 1];	       /* of iptables */
	char comment[16 + 1 + 16 + 1]; /* begins so in nftables */
	char *port, *mac;	       /* macspoofchk's chains */
};

static void gos_done(struct gos *gos)
{
	free(gos->port);
	free(gos->mac);
}
AUTO_VALUE_DEFINE(gos_done, struct gos);

static const char iptables_nat[] = "nat";
static const uint8_t families[] = { NFPROTO_IPV4, NFPROTO_IPV6 };

static struct nft_place gos_rules(void)
{
	return (struct nft_place){ NFPROTO_INET, "cni_plugins_masquerade", "masq_checks" };
}

static struct gos gos_names(const struct hw_call *call)
{
	autofree char *attachment = str_printf("%s%s", call->network, call->container_id);
	autofree char *instance = str_printf("%s:%s", call->ifname, call->container_id);
	char chain[25], network[17], pod[17];
	struct gos gos = { .port = str_printf("cni-br-iface-%s-%s", call->container_id,
					      call->ifname) };

	gos.mac = str_printf("%s-mac", gos.port);
	hash_hex(attachment, sizeof(chain) - 1, chain);
	hash_hex(call->network, sizeof(network) - 1, network);
	hash_hex(instance, sizeof(pod) - 1, pod);
	snprintf(gos.chain, sizeof(gos.chain), "CNI-%s", chain);
	snprintf(gos.comment, sizeof(gos.comment), "%s-%s", network, pod);
	return gos;
}

static int end_gos_masq(struct nft *nft, const struct gos *gos, struct hw_err *e)
{
	static const char *const parents[] = { "POSTROUTING", NULL };
	struct nft_place rules = gos_rules();
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(families); i++) {
		struct nft_place place = { families[i], iptables_nat, gos->chain };

		r = nft_foreign_delete_chain(nft, &place, parents, e);
	}
	return r < 0 ? r : nft_foreign_delete_rules_containing(nft, &rules, gos->comment, e);
}

static int end_gos_mac_check(struct nft *nft, const struct gos *gos, struct hw_err *e)
{
	static const char *const all[] = { "PREROUTING", NULL };
	const char *const one[] = { gos->port, NULL };
	struct nft_place port = { NFPROTO_BRIDGE, "nat", gos->port };
	struct nft_place mac = { NFPROTO_BRIDGE, "nat", gos->mac };

	int r = nft_foreign_delete_chain(nft, &port, all, e);
	return r < 0 ? r : nft_foreign_delete_chain(nft, &mac, one, e);
}

/* Return: 1 when they masquerade the pod's addresses of that family */
static int has_gos_masq(struct nft *nft, const struct gos *gos, int family, struct hw_err *e)
{
	struct nft_place place = { families[family == AF_INET6], iptables_nat, gos->chain };
	struct nft_place rules = gos_rules();

	int r = nft_has_chain(nft, &place, e);
	return r != 0 ? r : nft_foreign_has_rule_containing(nft, &rules, gos->comment, e);
}

/* For CHECK without a record: they have made it, or the record is lost. */
static int check_unrecorded(const struct hw_call *call, const struct pod_rules *rules,
			    struct hw_err *e)
{
	AUTO(gos_done) struct gos gos = gos_names(call);
	AUTO(nft_close) struct nft *nft = NULL;
	struct nft_place port = { NFPROTO_BRIDGE, "nat", gos.port };

	int r = nft_open(&nft, e);
	for (size_t i = 0; rules->masq && r >= 0 && i < call->prev->n_ips; i++) {
		const struct hw_ip *ip = &call->prev->ips[i].address.ip;
		char text[HW_IP_TEXT];

		r = has_gos_masq(nft, &gos, ip->family, e);
		if (r == 0)
			return err_text(e, -ENOENT,
					"there is no record of this attachment, nor does another "
					"plugin masquerade %s",
					hw_ip_format(ip, text));
	}
	if (r >= 0 && rules->mac_check) {
		r = nft_has_chain(nft, &port, e);
		if (r == 0)
			return err_text(e, -ENOENT,
					"there is no record of this attachment, nor does another "
					"plugin look at its hardware address");
	}
	return r < 0 ? r : 0;
}

/* Without a record: by the owner, and by the names that Go's plugins give. */
static int end_unrecorded(const struct hw_call *call, const struct pod_rules *rules,
			  struct hw_err *e)
{
	AUTO(gos_done) struct gos gos = gos_names(call);
	AUTO(nft_close) struct nft *nft = NULL;
	char owner[NFT_OWNER];

	nft_owner(call->network, call->container_id, call->ifname, owner);
	int r = nft_open(&nft, e);
	if (r >= 0 && rules->masq)
		r = nft_sweep(nft, NFT_INET, "masq4", owner, e);
	if (r >= 0 && rules->masq)
		r = nft_sweep(nft, NFT_INET, "masq6", owner, e);
	if (r >= 0 && rules->masq)
		r = end_gos_masq(nft, &gos, e);
	if (r >= 0 && rules->mac_check)
		r = nft_sweep(nft, NFT_BRIDGE, "mac_checked", owner, e);
	if (r >= 0 && rules->mac_check)
		r = nft_sweep(nft, NFT_BRIDGE, "mac_ok", owner, e);
	if (r >= 0 && rules->mac_check)
		r = end_gos_mac_check(nft, &gos, e);
	return r;
}

/**
 * pod_rules_end() - DEL's part of it
 */
int pod_rules_end(struct hw_call *call, const struct pod_rules *rules, struct hw_err *e)
{
	if (call->recorded)
		return with_recorded(call, delete_elems, e);
	return rules->masq || rules->mac_check ? end_unrecorded(call, rules, e) : 0;
}

/* ---- CHECK and repair ------------------------------------------------------------------------ */

/**
 * pod_rules_check() - is all that the record says still there?
 */
int pod_rules_check(struct hw_call *call, const struct pod_rules *rules, struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems elems = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;

	if (!call->recorded && (rules->masq || rules->mac_check))
		return check_unrecorded(call, rules, e);
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
	return with_recorded(call, write_elems, e);
}
