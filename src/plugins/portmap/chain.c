/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/chain.c - chains for conditions, and for other mark bits than 13
 *
 * What:  one chain for each list of conditions that is in use, whoever uses it;
 *        its name is a hash of them. Two for each mark bit, as ruleset.nft has them
 *        for bit 13, and a rule in "snatbits".
 * How:   made before elements that lead to them, where they are missing or somebody
 *        has emptied them. They stay.
 */
#include <errno.h>
#include <linux/netfilter.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"
#include "net/nft/rule.h"
#include "plugins/portmap/portmap.h"

#define TABLE	"inet hawser"
#define KERNELS "Could not process rule" /* nft has understood, and the kernel refuses */

/**
 * portmap_chain_of_condition() - the name of the chain that asks for these conditions
 */
void portmap_chain_of_condition(const char *condition, char ret_chain[PORTMAP_CHAIN])
{
	char hash[17];

	hash_hex(condition, sizeof(hash) - 1, hash);
	snprintf(ret_chain, PORTMAP_CHAIN, "cond_%s", hash);
}

/**
 * portmap_chain_of_mark() - the name of the chain that sets the mark
 */
void portmap_chain_of_mark(const struct portmap_made *made, char ret_chain[PORTMAP_CHAIN])
{
	snprintf(ret_chain, PORTMAP_CHAIN, "snat%s%d", made->masq_all ? "all" : "", made->mark_bit);
}

/* Return: 1, or 0 when it is missing or empty */
static int has_rules(struct nft *nft, const char *chain, struct hw_err *e)
{
	int r = nft_check_chain(nft, NFT_INET, chain, e);

	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

/* ---- conditions -------------------------------------------------------------------------------- */

/* However often this is run, the chain has one rule. */
static int make_condition(struct nft *nft, const char *condition, const char *key, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	char chain[PORTMAP_CHAIN];

	if (!condition)
		return 0;
	portmap_chain_of_condition(condition, chain);
	int r = has_rules(nft, chain, e);
	if (r != 0)
		return r < 0 ? r : 0;
	buf_printf(&text,
		   "add chain " TABLE " %s\nflush chain " TABLE " %s\n"
		   "add rule " TABLE " %s %s goto translate\n",
		   chain, chain, chain, condition);
	r = nft_run(text.data, e);
	if (r >= 0)
		return 0;
	autofree char *why = str_copy(e->msg);
	if (r != -EINVAL || strstr(why, KERNELS))
		return err_ctx(e, "%s \"%.300s\"", key, condition);
	return err_cni(e, HW_CNI_INVALID_CONFIG, "%s \"%.300s\": %.600s", key, condition, why);
}

/* ---- mark bits --------------------------------------------------------------------------------- */

static const char *const bit_chains[] = { "snat", "snatall" };

static void put_bit(struct buf *text, int bit)
{
	static const char *const sources[] = {
		"ip saddr 127.0.0.0/8",		"ip saddr . ip saddr @own4",
		"ip6 saddr . ip6 saddr @own6",	"ip saddr . ip saddr @self4",
		"ip6 saddr . ip6 saddr @self6",
	};
	unsigned mark = 1U << bit;

	for (size_t i = 0; i < ARRAY_SIZE(bit_chains); i++)
		buf_printf(text, "add chain " TABLE " %s%d\nflush chain " TABLE " %s%d\n",
			   bit_chains[i], bit, bit_chains[i], bit);
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
		buf_printf(text, "add rule " TABLE " snat%d %s meta mark set meta mark or 0x%08x\n",
			   bit, sources[i], mark);
	buf_printf(text, "add rule " TABLE " snatall%d meta mark set meta mark or 0x%08x\n", bit,
		   mark);
}

/* The comment says to people which bit a rule of "snatbits" is for. */
static void put_snatbits(struct buf *text, int bit)
{
	unsigned mark = 1U << bit;

	buf_printf(text,
		   "add rule " TABLE " snatbits meta mark & 0x%08x == 0x%08x jump hairpin "
		   "comment \"bit %d\"\n",
		   mark, mark, bit);
}

struct search {
	uint32_t mark;
	bool found;
};

static int compare_mark(void *ctx, const struct nft_rule *rule, struct hw_err *e)
{
	struct search *search = ctx;

	(void)e;
	search->found |= rule->mask == search->mark && rule->mark == search->mark;
	return 0;
}

/* Return: 1 when "snatbits" has its rule */
static int has_snatbits(struct nft *nft, int bit, struct hw_err *e)
{
	const struct nft_place place = { NFPROTO_INET, "hawser", "snatbits" };
	struct search search = { .mark = 1U << bit };

	int r = nft_rule_each(nft, &place, compare_mark, &search, e);
	return r < 0 ? r : search.found;
}

/* Return: 1 when its chains have rules, too */
static int has_bit(struct nft *nft, int bit, struct hw_err *e)
{
	char chain[PORTMAP_CHAIN];
	int r = has_snatbits(nft, bit, e);

	for (size_t i = 0; r > 0 && i < ARRAY_SIZE(bit_chains); i++) {
		snprintf(chain, sizeof(chain), "%s%d", bit_chains[i], bit);
		r = has_rules(nft, chain, e);
	}
	return r;
}

/* With a lock: of several who find it missing one makes the rule in "snatbits". */
static int make_bit(struct nft *nft, int bit, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	autoclose int lock = -1;

	int r = has_bit(nft, bit, e);
	if (r != 0)
		return r < 0 ? r : 0;
	r = portmap_lock_chains(&lock, e);
	if (r >= 0)
		r = has_snatbits(nft, bit, e);
	if (r < 0)
		return r;
	put_bit(&text, bit);
	if (r == 0)
		put_snatbits(&text, bit);
	return nft_run(text.data, e);
}

/* ---- both ---------------------------------------------------------------------------------------- */

static bool needs_bit(const struct portmap_made *made)
{
	return made->snat && made->mark_bit != PORTMAP_BIT;
}

/**
 * portmap_chains_make() - have the chains that this pod's elements lead to, with their rules
 */
int portmap_chains_make(struct nft *nft, const struct portmap_made *made, struct hw_err *e)
{
	if (!needs_bit(made) && !made->cond4 && !made->cond6)
		return 0;
	int r = nft_load(nft, NFT_INET, e);
	if (r >= 0 && needs_bit(made))
		r = make_bit(nft, made->mark_bit, e);
	if (r >= 0)
		r = make_condition(nft, made->cond4, "conditionsV4", e);
	if (r >= 0)
		r = make_condition(nft, made->cond6, "conditionsV6", e);
	return r;
}

static int check_bit(struct nft *nft, const struct portmap_made *made, struct hw_err *e)
{
	char chain[PORTMAP_CHAIN];

	portmap_chain_of_mark(made, chain);
	int r = nft_check_chain(nft, NFT_INET, chain, e);
	if (r >= 0)
		r = has_snatbits(nft, made->mark_bit, e);
	if (r == 0)
		return err_text(
			e, -ENOENT,
			"chain snatbits of nftables table " TABLE
			" has no rule for bit %d any more; hawser-plugin repair restores it",
			made->mark_bit);
	return r < 0 ? r : 0;
}

static int check_condition(struct nft *nft, const char *condition, struct hw_err *e)
{
	char chain[PORTMAP_CHAIN];

	if (!condition)
		return 0;
	portmap_chain_of_condition(condition, chain);
	return nft_check_chain(nft, NFT_INET, chain, e);
}

/**
 * portmap_chains_check() - have they their rules?
 */
int portmap_chains_check(struct nft *nft, const struct portmap_made *made, struct hw_err *e)
{
	int r = needs_bit(made) ? check_bit(nft, made, e) : 0;

	if (r >= 0)
		r = check_condition(nft, made->cond4, e);
	return r < 0 ? r : check_condition(nft, made->cond6, e);
}
