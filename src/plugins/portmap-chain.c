/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap-chain.c - chains for conditions, and for other mark bits than 13
 *
 * What:  one chain for each list of conditions that is in use, whoever uses it;
 *        its name is a hash of them. Two for each mark bit, as ruleset.nft has them
 *        for bit 13, and a rule in "snatbits".
 * How:   made when elements that lead to them find them missing. They stay.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/ip.h"
#include "base/str.h"
#include "plugins/portmap.h"

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

/* ---- conditions -------------------------------------------------------------------------------- */

/* However often this is run, the chain has one rule. */
static int make_condition(const char *condition, const char *key, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	char chain[PORTMAP_CHAIN];

	if (!condition)
		return 0;
	portmap_chain_of_condition(condition, chain);
	buf_printf(&text,
		   "add chain " TABLE " %s\nflush chain " TABLE " %s\n"
		   "add rule " TABLE " %s %s goto translate\n",
		   chain, chain, chain, condition);
	int r = nft_run(text.data, e);
	if (r >= 0)
		return 0;
	autofree char *why = str_copy(e->msg);
	if (r != -EINVAL || strstr(why, KERNELS))
		return err_ctx(e, "%s \"%.300s\"", key, condition);
	return err_cni(e, HW_CNI_INVALID_CONFIG, "%s \"%.300s\": %.600s", key, condition, why);
}

/* ---- mark bits --------------------------------------------------------------------------------- */

static void put_bit_chain(struct buf *text, const char *name, int bit, bool again)
{
	buf_printf(text, "%s chain " TABLE " %s%d\n", again ? "add" : "create", name, bit);
	buf_printf(text, "flush chain " TABLE " %s%d\n", name, bit);
}

static void put_bit(struct buf *text, int bit, bool again)
{
	static const char *const sources[] = {
		"ip saddr 127.0.0.0/8",		"ip saddr . ip saddr @own4",
		"ip6 saddr . ip6 saddr @own6",	"ip saddr . ip saddr @self4",
		"ip6 saddr . ip6 saddr @self6",
	};
	unsigned mark = 1U << bit;

	put_bit_chain(text, "snat", bit, again);
	put_bit_chain(text, "snatall", bit, again);
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
		buf_printf(text, "add rule " TABLE " snat%d %s meta mark set meta mark or 0x%08x\n",
			   bit, sources[i], mark);
	buf_printf(text, "add rule " TABLE " snatall%d meta mark set meta mark or 0x%08x\n", bit,
		   mark);
}

/* The comment says which bit a rule of "snatbits" is for: how nft prints a mark is its own affair. */
static void put_snatbits(struct buf *text, int bit)
{
	unsigned mark = 1U << bit;

	buf_printf(text,
		   "add rule " TABLE " snatbits meta mark & 0x%08x == 0x%08x jump hairpin "
		   "comment \"bit %d\"\n",
		   mark, mark, bit);
}

/* Return: 1 when "snatbits" has its rule */
static int has_snatbits(int bit, struct hw_err *e)
{
	autofree char *rules = NULL;
	char comment[24];

	snprintf(comment, sizeof(comment), "\"bit %d\"", bit);
	int r = nft_run_for("list chain " TABLE " snatbits", &rules, e);
	return r < 0 ? r : strstr(rules, comment) != NULL;
}

/* Of several that make them at the same time one makes the rule in "snatbits", too. */
static int make_bit(struct nft *nft, int bit, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	char chain[PORTMAP_CHAIN];
	struct hw_err missing;

	snprintf(chain, sizeof(chain), "snat%d", bit);
	put_bit(&text, bit, false);
	put_snatbits(&text, bit);
	int r = nft_run(text.data, e);
	return r < 0 && nft_check_chain(nft, NFT_INET, chain, &missing) >= 0 ? 0 : r;
}

static int restore_bit(int bit, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };

	int r = has_snatbits(bit, e);
	if (r < 0)
		return r;
	put_bit(&text, bit, true);
	if (r == 0)
		put_snatbits(&text, bit);
	return nft_run(text.data, e);
}

/* ---- both ---------------------------------------------------------------------------------------- */

static int restore_networks(struct nft *nft, const struct portmap_made *made, struct hw_err *e)
{
	struct hw_prefix pods[2];
	size_t n = portmap_pods(made, pods);
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n; i++) {
		struct nft_elem near = portmap_near_elem(&pods[i]);

		if (pods[i].len < ip_bits(&pods[i].ip))
			r = nft_repair_networks(nft, &near, 1, e);
	}
	return r;
}

static bool needs_bit(const struct portmap_made *made)
{
	return made->snat && made->mark_bit != PORTMAP_BIT;
}

/**
 * portmap_chains_make() - have the chains that this pod's elements lead to
 * @again: they may be there, but empty
 */
int portmap_chains_make(struct nft *nft, const struct portmap_made *made, bool again,
			struct hw_err *e)
{
	int r = again && made->snat ? restore_networks(nft, made, e) : 0;

	if (r < 0 || (!needs_bit(made) && !made->cond4 && !made->cond6))
		return r;
	r = nft_load(nft, NFT_INET, e);
	if (r >= 0 && needs_bit(made))
		r = again ? restore_bit(made->mark_bit, e) : make_bit(nft, made->mark_bit, e);
	if (r >= 0)
		r = make_condition(made->cond4, "conditionsV4", e);
	if (r >= 0)
		r = make_condition(made->cond6, "conditionsV6", e);
	return r;
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
	char chain[PORTMAP_CHAIN];
	int r = 0;

	if (needs_bit(made)) {
		portmap_chain_of_mark(made, chain);
		r = nft_check_chain(nft, NFT_INET, chain, e);
		if (r >= 0)
			r = nft_check_chain(nft, NFT_INET, "snatbits", e);
	}
	if (r >= 0)
		r = check_condition(nft, made->cond4, e);
	return r < 0 ? r : check_condition(nft, made->cond6, e);
}
