/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/forward/forward.h - let marked packets through the FORWARD chain of iptables
 *
 * What:  two rules in `filter FORWARD` of ip or ip6, and nothing else of anybody's:
 *        a jump to a chain in which the administrator may overrule us, then one
 *        that accepts the mark.
 * Rules: they are as iptables itself makes them, so that all of its commands know
 *        them. The cost is that of listing this one chain.
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
	const char *admin; /* the administrator's chain: made, empty, where it is missing */
	uint32_t mark;
};

/* Return: 1 when both rules are there, or there is no FORWARD chain; 0 when not */
int forward_has_rules(struct nft *nft, const struct forward *forward, struct hw_err *e);
/* Put what is missing; both at the top where neither is there. */
int forward_add_rules(struct nft *nft, const struct forward *forward, struct hw_err *e);
/* Take both rules, and the administrator's chain if it is empty. Return: 1, or 0 when nothing was there */
int forward_remove_rules(struct nft *nft, const struct forward *forward, struct hw_err *e);

/* A native nftables chain that forwarded packets come by and that surely drops those with the mark:
 * -EPERM with its name and the way out. @six: IPv6 matters, too; @skip: a table that need not be
 * looked at; may be NULL */
int forward_check_native(struct nft *nft, uint32_t mark, bool six, const char *skip,
			 struct hw_err *e);
/* The same of iptables-legacy, in which we put no rules. */
int forward_check_legacy(uint32_t mark, bool six, struct hw_err *e);

/* The two rules that Go's firewall plugin makes for an address, in chain CNI-FORWARD.
 * Return: 1 when both are there, 0 when not */
int forward_has_upstream_rules(struct nft *nft, const struct hw_ip *ip, struct hw_err *e);
/* Remove them. */
int forward_remove_upstream_rules(struct nft *nft, const struct hw_ip *ip, struct hw_err *e);

#endif
