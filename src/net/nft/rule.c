/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/rule.c - read a chain of any table, and its rules
 *
 * How:   a rule is a list of expressions that work on registers. iptables and nft
 *        always generate the sequence load, mask, compare, so a comparison uses the
 *        value that was loaded last. iptables stores the matches that it does not
 *        translate as one expression with the data of the older kernel interface:
 *        "connmark" in all versions, and "mark" in versions before 1.8.9.
 */
#include "net/nft/rule.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/xt_connmark.h>
#include <linux/netfilter/xt_mark.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "net/nft/wire.h"

/* The value in the register */
enum rule_value { NOTHING, MARK, CT_MARK, SOURCE, TARGET };

struct rule_reader {
	struct nft_rule rule;
	uint8_t family;
	enum rule_value loaded;
	uint32_t mask;
};

const struct nlattr *nft_attr_find(const struct nlattr *nest, uint16_t type)
{
	const struct nlattr *attr;

	if (nest)
		mnl_attr_for_each_nested(attr, nest)
			if (mnl_attr_get_type(attr) == type)
				return attr;
	return NULL;
}

uint32_t nft_attr_number(const struct nlattr *nest, uint16_t type)
{
	const struct nlattr *attr = nft_attr_find(nest, type);

	return attr && mnl_attr_get_payload_len(attr) >= sizeof(uint32_t)
		       ? ntohl(mnl_attr_get_u32(attr))
		       : UINT32_MAX;
}

struct nft_bytes nft_attr_data(const struct nlattr *nest, uint16_t type)
{
	const struct nlattr *attr;
	struct nft_bytes bytes = { 0 };

	attr = nft_attr_find(nft_attr_find(nest, type), NFTA_DATA_VALUE);
	if (!attr || mnl_attr_get_payload_len(attr) > sizeof(bytes.v))
		return bytes;
	bytes.len = (uint8_t)mnl_attr_get_payload_len(attr);
	memcpy(bytes.v, mnl_attr_get_payload(attr), bytes.len);
	return bytes;
}

static uint32_t bytes_to_mark(const struct nft_bytes *bytes)
{
	uint32_t mark = 0;

	memcpy(&mark, bytes->v, sizeof(mark));
	return mark;
}

/* ---- chains ------------------------------------------------------------------------------ */

static void decode_name(const struct nlattr *attr, char ret_text[NFT_CHAIN_TEXT])
{
	snprintf(ret_text, NFT_CHAIN_TEXT, "%.*s", (int)mnl_attr_get_payload_len(attr),
		 mnl_attr_get_str(attr));
}

void nft_chain_decode(const struct nlmsghdr *m, struct nft_chain_info *ret_chain)
{
	const struct nfgenmsg *head = mnl_nlmsg_get_payload(m);
	struct nft_chain_info chain = { .family = head->nfgen_family,
					.hook = UINT32_MAX,
					.policy = NF_ACCEPT };
	const struct nlattr *attr;

	mnl_attr_for_each(attr, m, sizeof(*head)) {
		switch (mnl_attr_get_type(attr)) {
		case NFTA_CHAIN_TABLE:
			decode_name(attr, chain.table);
			break;
		case NFTA_CHAIN_NAME:
			decode_name(attr, chain.name);
			break;
		case NFTA_CHAIN_HOOK:
			chain.hook = nft_attr_number(attr, NFTA_HOOK_HOOKNUM);
			chain.priority = (int)nft_attr_number(attr, NFTA_HOOK_PRIORITY);
			break;
		case NFTA_CHAIN_POLICY:
			chain.policy = ntohl(mnl_attr_get_u32(attr));
			break;
		default:
			break;
		}
	}
	*ret_chain = chain;
}

struct chain_callback {
	int (*each)(void *ctx, const struct nft_chain_info *chain, struct hw_err *e);
	void *ctx;
};

static int read_chain(void *ctx, const struct nlmsghdr *m, struct hw_err *e)
{
	struct chain_callback *callback = ctx;
	struct nft_chain_info chain;

	nft_chain_decode(m, &chain);
	return callback->each(callback->ctx, &chain, e);
}

static int copy_chain(void *ctx, const struct nlmsghdr *m, struct hw_err *e)
{
	(void)e;
	nft_chain_decode(m, ctx);
	return 0;
}

int nft_get_chain(struct nft *nft, const struct nft_chain_ref *place,
		  struct nft_chain_info *ret_chain, struct hw_err *e)
{
	struct nlmsghdr *m = nft_start_request(nft, NFT_MSG_GETCHAIN, 0, place->family);
	int r;

	if (strlen(place->chain) >= NFT_NAME_MAX)
		return 0;
	nft_put_name(m, NFTA_CHAIN_TABLE, place->table);
	nft_put_name(m, NFTA_CHAIN_NAME, place->chain);
	r = nft_send_request(nft, m, copy_chain, ret_chain, e);
	if (r == -ENOENT || (r < 0 && nft_is_unsupported(nft)))
		return 0;
	return r < 0 ? err_ctx(e, "find nftables chain %s of table %s", place->chain, place->table)
		     : 1;
}

int nft_chain_each(struct nft *nft,
		   int (*each)(void *ctx, const struct nft_chain_info *chain, struct hw_err *e),
		   void *ctx, struct hw_err *e)
{
	struct nlmsghdr *m = nft_start_request(nft, NFT_MSG_GETCHAIN, NLM_F_DUMP, NFPROTO_UNSPEC);
	struct chain_callback callback = { each, ctx };
	int r;

	r = nft_send_request(nft, m, read_chain, &callback, e);
	if (r == -ENOENT)
		return 0;
	return r < 0 ? err_ctx(e, "list nftables chains") : 0;
}

/* ---- expressions: the readers return false if an expression is unknown ------------------- */

static bool read_meta(struct rule_reader *reader, const struct nlattr *expr)
{
	bool is_mark = nft_attr_number(expr, NFTA_META_KEY) == NFT_META_MARK &&
		       nft_attr_find(expr, NFTA_META_DREG);

	reader->loaded = is_mark ? MARK : NOTHING;
	reader->mask = UINT32_MAX;
	return is_mark;
}

static bool read_ct(struct rule_reader *reader, const struct nlattr *expr)
{
	bool is_mark = nft_attr_number(expr, NFTA_CT_KEY) == NFT_CT_MARK &&
		       nft_attr_find(expr, NFTA_CT_DREG);

	reader->loaded = is_mark ? CT_MARK : NOTHING;
	reader->mask = UINT32_MAX;
	return is_mark;
}

static bool read_payload(struct rule_reader *reader, const struct nlattr *expr)
{
	uint32_t source = reader->family == NFPROTO_IPV4 ? 12 : 8;
	uint32_t len = reader->family == NFPROTO_IPV4 ? 4 : 16;
	uint32_t at = nft_attr_number(expr, NFTA_PAYLOAD_OFFSET);

	reader->loaded = NOTHING;
	if (nft_attr_number(expr, NFTA_PAYLOAD_BASE) != NFT_PAYLOAD_NETWORK_HEADER ||
	    nft_attr_number(expr, NFTA_PAYLOAD_LEN) != len || (at != source && at != source + len))
		return false;
	reader->loaded = at == source ? SOURCE : TARGET;
	return true;
}

static bool read_bitwise(struct rule_reader *reader, const struct nlattr *expr)
{
	struct nft_bytes mask = nft_attr_data(expr, NFTA_BITWISE_MASK),
			 xor = nft_attr_data(expr, NFTA_BITWISE_XOR);

	if ((reader->loaded != MARK && reader->loaded != CT_MARK) || mask.len != sizeof(uint32_t) ||
	    bytes_to_mark(&xor) != 0) {
		reader->loaded = NOTHING;
		return false;
	}
	reader->mask = bytes_to_mark(&mask);
	return true;
}

static bool read_cmp(struct rule_reader *reader, const struct nlattr *expr)
{
	struct nft_bytes value = nft_attr_data(expr, NFTA_CMP_DATA);

	if (nft_attr_number(expr, NFTA_CMP_OP) != NFT_CMP_EQ)
		return false;
	switch (reader->loaded) {
	case MARK:
		reader->rule.mark = (struct nft_mark){ bytes_to_mark(&value), reader->mask };
		return true;
	case CT_MARK:
		reader->rule.ct_mark = (struct nft_mark){ bytes_to_mark(&value), reader->mask };
		return true;
	case SOURCE:
		reader->rule.source = value;
		return true;
	case TARGET:
		reader->rule.target = value;
		return true;
	default:
		return false;
	}
}

static bool read_immediate(struct rule_reader *reader, const struct nlattr *expr)
{
	const struct nlattr *verdict, *chain;

	verdict = nft_attr_find(nft_attr_find(expr, NFTA_IMMEDIATE_DATA), NFTA_DATA_VERDICT);
	chain = nft_attr_find(verdict, NFTA_VERDICT_CHAIN);
	if (!verdict)
		return false;
	reader->rule.verdict = (int)nft_attr_number(verdict, NFTA_VERDICT_CODE);
	if (chain)
		snprintf(reader->rule.chain, sizeof(reader->rule.chain), "%.*s",
			 (int)mnl_attr_get_payload_len(chain), mnl_attr_get_str(chain));
	return true;
}

static bool read_counter(struct rule_reader *reader, const struct nlattr *expr)
{
	(void)reader;
	(void)expr;
	return true;
}

/* Does the attribute have this text, with or without a final NUL? */
static bool attr_is(const struct nlattr *attr, const char *text)
{
	size_t len = attr ? strnlen(mnl_attr_get_str(attr), mnl_attr_get_payload_len(attr)) : 0;

	return attr && len == strlen(text) && !memcmp(mnl_attr_get_str(attr), text, len);
}

/* A match of iptables. Both known ones have the same data. */
static bool read_match(struct rule_reader *reader, const struct nlattr *expr)
{
	const struct nlattr *name = nft_attr_find(expr, NFTA_MATCH_NAME);
	const struct nlattr *data = nft_attr_find(expr, NFTA_MATCH_INFO);
	struct xt_connmark_mtinfo1 info;

	static_assert(sizeof(info) == sizeof(struct xt_mark_mtinfo1), "same layout");
	if (!data || nft_attr_number(expr, NFTA_MATCH_REV) != 1 ||
	    mnl_attr_get_payload_len(data) < sizeof(info))
		return false;
	memcpy(&info, mnl_attr_get_payload(data), sizeof(info));
	if (info.invert)
		return false;
	if (attr_is(name, "mark"))
		reader->rule.mark = (struct nft_mark){ info.mark, info.mask };
	else if (attr_is(name, "connmark"))
		reader->rule.ct_mark = (struct nft_mark){ info.mark, info.mask };
	else
		return false;
	return true;
}

/* A target of iptables. Only MASQUERADE is known; its data are zero if it has no options, except the
 * number of ranges, which is 1 for IPv4. */
static bool read_target(struct rule_reader *reader, const struct nlattr *expr)
{
	const struct nlattr *info;

	info = nft_attr_find(expr, NFTA_TARGET_INFO);
	if (!info || !attr_is(nft_attr_find(expr, NFTA_TARGET_NAME), "MASQUERADE"))
		return false;
	const uint8_t *v = mnl_attr_get_payload(info);
	for (size_t i = reader->family == NFPROTO_IPV4 ? sizeof(uint32_t) : 0;
	     i < mnl_attr_get_payload_len(info); i++)
		if (v[i])
			return false;
	reader->rule.verdict = NFT_RULE_MASQUERADES;
	return true;
}

static bool read_reject(struct rule_reader *reader, const struct nlattr *expr)
{
	(void)expr;
	reader->rule.verdict = NFT_RULE_REJECTS;
	return true;
}

static const struct {
	const char *name;
	bool (*read)(struct rule_reader *reader, const struct nlattr *expr);
} expressions[] = {
	{ "meta", read_meta },	     { "ct", read_ct },
	{ "payload", read_payload }, { "bitwise", read_bitwise },
	{ "cmp", read_cmp },	     { "match", read_match },
	{ "counter", read_counter }, { "immediate", read_immediate },
	{ "reject", read_reject },   { "target", read_target },
};

static void read_expression(struct rule_reader *reader, const struct nlattr *item)
{
	const struct nlattr *name = nft_attr_find(item, NFTA_EXPR_NAME);

	for (size_t i = 0; i < ARRAY_SIZE(expressions); i++)
		if (attr_is(name, expressions[i].name) &&
		    expressions[i].read(reader, nft_attr_find(item, NFTA_EXPR_DATA)))
			return;
	reader->rule.unknown++;
}

/* ---- rules ------------------------------------------------------------------------------- */

struct rule_callback {
	nft_rule_each_fn *each;
	void *ctx;
	bool failed; /* each() did, and its error needs no context */
};

static int read_rule(void *ctx, const struct nlmsghdr *m, struct hw_err *e)
{
	struct rule_callback *callback = ctx;
	const struct nfgenmsg *head = mnl_nlmsg_get_payload(m);
	struct rule_reader reader = { .rule.verdict = NFT_RULE_CONTINUES,
				      .family = head->nfgen_family };
	const struct nlattr *attr, *item;
	int r;

	mnl_attr_for_each(attr, m, sizeof(struct nfgenmsg)) {
		if (mnl_attr_get_type(attr) == NFTA_RULE_HANDLE)
			reader.rule.handle = mnl_attr_get_u64(attr);
		else if (mnl_attr_get_type(attr) == NFTA_RULE_EXPRESSIONS)
			reader.rule.expressions = attr;
	}
	if (reader.rule.expressions)
		mnl_attr_for_each_nested(item, reader.rule.expressions)
			read_expression(&reader, item);
	r = callback->each(callback->ctx, &reader.rule, e);
	callback->failed = r < 0;
	return r;
}

int nft_rule_each(struct nft *nft, const struct nft_chain_ref *place, nft_rule_each_fn *each,
		  void *ctx, struct hw_err *e)
{
	struct nlmsghdr *m = nft_start_request(nft, NFT_MSG_GETRULE, NLM_F_DUMP, place->family);
	struct rule_callback callback = { .each = each, .ctx = ctx };
	int r;

	mnl_attr_put_strz(m, NFTA_RULE_TABLE, place->table);
	mnl_attr_put_strz(m, NFTA_RULE_CHAIN, place->chain);
	r = nft_send_request(nft, m, read_rule, &callback, e);
	if (r == -ENOENT)
		return 0;
	return r < 0 && !callback.failed ? err_ctx(e, "list nftables chain %s of table %s",
						   place->chain, place->table)
					 : r;
}

int nft_rule_count(void *ctx, const struct nft_rule *rule, struct hw_err *e)
{
	(void)rule;
	(void)e;
	++*(unsigned *)ctx;
	return 0;
}
