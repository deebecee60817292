/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/rule.h - read a chain of any table, and its rules
 *
 * What:  reads the parts of each rule that are needed to recognize rules of iptables:
 *        marks, addresses and verdict. Reads the hook and the policy of a chain.
 * Rules: unknown expressions are counted, so that a caller can recognize that a rule
 *        has further conditions.
 */
#ifndef NET_NFT_RULE_H
#define NET_NFT_RULE_H

#include "net/nft/foreign.h"
#include "net/nft/nft.h"

struct nlattr;
struct nlmsghdr;

#define NFT_CHAIN_TEXT 256 /* buffer size for the name of any chain or table */

struct nft_chain_info {
	uint8_t family; /* NFPROTO_... */
	char table[NFT_CHAIN_TEXT], name[NFT_CHAIN_TEXT];
	uint32_t hook; /* UINT32_MAX: none */
	int priority;
	uint32_t policy; /* NF_ACCEPT, NF_DROP */
};

/* Verdicts in addition to the kernel's. CONTINUES: the rule has no verdict. MASQUERADES: without
 * options */
enum { NFT_RULE_CONTINUES = -100, NFT_RULE_REJECTS, NFT_RULE_MASQUERADES };

/* A condition: the bits of @mask have this value; mask 0: any */
struct nft_mark {
	uint32_t value, mask;
};

struct nft_rule {
	uint64_t handle;
	struct nft_mark mark;		  /* of the packet */
	struct nft_mark ct_mark;	  /* of the connection */
	struct nft_bytes source, target;  /* addresses; empty: any */
	unsigned unknown;		  /* number of unknown expressions */
	int verdict;			  /* NF_ACCEPT, NFT_JUMP, ... or NFT_RULE_... */
	char chain[NFT_CHAIN_TEXT];	  /* the target of a jump or goto */
	const struct nlattr *expressions; /* all expressions, undecoded; may be NULL */
};

/* Decode a reply to NFT_MSG_GETCHAIN. */
void nft_chain_decode(const struct nlmsghdr *m, struct nft_chain_info *ret_chain);
/* Return: 1 if the chain exists, 0 if not (or if its name is too long for the kernel), or a negative
 * errno */
int nft_get_chain(struct nft *nft, const struct nft_chain_ref *place,
		  struct nft_chain_info *ret_chain, struct hw_err *e);
/* Read the chains of all tables, then call each() for every one; a negative return value ends the
 * loop and is returned. */
int nft_chain_each(struct nft *nft,
		   int (*each)(void *ctx, const struct nft_chain_info *chain, struct hw_err *e),
		   void *ctx, struct hw_err *e);

typedef int nft_rule_each_fn(void *ctx, const struct nft_rule *rule, struct hw_err *e);

/* Read all rules of a chain, then call each() for every rule, in order. A missing chain is treated
 * as empty. each() must not send requests; a negative return value ends the loop and is
 * returned. */
int nft_rule_each(struct nft *nft, const struct nft_chain_ref *place, nft_rule_each_fn *each,
		  void *ctx, struct hw_err *e);
/* A callback for nft_rule_each() that counts the rules in *(unsigned *)ctx */
int nft_rule_count(void *ctx, const struct nft_rule *rule, struct hw_err *e);

/* Find an attribute of an expression. Return: NULL, UINT32_MAX or an empty struct if it is
 * missing */
const struct nlattr *nft_attr_find(const struct nlattr *nest, uint16_t type);
uint32_t nft_attr_number(const struct nlattr *nest, uint16_t type);
struct nft_bytes nft_attr_data(const struct nlattr *nest, uint16_t type);

#endif
