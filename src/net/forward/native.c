/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/forward/native.c - check for native nftables chains that drop pod traffic
 *
 * How:   lists the chains at the forward hook of all tables and evaluates each for
 *        a packet with the mark (verdict.c). The FORWARD chains of iptables are
 *        skipped: forward_add_rules() adds an accepting rule there.
 * Rules: a drop is reported only if it is certain. A chain that accepts some packets,
 *        such as all packets from one bridge, is not reported: the pods may be connected
 *        to that bridge.
 */
#include <errno.h>
#include <linux/netfilter.h>

#include "base/str.h"
#include "net/forward/forward.h"
#include "net/forward/verdict.h"
#include "net/nft/elem.h"
#include "net/nft/rule.h"

#define OUR_PRIORITY (-5) /* priority of chain forward in ruleset.nft, which sets the mark */

struct base_chains {
	struct nft_chain_info *v;
	size_t n, room;
	const char *skip; /* name of a table to ignore, or NULL */
};

static void base_chains_done(struct base_chains *chains)
{
	free(chains->v);
}
AUTO_VALUE_DEFINE(base_chains_done, struct base_chains);

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

/* ---- list the chains --------------------------------------------------------------------- */

static int collect_chain(void *ctx, const struct nft_chain_info *chain, struct hw_err *e)
{
	bool iptables = chain->family != NFPROTO_INET && str_equal(chain->table, "filter") &&
			str_equal(chain->name, "FORWARD");
	struct base_chains *chains = ctx;

	(void)e;
	if (chain->hook != NF_INET_FORWARD || !family_name(chain->family) || iptables ||
	    str_equal(chain->table, NFT_TABLE) || str_equal(chain->table, chains->skip))
		return 0;
	if (chains->n == chains->room) {
		chains->room = chains->room ? 2 * chains->room : 16;
		chains->v = mem_resize(chains->v, chains->room, sizeof(*chains->v));
	}
	chains->v[chains->n++] = *chain;
	return 0;
}

/* ---- evaluate the chains ----------------------------------------------------------------- */

/* Return: 1 if packets of pods of that family are certainly dropped, 0 if not, or a negative
 * errno */
static int is_dropping(struct nft *nft, const struct nft_chain_info *chain, uint8_t family,
		       uint32_t mark, struct hw_err *e)
{
	struct nft_chain_ref place = { chain->family, chain->table, chain->name };
	struct forward_packet packet = { family, mark, chain->priority > OUR_PRIORITY };
	int verdicts;

	if (chain->family != NFPROTO_INET && chain->family != family)
		return 0;
	verdicts = forward_evaluate_chain(nft, &place, &packet, e);
	if (verdicts < 0)
		return verdicts;
	return !(verdicts & FORWARD_MAY_PASS) &&
	       (!(verdicts & FORWARD_MAY_RETURN) || chain->policy == NF_DROP);
}

static int check_chain(struct nft *nft, const struct nft_chain_info *chain, uint32_t mark, bool six,
		       struct hw_err *e)
{
	const char *family = family_name(chain->family);
	int r;

	r = is_dropping(nft, chain, NFPROTO_IPV4, mark, e);
	if (r == 0 && six)
		r = is_dropping(nft, chain, NFPROTO_IPV6, mark, e);
	if (r <= 0)
		return r;
	if (chain->priority <= OUR_PRIORITY)
		return err_text(e, -EPERM,
				"nftables chain %s %s %s drops pod traffic at priority %d, before "
				"hawser marks it: give the chain a priority above %d",
				family, chain->table, chain->name, chain->priority, OUR_PRIORITY);
	return err_text(e, -EPERM,
			"nftables chain %s %s %s drops pod traffic; to accept it: "
			"nft 'insert rule %s %s %s meta mark & 0x%x == 0x%x accept'",
			family, chain->table, chain->name, family, chain->table, chain->name, mark,
			mark);
}

int forward_check_native(struct nft *nft, uint32_t mark, bool six, const char *skip,
			 struct hw_err *e)
{
	AUTO(base_chains_done) struct base_chains chains = { .skip = skip };
	int r;

	r = nft_chain_each(nft, collect_chain, &chains, e);
	for (size_t i = 0; r >= 0 && i < chains.n; i++)
		r = check_chain(nft, &chains.v[i], mark, six, e);
	return r;
}
