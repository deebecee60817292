/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/tc/wire.h - traffic control messages; internal to net/tc
 */
#ifndef NET_TC_WIRE_H
#define NET_TC_WIRE_H

#include <linux/pkt_sched.h>
#include <stdint.h>

#include "net/tc/tc.h"

struct nlattr;
struct nlmsghdr;

/* Start a request about a qdisc or class of link. what: the action; error texts begin with "WHAT of
 * LINK" */
struct nlmsghdr *tc_put_qdisc(struct rtnl *nl, uint16_t type, uint16_t flags,
			      const struct link *link, uint32_t parent, uint32_t handle,
			      const char *what);
void tc_put_tbf(struct rtnl *nl, const struct link *link, const struct tc_tbf *tbf);
/* A rate above 4 GB/s does not fit and is clamped; the caller must also put a 64-bit attribute. */
struct tc_ratespec tc_ratespec(uint64_t rate);
/* Return: the first attribute of this type in a nest, or NULL */
const struct nlattr *tc_find_attr(const struct nlattr *nest, uint16_t type);
/* Read the qdisc whose parent is TC_H_ROOT, TC_H_INGRESS or a class. If there is no such qdisc, the
 * kind in *ret_qdisc is "". */
int tc_get_qdisc(struct rtnl *nl, const struct link *link, uint32_t parent,
		 struct tc_qdisc *ret_qdisc, struct hw_err *e);

#endif
