/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/firewall/rules.c - what a pod has in the host's firewall
 *
 * How:   all of it follows from the record. The elements are there with firewalld,
 *        too: they say whose an address is, which firewalld cannot, so that a late
 *        DEL does not take another pod's address out of its zone.
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
#include "plugins/pod/furniture.h"

#define DEFAULT_BIT 12 /* its chain is in ruleset.nft */

/* ---- elements ------------------------------------------------------------------------------- */

static void chain_name(int bit, char ret_chain[NFT_NAME])
{
	snprintf(ret_chain, NFT_NAME, "allow%d", bit);
}

static void fill(struct nft_elems *elems, const struct hw_call *call,
		 const struct firewall_made *made)
{
	char chain[NFT_NAME];
	struct hw_ip ip;
	struct hw_err torn;

	nft_owner(call->network, call->container_id, call->ifname, elems->owner);
	chain_name(made->bit, chain);
	for (size_t i = 0; i < made->ips.n; i++) {
		if (hw_ip_parse(made->ips.v[i], &ip, &torn) < 0)
			continue;
		struct nft_elem elem = nft_elem_for("allow", &ip, NFT_OWNED);

		nft_key_ip(&elem, &ip);
		nft_data_jump(&elem, chain);
		nft_elems_add_once(elems, elem);
	}
	firewall_policy_fill(elems, made);
}

/* Return: 1 when the chain of the mark bit is there, with its rule */
static int has_bit(struct nft *nft, int bit, struct hw_err *e)
{
	char chain[NFT_NAME];
	struct nft_place place = { NFPROTO_INET, "hawser", chain };
	unsigned rules = 0;

	chain_name(bit, chain);
	int r = nft_rule_each(nft, &place, nft_rule_count, &rules, e);
	return r < 0 ? r : rules > 0;
}

/* That of the usual bit comes with all other rules; where it is empty, others may be. */
static int have_bit(struct nft *nft, int bit, struct hw_err *e)
{
	char chain[NFT_NAME];

	int r = nft_load(nft, NFT_INET, e);
	if (r >= 0)
		r = has_bit(nft, bit, e);
	if (r != 0)
		return r;
	if (bit == DEFAULT_BIT)
		return nft_repair(nft, NFT_INET, e);
	chain_name(bit, chain);
	autofree char *commands =
		str_printf("add chain inet hawser %s\nflush chain inet hawser %s\n"
			   "add rule inet hawser %s meta mark set meta mark or 0x%x\n",
			   chain, chain, chain, 1U << bit);
	return nft_run(commands, e);
}

/* ---- FORWARD ----------------------------------------------------------------------------------- */

static const struct {
	int family;
	const char *name;
	const char *set; /* of its addresses */
} families[] = { { AF_INET, "ip", "allow4" }, { AF_INET6, "ip6", "allow6" } };

/* They are noted, so that uninstall finds them: "ip CNI-ADMIN 12" */
static int open_family(struct nft *nft, size_t f, const struct firewall_made *made,
		       struct hw_err *e)
{
	struct forward forward = { families[f].family, made->admin, 1U << made->bit };
	autofree char *note = str_printf("%s %s %d", families[f].name, made->admin, made->bit);

	int r = forward_has_rules(nft, &forward, e);
	if (r != 0)
		return r;
	r = furniture_note(FURNITURE_IPTABLES, note, NULL, e);
	return r < 0 ? r : forward_add_rules(nft, &forward, e);
}

/* For each family that the pod has an address of */
static int open_forward(struct nft *nft, const struct nft_elems *elems,
			const struct firewall_made *made, struct hw_err *e)
{
	int r = 0;

	for (size_t f = 0; made->admin && f < ARRAY_SIZE(families); f++) {
		bool wanted = false;

		for (size_t i = 0; i < elems->n; i++)
			wanted |= str_equal(elems->v[i].set, families[f].set);
		if (wanted && r >= 0)
			r = open_family(nft, f, made, e);
	}
	return r;
}

static int refuse(void *ctx, const struct nft_elem *elem, struct hw_err *e)
{
	char text[NFT_ELEM_TEXT];

	(void)ctx;
	return err_text(e, -EBUSY, "pods still need to be let through FORWARD: %s",
			nft_elem_format(elem, text));
}

/**
 * firewall_furniture_remove() - take our rules from FORWARD, unless pods need them
 * @note: what was noted
 *
 * Return: 1, or 0 when they are gone already
 */
int firewall_furniture_remove(const char *note, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings words = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;
	long long bit;

	strings_split(note, ' ', &words);
	if (words.n != 3 || !str_to_int64(words.v[2], 0, 31, &bit))
		return 0;
	int r = nft_open(&nft, e);
	for (size_t f = 0; r >= 0 && f < ARRAY_SIZE(families); f++) {
		struct forward forward = { families[f].family, words.v[1], 1U << bit };

		if (!str_equal(families[f].name, words.v[0]))
			continue;
		r = nft_list(nft, NFT_INET, families[f].set, refuse, NULL, e);
		return r < 0 ? r : forward_remove_rules(nft, &forward, e);
	}
	return r < 0 ? r : 0;
}

/* ---- firewalld ---------------------------------------------------------------------------------- */

/* Do something about each address, as long as nobody else has it by now. */
static int each_source(struct nft *nft, const struct nft_elems *elems,
		       const struct firewall_made *made, struct firewalld *firewalld,
		       int (*act)(struct firewalld *firewalld, const char *zone,
				  const struct hw_ip *ip, struct hw_err *e),
		       struct hw_err *e)
{
	struct nft_elem there;
	struct hw_err torn;
	struct hw_ip ip;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < made->ips.n; i++) {
		if (hw_ip_parse(made->ips.v[i], &ip, &torn) < 0)
			continue;
		struct nft_elem elem = nft_elem_for("allow", &ip, NFT_OWNED);

		nft_key_ip(&elem, &ip);
		if (!nft_elems_has(elems, &elem))
			continue;
		r = nft_get(nft, &elem, &there, e);
		if (r == 0 || (r > 0 && str_equal(there.owner, elems->owner)))
			r = act(firewalld, made->zone, &ip, e);
	}
	return r < 0 ? r : 0;
}

static int add_sources(struct nft *nft, const struct nft_elems *elems,
		       const struct firewall_made *made, struct hw_err *e)
{
	AUTO(firewalld_close) struct firewalld *firewalld = NULL;

	if (!made->zone)
		return 0;
	int r = firewalld_open(&firewalld, e);
	if (r >= 0 && !firewalld)
		return err_text(e, -ENOENT, "firewalld cannot be asked: the system bus is gone");
	return r < 0 ? r : each_source(nft, elems, made, firewalld, firewalld_add, e);
}

/* What does not run remembers nothing. */
static int remove_sources(struct nft *nft, const struct nft_elems *elems,
			  const struct firewall_made *made, struct hw_err *e)
{
	AUTO(firewalld_close) struct firewalld *firewalld = NULL;

	if (!made->zone)
		return 0;
	int r = firewalld_open(&firewalld, e);
	if (r <= 0)
		return r;
	return each_source(nft, elems, made, firewalld, firewalld_remove, e);
}

static int check_sources(struct nft *nft, const struct nft_elems *elems,
			 const struct firewall_made *made, struct hw_err *e)
{
	AUTO(firewalld_close) struct firewalld *firewalld = NULL;

	if (!made->zone)
		return 0;
	int r = firewalld_open(&firewalld, e);
	if (r == 0)
		return err_text(e, -ENOENT,
				"firewalld, which had the pod's addresses, does not run");
	return r < 0 ? r : each_source(nft, elems, made, firewalld, firewalld_check, e);
}

/* ---- all of it ---------------------------------------------------------------------------------- */

/**
 * firewall_rules_write() - put what the record says, where it is not there
 */
int firewall_rules_write(struct hw_call *call, const struct firewall_made *made, struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems elems = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;

	fill(&elems, call, made);
	if (!elems.n)
		return 0;
	int r = nft_open(&nft, e);
	if (r >= 0)
		r = have_bit(nft, made->bit, e);
	if (r >= 0)
		r = nft_add(nft, elems.v, elems.n, elems.owner, NULL, e);
	if (r >= 0)
		r = open_forward(nft, &elems, made, e);
	return r < 0 ? r : add_sources(nft, &elems, made, e);
}

/* What @made has and @but has not; without @but all. */
static void fill_without(struct nft_elems *elems, const struct hw_call *call,
			 const struct firewall_made *made, const struct firewall_made *but)
{
	AUTO(nft_elems_done) struct nft_elems all = { 0 }, stay = { 0 };

	fill(&all, call, made);
	if (but)
		fill(&stay, call, but);
	memcpy(elems->owner, all.owner, sizeof(elems->owner));
	for (size_t i = 0; i < all.n; i++)
		if (!nft_elems_has(&stay, &all.v[i]))
			nft_elems_add(elems, all.v[i]);
}

/**
 * firewall_rules_remove() - remove what the record says, if it is still there and ours
 * @but: what this other record says, too, stays; NULL: nothing
 *
 * From firewalld and from nftables: the one does not wait for the other.
 */
int firewall_rules_remove(struct hw_call *call, const struct firewall_made *made,
			  const struct firewall_made *but, struct hw_err *e)
{
	bool same_zone = but && str_equal(made->zone, but->zone);
	AUTO(nft_elems_done) struct nft_elems elems = { 0 }, sources = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;
	struct hw_err why;

	fill_without(&elems, call, made, but);
	fill_without(&sources, call, made, same_zone ? but : NULL);
	if (!elems.n && !sources.n)
		return 0;
	int r = nft_open(&nft, e);
	if (r < 0)
		return r;
	int first = remove_sources(nft, &sources, made, e);
	r = elems.n ? nft_del(nft, elems.v, elems.n, elems.owner, &why) : 0;
	if (r < 0 && first >= 0)
		*e = why;
	return first < 0 ? first : r;
}

/**
 * firewall_rules_check() - is all of it there?
 *
 * What is missing in the chains of iptables, which belongs to no pod, is put back.
 */
int firewall_rules_check(struct hw_call *call, const struct firewall_made *made, struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems elems = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;

	fill(&elems, call, made);
	if (!elems.n)
		return 0;
	int r = nft_open(&nft, e);
	if (r >= 0)
		r = nft_check(nft, elems.v, elems.n, elems.owner, e);
	if (r >= 0)
		r = has_bit(nft, made->bit, e);
	if (r == 0)
		return err_text(e, -ENOENT,
				"nftables chain allow%d is gone; hawser-plugin repair restores it",
				made->bit);
	if (r >= 0)
		r = open_forward(nft, &elems, made, e);
	return r < 0 ? r : check_sources(nft, &elems, made, e);
}
