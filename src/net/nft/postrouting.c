/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/postrouting.c - masquerade pods after the administrator's rules in iptables
 *
 * How:   chain and set are read, and changed in a batch that the kernel rejects if
 *        anything has changed in between. So concurrent processes add the rule once.
 *        Other programs append their rules after ours. Each ADD and repair moves our rule
 *        to the end again.
 */
#include "net/nft/postrouting.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <sys/socket.h>

#include "net/nft/elem.h"
#include "net/nft/iptables.h"
#include "net/nft/wire.h"

#define PRIORITY 100	    /* of the chain; ruleset.nft sets the mark at priority 99 */
#define CT_MARK	 0x68617773 /* as in ruleset.nft */

static const struct iptables_rule masquerade = { .ct_mark = { CT_MARK, UINT32_MAX },
						 .verdict = NFT_RULE_MASQUERADES };

#define FAMILIES   2
#define COPIES_MAX 64 /* how many rules one transaction removes */

static const uint8_t protos[FAMILIES] = { NFPROTO_IPV4, NFPROTO_IPV6 };

struct postrouting {
	struct nft_chain_ref chain;
	struct nft_elem elem;
	bool has_chain, has_elem;
	size_t n; /* number of rules that are ours: iptables-restore --noflush adds copies */
	uint64_t handles[COPIES_MAX]; /* of the first rules that are ours */
	bool is_last;		      /* the last rule of the chain is ours */
};

static const char *program_of(const struct postrouting *found)
{
	return found->chain.family == NFPROTO_IPV4 ? "iptables" : "ip6tables";
}

/* ---- read ---------------------------------------------------------------------------------- */

/* A chain POSTROUTING with another priority does not belong to iptables. At a lower priority
 * connections would not have the mark yet. */
static bool is_iptables_chain(const struct nlmsghdr *m)
{
	struct nft_chain_info info;

	nft_chain_decode(m, &info);
	return info.hook == NF_INET_POST_ROUTING && info.priority == PRIORITY;
}

/* There are two requests for each family, in the order of protos[]: element and chain. */
struct reply_reader {
	struct postrouting *found;
	uint32_t first; /* sequence number of the first request */
};

static int read_reply(void *ctx, const struct nlmsghdr *m, struct hw_err *e)
{
	const struct reply_reader *reader = ctx;
	uint32_t i = m->nlmsg_seq - reader->first;
	struct postrouting *found = &reader->found[i / 2];

	(void)e;
	if (i % 2 == 0)
		found->has_elem = true;
	else
		found->has_chain = is_iptables_chain(m);
	return 0;
}

static int match_rule(void *ctx, const struct nft_rule *rule, struct hw_err *e)
{
	struct postrouting *found = ctx;
	bool ours = iptables_is_rule(rule, &masquerade);

	(void)e;
	if (ours && found->n < COPIES_MAX)
		found->handles[found->n] = rule->handle;
	found->n += ours;
	found->is_last = ours;
	return 0;
}

/* Reads the set and the chain of both families with one request; reads the rules of @families. */
static int find(struct nft *nft, unsigned families, struct postrouting ret_found[FAMILIES],
		struct hw_err *e)
{
	struct reply_reader reader = { ret_found, nft_start_requests(nft) };
	int r;

	for (size_t f = 0; f < FAMILIES; f++) {
		struct postrouting *found = &ret_found[f];
		struct nlmsghdr *m;

		*found = (struct postrouting){ .chain = { protos[f], "nat", "POSTROUTING" },
					       .elem = nft_elem(NFT_INET, "iptables", NFT_SHARED) };
		nft_key_proto(&found->elem, protos[f]);
		nft_key_proto(&found->elem, protos[f]);
		m = nft_start_message(nft, NFT_MSG_GETSETELEM, 0, nft_family(NFT_INET));
		nft_elem_encode(m, &found->elem, NULL);
		nft_end_message(nft, m);
		m = nft_start_message(nft, NFT_MSG_GETCHAIN, 0, protos[f]);
		nft_put_name(m, NFTA_CHAIN_TABLE, found->chain.table);
		nft_put_name(m, NFTA_CHAIN_NAME, found->chain.chain);
		nft_end_message(nft, m);
	}
	r = nft_send_requests(nft, read_reply, &reader, e);
	if (r < 0)
		return err_ctx(e, "find chain POSTROUTING of iptables");
	for (size_t f = 0; r >= 0 && f < FAMILIES; f++)
		if (families & 1U << f && ret_found[f].has_chain)
			r = nft_rule_each(nft, &ret_found[f].chain, match_rule, &ret_found[f], e);
	return r;
}

static bool has_one_at_end(const struct postrouting *found)
{
	return found->is_last && found->n == 1;
}

static bool is_complete(const struct postrouting *found)
{
	if (!found->has_chain)
		return !found->has_elem;
	return found->has_elem && has_one_at_end(found);
}

int postrouting_find_incomplete(struct nft *nft, unsigned families, struct hw_err *e)
{
	struct postrouting found[FAMILIES];
	unsigned incomplete = 0;
	int r;

	r = find(nft, families, found, e);
	for (size_t f = 0; r >= 0 && f < FAMILIES; f++)
		incomplete |= is_complete(&found[f]) ? 0 : 1U << f;
	return r < 0 ? r : (int)(incomplete & families);
}

int postrouting_check(struct nft *nft, unsigned families, struct hw_err *e)
{
	struct postrouting found[FAMILIES];
	int r;

	r = find(nft, families, found, e);
	for (size_t f = 0; r >= 0 && f < FAMILIES; f++)
		if (families & 1U << f && found[f].has_elem && !found[f].n)
			return err_text(e, -ENOENT,
					"chain POSTROUTING of %s lacks our rule, so pods are not "
					"masqueraded; hawser-plugin repair restores it",
					program_of(&found[f]));
	return r;
}

/* ---- change -------------------------------------------------------------------------------- */

static void put_elem(struct nft *nft, const struct postrouting *found, bool wanted)
{
	struct nlmsghdr *m;

	if (found->has_elem == wanted)
		return;
	m = nft_start_message(nft, wanted ? NFT_MSG_NEWSETELEM : NFT_MSG_DELSETELEM,
			      wanted ? NLM_F_CREATE : 0, nft_family(NFT_INET));
	nft_elem_encode(m, &found->elem, wanted ? "" : NULL);
	nft_end_message(nft, m);
}

/* Changes the set, and the rule: adds it, moves it to the end, or removes it if it is not wanted; in any
 * case removes its copies.
 * Return: 0; -ERESTART if anything has changed since @found was read, or if there are more copies; or
 * another negative errno */
static int change(struct nft *nft, uint32_t generation, const struct postrouting *found,
		  bool wanted, struct hw_err *e)
{
	int r;

	nft_batch_begin(nft, generation);
	put_elem(nft, found, wanted);
	if (!wanted || !has_one_at_end(found))
		for (size_t i = 0; i < found->n && i < COPIES_MAX; i++)
			iptables_put_delete(nft, &found->chain, found->handles[i]);
	if (wanted && !has_one_at_end(found))
		iptables_put_rule(nft, &found->chain, &masquerade, IPTABLES_END);
	r = nft_batch_commit(nft, e);
	if (r < 0)
		return err_ctx(e, "masquerade pods in chain POSTROUTING of %s", program_of(found));
	return found->n > COPIES_MAX ? -ERESTART : 0;
}

/* Reads the state of one family, and the generation in which it is valid. */
static int find_one(struct nft *nft, unsigned family, uint32_t *ret_generation,
		    struct postrouting *ret_found, struct hw_err *e)
{
	struct postrouting found[FAMILIES];
	int r;

	r = nft_get_generation(nft, ret_generation, e);
	if (r >= 0)
		r = find(nft, family, found, e);
	if (r >= 0)
		*ret_found = found[family == POSTROUTING_IPV4 ? 0 : 1];
	return r;
}

/* -ENOENT: the kernel has no target MASQUERADE, or no match connmark */
static int complete_once(struct nft *nft, unsigned family, struct hw_err *e)
{
	struct postrouting found;
	uint32_t generation = 0;
	int r;

	r = find_one(nft, family, &generation, &found, e);
	if (r < 0 || is_complete(&found))
		return r;
	r = change(nft, generation, &found, found.has_chain, e);
	if (r == -ENOENT && !found.n)
		return found.has_elem ? change(nft, generation, &found, false, e) : 0;
	return r;
}

/* Return: 1 if a rule was removed, 0 if there was no rule, or a negative errno */
static int remove_once(struct nft *nft, unsigned family, struct hw_err *e)
{
	struct postrouting found;
	uint32_t generation = 0;
	int r;

	r = find_one(nft, family, &generation, &found, e);
	if (r >= 0 && (found.n || found.has_elem))
		r = change(nft, generation, &found, false, e);
	return r < 0 ? r : found.n > 0;
}

/* Repeats once() while other programs change nftables at the same time.
 * Return: the last result of once(), which is not -ERESTART, or the error of nft_retry_wait() */
static int retry(int (*once)(struct nft *nft, unsigned family, struct hw_err *e), struct nft *nft,
		 unsigned family, struct hw_err *e)
{
	struct nft_retry retry = nft_retry_start();

	for (;;) {
		int r;

		r = once(nft, family, e);
		if (r != -ERESTART)
			return r;
		r = nft_retry_wait(&retry, e);
		if (r < 0)
			return r;
	}
}

int postrouting_complete(struct nft *nft, unsigned family, struct hw_err *e)
{
	int r;

	r = retry(complete_once, nft, family, e);
	return r < 0 ? r : 0;
}

int postrouting_remove(struct nft *nft, unsigned family, struct hw_err *e)
{
	return retry(remove_once, nft, family, e);
}
