/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/forward/forward.h - let marked packets pass the FORWARD chain of iptables
 *
 * What:  two rules in `filter FORWARD` of ip or ip6: a jump to a chain in which the
 *        administrator can override hawser, then a rule that accepts the mark. And
 *        checks for other chains that drop pod traffic.
 * Rules: no other rules are changed. The two rules have the format of iptables, so
 *        all its commands know them. The cost is that of listing this one chain.
 */
#ifndef NET_FORWARD_FORWARD_H
#define NET_FORWARD_FORWARD_H

#include <stdbool.h>
#include <stdint.h>

#include <hawser/addr.h>

#include "base/err.h"

struct nft;

struct forward {
	int family;	   /* AF_INET, AF_INET6 */
	const char *admin; /* the administrator's chain: created empty if it is missing */
	uint32_t mark;
};

/* Return: 1 if both rules exist, or there is no FORWARD chain; 0 if not; or a negative errno */
int forward_has_rules(struct nft *nft, const struct forward *forward, struct hw_err *e);
/* Add the missing rules, both at the top if neither exists. Without a FORWARD chain nothing is
 * done. */
int forward_add_rules(struct nft *nft, const struct forward *forward, struct hw_err *e);
/* Remove both rules, and the administrator's chain if it is empty.
 * Return: 1, 0 if there was nothing to remove, or a negative errno */
int forward_remove_rules(struct nft *nft, const struct forward *forward, struct hw_err *e);

/* Check for a native nftables chain at the forward hook that certainly drops packets with the
 * mark.
 * six: check IPv6, too; skip: a table to ignore, may be NULL.
 * Return: 0; -EPERM with the name of the first such chain and the remedy; or another negative
 * errno */
int forward_check_native(struct nft *nft, uint32_t mark, bool six, const char *skip,
			 struct hw_err *e);
/* The same for iptables-legacy, to which hawser adds no rules. */
int forward_check_legacy(uint32_t mark, bool six, struct hw_err *e);

/* The two rules of upstream's firewall plugin for an address, in chain CNI-FORWARD.
 * Return: 1 if both exist, 0 if not, or a negative errno */
int forward_has_upstream_rules(struct nft *nft, const struct hw_ip *ip, struct hw_err *e);
/* Remove them. */
int forward_remove_upstream_rules(struct nft *nft, const struct hw_ip *ip, struct hw_err *e);

#endif
