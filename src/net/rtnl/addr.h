/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/addr.h - addresses of a link
 *
 * What:  list, add and delete them.
 * Rules: addr_put_*() add their request to the batch of net/rtnl/rtnl.h; nothing
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

/* The addresses of one link, in the kernel's order. family: AF_INET, AF_INET6, or AF_UNSPEC for
 * both, IPv4 first. The caller frees the list with addr_list_done(). */
int addr_get(struct rtnl *nl, const struct link *link, int family, struct addr_list *ret_list,
	     struct hw_err *e);
/* Is this address, with this prefix length, in the list? */
bool addr_list_has(const struct addr_list *list, const struct hw_prefix *prefix);
void addr_list_done(struct addr_list *list);

/* flags: IFA_F_NODAD or 0. The request fails with -EEXIST if the link has the address already, with
 * any prefix length. An IPv4 address with a prefix shorter than /31 gets a broadcast address, as
 * upstream sets it. */
void addr_put_add(struct rtnl *nl, const struct link *link, const struct hw_prefix *prefix,
		  uint32_t flags);
/* The request fails with -EADDRNOTAVAIL if the link does not have the address with this length. */
void addr_put_del(struct rtnl *nl, const struct link *link, const struct hw_prefix *prefix);

/* The address in an attribute, for decoders in net/; an attribute of another size is ignored. */
void addr_decode_ip(const struct nlattr *attr, uint8_t family, struct hw_ip *ret_ip);

AUTO_VALUE_DEFINE(addr_list_done, struct addr_list);

#endif
