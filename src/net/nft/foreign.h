/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/foreign.h - remove what Go's plugins have left in nftables for one pod
 *
 * What:  a chain per pod, as they make it through iptables-nft, with the rules
 *        that lead to it; and rules that carry a pod's comment.
 * Rules: one question tells that there is nothing, which is then a success.
 *        Only the chain and the rules that were asked for are touched.
 */
#ifndef NET_NFT_FOREIGN_H
#define NET_NFT_FOREIGN_H

#include <stdint.h>

#include "base/err.h"

struct nft;

/* A chain, by the kernel's family (NFPROTO_...) */
struct nft_place {
	uint8_t family;
	const char *table;
	const char *chain;
};

/* Return: 1 when there is such a chain, 0 when not */
int nft_has_chain(struct nft *nft, const struct nft_place *place, struct hw_err *e);
/* Return: 1 when the chain has a rule whose comment has this text in it, 0 when not */
int nft_foreign_has_rule_containing(struct nft *nft, const struct nft_place *place,
				    const char *comment, struct hw_err *e);
/* The chain, and the rules of these others of its table that lead to it (NULL at the end). */
int nft_foreign_delete_chain(struct nft *nft, const struct nft_place *place,
			     const char *const *parents, struct hw_err *e);
/* The chain's rules whose comment has this text in it. */
int nft_foreign_delete_rules_containing(struct nft *nft, const struct nft_place *place,
					const char *comment, struct hw_err *e);
/* Those whose comment is this text. */
int nft_foreign_delete_rules(struct nft *nft, const struct nft_place *place, const char *comment,
			     struct hw_err *e);

#endif
