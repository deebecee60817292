/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/rule.h - policy routing rules: which routing table is used for which packets
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
	struct hw_prefix src;	  /* of the same family, or empty */
	struct hw_prefix dst;	  /* of the same family, or empty */
	char iif[IF_NAMESIZE];	  /* "": any */
	uint32_t mark, mark_mask; /* mask 0: any mark */
	uint32_t priority;	  /* 0: the kernel chooses one before the existing rules */
	uint32_t table;		  /* the routing table to use */
	uint8_t proto;		  /* the origin, as in net/rtnl/route.h; 0: RTPROT_UNSPEC */
};

struct rule_list {
	struct rule *v;
	size_t n;
};

/* The request fails with -EEXIST if exactly this rule exists. */
void rule_put_add(struct rtnl *nl, const struct rule *rule);
/* Deletes the first rule with all nonzero members; the request fails with -ENOENT if none
 * matches. */
void rule_put_del(struct rtnl *nl, const struct rule *rule);

/* The rules in their order. family: AF_INET or AF_INET6; table: only rules with this table, 0: all
 * rules. The caller frees the list with rule_list_done(). */
int rule_get(struct rtnl *nl, int family, uint32_t table, struct rule_list *ret_list,
	     struct hw_err *e);
void rule_list_done(struct rule_list *list);

AUTO_VALUE_DEFINE(rule_list_done, struct rule_list);

#endif
