/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/forward/forward.c - let marked packets pass the FORWARD chain of iptables
 *
 * How:   the rules of the chain are read, and missing ones are added in a batch
 *        that the kernel rejects if anything has changed in between. So concurrent
 *        processes add each rule only once.
 *        A jump after the accepting rule is treated as missing: the administrator
 *        could not override anything there.
 * Rules: rules in a table of iptables must not contain a set lookup: iptables-save
 *        would print the rule without the lookup, and after a restore the rule would
 *        match all packets.
 */
#include "net/forward/forward.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/ip.h"
#include "base/str.h"
#include "net/nft/rule.h"
#include "net/nft/wire.h"

#define TRIES 1000 /* a concurrent change makes a try fail */

static uint8_t nf_family(int family)
{
	return family == AF_INET ? NFPROTO_IPV4 : NFPROTO_IPV6;
}

static struct nft_chain_ref filter_chain(const struct forward *forward, const char *chain)
{
	return (struct nft_chain_ref){ nf_family(forward->family), "filter", chain };
}

/* ---- find the rules ---------------------------------------------------------------------- */

struct forward_rules {
	const struct forward *forward;
	uint64_t jump, accept; /* handles; 0: missing */
};

static int match_rule(void *ctx, const struct nft_rule *rule, struct hw_err *e)
{
	struct forward_rules *rules = ctx;

	(void)e;
	if (rules->accept)
		return 0;
	if (nft_rule_accepts_mark(rule, rules->forward->mark))
		rules->accept = rule->handle;
	else if (rule->verdict == NFT_JUMP && nft_rule_is_unconditional(rule) &&
		 str_equal(rule->chain, rules->forward->admin))
		rules->jump = rule->handle;
	return 0;
}

/* Return: 1 if the chain was searched, 0 if there is no FORWARD chain, or a negative errno */
static int find_rules(struct nft *nft, const struct forward *forward,
		      struct forward_rules *ret_rules, struct hw_err *e)
{
	struct nft_chain_ref place = filter_chain(forward, "FORWARD");

	*ret_rules = (struct forward_rules){ .forward = forward };
	int r = nft_has_chain(nft, &place, e);
	if (r <= 0)
		return r;
	r = nft_rule_each(nft, &place, match_rule, ret_rules, e);
	return r < 0 ? r : 1;
}

int forward_has_rules(struct nft *nft, const struct forward *forward, struct hw_err *e)
{
	struct forward_rules rules;

	int r = find_rules(nft, forward, &rules, e);
	if (r <= 0)
		return r < 0 ? r : 1;
	return rules.jump && rules.accept;
}

/* ---- rules in the format of iptables ----------------------------------------------------- */

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

/* -m mark --mark MARK/MARK */
static void put_mark_match(struct nlmsghdr *m, uint32_t mark)
{
	struct expr_nest x = begin_expr(m, "meta");

	put_number(m, NFTA_META_KEY, NFT_META_MARK);
	put_number(m, NFTA_META_DREG, NFT_REG_1);
	end_expr(m, x);
	x = begin_expr(m, "bitwise");
	put_number(m, NFTA_BITWISE_SREG, NFT_REG_1);
	put_number(m, NFTA_BITWISE_DREG, NFT_REG_1);
	put_number(m, NFTA_BITWISE_LEN, sizeof(mark));
	put_mark(m, NFTA_BITWISE_MASK, mark);
	put_mark(m, NFTA_BITWISE_XOR, 0);
	end_expr(m, x);
	x = begin_expr(m, "cmp");
	put_number(m, NFTA_CMP_SREG, NFT_REG_1);
	put_number(m, NFTA_CMP_OP, NFT_CMP_EQ);
	put_mark(m, NFTA_CMP_DATA, mark);
	end_expr(m, x);
}

/* Adds a rule after the rule with handle @after, or at the top of the chain if @after is 0.
 * @accepts: add the rule that accepts the mark; else the jump */
static void put_rule(struct nft *nft, const struct forward *forward, uint64_t after, bool accepts)
{
	struct nlmsghdr *m =
		nft_start_message(nft, NFT_MSG_NEWRULE, NLM_F_CREATE | (after ? NLM_F_APPEND : 0),
				  nf_family(forward->family));
	struct nlattr *list, *data, *verdict;
	struct expr_nest x;

	mnl_attr_put_strz(m, NFTA_RULE_TABLE, "filter");
	mnl_attr_put_strz(m, NFTA_RULE_CHAIN, "FORWARD");
	if (after)
		mnl_attr_put_u64(m, NFTA_RULE_POSITION, after);
	list = mnl_attr_nest_start(m, NFTA_RULE_EXPRESSIONS);
	if (accepts)
		put_mark_match(m, forward->mark);
	x = begin_expr(m, "counter");
	end_expr(m, x);
	x = begin_expr(m, "immediate");
	put_number(m, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = mnl_attr_nest_start(m, NFTA_IMMEDIATE_DATA);
	verdict = mnl_attr_nest_start(m, NFTA_DATA_VERDICT);
	put_number(m, NFTA_VERDICT_CODE, (uint32_t)(accepts ? NF_ACCEPT : NFT_JUMP));
	if (!accepts)
		mnl_attr_put_strz(m, NFTA_VERDICT_CHAIN, forward->admin);
	mnl_attr_nest_end(m, verdict);
	mnl_attr_nest_end(m, data);
	end_expr(m, x);
	mnl_attr_nest_end(m, list);
	nft_end_message(nft, m);
}

/* ---- add and remove ---------------------------------------------------------------------- */

static int add_rules_once(struct nft *nft, const struct forward *forward, struct hw_err *e)
{
	struct forward_rules rules;
	uint32_t generation = 0;
	struct nlmsghdr *m;
	int r;

	r = nft_get_generation(nft, &generation, e);
	if (r < 0)
		return r;
	r = find_rules(nft, forward, &rules, e);
	if (r <= 0 || (rules.jump && rules.accept))
		return r < 0 ? r : 0;
	nft_batch_begin(nft, generation);
	/* Creates the administrator's chain if it does not exist. */
	m = nft_start_message(nft, NFT_MSG_NEWCHAIN, NLM_F_CREATE, nf_family(forward->family));
	mnl_attr_put_strz(m, NFTA_CHAIN_TABLE, "filter");
	mnl_attr_put_strz(m, NFTA_CHAIN_NAME, forward->admin);
	nft_end_message(nft, m);
	if (!rules.accept)
		put_rule(nft, forward, rules.jump, true);
	if (!rules.jump)
		put_rule(nft, forward, 0, false);
	r = nft_batch_commit(nft, e);
	return r < 0 ? err_ctx(e, "accept pod traffic in chain FORWARD of %stables",
			       forward->family == AF_INET ? "ip" : "ip6")
		     : 0;
}

int forward_add_rules(struct nft *nft, const struct forward *forward, struct hw_err *e)
{
	struct nft_retry retry = nft_retry_start();

	for (;;) {
		int r = add_rules_once(nft, forward, e);
		if (r != -ERESTART)
			return r < 0 ? r : 0;
		r = nft_retry_wait(&retry, e);
		if (r < 0)
			return r;
	}
}

static void put_delete(struct nft *nft, const struct nft_chain_ref *place, uint64_t handle)
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

#define REMOVE_RULES "remove rules from chain FORWARD of the filter table"

/* Keeps the chain if it has rules, or if other rules jump to it (-EBUSY). */
static int delete_admin_chain(struct nft *nft, const struct forward *forward, struct hw_err *e)
{
	struct nft_chain_ref place = filter_chain(forward, forward->admin);
	struct nlmsghdr *m;
	unsigned n = 0;

	int r = nft_rule_each(nft, &place, nft_rule_count, &n, e);
	if (r < 0 || n)
		return r;
	nft_batch_begin(nft, 0);
	m = nft_start_message(nft, NFT_MSG_DELCHAIN, 0, place.family);
	mnl_attr_put_strz(m, NFTA_CHAIN_TABLE, place.table);
	mnl_attr_put_strz(m, NFTA_CHAIN_NAME, place.chain);
	nft_end_message(nft, m);
	r = nft_batch_commit(nft, e);
	if (r >= 0 || r == -ENOENT || r == -EBUSY)
		return 0;
	return err_ctx(e, REMOVE_RULES);
}

int forward_remove_rules(struct nft *nft, const struct forward *forward, struct hw_err *e)
{
	struct nft_chain_ref place = filter_chain(forward, "FORWARD");
	struct forward_rules rules;

	int r = find_rules(nft, forward, &rules, e);
	if (r <= 0 || (!rules.jump && !rules.accept))
		return r < 0 ? r : 0;
	nft_batch_begin(nft, 0);
	put_delete(nft, &place, rules.jump);
	put_delete(nft, &place, rules.accept);
	r = nft_batch_commit(nft, e);
	if (r < 0)
		return err_ctx(e, REMOVE_RULES);
	r = delete_admin_chain(nft, forward, e);
	return r < 0 ? r : 1;
}

/* ---- upstream's rules -------------------------------------------------------------------- */

struct upstream_rules {
	const struct hw_ip *ip;
	uint64_t handles[2]; /* the rules for packets to the pod and from the pod */
	size_t n;
};

static int match_upstream_rule(void *ctx, const struct nft_rule *rule, struct hw_err *e)
{
	struct upstream_rules *rules = ctx;
	const struct nft_bytes *address = rule->source.len ? &rule->source : &rule->target;

	(void)e;
	if (rule->verdict == NF_ACCEPT && rules->n < ARRAY_SIZE(rules->handles) &&
	    address->len == ip_bits(rules->ip) / 8 &&
	    !memcmp(address->v, rules->ip->bytes, address->len))
		rules->handles[rules->n++] = rule->handle;
	return 0;
}

static int find_upstream_rules(struct nft *nft, const struct hw_ip *ip,
			       struct nft_chain_ref *ret_place, struct upstream_rules *ret_rules,
			       struct hw_err *e)
{
	*ret_place = (struct nft_chain_ref){ nf_family(ip->family), "filter", "CNI-FORWARD" };
	*ret_rules = (struct upstream_rules){ .ip = ip };
	int r = nft_has_chain(nft, ret_place, e);
	return r <= 0 ? r : nft_rule_each(nft, ret_place, match_upstream_rule, ret_rules, e);
}

int forward_has_upstream_rules(struct nft *nft, const struct hw_ip *ip, struct hw_err *e)
{
	struct nft_chain_ref place;
	struct upstream_rules rules;

	int r = find_upstream_rules(nft, ip, &place, &rules, e);
	return r < 0 ? r : rules.n == ARRAY_SIZE(rules.handles);
}

/* Retries if another process has deleted one of the rules since they were read (-ENOENT). */
int forward_remove_upstream_rules(struct nft *nft, const struct hw_ip *ip, struct hw_err *e)
{
	struct nft_chain_ref place;
	struct upstream_rules rules;
	int r = -ENOENT;

	for (int tries = 0; r == -ENOENT && tries < TRIES; tries++) {
		r = find_upstream_rules(nft, ip, &place, &rules, e);
		if (r < 0 || !rules.n)
			continue;
		nft_batch_begin(nft, 0);
		for (size_t i = 0; i < rules.n; i++)
			put_delete(nft, &place, rules.handles[i]);
		r = nft_batch_commit(nft, e);
		if (r < 0)
			err_ctx(e, "remove rules from chain CNI-FORWARD of the filter table");
	}
	return r < 0 ? r : 0;
}
