/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/firewall/rules.c - a pod's elements in nftables, rules in FORWARD, sources in firewalld
 *
 * How:   all of these are computed from the record. With firewalld the elements are
 *        added as well, because they have an owner and the sources of firewalld do not:
 *        a late DEL compares the owner, and so does not remove the source of another pod
 *        that has leased the same address since.
 */
#include <errno.h>
#include <linux/netfilter.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/forward/forward.h"
#include "net/nft/nft.h"
#include "net/nft/rule.h"
#include "plugins/firewall/firewall.h"
#include "plugins/firewall/firewalld.h"
#include "plugins/pod/host-objects.h"

#define DEFAULT_BIT 12 /* the chain for this bit is part of ruleset.nft */

/* ---- elements -------------------------------------------------------------------------------- */

static void mark_chain(int bit, char ret_chain[NFT_NAME])
{
	snprintf(ret_chain, NFT_NAME, "allow%d", bit);
}

static void put_elements(struct nft_elems *elems, const struct hw_call *call,
			 const struct firewall_record *record)
{
	char chain[NFT_NAME];
	struct hw_ip ip;
	struct hw_err ignored;

	nft_owner(call->network, call->container_id, call->ifname, elems->owner);
	mark_chain(record->bit, chain);
	for (size_t i = 0; i < record->ips.n; i++) {
		if (hw_ip_parse(record->ips.v[i], &ip, &ignored) < 0)
			continue;
		struct nft_elem elem = nft_elem_for("allow", &ip, NFT_OWNED);

		nft_key_ip(&elem, &ip);
		nft_data_jump(&elem, chain);
		nft_elems_add_once(elems, elem);
	}
	firewall_policy_put(elems, record);
}

/* Return: 1 if the chain that sets the mark bit exists and is not empty, 0 if not */
static int has_mark_chain(struct nft *nft, int bit, struct hw_err *e)
{
	char chain[NFT_NAME];
	struct nft_chain_ref place = { NFPROTO_INET, "hawser", chain };
	unsigned rules = 0;
	int r;

	mark_chain(bit, chain);
	r = nft_rule_each(nft, &place, nft_rule_count, &rules, e);
	return r < 0 ? r : rules > 0;
}

static int create_mark_chain(struct nft *nft, int bit, struct hw_err *e)
{
	char chain[NFT_NAME];
	int r;

	r = nft_load(nft, NFT_INET, e);
	if (r >= 0)
		r = has_mark_chain(nft, bit, e);
	if (r != 0)
		return r;
	/* The chain for the default bit is loaded together with all other rules. If it is empty,
	 * other chains may have been flushed too. */
	if (bit == DEFAULT_BIT)
		return nft_repair(nft, NFT_INET, e);
	mark_chain(bit, chain);
	autofree char *commands =
		str_printf("add chain inet hawser %s\nflush chain inet hawser %s\n"
			   "add rule inet hawser %s meta mark set meta mark or 0x%x\n",
			   chain, chain, chain, 1U << bit);
	return nft_run(commands, e);
}

/* ---- FORWARD --------------------------------------------------------------------------------- */

static const struct {
	int family;
	const char *name;
	const char *set; /* set of the pods' addresses */
} families[] = { { AF_INET, "ip", "allow4" }, { AF_INET6, "ip6", "allow6" } };

/* @family: "ip" or "ip6" */
typedef int forward_fn(struct nft *nft, const struct forward *forward, const char *family, int bit,
		       struct hw_err *e);

/* Writes notes such as "ip CNI-ADMIN 12" before the rules are added, so that `hawser-plugin uninstall`
 * removes them. */
static int add_forward_rules(struct nft *nft, const struct forward *forward, const char *family,
			     int bit, struct hw_err *e)
{
	autofree char *rules = str_printf("%s %s %d", family, forward->admin, bit);
	autofree char *chain = str_printf("%s FORWARD", family);
	bool no_chain = false;
	int r;

	r = forward_has_rules(nft, forward, &no_chain, e);
	if (r != 0)
		return r;
	if (no_chain)
		r = host_object_record(HOST_OBJECT_FORWARD, chain, e);
	if (r < 0)
		return r;
	r = host_object_record(HOST_OBJECT_IPTABLES, rules, e);
	return r < 0 ? r : forward_add_rules(nft, forward, e);
}

static int check_forward_rules(struct nft *nft, const struct forward *forward, const char *family,
			       int bit, struct hw_err *e)
{
	bool no_chain = false;
	int r;

	(void)bit;
	r = forward_has_rules(nft, forward, &no_chain, e);
	if (r == 0)
		return err_text(e, -ENOENT,
				"chain FORWARD of %stables lacks our rules, or does not exist; "
				"hawser-plugin repair restores them",
				family);
	return r < 0 ? r : 0;
}

/* Calls @act for each family of which the pod has an address. */
static int for_each_forward(struct nft *nft, const struct nft_elems *elems,
			    const struct firewall_record *record, forward_fn *act, struct hw_err *e)
{
	for (size_t f = 0; record->admin && f < ARRAY_SIZE(families); f++) {
		struct forward forward = { families[f].family, record->admin, 1U << record->bit,
					   record->create };
		int r;

		if (!nft_elems_has_set(elems, families[f].set))
			continue;
		r = act(nft, &forward, families[f].name, record->bit, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* @name: "ip" or "ip6". Return: AF_INET or AF_INET6; -EBUSY if pods still need the rules */
static int get_unused_family(struct nft *nft, const char *name, struct hw_err *e)
{
	size_t f = str_equal(name, families[0].name) ? 0 : 1;
	int r;

	r = nft_require_empty(nft, families[f].set, "rules in FORWARD are still", e);
	return r < 0 ? r : families[f].family;
}

int firewall_host_object_remove(const char *note, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings words = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;
	long long bit;
	int r;

	strings_split(note, ' ', &words);
	if (words.n != 3 || !str_to_int64(words.v[2], 0, 31, &bit))
		return 0;
	r = nft_open(&nft, e);
	if (r < 0)
		return r;
	r = get_unused_family(nft, words.v[0], e);
	if (r < 0)
		return r;
	struct forward forward = { .family = r, .admin = words.v[1], .mark = 1U << bit };
	return forward_remove_rules(nft, &forward, e);
}

int firewall_host_chain_remove(const char *note, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings words = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;
	int r;

	strings_split(note, ' ', &words);
	r = nft_open(&nft, e);
	if (r < 0)
		return r;
	r = get_unused_family(nft, words.v[0], e);
	return r < 0 ? r : forward_remove_chain(nft, r, e);
}

/* ---- firewalld ------------------------------------------------------------------------------- */

typedef int source_fn(struct firewalld *firewalld, const char *zone, const struct hw_ip *ip,
		      struct hw_err *e);

/* Calls @act for each address of @record, unless another pod owns the address by now. */
static int for_each_source(struct nft *nft, const char *owner, const struct firewall_record *record,
			   struct firewalld *firewalld, source_fn *act, struct hw_err *e)
{
	struct nft_elem found;
	struct hw_err ignored;
	struct hw_ip ip;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < record->ips.n; i++) {
		if (hw_ip_parse(record->ips.v[i], &ip, &ignored) < 0)
			continue;
		struct nft_elem elem = nft_elem_for("allow", &ip, NFT_OWNED);

		nft_key_ip(&elem, &ip);
		r = nft_get(nft, &elem, &found, e);
		if (r == 0 || (r > 0 && str_equal(found.owner, owner)))
			r = act(firewalld, record->zone, &ip, e);
	}
	return r < 0 ? r : 0;
}

/* Sources are not persistent: if firewalld is not running, there is nothing to remove. */
static int remove_sources(struct nft *nft, const char *owner, const struct firewall_record *record,
			  struct hw_err *e)
{
	AUTO(firewalld_close) struct firewalld *firewalld = NULL;
	int r;

	if (!record->zone)
		return 0;
	r = firewalld_open(&firewalld, e);
	if (r <= 0)
		return r;
	return for_each_source(nft, owner, record, firewalld, firewalld_remove, e);
}

/* ---- used by the verbs ----------------------------------------------------------------------- */

int firewall_rules_add(struct hw_call *call, const struct firewall_record *record, struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems elems = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;
	AUTO(firewalld_close) struct firewalld *firewalld = NULL;
	int r;

	put_elements(&elems, call, record);
	if (!elems.n)
		return 0;
	r = nft_open(&nft, e);
	if (r < 0)
		return r;
	r = create_mark_chain(nft, record->bit, e);
	if (r < 0)
		return r;
	r = nft_add(nft, elems.v, elems.n, elems.owner, e);
	if (r < 0)
		return r;
	r = for_each_forward(nft, &elems, record, add_forward_rules, e);
	if (r < 0 || !record->zone)
		return r;
	r = firewalld_open(&firewalld, e);
	if (r < 0)
		return r;
	if (!firewalld)
		return err_text(e, -ENOENT,
				"add addresses to firewalld zone %s: there is no system bus",
				record->zone);
	return for_each_source(nft, elems.owner, record, firewalld, firewalld_add, e);
}

int firewall_rules_remove(struct hw_call *call, const struct firewall_record *record,
			  struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems elems = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;
	struct hw_err why;
	int first, r;

	put_elements(&elems, call, record);
	if (!elems.n)
		return 0;
	r = nft_open(&nft, e);
	if (r < 0)
		return r;
	first = remove_sources(nft, elems.owner, record, e);
	r = nft_del(nft, elems.v, elems.n, elems.owner, &why);
	if (r < 0 && first >= 0)
		*e = why;
	return first < 0 ? first : r;
}

int firewall_rules_check(struct hw_call *call, const struct firewall_record *record,
			 struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems elems = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;
	AUTO(firewalld_close) struct firewalld *firewalld = NULL;
	int r;

	put_elements(&elems, call, record);
	if (!elems.n)
		return 0;
	r = nft_open(&nft, e);
	if (r < 0)
		return r;
	r = nft_check(nft, elems.v, elems.n, elems.owner, e);
	if (r < 0)
		return r;
	r = has_mark_chain(nft, record->bit, e);
	if (r < 0)
		return r;
	if (r == 0)
		return err_text(e, -ENOENT,
				"nftables chain inet hawser allow%d is missing or empty; "
				"hawser-plugin repair restores it",
				record->bit);
	r = for_each_forward(nft, &elems, record, check_forward_rules, e);
	if (r < 0 || !record->zone)
		return r;
	r = firewalld_open(&firewalld, e);
	if (r < 0)
		return r;
	if (r == 0)
		return err_text(e, -ENOENT,
				"firewalld is not running, but ADD added the pod's addresses to "
				"its zone %s",
				record->zone);
	return for_each_source(nft, elems.owner, record, firewalld, firewalld_check, e);
}
