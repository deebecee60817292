/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/tc/wire.h - messages of traffic control, for net/tc*.c
 */
#ifndef NET_TC_WIRE_H
#define NET_TC_WIRE_H

#include <linux/pkt_sched.h>
#include <stdint.h>

#include "net/tc/tc.h"

struct nlattr;
struct nlmsghdr;

struct nlmsghdr *tc_put_qdisc(struct rtnl *nl, uint16_t type, uint16_t flags,
			      const struct link *link, uint32_t parent, uint32_t handle,
			      const char *what);
void tc_put_tbf(struct rtnl *nl, const struct link *link, const struct tc_tbf *tbf);
struct tc_ratespec tc_ratespec(uint64_t rate);
const struct nlattr *tc_find_attr(const struct nlattr *nest, uint16_t type);
int tc_get_qdisc(struct rtnl *nl, const struct link *link, uint32_t parent,
		 struct tc_qdisc *ret_qdisc, struct hw_err *e);

#endif
