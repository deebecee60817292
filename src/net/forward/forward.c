/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/forward/forward.c - let marked packets through the FORWARD chain of iptables
 *
 * How:   the chain's rules are read, and what is missing is put, in a batch that
 *        the kernel refuses when anything has been changed in between: two that do
 *        this at once put each rule once.
 *        A jump that stands behind the rule that accepts does not count: nobody
 *        could overrule anything there.
 * Rules: never a set lookup in a table of iptables: it would print the rule
 *        without it, and a restore would let everything pass.
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

#define TRIES 1000 /* against others' changes */

static uint8_t family_of(int family)
{
	return family == AF_INET ? NFPROTO_IPV4 : NFPROTO_IPV6;
}

static struct nft_place in_filter(const struct forward *forward, const char *chain)
{
	return (struct nft_place){ family_of(forward->family), "filter", chain };
}

/* ---- what is there ------------------------------------------------------------------------- */

struct look {
	const struct forward *forward;
	uint64_t jump, accept; /* handles; 0: not there */
};

static int look_at_rule(void *ctx, const struct nft_rule *rule, struct hw_err *e)
{
	struct look *look = ctx;

	(void)e;
	if (look->accept)
		return 0;
	if (nft_rule_accepts_mark(rule, look->forward->mark))
		look->accept = rule->handle;
	else if (rule->verdict == NFT_JUMP && nft_rule_is_unconditional(rule) &&
		 str_equal(rule->chain, look->forward->admin))
		look->jump = rule->handle;
	return 0;
}

/* Return: 1, or 0 when there is no such chain */
static int look_at_chain(struct nft *nft, const struct forward *forward, struct look *ret_look,
			 struct hw_err *e)
{
	struct nft_place place = in_filter(forward, "FORWARD");

	*ret_look = (struct look){ .forward = forward };
	int r = nft_has_chain(nft, &place, e);
	if (r <= 0)
		return r;
	r = nft_rule_each(nft, &place, look_at_rule, ret_look, e);
	return r < 0 ? r : 1;
}

/**
 * forward_has_rules() - does FORWARD let the mark pass, or is there none?
 */
int forward_has_rules(struct nft *nft, const struct forward *forward, struct hw_err *e)
{
	struct look look;

	int r = look_at_chain(nft, forward, &look, e);
	if (r <= 0)
		return r < 0 ? r : 1;
	return look.jump && look.accept;
}

/* ---- rules as iptables makes them -------------------------------------------------------------- */

struct expression {
	struct nlattr *item, *data;
};

static struct expression begin(struct nlmsghdr *m, const char *name)
{
	struct expression x = { .item = mnl_attr_nest_start(m, NFTA_LIST_ELEM) };

	mnl_attr_put_strz(m, NFTA_EXPR_NAME, name);
	x.data = mnl_attr_nest_start(m, NFTA_EXPR_DATA);
	return x;
}

static void end(struct nlmsghdr *m, struct expression x)
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
	struct expression x = begin(m, "meta");

	put_number(m, NFTA_META_KEY, NFT_META_MARK);
	put_number(m, NFTA_META_DREG, NFT_REG_1);
	end(m, x);
	x = begin(m, "bitwise");
	put_number(m, NFTA_BITWISE_SREG, NFT_REG_1);
	put_number(m, NFTA_BITWISE_DREG, NFT_REG_1);
	put_number(m, NFTA_BITWISE_LEN, sizeof(mark));
	put_mark(m, NFTA_BITWISE_MASK, mark);
	put_mark(m, NFTA_BITWISE_XOR, 0);
	end(m, x);
	x = begin(m, "cmp");
	put_number(m, NFTA_CMP_SREG, NFT_REG_1);
	put_number(m, NFTA_CMP_OP, NFT_CMP_EQ);
	put_mark(m, NFTA_CMP_DATA, mark);
	end(m, x);
}

/* The counter, and -j */
static void put_verdict(struct nlmsghdr *m, int verdict, const char *chain)
{
	struct nlattr *data, *nest;
	struct expression x = begin(m, "counter");

	end(m, x);
	x = begin(m, "immediate");
	put_number(m, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = mnl_attr_nest_start(m, NFTA_IMMEDIATE_DATA);
	nest = mnl_attr_nest_start(m, NFTA_DATA_VERDICT);
	put_number(m, NFTA_VERDICT_CODE, (uint32_t)verdict);
	if (chain)
		mnl_attr_put_strz(m, NFTA_VERDICT_CHAIN, chain);
	mnl_attr_nest_end(m, nest);
	mnl_attr_nest_end(m, data);
	end(m, x);
}

/* At the top, or behind the rule @after */
static void put_rule(struct nft *nft, const struct forward *forward, uint64_t after, bool accepts)
{
	struct nlmsghdr *m =
		nft_start_message(nft, NFT_MSG_NEWRULE, NLM_F_CREATE | (after ? NLM_F_APPEND : 0),
				  family_of(forward->family));
	struct nlattr *list;

	mnl_attr_put_strz(m, NFTA_RULE_TABLE, "filter");
	mnl_attr_put_strz(m, NFTA_RULE_CHAIN, "FORWARD");
	if (after)
		mnl_attr_put_u64(m, NFTA_RULE_POSITION, after);
	list = mnl_attr_nest_start(m, NFTA_RULE_EXPRESSIONS);
	if (accepts)
		put_mark_match(m, forward->mark);
	put_verdict(m, accepts ? NF_ACCEPT : NFT_JUMP, accepts ? NULL : forward->admin);
	mnl_attr_nest_end(m, list);
	nft_end_message(nft, m);
}

/* Made, or left as it is */
static void put_admin_chain(struct nft *nft, const struct forward *forward)
{
	struct nlmsghdr *m =
		nft_start_message(nft, NFT_MSG_NEWCHAIN, NLM_F_CREATE, family_of(forward->family));

	mnl_attr_put_strz(m, NFTA_CHAIN_TABLE, "filter");
	mnl_attr_put_strz(m, NFTA_CHAIN_NAME, forward->admin);
	nft_end_message(nft, m);
}

/* ---- opening and closing ------------------------------------------------------------------------- */

static int open_once(struct nft *nft, const struct forward *forward, struct hw_err *e)
{
	uint32_t generation = 0;
	struct look look;

	int r = nft_get_generation(nft, &generation, e);
	if (r >= 0)
		r = look_at_chain(nft, forward, &look, e);
	if (r <= 0 || (look.jump && look.accept))
		return r < 0 ? r : 0;
	nft_batch_begin(nft, generation);
	put_admin_chain(nft, forward);
	if (!look.accept)
		put_rule(nft, forward, look.jump, true);
	if (!look.jump)
		put_rule(nft, forward, 0, false);
	e->msg[0] = '\0';
	return nft_batch_commit(nft, e);
}

/**
 * forward_add_rules() - have both rules in FORWARD, if there is such a chain
 */
int forward_add_rules(struct nft *nft, const struct forward *forward, struct hw_err *e)
{
	int r = -ERESTART;

	for (int tries = 0; r == -ERESTART && tries < TRIES; tries++)
		r = open_once(nft, forward, e);
	if (r < 0 && (!*e->msg || r == -ERESTART))
		return err_set(e, r, "let pods through chain FORWARD of %stables",
			       forward->family == AF_INET ? "ip" : "ip6");
	return r < 0 ? r : 0;
}

static void put_delete(struct nft *nft, const struct nft_place *place, uint64_t handle)
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

/* It is in use while other rules lead to it, which is no error. */
static int drop_admin_chain(struct nft *nft, const struct forward *forward, struct hw_err *e)
{
	struct nft_place place = in_filter(forward, forward->admin);
	struct nlmsghdr *m;
	unsigned rules = 0;

	int r = nft_rule_each(nft, &place, nft_rule_count, &rules, e);
	if (r < 0 || rules)
		return r;
	nft_batch_begin(nft, 0);
	m = nft_start_message(nft, NFT_MSG_DELCHAIN, 0, place.family);
	mnl_attr_put_strz(m, NFTA_CHAIN_TABLE, place.table);
	mnl_attr_put_strz(m, NFTA_CHAIN_NAME, place.chain);
	nft_end_message(nft, m);
	r = nft_batch_commit(nft, e);
	return r == -ENOENT || r == -EBUSY ? 0 : r;
}

/**
 * forward_remove_rules() - take both rules from FORWARD
 */
int forward_remove_rules(struct nft *nft, const struct forward *forward, struct hw_err *e)
{
	struct nft_place place = in_filter(forward, "FORWARD");
	struct look look;

	int r = look_at_chain(nft, forward, &look, e);
	if (r <= 0 || (!look.jump && !look.accept))
		return r < 0 ? r : 0;
	nft_batch_begin(nft, 0);
	put_delete(nft, &place, look.jump);
	put_delete(nft, &place, look.accept);
	e->msg[0] = '\0';
	r = nft_batch_commit(nft, e);
	if (r >= 0)
		r = drop_admin_chain(nft, forward, e);
	if (r < 0 && !*e->msg)
		return err_set(e, r, "clean chain FORWARD of table filter");
	return r < 0 ? r : 1;
}

/* ---- Go's rules ------------------------------------------------------------------------------------ */

struct gos {
	const struct hw_ip *ip;
	uint64_t handles[2]; /* to the pod, and from it */
	size_t n;
};

static int find_gos(void *ctx, const struct nft_rule *rule, struct hw_err *e)
{
	struct gos *gos = ctx;
	const struct nft_bytes *address = rule->source.len ? &rule->source : &rule->target;

	(void)e;
	if (rule->verdict == NF_ACCEPT && gos->n < ARRAY_SIZE(gos->handles) &&
	    address->len == ip_bits(gos->ip) / 8 &&
	    !memcmp(address->v, gos->ip->bytes, address->len))
		gos->handles[gos->n++] = rule->handle;
	return 0;
}

static int look_for_gos(struct nft *nft, const struct hw_ip *ip, struct nft_place *ret_place,
			struct gos *ret_gos, struct hw_err *e)
{
	*ret_place = (struct nft_place){ family_of(ip->family), "filter", "CNI-FORWARD" };
	*ret_gos = (struct gos){ .ip = ip };
	int r = nft_has_chain(nft, ret_place, e);
	return r <= 0 ? r : nft_rule_each(nft, ret_place, find_gos, ret_gos, e);
}

/**
 * forward_has_upstream_rules() - are the rules of Go's plugin for an address there?
 */
int forward_has_upstream_rules(struct nft *nft, const struct hw_ip *ip, struct hw_err *e)
{
	struct nft_place place;
	struct gos gos;

	int r = look_for_gos(nft, ip, &place, &gos, e);
	return r < 0 ? r : gos.n == ARRAY_SIZE(gos.handles);
}

static int drop_gos_once(struct nft *nft, const struct hw_ip *ip, struct hw_err *e)
{
	struct nft_place place;
	struct gos gos;

	int r = look_for_gos(nft, ip, &place, &gos, e);
	if (r < 0 || !gos.n)
		return r < 0 ? r : 0;
	nft_batch_begin(nft, 0);
	for (size_t i = 0; i < gos.n; i++)
		put_delete(nft, &place, gos.handles[i]);
	e->msg[0] = '\0';
	return nft_batch_commit(nft, e);
}

/**
 * forward_remove_upstream_rules() - remove the rules of chain CNI-FORWARD that are for one address
 *
 * Where somebody else has removed one of them meanwhile, nothing is: once more.
 */
int forward_remove_upstream_rules(struct nft *nft, const struct hw_ip *ip, struct hw_err *e)
{
	int r = -ENOENT;

	for (int tries = 0; r == -ENOENT && tries < TRIES; tries++)
		r = drop_gos_once(nft, ip, e);
	if (r >= 0)
		return 0;
	return *e->msg ? r : err_set(e, r, "clean chain CNI-FORWARD of table filter");
}
