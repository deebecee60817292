/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/iptables.c - rules and chains in the format of iptables
 *
 * How:   iptables-nft stores most matches and targets as an expression with the data of
 *        the older kernel interface: among them the match "connmark" and the target
 *        MASQUERADE. The match "mark" and the verdicts are expressions of nftables.
 */
#include "net/nft/iptables.h"

#include <arpa/inet.h>
#include <assert.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/x_tables.h>
#include <linux/netfilter/xt_connmark.h>
#include <string.h>

#include "base/str.h"
#include "net/nft/wire.h"

static bool is_equal_mark(const struct nft_mark *a, const struct nft_mark *b)
{
	return a->mask == b->mask && a->value == b->value;
}

bool iptables_is_rule(const struct nft_rule *rule, const struct iptables_rule *wanted)
{
	return rule->verdict == wanted->verdict && is_equal_mark(&rule->mark, &wanted->mark) &&
	       is_equal_mark(&rule->ct_mark, &wanted->ct_mark) && !rule->source.len &&
	       !rule->target.len && !rule->unknown &&
	       str_equal(rule->chain, str_or(wanted->chain, ""));
}

/* ---- expressions -------------------------------------------------------------------------- */

struct expr_nest {
	struct nlattr *item, *data;
};

static struct expr_nest begin_expr(struct nlmsghdr *m, const char *name)
{
	struct expr_nest x = { .item = mnl_attr_nest_start(m, NFTA_LIST_ELEM) };

	mnl_attr_put_strz(m, NFTA_EXPR_NAME, name);
	x.data = mnl_attr_nest_start(m, NFTA_EXPR_DATA);
	return x;
}

static void end_expr(struct nlmsghdr *m, struct expr_nest x)
{
	mnl_attr_nest_end(m, x.data);
	mnl_attr_nest_end(m, x.item);
}

static void put_number(struct nlmsghdr *m, uint16_t type, uint32_t n)
{
	mnl_attr_put_u32(m, type, htonl(n));
}

static void put_mark(struct nlmsghdr *m, uint16_t type, uint32_t mark)
{
	struct nlattr *nest = mnl_attr_nest_start(m, type);

	mnl_attr_put(m, NFTA_DATA_VALUE, sizeof(mark), &mark);
	mnl_attr_nest_end(m, nest);
}

/* -m mark --mark VALUE/MASK, as iptables 1.8.9 and later store it */
static void put_mark_match(struct nlmsghdr *m, const struct nft_mark *mark)
{
	struct expr_nest x = begin_expr(m, "meta");

	put_number(m, NFTA_META_KEY, NFT_META_MARK);
	put_number(m, NFTA_META_DREG, NFT_REG_1);
	end_expr(m, x);
	x = begin_expr(m, "bitwise");
	put_number(m, NFTA_BITWISE_SREG, NFT_REG_1);
	put_number(m, NFTA_BITWISE_DREG, NFT_REG_1);
	put_number(m, NFTA_BITWISE_LEN, sizeof(mark->mask));
	put_mark(m, NFTA_BITWISE_MASK, mark->mask);
	put_mark(m, NFTA_BITWISE_XOR, 0);
	end_expr(m, x);
	x = begin_expr(m, "cmp");
	put_number(m, NFTA_CMP_SREG, NFT_REG_1);
	put_number(m, NFTA_CMP_OP, NFT_CMP_EQ);
	put_mark(m, NFTA_CMP_DATA, mark->value);
	end_expr(m, x);
}

/* -m connmark --mark VALUE/MASK */
static void put_ct_mark_match(struct nlmsghdr *m, const struct nft_mark *mark)
{
	char data[XT_ALIGN(sizeof(struct xt_connmark_mtinfo1))] = { 0 };
	struct xt_connmark_mtinfo1 info = { .mark = mark->value, .mask = mark->mask };
	struct expr_nest x = begin_expr(m, "match");

	memcpy(data, &info, sizeof(info));
	mnl_attr_put_strz(m, NFTA_MATCH_NAME, "connmark");
	put_number(m, NFTA_MATCH_REV, 1);
	mnl_attr_put(m, NFTA_MATCH_INFO, sizeof(data), data);
	end_expr(m, x);
}

/* -j MASQUERADE without options. The data are addresses and ports, none of which is set. */
static void put_masquerade(struct nlmsghdr *m, uint8_t family)
{
	static const struct nf_nat_ipv4_multi_range_compat ip4 = { .rangesize = 1 };
	static const struct nf_nat_range ip6;
	struct expr_nest x = begin_expr(m, "target");

	mnl_attr_put_strz(m, NFTA_TARGET_NAME, "MASQUERADE");
	put_number(m, NFTA_TARGET_REV, 0);
	if (family == NFPROTO_IPV4)
		mnl_attr_put(m, NFTA_TARGET_INFO, sizeof(ip4), &ip4);
	else
		mnl_attr_put(m, NFTA_TARGET_INFO, sizeof(ip6), &ip6);
	end_expr(m, x);
}

static void put_verdict(struct nlmsghdr *m, const struct iptables_rule *rule)
{
	struct expr_nest x = begin_expr(m, "immediate");
	struct nlattr *data, *verdict;

	put_number(m, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = mnl_attr_nest_start(m, NFTA_IMMEDIATE_DATA);
	verdict = mnl_attr_nest_start(m, NFTA_DATA_VERDICT);
	put_number(m, NFTA_VERDICT_CODE, (uint32_t)rule->verdict);
	if (rule->chain)
		mnl_attr_put_strz(m, NFTA_VERDICT_CHAIN, rule->chain);
	mnl_attr_nest_end(m, verdict);
	mnl_attr_nest_end(m, data);
	end_expr(m, x);
}

/* ---- rules -------------------------------------------------------------------------------- */

void iptables_put_rule(struct nft *nft, const struct nft_chain_ref *place,
		       const struct iptables_rule *rule, uint64_t after)
{
	struct nlmsghdr *m = nft_start_message(
		nft, NFT_MSG_NEWRULE, NLM_F_CREATE | (after != IPTABLES_TOP ? NLM_F_APPEND : 0),
		place->family);
	struct nlattr *list;
	struct expr_nest x;

	mnl_attr_put_strz(m, NFTA_RULE_TABLE, place->table);
	mnl_attr_put_strz(m, NFTA_RULE_CHAIN, place->chain);
	if (after != IPTABLES_TOP && after != IPTABLES_END)
		mnl_attr_put_u64(m, NFTA_RULE_POSITION, after);
	list = mnl_attr_nest_start(m, NFTA_RULE_EXPRESSIONS);
	if (rule->mark.mask)
		put_mark_match(m, &rule->mark);
	if (rule->ct_mark.mask)
		put_ct_mark_match(m, &rule->ct_mark);
	x = begin_expr(m, "counter");
	end_expr(m, x);
	if (rule->verdict == NFT_RULE_MASQUERADES)
		put_masquerade(m, place->family);
	else
		put_verdict(m, rule);
	mnl_attr_nest_end(m, list);
	nft_end_message(nft, m);
}

void iptables_put_delete(struct nft *nft, const struct nft_chain_ref *place, uint64_t handle)
{
	struct nlmsghdr *m;

	if (!handle)
		return;
	m = nft_start_message(nft, NFT_MSG_DELRULE, 0, place->family);
	mnl_attr_put_strz(m, NFTA_RULE_TABLE, place->table);
	mnl_attr_put_strz(m, NFTA_RULE_CHAIN, place->chain);
	mnl_attr_put_u64(m, NFTA_RULE_HANDLE, handle);
	nft_end_message(nft, m);
	nft->deleted = true;
}

/* ---- chains ------------------------------------------------------------------------------- */

static struct nlmsghdr *start_chain(struct nft *nft, uint16_t type, uint16_t flags,
				    const struct nft_chain_ref *place)
{
	struct nlmsghdr *m = nft_start_message(nft, type, flags, place->family);

	mnl_attr_put_strz(m, NFTA_CHAIN_TABLE, place->table);
	mnl_attr_put_strz(m, NFTA_CHAIN_NAME, place->chain);
	return m;
}

void iptables_put_chain(struct nft *nft, const struct nft_chain_ref *place)
{
	nft_end_message(nft, start_chain(nft, NFT_MSG_NEWCHAIN, NLM_F_CREATE, place));
}

void iptables_put_forward(struct nft *nft, const struct nft_chain_ref *place)
{
	struct nlmsghdr *m = nft_start_message(nft, NFT_MSG_NEWTABLE, NLM_F_CREATE, place->family);
	struct nlattr *hook;

	mnl_attr_put_strz(m, NFTA_TABLE_NAME, place->table);
	nft_end_message(nft, m);
	m = start_chain(nft, NFT_MSG_NEWCHAIN, NLM_F_CREATE, place);
	hook = mnl_attr_nest_start(m, NFTA_CHAIN_HOOK);
	put_number(m, NFTA_HOOK_HOOKNUM, NF_INET_FORWARD);
	put_number(m, NFTA_HOOK_PRIORITY, 0);
	mnl_attr_nest_end(m, hook);
	put_number(m, NFTA_CHAIN_POLICY, NF_ACCEPT);
	mnl_attr_put_strz(m, NFTA_CHAIN_TYPE, "filter");
	nft_end_message(nft, m);
}

void iptables_put_delete_chain(struct nft *nft, const struct nft_chain_ref *place)
{
	nft_end_message(nft, start_chain(nft, NFT_MSG_DELCHAIN, NLM_F_NONREC, place));
	nft->deleted = true;
}

void iptables_put_delete_table(struct nft *nft, const struct nft_chain_ref *place)
{
	struct nlmsghdr *m = nft_start_message(nft, NFT_MSG_DELTABLE, NLM_F_NONREC, place->family);

	mnl_attr_put_strz(m, NFTA_TABLE_NAME, place->table);
	nft_end_message(nft, m);
	nft->deleted = true;
}
