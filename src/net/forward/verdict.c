/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/forward/verdict.c - possible verdicts of an nftables chain on a pod's packet
 *
 * How:   some bits of each value that a rule loads into a register are known, so the
 *        result of a comparison is always, never or perhaps. The verdict of a rule
 *        that perhaps matches is added to the possible verdicts, and evaluation
 *        continues with the next rule. A rule that always matches ends the chain,
 *        unless its verdict is to continue. Jumps are followed.
 * Rules: a drop must never be reported unless it is certain. Therefore an unknown
 *        expression is assumed to let the packet pass, and so is a chain that exceeds
 *        the limits; it is logged at level debug. Evaluation ends at the first rule
 *        that may let the packet pass. No chain is read twice.
 */
#include "net/forward/verdict.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/nft/rule.h"

#define CHAINS_MAX 256 /* chains to read */
#define DEPTH_MAX  16  /* nested jumps; the kernel has the same limit */

enum match { NEVER, PERHAPS, ALWAYS };

/* The value in a register; only some of its bits may be known */
struct known_value {
	uint8_t len;
	uint8_t known[NFT_KEY_MAX], value[NFT_KEY_MAX]; /* mask of the known bits; their values */
};

/* The effect of a rule that may end or leave the chain */
struct rule_effect {
	enum match match;
	unsigned verdicts; /* FORWARD_MAY_... */
	char *chain;	   /* target of a jump or goto; NULL: the rule has no jump */
	bool is_goto;
};

struct rule_effects {
	const struct forward_packet *packet;
	struct rule_effect *v;
	size_t n, room;
};

static void rule_effects_done(struct rule_effects *effects)
{
	for (size_t i = 0; i < effects->n; i++)
		free(effects->v[i].chain);
	free(effects->v);
}
AUTO_VALUE_DEFINE(rule_effects_done, struct rule_effects);

struct effect_reader {
	const struct forward_packet *packet;
	struct known_value loaded;
	struct rule_effect effect;
};

/* ---- conditions -------------------------------------------------------------------------- */

static void load_bits(struct effect_reader *reader, uint32_t known, uint32_t value)
{
	reader->loaded = (struct known_value){ .len = sizeof(known) };
	memcpy(reader->loaded.known, &known, sizeof(known));
	memcpy(reader->loaded.value, &value, sizeof(value));
}

static void load_unknown(struct effect_reader *reader)
{
	reader->loaded = (struct known_value){ .len = NFT_KEY_MAX };
}

/* Without a destination register the expression writes a value instead of reading one; that does
 * not affect the verdict. */
static void read_meta(struct effect_reader *reader, const struct nlattr *expr)
{
	const struct forward_packet *packet = reader->packet;

	if (!nft_attr_find(expr, NFTA_META_DREG))
		return;
	load_unknown(reader);
	if (nft_attr_number(expr, NFTA_META_KEY) == NFT_META_MARK)
		load_bits(reader, packet->mark, packet->marked ? packet->mark : 0);
	if (nft_attr_number(expr, NFTA_META_KEY) == NFT_META_NFPROTO)
		reader->loaded = (struct known_value){ 1, { UINT8_MAX }, { packet->family } };
}

static void read_ct(struct effect_reader *reader, const struct nlattr *expr)
{
	if (!nft_attr_find(expr, NFTA_CT_DREG))
		return;
	load_unknown(reader);
	if (nft_attr_number(expr, NFTA_CT_KEY) == NFT_CT_STATE)
		load_bits(reader, UINT32_MAX, NF_CT_STATE_BIT(IP_CT_NEW));
	if (nft_attr_number(expr, NFTA_CT_KEY) == NFT_CT_STATUS)
		load_bits(reader, IPS_NAT_MASK, 0);
}

static void read_payload(struct effect_reader *reader, const struct nlattr *expr)
{
	if (nft_attr_find(expr, NFTA_PAYLOAD_DREG))
		load_unknown(reader);
}

/* Bits that the mask clears become known. */
static void read_bitwise(struct effect_reader *reader, const struct nlattr *expr)
{
	struct nft_bytes mask = nft_attr_data(expr, NFTA_BITWISE_MASK),
			 xor = nft_attr_data(expr, NFTA_BITWISE_XOR);
	struct known_value *loaded = &reader->loaded;

	if (!mask.len || mask.len != xor.len || mask.len > loaded->len) {
		load_unknown(reader);
		return;
	}
	loaded->len = mask.len;
	for (size_t i = 0; i < mask.len; i++) {
		loaded->known[i] |= (uint8_t)~mask.v[i];
		loaded->value[i] = (loaded->value[i] & mask.v[i]) ^ xor.v[i];
	}
}

static enum match compare(const struct known_value *loaded, const struct nft_bytes *with)
{
	enum match match = ALWAYS;

	if (!with->len || with->len > loaded->len)
		return PERHAPS;
	for (size_t i = 0; i < with->len; i++) {
		if ((loaded->value[i] ^ with->v[i]) & loaded->known[i])
			return NEVER;
		if (loaded->known[i] != UINT8_MAX)
			match = PERHAPS;
	}
	return match;
}

/* All conditions of a rule must match, so the weakest result applies. */
static void add_condition(struct effect_reader *reader, enum match match)
{
	if (match < reader->effect.match)
		reader->effect.match = match;
}

static void read_cmp(struct effect_reader *reader, const struct nlattr *expr)
{
	struct nft_bytes with = nft_attr_data(expr, NFTA_CMP_DATA);
	enum match match = compare(&reader->loaded, &with);

	switch (nft_attr_number(expr, NFTA_CMP_OP)) {
	case NFT_CMP_EQ:
		add_condition(reader, match);
		break;
	case NFT_CMP_NEQ:
		add_condition(reader, match == NEVER ? ALWAYS : match == ALWAYS ? NEVER : PERHAPS);
		break;
	default:
		add_condition(reader, PERHAPS);
	}
}

/* Handles a condition that perhaps matches. */
static void read_condition(struct effect_reader *reader, const struct nlattr *expr)
{
	(void)expr;
	add_condition(reader, PERHAPS);
	load_unknown(reader);
}

/* ---- verdicts ---------------------------------------------------------------------------- */

static void read_immediate(struct effect_reader *reader, const struct nlattr *expr)
{
	const struct nlattr *verdict, *chain;
	int code;
	struct rule_effect *effect = &reader->effect;

	verdict = nft_attr_find(nft_attr_find(expr, NFTA_IMMEDIATE_DATA), NFTA_DATA_VERDICT);
	chain = nft_attr_find(verdict, NFTA_VERDICT_CHAIN);
	code = (int)nft_attr_number(verdict, NFTA_VERDICT_CODE);
	if (!verdict) {
		load_unknown(reader);
	} else if (code == NFT_JUMP || code == NFT_GOTO) {
		if (!chain || effect->chain)
			return;
		effect->chain = str_ncopy(
			mnl_attr_get_str(chain),
			strnlen(mnl_attr_get_str(chain), mnl_attr_get_payload_len(chain)));
		effect->is_goto = code == NFT_GOTO;
	} else if (code == NFT_RETURN) {
		effect->verdicts = FORWARD_MAY_RETURN;
	} else if (code == NF_DROP) {
		effect->verdicts = FORWARD_MAY_DROP;
	} else if (code != NFT_CONTINUE && code != NFT_BREAK) {
		effect->verdicts = FORWARD_MAY_PASS;
	}
}

static void read_reject(struct effect_reader *reader, const struct nlattr *expr)
{
	(void)expr;
	reader->effect.verdicts = FORWARD_MAY_DROP;
}

/* A set lookup is a condition; a verdict map can contain any verdict. */
static void read_lookup(struct effect_reader *reader, const struct nlattr *expr)
{
	if (nft_attr_number(expr, NFTA_LOOKUP_DREG) == NFT_REG_VERDICT)
		reader->effect.verdicts |= FORWARD_MAY_PASS;
	read_condition(reader, expr);
}

static void read_neutral(struct effect_reader *reader, const struct nlattr *expr)
{
	(void)reader;
	(void)expr;
}

static void read_unknown(struct effect_reader *reader, const struct nlattr *expr)
{
	reader->effect.verdicts |= FORWARD_MAY_PASS;
	read_condition(reader, expr);
}

static const struct {
	const char *name; /* NULL in the last entry, which is for all other expressions */
	void (*read)(struct effect_reader *reader, const struct nlattr *expr);
} expressions[] = {
	{ "meta", read_meta },
	{ "ct", read_ct },
	{ "payload", read_payload },
	{ "bitwise", read_bitwise },
	{ "cmp", read_cmp },
	{ "immediate", read_immediate },
	{ "reject", read_reject },
	{ "lookup", read_lookup },
	{ "counter", read_neutral },
	{ "last", read_neutral },
	{ "log", read_neutral },
	{ "limit", read_condition },
	{ "quota", read_condition },
	{ "connlimit", read_condition },
	{ "range", read_condition },
	{ "fib", read_condition },
	{ "rt", read_condition },
	{ "exthdr", read_condition },
	{ "byteorder", read_condition },
	{ "match", read_condition },
	{ NULL, read_unknown },
};

static void read_expression(struct effect_reader *reader, const struct nlattr *item)
{
	const struct nlattr *name;
	size_t i = 0;

	name = nft_attr_find(item, NFTA_EXPR_NAME);
	while (expressions[i].name && (!name || strncmp(mnl_attr_get_str(name), expressions[i].name,
							mnl_attr_get_payload_len(name)) != 0))
		i++;
	expressions[i].read(reader, nft_attr_find(item, NFTA_EXPR_DATA));
}

static int read_rule(void *ctx, const struct nft_rule *rule, struct hw_err *e)
{
	struct rule_effects *effects = ctx;
	struct effect_reader reader = { .packet = effects->packet, .effect.match = ALWAYS };
	const struct nlattr *item;

	(void)e;
	load_unknown(&reader);
	if (rule->expressions)
		mnl_attr_for_each_nested(item, rule->expressions)
			read_expression(&reader, item);
	if (reader.effect.match == NEVER || (!reader.effect.verdicts && !reader.effect.chain)) {
		free(reader.effect.chain);
		return 0;
	}
	if (effects->n == effects->room) {
		effects->room = effects->room ? 2 * effects->room : 16;
		effects->v = mem_resize(effects->v, effects->room, sizeof(*effects->v));
	}
	effects->v[effects->n++] = reader.effect;
	return 0;
}

/* ---- chains ------------------------------------------------------------------------------ */

struct evaluation {
	struct nft *nft;
	const struct nft_chain_ref *place; /* the first chain */
	const struct forward_packet *packet;
	unsigned chains;      /* number of chains read so far */
	struct map *verdicts; /* by name of the chain: int */
};

static int evaluate_chain(struct evaluation *eval, const char *chain, unsigned depth,
			  struct hw_err *e);

/* Return: FORWARD_MAY_... bits of a chain that a rule leads to, or a negative errno */
static int evaluate_target(struct evaluation *eval, const char *chain, unsigned depth,
			   struct hw_err *e)
{
	int *known = map_find(eval->verdicts, chain);
	int r;

	if (known)
		return *known;
	r = evaluate_chain(eval, chain, depth, e);
	if (r < 0)
		return r;
	known = mem_new(sizeof(*known));
	*known = r;
	map_set(eval->verdicts, chain, known);
	return r;
}

/* Return: FORWARD_MAY_... bits, or a negative errno */
static int evaluate_chain(struct evaluation *eval, const char *chain, unsigned depth,
			  struct hw_err *e)
{
	AUTO(rule_effects_done) struct rule_effects effects = { .packet = eval->packet };
	struct nft_chain_ref place = { eval->place->family, eval->place->table, chain };
	int r, verdicts = 0;

	if (eval->chains >= CHAINS_MAX || depth > DEPTH_MAX) {
		log_debug("nftables chain %s %s is not checked completely: the limits are %d "
			  "chains and %d "
			  "nested jumps",
			  place.table, eval->place->chain, CHAINS_MAX, DEPTH_MAX);
		return FORWARD_MAY_PASS;
	}
	eval->chains++;
	r = nft_rule_each(eval->nft, &place, read_rule, &effects, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < effects.n; i++) {
		const struct rule_effect *effect = &effects.v[i];
		bool continues = false;

		if (effect->chain) {
			r = evaluate_target(eval, effect->chain, depth + 1, e);
			if (r < 0)
				return r;
			continues = !effect->is_goto && (r & FORWARD_MAY_RETURN);
			verdicts |= continues ? r & ~FORWARD_MAY_RETURN : r;
		}
		verdicts |= (int)effect->verdicts;
		if ((verdicts & FORWARD_MAY_PASS) || (effect->match == ALWAYS && !continues))
			return verdicts;
	}
	return verdicts | FORWARD_MAY_RETURN;
}

int forward_evaluate_chain(struct nft *nft, const struct nft_chain_ref *place,
			   const struct forward_packet *packet, struct hw_err *e)
{
	AUTO(map_free) struct map *verdicts = map_new(free);
	struct evaluation eval = { nft, place, packet, 0, verdicts };

	return evaluate_chain(&eval, place->chain, 0, e);
}
