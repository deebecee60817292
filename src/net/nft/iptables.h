/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/iptables.h - rules and chains in the format of iptables
 *
 * What:  writes rules to chains of iptables-nft. The commands of iptables list, save
 *        and delete these rules and chains like their own.
 * How:   functions whose name contains "put" add messages to the current batch
 *        (net/nft/wire.h).
 * Rules: a rule in a table of iptables must contain no set lookup: iptables-save would
 *        print the rule without the lookup, and after a restore the rule would match all
 *        packets. It must not masquerade by an expression of nftables either: iptables
 *        then refuses to list the whole table.
 */
#ifndef NET_NFT_IPTABLES_H
#define NET_NFT_IPTABLES_H

#include "net/nft/rule.h"

#define IPTABLES_TOP 0		/* as the position of a rule: before all others */
#define IPTABLES_END UINT64_MAX /* after all others */

struct iptables_rule {
	struct nft_mark mark;	 /* -m mark --mark VALUE/MASK; mask 0: no condition */
	struct nft_mark ct_mark; /* the same of -m connmark */
	int verdict;		 /* NF_ACCEPT, NFT_JUMP or NFT_RULE_MASQUERADES */
	const char *chain;	 /* target of a jump; else NULL */
};

/* Is this the wanted rule, without any other condition? */
bool iptables_is_rule(const struct nft_rule *rule, const struct iptables_rule *wanted);

/* Add a rule. after: IPTABLES_TOP, IPTABLES_END, or the handle of the rule that precedes it */
void iptables_put_rule(struct nft *nft, const struct nft_chain_ref *place,
		       const struct iptables_rule *rule, uint64_t after);
/* Delete a rule by its handle; 0: do nothing. */
void iptables_put_delete(struct nft *nft, const struct nft_chain_ref *place, uint64_t handle);
/* Create a chain, unless it exists. */
void iptables_put_chain(struct nft *nft, const struct nft_chain_ref *place);
/* Create chain FORWARD, and its table, as iptables does for the first rule in this chain. */
void iptables_put_forward(struct nft *nft, const struct nft_chain_ref *place);
/* Delete a chain that has no rules. The commit fails with -EBUSY if it has rules, or if other rules
 * jump to it. */
void iptables_put_delete_chain(struct nft *nft, const struct nft_chain_ref *place);
/* Delete the table of a chain. The commit fails with -EBUSY if the table has chains. */
void iptables_put_delete_table(struct nft *nft, const struct nft_chain_ref *place);

#endif
