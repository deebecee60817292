/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/foreign.h - delete chains and rules that upstream created for a pod
 *
 * What:  deletes the chain that upstream creates for a pod with iptables-nft, and
 *        the rules that jump to this chain. Also deletes rules that have a pod's
 *        comment.
 * Rules: if there is nothing to delete, one request is sufficient to find out, and the
 *        functions return 0. Only the given chain and matching rules are changed.
 */
#ifndef NET_NFT_FOREIGN_H
#define NET_NFT_FOREIGN_H

#include <stdint.h>

#include "base/err.h"

struct nft;

/* A chain of any table; family: NFPROTO_... */
struct nft_chain_ref {
	uint8_t family;
	const char *table;
	const char *chain;
};

/* Return: 1 if the chain exists, 0 if not (or if its name is too long for the kernel), or a
 * negative errno */
int nft_has_chain(struct nft *nft, const struct nft_chain_ref *place, struct hw_err *e);
/* Return: 1 if the chain has a rule whose comment contains this text, 0 if not, or a negative
 * errno */
int nft_foreign_has_rule_containing(struct nft *nft, const struct nft_chain_ref *place,
				    const char *comment, struct hw_err *e);
/* Delete a chain and the rules that jump to it. parents: names of the chains of the same table in
 * which to look for such rules; at most 4, terminated by NULL. */
int nft_foreign_delete_chain(struct nft *nft, const struct nft_chain_ref *place,
			     const char *const *parents, struct hw_err *e);
/* Delete the rules of a chain whose comment contains this text. */
int nft_foreign_delete_rules_containing(struct nft *nft, const struct nft_chain_ref *place,
					const char *comment, struct hw_err *e);
/* Delete the rules of a chain whose comment equals this text. */
int nft_foreign_delete_rules(struct nft *nft, const struct nft_chain_ref *place,
			     const char *comment, struct hw_err *e);

#endif
