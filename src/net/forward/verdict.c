/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/forward/verdict.c - what can become of a pod's packet in somebody's nftables chain
 *
 * How:   of what a rule loads some bits are known, so that a comparison is met
 *        surely, never or perhaps. A rule that is met perhaps adds to what is
 *        possible; one that is met surely and does not go on is the last.
 *        Jumps are followed.
 * Rules: what is not understood may let the packet pass, and so may what is too
 *        much to read: only who is certain that it is dropped may say so. What
 *        stands behind a rule that may let it pass is not looked at.
 */
#include "net/forward/verdict.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "net/nft/rule.h"

#define CHAINS_MAX 256 /* read for one answer, each as often as it is jumped to */
#define DEPTH_MAX  16  /* the kernel's own limit of jumps */

/* Beside FORWARD_...: to the rule behind it */
#define NEXT 8

enum match { NEVER, PERHAPS, SURELY };

/* What is in a register, as far as it is known */
struct loaded {
	uint8_t len;
	uint8_t known[NFT_KEY_MAX], value[NFT_KEY_MAX]; /* which bits, and what they are */
};

/* A rule that is not without consequence */
struct step {
	enum match match;
	unsigned ends;
	char *chain; /* whose ends it has; NULL: none */
	bool is_goto;
};

struct steps {
	const struct forward_packet *packet;
	struct step *v;
	size_t n, room;
};

static void steps_done(struct steps *steps)
{
	for (size_t i = 0; i < steps->n; i++)
		free(steps->v[i].chain);
	free(steps->v);
}
AUTO_VALUE_DEFINE(steps_done, struct steps);

struct reader {
	const struct forward_packet *packet;
	struct loaded loaded;
	struct step step;
};

/* ---- conditions ----------------------------------------------------------------------------- */

static void load_bits(struct reader *reader, uint32_t known, uint32_t value)
{
	reader->loaded = (struct loaded){ .len = sizeof(known) };
	memcpy(reader->loaded.known, &known, sizeof(known));
	memcpy(reader->loaded.value, &value, sizeof(value));
}

static void load_unknown(struct reader *reader)
{
	reader->loaded = (struct loaded){ .len = NFT_KEY_MAX };
}

/* (Without a register to load it into something is set, which decides nothing.) */
static void read_meta(struct reader *reader, const struct nlattr *expr)
{
	const struct forward_packet *packet = reader->packet;

	if (!nft_attr_find(expr, NFTA_META_DREG))
		return;
	load_unknown(reader);
	if (nft_attr_number(expr, NFTA_META_KEY) == NFT_META_MARK)
		load_bits(reader, packet->mark, packet->marked ? packet->mark : 0);
	if (nft_attr_number(expr, NFTA_META_KEY) == NFT_META_NFPROTO)
		reader->loaded = (struct loaded){ 1, { UINT8_MAX }, { packet->family } };
}

static void read_ct(struct reader *reader, const struct nlattr *expr)
{
	if (!nft_attr_find(expr, NFTA_CT_DREG))
		return;
	load_unknown(reader);
	if (nft_attr_number(expr, NFTA_CT_KEY) == NFT_CT_STATE)
		load_bits(reader, UINT32_MAX, NF_CT_STATE_BIT(IP_CT_NEW));
	if (nft_attr_number(expr, NFTA_CT_KEY) == NFT_CT_STATUS)
		load_bits(reader, IPS_NAT_MASK, 0);
}

static void read_payload(struct reader *reader, const struct nlattr *expr)
{
	if (nft_attr_find(expr, NFTA_PAYLOAD_DREG))
		load_unknown(reader);
}

/* Bits that the mask takes away are known. */
static void read_bitwise(struct reader *reader, const struct nlattr *expr)
{
	struct nft_bytes mask = nft_attr_data(expr, NFTA_BITWISE_MASK),
			 xor = nft_attr_data(expr, NFTA_BITWISE_XOR);
	struct loaded *loaded = &reader->loaded;

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

static enum match compare(const struct loaded *loaded, const struct nft_bytes *with)
{
	enum match match = SURELY;

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

static void demand(struct reader *reader, enum match match)
{
	if (match < reader->step.match)
		reader->step.match = match;
}

static void read_cmp(struct reader *reader, const struct nlattr *expr)
{
	struct nft_bytes with = nft_attr_data(expr, NFTA_CMP_DATA);
	enum match match = compare(&reader->loaded, &with);

	switch (nft_attr_number(expr, NFTA_CMP_OP)) {
	case NFT_CMP_EQ:
		demand(reader, match);
		break;
	case NFT_CMP_NEQ:
		demand(reader, match == NEVER ? SURELY : match == SURELY ? NEVER : PERHAPS);
		break;
	default:
		demand(reader, PERHAPS);
	}
}

static void read_condition(struct reader *reader, const struct nlattr *expr)
{
	(void)expr;
	demand(reader, PERHAPS);
	load_unknown(reader);
}

/* ---- consequences --------------------------------------------------------------------------- */

static void jump(struct reader *reader, const struct nlattr *verdict, bool is_goto)
{
	const struct nlattr *chain = nft_attr_find(verdict, NFTA_VERDICT_CHAIN);

	if (!chain || reader->step.chain)
		return;
	reader->step.chain =
		str_ncopy(mnl_attr_get_str(chain),
			  strnlen(mnl_attr_get_str(chain), mnl_attr_get_payload_len(chain)));
	reader->step.is_goto = is_goto;
}

static void read_immediate(struct reader *reader, const struct nlattr *expr)
{
	const struct nlattr *verdict =
		nft_attr_find(nft_attr_find(expr, NFTA_IMMEDIATE_DATA), NFTA_DATA_VERDICT);
	int code = (int)nft_attr_number(verdict, NFTA_VERDICT_CODE);

	if (!verdict)
		load_unknown(reader);
	else if (code == NFT_JUMP || code == NFT_GOTO)
		jump(reader, verdict, code == NFT_GOTO);
	else if (code == NFT_RETURN)
		reader->step.ends = FORWARD_LEAVES;
	else if (code == NF_DROP)
		reader->step.ends = FORWARD_DROPS;
	else if (code != NFT_CONTINUE && code != NFT_BREAK)
		reader->step.ends = FORWARD_PASSES;
}

static void read_reject(struct reader *reader, const struct nlattr *expr)
{
	(void)expr;
	reader->step.ends = FORWARD_DROPS;
}

/* In a set it is a condition; in a map there can be any verdict. */
static void read_lookup(struct reader *reader, const struct nlattr *expr)
{
	if (nft_attr_number(expr, NFTA_LOOKUP_DREG) == NFT_REG_VERDICT)
		reader->step.ends |= FORWARD_PASSES;
	read_condition(reader, expr);
}

static void read_nothing(struct reader *reader, const struct nlattr *expr)
{
	(void)reader;
	(void)expr;
}

static void read_anything(struct reader *reader, const struct nlattr *expr)
{
	reader->step.ends |= FORWARD_PASSES;
	read_condition(reader, expr);
}

static const struct {
	const char *name; /* NULL, at the end: any other */
	void (*read)(struct reader *reader, const struct nlattr *expr);
} expressions[] = {
	{ "meta", read_meta },
	{ "ct", read_ct },
	{ "payload", read_payload },
	{ "bitwise", read_bitwise },
	{ "cmp", read_cmp },
	{ "immediate", read_immediate },
	{ "reject", read_reject },
	{ "lookup", read_lookup },
	{ "counter", read_nothing },
	{ "last", read_nothing },
	{ "log", read_nothing },
	{ "limit", read_condition },
	{ "quota", read_condition },
	{ "connlimit", read_condition },
	{ "range", read_condition },
	{ "fib", read_condition },
	{ "rt", read_condition },
	{ "exthdr", read_condition },
	{ "byteorder", read_condition },
	{ "match", read_condition },
	{ NULL, read_anything },
};

static void read_expression(struct reader *reader, const struct nlattr *item)
{
	const struct nlattr *name = nft_attr_find(item, NFTA_EXPR_NAME);
	size_t i = 0;

	while (expressions[i].name && (!name || strncmp(mnl_attr_get_str(name), expressions[i].name,
							mnl_attr_get_payload_len(name)) != 0))
		i++;
	expressions[i].read(reader, nft_attr_find(item, NFTA_EXPR_DATA));
}

static int read_rule(void *ctx, const struct nft_rule *rule, struct hw_err *e)
{
	struct steps *steps = ctx;
	struct reader reader = { .packet = steps->packet, .step.match = SURELY };
	const struct nlattr *item;

	(void)e;
	load_unknown(&reader);
	if (rule->expressions)
		mnl_attr_for_each_nested(item, rule->expressions)
			read_expression(&reader, item);
	if (reader.step.match == NEVER || (!reader.step.ends && !reader.step.chain)) {
		free(reader.step.chain);
		return 0;
	}
	if (steps->n == steps->room) {
		steps->room = steps->room ? 2 * steps->room : 16;
		steps->v = mem_resize(steps->v, steps->room, sizeof(*steps->v));
	}
	steps->v[steps->n++] = reader.step;
	return 0;
}

/* ---- chains --------------------------------------------------------------------------------- */

struct judge {
	struct nft *nft;
	const struct nft_place *place; /* the first chain */
	const struct forward_packet *packet;
	unsigned chains; /* looked at so far */
};

static int judge_chain(struct judge *judge, const char *chain, unsigned depth, struct hw_err *e);

/* Return: what the rule can do, also NEXT */
static int judge_step(struct judge *judge, const struct step *step, unsigned depth,
		      struct hw_err *e)
{
	if (!step->chain)
		return (int)step->ends;
	int ends = judge_chain(judge, step->chain, depth + 1, e);
	if (ends > 0 && !step->is_goto && (ends & FORWARD_LEAVES))
		ends = (ends & ~FORWARD_LEAVES) | NEXT;
	return ends < 0 ? ends : ends | (int)step->ends;
}

static int judge_chain(struct judge *judge, const char *chain, unsigned depth, struct hw_err *e)
{
	AUTO(steps_done) struct steps steps = { .packet = judge->packet };
	struct nft_place place = { judge->place->family, judge->place->table, chain };
	int ends = 0;

	if (judge->chains >= CHAINS_MAX || depth > DEPTH_MAX)
		return FORWARD_PASSES;
	judge->chains++;
	int r = nft_rule_each(judge->nft, &place, read_rule, &steps, e);
	for (size_t i = 0; r >= 0 && i < steps.n; i++) {
		r = judge_step(judge, &steps.v[i], depth, e);
		if (r < 0)
			return r;
		ends |= r & ~NEXT;
		if ((ends & FORWARD_PASSES) || (steps.v[i].match == SURELY && !(r & NEXT)))
			return ends;
	}
	return r < 0 ? r : ends | FORWARD_LEAVES;
}

/**
 * forward_judge() - what can become of a packet in a chain?
 *
 * Reads at most CHAINS_MAX chains.
 */
int forward_judge(struct nft *nft, const struct nft_place *place,
		  const struct forward_packet *packet, struct hw_err *e)
{
	struct judge judge = { nft, place, packet, 0 };

	return judge_chain(&judge, place->chain, 0, e);
}
