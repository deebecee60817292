/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/postrouting.h - masquerade pods after the administrator's rules in iptables
 *
 * What:  a rule at the end of chain POSTROUTING of iptables, table nat, that masquerades
 *        the connections that our table marks. So rules before it that accept a packet, or
 *        choose another address, take precedence, as with upstream's plugins.
 * Rules: the rule exists if and only if the set "iptables" has its family: both are
 *        changed in one transaction. If iptables has no such chain, or the kernel does
 *        not support the rule, our own table masquerades; ruleset.nft explains both cases.
 *        No other rules are changed. To find the rule, only chain POSTROUTING is read.
 */
#ifndef NET_NFT_POSTROUTING_H
#define NET_NFT_POSTROUTING_H

#include "base/err.h"

struct nft;

/* Families, as bits; for functions that read several at once */
enum { POSTROUTING_IPV4 = 1, POSTROUTING_IPV6 = 2 };

/* Return: the families of which the rule is not at the end of the chain, or of which the set does not
 * agree with the chain; or a negative errno */
int postrouting_find_incomplete(struct nft *nft, unsigned families, struct hw_err *e);
/* Add the rule of one family, or move it to the end of the chain. Our rules must be loaded
 * (nft_load()). */
int postrouting_complete(struct nft *nft, unsigned family, struct hw_err *e);
/* For CHECK: are pods masqueraded? They are not if the set has the family, and the chain does not have
 * the rule. Rules after our rule are accepted: other programs append theirs at any time.
 * Return: 0, -ENOENT if a rule is missing, or another negative errno */
int postrouting_check(struct nft *nft, unsigned families, struct hw_err *e);
/* Remove the rule of one family; our own table then masquerades.
 * Return: 1 if removed, 0 if there was no rule, or a negative errno */
int postrouting_remove(struct nft *nft, unsigned family, struct hw_err *e);

#endif
