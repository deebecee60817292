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

/* Start a request about a qdisc or class of link. what: the action, for error texts: "WHAT of
 * LINK" */
struct nlmsghdr *tc_put_qdisc(struct rtnl *nl, uint16_t type, uint16_t flags,
			      const struct link *link, uint32_t parent, uint32_t handle,
			      const char *what);
void tc_put_tbf(struct rtnl *nl, const struct link *link, const struct tc_tbf *tbf);
/* A rate above 4 GB/s is clamped here; it also needs a 64-bit attribute. */
struct tc_ratespec tc_ratespec(uint64_t rate);
/* An attribute of a nest, or NULL */
const struct nlattr *tc_find_attr(const struct nlattr *nest, uint16_t type);
/* The qdisc whose parent is TC_H_ROOT, TC_H_INGRESS or a class; its kind is "" if not found. */
int tc_get_qdisc(struct rtnl *nl, const struct link *link, uint32_t parent,
		 struct tc_qdisc *ret_qdisc, struct hw_err *e);

#endif
