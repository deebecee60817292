/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/rule.h - policy routing rules, which select the routing table for a packet
 *
 * Rules: rule_put_*() add their request to the batch of net/rtnl/rtnl.h; nothing
 *        happens before rtnl_commit(). Zero members of a struct rule mean "any".
 */
#ifndef NET_RTNL_RULE_H
#define NET_RTNL_RULE_H

#include <net/if.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/addr.h>

#include "base/err.h"
#include "base/mem.h"

struct rtnl;

struct rule {
	uint8_t family;		  /* AF_INET or AF_INET6 */
	struct hw_prefix src;	  /* of the same family; unset: any source */
	struct hw_prefix dst;	  /* of the same family; unset: any destination */
	char iif[IF_NAMESIZE];	  /* name of the input interface; "": any */
	uint32_t mark, mark_mask; /* mask 0: any mark */
	uint32_t priority;	  /* 0: the kernel puts the rule before the existing rules */
	uint32_t table;		  /* the routing table to use */
	uint8_t proto;		  /* the origin, as in net/rtnl/route.h; 0: RTPROT_UNSPEC */
};

struct rule_list {
	struct rule *v;
	size_t n;
};

/* Add a rule. The request fails with -EEXIST if exactly this rule exists. */
void rule_put_add(struct rtnl *nl, const struct rule *rule);
/* Delete the first rule that has the same values as all nonzero members. The request fails with
 * -ENOENT if no rule matches. */
void rule_put_del(struct rtnl *nl, const struct rule *rule);

/* List the rules in their order. family: AF_INET or AF_INET6; table: list only rules that select
 * this table; 0: all rules. The caller frees the list with rule_list_done(). */
int rule_get(struct rtnl *nl, int family, uint32_t table, struct rule_list *ret_list,
	     struct hw_err *e);
void rule_list_done(struct rule_list *list);

AUTO_VALUE_DEFINE(rule_list_done, struct rule_list);

#endif
