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

/* family: AF_INET, AF_INET6. Return: 1 if the rule is at the end of the chain, or if there is no such
 * chain, and the set agrees; 0 if not; or a negative errno */
int postrouting_is_complete(struct nft *nft, int family, struct hw_err *e);
/* Add the rule, or move it to the end of the chain. Our rules must be loaded (nft_load()). */
int postrouting_complete(struct nft *nft, int family, struct hw_err *e);
/* Remove the rule; our own table then masquerades.
 * Return: 1 if removed, 0 if there was no rule, or a negative errno */
int postrouting_remove(struct nft *nft, int family, struct hw_err *e);

#endif
