/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/addr.h - addresses of a link
 *
 * What:  list, add and delete addresses.
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
	struct hw_prefix prefix; /* the local address with its host bits, and the prefix length */
	uint32_t flags;		 /* IFA_F_TENTATIVE, ... */
	uint8_t scope;		 /* RT_SCOPE_... */
};

struct addr_list {
	struct addr *v;
	size_t n;
};

/* List the addresses of one link, in the kernel's order. family: AF_INET, AF_INET6, or AF_UNSPEC
 * for both, IPv4 first. The caller frees the list with addr_list_done(). */
int addr_get(struct rtnl *nl, const struct link *link, int family, struct addr_list *ret_list,
	     struct hw_err *e);
/* Is this address, with this prefix length, in the list? */
bool addr_list_has(const struct addr_list *list, const struct hw_prefix *prefix);
void addr_list_done(struct addr_list *list);

/* Add an address. flags: IFA_F_NODAD or 0. The request fails with -EEXIST if the link already has
 * the address with any prefix length. An IPv4 address with a prefix length below 31 gets a
 * broadcast address, as in upstream. */
void addr_put_add(struct rtnl *nl, const struct link *link, const struct hw_prefix *prefix,
		  uint32_t flags);
/* Delete an address. The request fails with -EADDRNOTAVAIL if the link does not have the address
 * with this prefix length. */
void addr_put_del(struct rtnl *nl, const struct link *link, const struct hw_prefix *prefix);

/* Decode the address in an attribute; for decoders in net/. If the attribute has the wrong size,
 * *ret_ip is not changed. */
void addr_decode_ip(const struct nlattr *attr, uint8_t family, struct hw_ip *ret_ip);

AUTO_VALUE_DEFINE(addr_list_done, struct addr_list);

#endif
