/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/forward/native.c - native nftables chains that would drop what pods send
 *
 * How:   every chain at the forward hook is asked for, and what it does to a packet
 *        with the mark (verdict.c). What iptables has is not looked at:
 *        there forward_add_rules() puts its rule itself.
 * Rules: only what is certain is complained about. A rule that lets something pass,
 *        such as all of a bridge, may be just the one for the pods.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "net/forward/forward.h"
#include "net/forward/verdict.h"
#include "net/nft/elem.h"
#include "net/nft/rule.h"
#include "net/nft/wire.h"

#define OUR_PRIORITY (-5) /* of chain forward in ruleset.nft, where the mark is set */
#define CHAINS_MAX   256  /* at one hook: more than anybody has */

struct chain {
	uint8_t family;
	char table[NFT_CHAIN_TEXT], name[NFT_CHAIN_TEXT];
	uint32_t hook;
	int priority;
	uint32_t policy;
};

struct chains {
	struct chain *v;
	size_t n;
	const char *skip;
};

static void chains_done(struct chains *chains)
{
	free(chains->v);
}
AUTO_VALUE_DEFINE(chains_done, struct chains);

static const char *family_name(uint8_t family)
{
	switch (family) {
	case NFPROTO_INET:
		return "inet";
	case NFPROTO_IPV4:
		return "ip";
	case NFPROTO_IPV6:
		return "ip6";
	default:
		return NULL;
	}
}

/* ---- which there are ------------------------------------------------------------------------ */

static void read_text(const struct nlattr *attr, char ret_text[NFT_CHAIN_TEXT])
{
	snprintf(ret_text, NFT_CHAIN_TEXT, "%.*s", (int)mnl_attr_get_payload_len(attr),
		 mnl_attr_get_str(attr));
}

static void read_hook(const struct nlattr *nest, struct chain *ret_chain)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, nest) {
		if (mnl_attr_get_type(attr) == NFTA_HOOK_HOOKNUM)
			ret_chain->hook = ntohl(mnl_attr_get_u32(attr));
		else if (mnl_attr_get_type(attr) == NFTA_HOOK_PRIORITY)
			ret_chain->priority = (int)ntohl(mnl_attr_get_u32(attr));
	}
}

static struct chain read_chain(const struct nlmsghdr *m)
{
	const struct nfgenmsg *head = mnl_nlmsg_get_payload(m);
	struct chain chain = { .family = head->nfgen_family,
			       .hook = UINT32_MAX,
			       .policy = NF_ACCEPT };
	const struct nlattr *attr;

	mnl_attr_for_each(attr, m, sizeof(*head)) {
		switch (mnl_attr_get_type(attr)) {
		case NFTA_CHAIN_TABLE:
			read_text(attr, chain.table);
			break;
		case NFTA_CHAIN_NAME:
			read_text(attr, chain.name);
			break;
		case NFTA_CHAIN_HOOK:
			read_hook(attr, &chain);
			break;
		case NFTA_CHAIN_POLICY:
			chain.policy = ntohl(mnl_attr_get_u32(attr));
			break;
		default:
			break;
		}
	}
	return chain;
}

static bool is_iptables(const struct chain *chain)
{
	return chain->family != NFPROTO_INET && str_equal(chain->table, "filter") &&
	       str_equal(chain->name, "FORWARD");
}

static int take_chain(void *ctx, const struct nlmsghdr *m, struct hw_err *e)
{
	struct chains *chains = ctx;
	struct chain chain = read_chain(m);

	(void)e;
	if (chain.hook != NF_INET_FORWARD || !family_name(chain.family) || is_iptables(&chain) ||
	    str_equal(chain.table, NFT_TABLE) || str_equal(chain.table, chains->skip) ||
	    chains->n == CHAINS_MAX)
		return 0;
	chains->v = mem_resize(chains->v, chains->n + 1, sizeof(*chains->v));
	chains->v[chains->n++] = chain;
	return 0;
}

/* ---- what they do ----------------------------------------------------------------------------- */

/* Return: 1 when a pod's packets of that family are surely dropped */
static int drops(struct nft *nft, const struct chain *chain, uint8_t family, uint32_t mark,
		 struct hw_err *e)
{
	struct nft_place place = { chain->family, chain->table, chain->name };
	struct forward_packet packet = { family, mark, chain->priority > OUR_PRIORITY };

	if (chain->family != NFPROTO_INET && chain->family != family)
		return 0;
	int ends = forward_judge(nft, &place, &packet, e);
	if (ends < 0)
		return ends;
	return !(ends & FORWARD_PASSES) && (!(ends & FORWARD_LEAVES) || chain->policy == NF_DROP);
}

static int judge(struct nft *nft, const struct chain *chain, uint32_t mark, bool six,
		 struct hw_err *e)
{
	const char *family = family_name(chain->family);

	int r = drops(nft, chain, NFPROTO_IPV4, mark, e);
	if (r == 0 && six)
		r = drops(nft, chain, NFPROTO_IPV6, mark, e);
	if (r <= 0)
		return r;
	if (chain->priority <= OUR_PRIORITY)
		return err_text(e, -EPERM,
				"nftables chain %s %s %s drops what pods send, at priority %d, "
				"before it can be marked as theirs: give it a priority above %d",
				family, chain->table, chain->name, chain->priority, OUR_PRIORITY);
	return err_text(e, -EPERM,
			"nftables chain %s %s %s drops what pods send; to let it pass: "
			"nft 'insert rule %s %s %s meta mark & 0x%x == 0x%x accept'",
			family, chain->table, chain->name, family, chain->table, chain->name, mark,
			mark);
}

/**
 * forward_check_native() - does a native nftables chain drop what has the mark?
 *
 * Reads the names of all chains of the host. That IPv6 is dropped is no fault of a host whose pods
 * have none.
 *
 * Return: 0; -EPERM with the first that does; another negative errno
 */
int forward_check_native(struct nft *nft, uint32_t mark, bool six, const char *skip,
			 struct hw_err *e)
{
	AUTO(chains_done) struct chains chains = { .skip = skip };
	struct nlmsghdr *m = nft_start_request(nft, NFT_MSG_GETCHAIN, NLM_F_DUMP, NFPROTO_UNSPEC);

	int r = nft_send_request(nft, m, take_chain, &chains, e);
	if (r < 0 && r != -ENOENT)
		return err_set(e, r, "list nftables chains");
	r = 0;
	for (size_t i = 0; r >= 0 && i < chains.n; i++)
		r = judge(nft, &chains.v[i], mark, six, e);
	return r;
}
