/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/forward/forward.c - let marked packets pass the FORWARD chain of iptables
 *
 * How:   the rules of the chain are read, and missing ones are added in a batch
 *        that the kernel rejects if anything has changed in between. So concurrent
 *        processes add each rule only once.
 *        A jump after the accepting rule is treated as missing: the administrator
 *        could not override anything there.
 */
#include "net/forward/forward.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <string.h>
#include <sys/socket.h>

#include "base/ip.h"
#include "base/str.h"
#include "net/nft/iptables.h"
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

static struct iptables_rule jump_rule(const struct forward *forward)
{
	return (struct iptables_rule){ .verdict = NFT_JUMP, .chain = forward->admin };
}

static struct iptables_rule accept_rule(const struct forward *forward)
{
	return (struct iptables_rule){ .verdict = NF_ACCEPT,
				       .mark = { forward->mark, forward->mark } };
}

struct forward_rules {
	const struct forward *forward;
	bool no_chain;	       /* the chain FORWARD does not exist */
	uint64_t jump, accept; /* handles; 0: missing */
};

static int match_rule(void *ctx, const struct nft_rule *rule, struct hw_err *e)
{
	struct forward_rules *rules = ctx;
	struct iptables_rule jump = jump_rule(rules->forward), accept = accept_rule(rules->forward);

	(void)e;
	if (rules->accept)
		return 0;
	if (iptables_is_rule(rule, &accept))
		rules->accept = rule->handle;
	else if (iptables_is_rule(rule, &jump))
		rules->jump = rule->handle;
	return 0;
}

static int find_rules(struct nft *nft, const struct forward *forward,
		      struct forward_rules *ret_rules, struct hw_err *e)
{
	struct nft_chain_ref place = filter_chain(forward, "FORWARD");
	int r;

	*ret_rules = (struct forward_rules){ .forward = forward };
	r = nft_has_chain(nft, &place, e);
	ret_rules->no_chain = r == 0;
	return r <= 0 ? r : nft_rule_each(nft, &place, match_rule, ret_rules, e);
}

/* Without a chain FORWARD all packets pass, and no rules are needed, unless the administrator has
 * rules that must apply.
 * Return: 1 if a rule is missing, 0 if not, or a negative errno */
static int needs_rules(struct nft *nft, const struct forward *forward,
		       const struct forward_rules *rules, struct hw_err *e)
{
	struct nft_chain_ref admin = filter_chain(forward, forward->admin);

	if (!rules->no_chain)
		return !rules->jump || !rules->accept;
	return forward->create ? 1 : nft_has_chain(nft, &admin, e);
}

int forward_has_rules(struct nft *nft, const struct forward *forward, bool *ret_no_chain,
		      struct hw_err *e)
{
	struct forward_rules rules;
	int r;

	r = find_rules(nft, forward, &rules, e);
	if (r >= 0)
		r = needs_rules(nft, forward, &rules, e);
	*ret_no_chain = rules.no_chain;
	return r < 0 ? r : !r;
}

/* ---- add and remove ---------------------------------------------------------------------- */

static int add_rules_once(struct nft *nft, const struct forward *forward, struct hw_err *e)
{
	struct nft_chain_ref place = filter_chain(forward, "FORWARD");
	struct nft_chain_ref admin = filter_chain(forward, forward->admin);
	struct iptables_rule jump = jump_rule(forward), accept = accept_rule(forward);
	struct forward_rules rules;
	uint32_t generation = 0;
	int r;

	r = nft_get_generation(nft, &generation, e);
	if (r >= 0)
		r = find_rules(nft, forward, &rules, e);
	if (r >= 0)
		r = needs_rules(nft, forward, &rules, e);
	if (r <= 0)
		return r;
	nft_batch_begin(nft, generation);
	if (rules.no_chain)
		iptables_put_forward(nft, &place);
	iptables_put_chain(nft, &admin);
	if (!rules.accept)
		iptables_put_rule(nft, &place, &accept, rules.jump);
	if (!rules.jump)
		iptables_put_rule(nft, &place, &jump, IPTABLES_TOP);
	r = nft_batch_commit(nft, e);
	return r < 0 ? err_ctx(e, "accept pod traffic in chain FORWARD of %stables",
			       forward->family == AF_INET ? "ip" : "ip6")
		     : 0;
}

int forward_add_rules(struct nft *nft, const struct forward *forward, struct hw_err *e)
{
	struct nft_retry retry = nft_retry_start();

	for (;;) {
		int r;

		r = add_rules_once(nft, forward, e);
		if (r != -ERESTART)
			return r < 0 ? r : 0;
		r = nft_retry_wait(&retry, e);
		if (r < 0)
			return r;
	}
}

#define REMOVE_RULES "remove rules from chain FORWARD of the filter table"

/* Keeps a chain that has rules, or to which other rules jump (-EBUSY).
 * Return: 1 if the chain was deleted, 0 if not, or a negative errno */
static int delete_unused_chain(struct nft *nft, const struct nft_chain_ref *place, struct hw_err *e)
{
	int r;

	nft_batch_begin(nft, 0);
	iptables_put_delete_chain(nft, place);
	r = nft_batch_commit(nft, e);
	if (r == -ENOENT || r == -EBUSY)
		return 0;
	return r < 0 ? err_ctx(e, REMOVE_RULES) : 1;
}

int forward_remove_rules(struct nft *nft, const struct forward *forward, struct hw_err *e)
{
	struct nft_chain_ref place = filter_chain(forward, "FORWARD");
	struct nft_chain_ref admin = filter_chain(forward, forward->admin);
	bool removed = false;
	int r;

	/* iptables-restore --noflush adds copies of the rules. */
	for (;;) {
		struct forward_rules rules;

		r = find_rules(nft, forward, &rules, e);
		if (r < 0)
			return r;
		if (!rules.jump && !rules.accept)
			break;
		nft_batch_begin(nft, 0);
		iptables_put_delete(nft, &place, rules.jump);
		iptables_put_delete(nft, &place, rules.accept);
		r = nft_batch_commit(nft, e);
		if (r < 0)
			return err_ctx(e, REMOVE_RULES);
		removed = true;
	}
	if (!removed)
		return 0;
	r = delete_unused_chain(nft, &admin, e);
	return r < 0 ? r : 1;
}

int forward_remove_chain(struct nft *nft, int family, struct hw_err *e)
{
	struct nft_chain_ref place = { nf_family(family), "filter", "FORWARD" };
	struct nft_chain_info chain;
	int r;

	r = nft_get_chain(nft, &place, &chain, e);
	if (r <= 0 || chain.policy != NF_ACCEPT)
		return r < 0 ? r : 0;
	r = delete_unused_chain(nft, &place, e);
	if (r <= 0)
		return r;
	nft_batch_begin(nft, 0);
	iptables_put_delete_table(nft, &place);
	r = nft_batch_commit(nft, e);
	return r < 0 && r != -ENOENT && r != -EBUSY ? err_ctx(e, REMOVE_RULES) : 1;
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
	int r;

	*ret_place = (struct nft_chain_ref){ nf_family(ip->family), "filter", "CNI-FORWARD" };
	*ret_rules = (struct upstream_rules){ .ip = ip };
	r = nft_has_chain(nft, ret_place, e);
	return r <= 0 ? r : nft_rule_each(nft, ret_place, match_upstream_rule, ret_rules, e);
}

int forward_has_upstream_rules(struct nft *nft, const struct hw_ip *ip, struct hw_err *e)
{
	struct nft_chain_ref place;
	struct upstream_rules rules;
	int r;

	r = find_upstream_rules(nft, ip, &place, &rules, e);
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
			iptables_put_delete(nft, &place, rules.handles[i]);
		r = nft_batch_commit(nft, e);
		if (r < 0)
			err_ctx(e, "remove rules from chain CNI-FORWARD of the filter table");
	}
	return r < 0 ? r : 0;
}
