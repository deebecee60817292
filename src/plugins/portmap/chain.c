/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/chain.c - nftables chains for conditions and for mark bits other than 13
 *
 * What:  each distinct list of conditions has one chain, whose name is a hash of the list.
 *        All pods with the same conditions share the chain. Each mark bit has two chains,
 *        like those for bit 13 in ruleset.nft, and a rule in the chain "snatbits".
 * How:   a chain that is missing or was flushed is created before the elements that jump
 *        to it. Chains are never deleted.
 */
#include <errno.h>
#include <linux/netfilter.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "net/nft/rule.h"
#include "plugins/portmap/portmap.h"

#define TABLE		"inet hawser"
#define KERNEL_REJECTED "Could not process rule" /* nft's text if only the kernel rejects a rule */

void portmap_condition_chain(const char *condition, char ret_chain[PORTMAP_CHAIN])
{
	char hash[17];

	hash_hex(condition, sizeof(hash) - 1, hash);
	snprintf(ret_chain, PORTMAP_CHAIN, "cond_%s", hash);
}

void portmap_mark_chain(const struct portmap_record *record, char ret_chain[PORTMAP_CHAIN])
{
	snprintf(ret_chain, PORTMAP_CHAIN, "snat%s%d", record->masq_all ? "all" : "",
		 record->mark_bit);
}

/* Return: 1 if the chain has rules, 0 if it is missing or empty */
static int has_rules(struct nft *nft, const char *chain, struct hw_err *e)
{
	int r;

	r = nft_check_chain_rules(nft, NFT_INET, chain, e);
	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* The commands flush the chain before they add the rule, so that the chain has one rule even if
 * several processes create it at the same time. */
static int create_condition_chain(struct nft *nft, const char *condition, const char *key,
				  struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	char chain[PORTMAP_CHAIN];
	int r;

	if (!condition)
		return 0;
	portmap_condition_chain(condition, chain);
	r = has_rules(nft, chain, e);
	if (r != 0)
		return r < 0 ? r : 0;
	buf_printf(&text,
		   "add chain " TABLE " %s\nflush chain " TABLE " %s\n"
		   "add rule " TABLE " %s %s goto translate\n",
		   chain, chain, chain, condition);
	r = nft_run(text.data, e);
	if (r >= 0)
		return 0;
	if (r == -EINVAL && !strstr(e->msg, KERNEL_REJECTED))
		err_recode(e, HW_CNI_INVALID_CONFIG);
	return err_ctx(e, "%s \"%.300s\"", key, condition);
}

static int check_condition_chain(struct nft *nft, const char *condition, struct hw_err *e)
{
	char chain[PORTMAP_CHAIN];

	if (!condition)
		return 0;
	portmap_condition_chain(condition, chain);
	return nft_check_chain_rules(nft, NFT_INET, chain, e);
}

/* ---- mark bits ------------------------------------------------------------------------------- */

static const char *const mark_chains[] = { "snat", "snatall" };

struct mark_search {
	uint32_t mark;
	bool found;
};

static int compare_mark(void *ctx, const struct nft_rule *rule, struct hw_err *e)
{
	struct mark_search *search = ctx;

	(void)e;
	search->found |= rule->mark.mask == search->mark && rule->mark.value == search->mark;
	return 0;
}

/* Return: 1 if the chain "snatbits" has the rule for the bit, 0 if not */
static int has_snatbits_rule(struct nft *nft, int bit, struct hw_err *e)
{
	const struct nft_chain_ref place = { NFPROTO_INET, "hawser", "snatbits" };
	struct mark_search search = { .mark = 1U << bit };
	int r;

	r = nft_rule_each(nft, &place, compare_mark, &search, e);
	return r < 0 ? r : search.found;
}

/* Appends the commands that create the chains for a mark bit. The chains equal snat13 and snatall13
 * in ruleset.nft, except for the bit. */
static void put_mark_chains(struct buf *text, int bit)
{
	static const char *const sources[] = {
		"ip saddr 127.0.0.0/8",		"ip saddr . ip saddr @own4",
		"ip6 saddr . ip6 saddr @own6",	"ip saddr . ip saddr @self4",
		"ip6 saddr . ip6 saddr @self6",
	};
	unsigned mark = 1U << bit;

	for (size_t i = 0; i < ARRAY_SIZE(mark_chains); i++)
		buf_printf(text, "add chain " TABLE " %s%d\nflush chain " TABLE " %s%d\n",
			   mark_chains[i], bit, mark_chains[i], bit);
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
		buf_printf(text, "add rule " TABLE " snat%d %s meta mark set meta mark or 0x%08x\n",
			   bit, sources[i], mark);
	buf_printf(text, "add rule " TABLE " snatall%d meta mark set meta mark or 0x%08x\n", bit,
		   mark);
}

static int create_mark_chains(struct nft *nft, int bit, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	unsigned mark = 1U << bit;
	char chain[PORTMAP_CHAIN];
	autoclose int lock = -1;
	int r;

	r = has_snatbits_rule(nft, bit, e);
	for (size_t i = 0; r > 0 && i < ARRAY_SIZE(mark_chains); i++) {
		snprintf(chain, sizeof(chain), "%s%d", mark_chains[i], bit);
		r = has_rules(nft, chain, e);
	}
	if (r != 0)
		return r < 0 ? r : 0;
	/* The lock ensures that only one process adds the rule to "snatbits". */
	r = portmap_lock_chains(&lock, e);
	if (r >= 0)
		r = has_snatbits_rule(nft, bit, e);
	if (r < 0)
		return r;
	put_mark_chains(&text, bit);
	if (r == 0)
		buf_printf(&text,
			   "add rule " TABLE " snatbits meta mark & 0x%08x == 0x%08x jump hairpin "
			   "comment \"bit %d\"\n",
			   mark, mark, bit);
	return nft_run(text.data, e);
}

/* ---- both ------------------------------------------------------------------------------------ */

/* The chains for the default bit are part of ruleset.nft. */
static bool needs_mark_chains(const struct portmap_record *record)
{
	return record->snat && record->mark_bit != PORTMAP_BIT;
}

int portmap_chains_create(struct nft *nft, const struct portmap_record *record, struct hw_err *e)
{
	int r;

	if (!needs_mark_chains(record) && !record->cond4 && !record->cond6)
		return 0;
	r = nft_load(nft, NFT_INET, e);
	if (r >= 0 && needs_mark_chains(record))
		r = create_mark_chains(nft, record->mark_bit, e);
	if (r >= 0)
		r = create_condition_chain(nft, record->cond4, "conditionsV4", e);
	if (r >= 0)
		r = create_condition_chain(nft, record->cond6, "conditionsV6", e);
	return r;
}

int portmap_chains_check(struct nft *nft, const struct portmap_record *record, struct hw_err *e)
{
	char chain[PORTMAP_CHAIN];
	int r;

	if (needs_mark_chains(record)) {
		portmap_mark_chain(record, chain);
		r = nft_check_chain_rules(nft, NFT_INET, chain, e);
		if (r < 0)
			return r;
		r = has_snatbits_rule(nft, record->mark_bit, e);
		if (r < 0)
			return r;
		if (r == 0)
			return err_text(e, -ENOENT,
					"nftables chain " TABLE
					" snatbits has no rule for mark bit %d; "
					"hawser-plugin repair restores it",
					record->mark_bit);
	}
	r = check_condition_chain(nft, record->cond4, e);
	return r < 0 ? r : check_condition_chain(nft, record->cond6, e);
}
