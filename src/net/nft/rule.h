/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/rule.h - read the rules of one chain of any table
 *
 * What:  of each rule the parts that identify rules of iptables: mark, address
 *        and verdict.
 * Rules: expressions that are not understood are counted, so that a caller can
 *        tell a rule with further conditions.
 */
#ifndef NET_NFT_RULE_H
#define NET_NFT_RULE_H

#include "net/nft/foreign.h"
#include "net/nft/nft.h"

struct nlattr;

#define NFT_CHAIN_TEXT 256 /* size of the name of any chain or table, with the NUL */

/* In addition to the kernel's verdicts. CONTINUES: the rule has no verdict */
enum { NFT_RULE_CONTINUES = -100, NFT_RULE_REJECTS };

struct nft_rule {
	uint64_t handle;
	uint32_t mask, mark;		  /* meta mark & mask == mark; mask 0: any */
	struct nft_bytes source, target;  /* addresses; empty: any */
	unsigned unknown;		  /* number of expressions that were not understood */
	int verdict;			  /* NF_ACCEPT, NFT_JUMP, ... or NFT_RULE_... */
	char chain[NFT_CHAIN_TEXT];	  /* the target of a jump or goto */
	const struct nlattr *expressions; /* all of them, for further decoding; may be NULL */
};

typedef int nft_rule_each_fn(void *ctx, const struct nft_rule *rule, struct hw_err *e);

/* Call each() for the rules of a chain in their order, once all have been read; a missing chain is
 * empty. each() must not send requests; a negative return value ends the loop and is returned. */
int nft_rule_each(struct nft *nft, const struct nft_place *place, nft_rule_each_fn *each, void *ctx,
		  struct hw_err *e);
/* An each() that counts the rules in *(unsigned *)ctx */
int nft_rule_count(void *ctx, const struct nft_rule *rule, struct hw_err *e);
/* Does the rule accept all packets with this mark, without another condition? */
bool nft_rule_accepts_mark(const struct nft_rule *rule, uint32_t mark);
/* Does the rule apply to all packets? */
bool nft_rule_is_unconditional(const struct nft_rule *rule);

/* Attributes of an expression; NULL, UINT32_MAX or empty if there is no such attribute */
const struct nlattr *nft_attr_find(const struct nlattr *nest, uint16_t type);
uint32_t nft_attr_number(const struct nlattr *nest, uint16_t type);
struct nft_bytes nft_attr_data(const struct nlattr *nest, uint16_t type);

#endif
