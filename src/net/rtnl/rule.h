/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/rule.h - which routing table is asked for which packet
 *
 * Rules: rule_put_*() put their request into the batch of net/rtnl/rtnl.h; nothing
 *        happens before rtnl_commit(). Zero in a struct rule means "any".
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
	struct hw_prefix src;	  /* of the family, or none */
	struct hw_prefix dst;	  /* of the family, or none */
	char iif[IF_NAMESIZE];	  /* "": any */
	uint32_t mark, mark_mask; /* mask 0: any mark */
	uint32_t priority;	  /* 0: the kernel chooses, before those that are there */
	uint32_t table;		  /* where to look */
	uint8_t proto;		  /* who made it, as in net/rtnl/route.h; 0: RTPROT_UNSPEC */
};

struct rule_list {
	struct rule *v;
	size_t n;
};

/* -EEXIST when exactly this rule is there. */
void rule_put_add(struct rtnl *nl, const struct rule *rule);
/* The first rule that has all that is said; -ENOENT when there is none. */
void rule_put_del(struct rtnl *nl, const struct rule *rule);

/* Rules in their order. family: AF_INET or AF_INET6; table 0: of all tables. */
int rule_get(struct rtnl *nl, int family, uint32_t table, struct rule_list *ret_list,
	     struct hw_err *e);
void rule_list_done(struct rule_list *list);

AUTO_VALUE_DEFINE(rule_list_done, struct rule_list);

#endif
