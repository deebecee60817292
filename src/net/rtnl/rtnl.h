/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/rtnl.h - talk to the kernel's routing and link tables
 *
 * What:  one socket per network namespace. Requests are put into a batch and
 *        sent together; each has its own answer.
 * How:   rtnl_put() starts a request, mnl_attr_put_*() add its attributes,
 *        rtnl_commit() sends all that was put and waits for every answer:
 *
 *	struct nlmsghdr *m = rtnl_put(nl, RTM_NEWLINK, 0, &head, sizeof(head),
 *				      "set link %s up", name);
 *	mnl_attr_put_strz(m, IFLA_IFNAME, name);
 *	return rtnl_commit(nl, e);
 *
 * Rules: a struct rtnl is used by one thread at a time. A batch is not a
 *        transaction: when a request fails, those behind it are carried out all
 *        the same, and the first error is the one returned.
 */
#ifndef NET_RTNL_RTNL_H
#define NET_RTNL_RTNL_H

#include <libmnl/libmnl.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

#define RTNL_ATTRS_MAX 2048 /* room for the attributes of one request */

struct rtnl;

/* A socket in the namespace of netns_fd (see netns_enter()), or in our own when it is -1. The
 * socket stays there for good. */
int rtnl_open(int netns_fd, struct rtnl **ret_nl, struct hw_err *e);
void rtnl_close(struct rtnl *nl);
int rtnl_fd(const struct rtnl *nl); /* for ioctl() */

struct nlmsghdr *rtnl_put(struct rtnl *nl, uint16_t type, uint16_t flags, const void *head,
			  size_t head_len, const char *what, ...)
	__attribute__((format(printf, 6, 7)));
int rtnl_commit(struct rtnl *nl, struct hw_err *e);

int rtnl_query(struct rtnl *nl,
	       int (*each)(void *ctx, const struct nlmsghdr *answer, struct hw_err *e), void *ctx,
	       struct hw_err *e);

/* A process of its own sends what was put, and may outlive us; then either rtnl_finish() says how it
 * went, or rtnl_drop() that we do not want to know. */
int rtnl_start(struct rtnl *nl);
int rtnl_finish(struct rtnl *nl, int wait_us, struct hw_err *e);
void rtnl_drop(struct rtnl *nl);

/* Attributes of an answer. */
uint32_t rtnl_attr_number(const struct nlattr *attr); /* of 1, 2 or 4 bytes; any other length: 0 */
void rtnl_attr_text(const struct nlattr *attr, char *ret, size_t size); /* cut to fit */

AUTO_DEFINE(rtnl_close, struct rtnl);

#endif
