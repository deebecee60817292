/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/rule.h - read the rules of one chain, whoever made them
 *
 * What:  of each rule what is needed to find rules of iptables again: a mark, an
 *        address, and what then happens.
 * Rules: conditions that are not understood are counted, so that a rule which
 *        means less than it seems to can be told.
 */
#ifndef NET_NFT_RULE_H
#define NET_NFT_RULE_H

#include "net/nft/foreign.h"
#include "net/nft/nft.h"

struct nlattr;

#define NFT_CHAIN_TEXT 256 /* room for anybody's name of a chain or table, and its NUL */

/* Beside the kernel's own verdicts */
enum { NFT_RULE_GOES_ON = -100, NFT_RULE_REJECTS };

struct nft_rule {
	uint64_t handle;
	uint32_t mask, mark;		 /* meta mark & mask == mark; mask 0: any */
	struct nft_bytes source, target; /* the address; empty: any */
	unsigned others;		 /* more conditions, or deeds */
	int verdict;			 /* NF_ACCEPT, NFT_JUMP, ... or from above */
	char chain[NFT_CHAIN_TEXT];	 /* to which a jump leads */
	const struct nlattr *steps;	 /* its expressions, for whoever wants to know more */
};

typedef int nft_rule_each_fn(void *ctx, const struct nft_rule *rule, struct hw_err *e);

/* In their order; no chain is as good as an empty one. */
int nft_rule_each(struct nft *nft, const struct nft_place *place, nft_rule_each_fn *each, void *ctx,
		  struct hw_err *e);
/* An each() that counts: *(unsigned *)ctx */
int nft_rule_count(void *ctx, const struct nft_rule *rule, struct hw_err *e);
/* Accepts what has this mark, under no other condition. */
bool nft_rule_accepts_mark(const struct nft_rule *rule, uint32_t mark);
/* Under no condition at all. */
bool nft_rule_is_plain(const struct nft_rule *rule);

/* Inside of expressions: NULL, UINT32_MAX and empty where there is no such attribute */
const struct nlattr *nft_attr_find(const struct nlattr *nest, uint16_t type);
uint32_t nft_attr_number(const struct nlattr *nest, uint16_t type);
struct nft_bytes nft_attr_data(const struct nlattr *nest, uint16_t type);

#endif
