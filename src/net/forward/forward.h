/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/forward/forward.h - let marked packets pass the FORWARD chain of iptables
 *
 * What:  adds two rules to chain FORWARD of table filter, family ip or ip6: a jump
 *        to a chain in which the administrator can override hawser, then a rule that
 *        accepts packets with hawser's mark. Also checks for other chains that drop
 *        pod traffic.
 * Rules: no other rules are changed. The two rules have the format of iptables, so
 *        the iptables commands can list and delete them. To find the two rules,
 *        hawser reads only the FORWARD chain, not the whole ruleset.
 */
#ifndef NET_FORWARD_FORWARD_H
#define NET_FORWARD_FORWARD_H

#include <stdbool.h>
#include <stdint.h>

#include <hawser/addr.h>

#include "base/err.h"

struct nft;

struct forward {
	int family; /* AF_INET, AF_INET6 */
	const char
		*admin; /* name of the administrator's chain; an empty one is created if missing */
	uint32_t mark;	/* one bit */
	bool create; /* create FORWARD if it is missing, even if the administrator has no chain */
};

/* If there is no FORWARD chain, rules are needed only if forward->create is set, or if the
 * administrator's chain exists.
 * ret_no_chain: whether there is no FORWARD chain
 * Return: 1 if both rules exist or are not needed; 0 if a rule is missing; or a negative errno */
int forward_has_rules(struct nft *nft, const struct forward *forward, bool *ret_no_chain,
		      struct hw_err *e);
/* Add the missing rules, if they are needed: the jump at the top of the chain, the accepting rule
 * after the jump. If there is no FORWARD chain, it is created, as by iptables. */
int forward_add_rules(struct nft *nft, const struct forward *forward, struct hw_err *e);
/* Remove both rules, and the administrator's chain if it is empty.
 * Return: 1 if rules were removed, 0 if there was nothing to remove, or a negative errno */
int forward_remove_rules(struct nft *nft, const struct forward *forward, struct hw_err *e);

/* Remove the chain FORWARD if it has no rules and accepts all packets, then the table if it is empty.
 * Return: 1 if the chain was removed, 0 if not, or a negative errno */
int forward_remove_chain(struct nft *nft, int family, struct hw_err *e);

/* Check for a native nftables chain at the forward hook that certainly drops packets with the
 * mark.
 * six: check IPv6, too; skip: name of a table to ignore, may be NULL.
 * Return: 0 if there is no such chain; -EPERM, with a text that names the first such chain and
 * tells how to accept the packets; or another negative errno */
int forward_check_native(struct nft *nft, uint32_t mark, bool six, const char *skip,
			 struct hw_err *e);
/* Like forward_check_native(), but for iptables-legacy, to which hawser adds no rules. */
int forward_check_legacy(uint32_t mark, bool six, struct hw_err *e);

/* Look for the two rules that upstream's firewall plugin adds to chain CNI-FORWARD for an address.
 * Return: 1 if both exist, 0 if not, or a negative errno */
int forward_has_upstream_rules(struct nft *nft, const struct hw_ip *ip, struct hw_err *e);
/* Remove the rules of upstream's firewall plugin for an address. */
int forward_remove_upstream_rules(struct nft *nft, const struct hw_ip *ip, struct hw_err *e);

#endif
