/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/addr.h - addresses of a link
 *
 * What:  list them, add and delete them.
 * Rules: addr_put_*() put their request into the batch of net/rtnl/rtnl.h; nothing
 *        happens before rtnl_commit().
 */
#ifndef NET_RTNL_ADDR_H
#define NET_RTNL_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/addr.h>

#include "base/err.h"
#include "base/mem.h"

struct link;
struct nlattr;
struct rtnl;

struct addr {
	struct hw_prefix prefix; /* the local address, host bits kept */
	uint32_t flags;		 /* IFA_F_TENTATIVE, ... */
	uint8_t scope;		 /* RT_SCOPE_... */
};

struct addr_list {
	struct addr *v;
	size_t n;
};

/* family: AF_INET, AF_INET6 or AF_UNSPEC for both, IPv4 first; in the kernel's order */
int addr_get(struct rtnl *nl, const struct link *link, int family, struct addr_list *ret_list,
	     struct hw_err *e);
bool addr_list_has(const struct addr_list *list, const struct hw_prefix *prefix);
void addr_list_done(struct addr_list *list);

/* flags: IFA_F_NODAD or 0. Fails with -EEXIST when the link has the address already, with any
 * length. An IPv4 address shorter than /31 gets its broadcast address, as upstream's do. */
void addr_put_add(struct rtnl *nl, const struct link *link, const struct hw_prefix *prefix,
		  uint32_t flags);
/* -EADDRNOTAVAIL when there is none of that length. */
void addr_put_del(struct rtnl *nl, const struct link *link, const struct hw_prefix *prefix);

/* For net/'s own decoders: the address in an attribute. One of another size changes nothing. */
void addr_decode_ip(const struct nlattr *attr, uint8_t family, struct hw_ip *ret_ip);

AUTO_VALUE_DEFINE(addr_list_done, struct addr_list);

#endif
