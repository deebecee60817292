/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/conntrack.h - forget connections that the kernel follows
 *
 * What:  delete every entry that has a given tuple, such as those of UDP to a
 *        host port which now leads to another pod.
 * How:   one message, and the kernel compares; kernels before 6.11, and all
 *        of them for IPv6 addresses, list those that match first.
 */
#ifndef NET_CONNTRACK_H
#define NET_CONNTRACK_H

#include <stdint.h>

#include <hawser/addr.h>

#include "base/err.h"

struct mnl_socket;

/* Of the first packet's direction, before translation. What is zero is not compared. */
struct conntrack_tuple {
	uint8_t family; /* AF_INET or AF_INET6: needed */
	uint8_t proto;	/* IPPROTO_...; needed for ports */
	struct hw_ip src, dst;
	uint16_t sport, dport; /* host order */
};

/* By a socket of NETLINK_NETFILTER, nft_socket() for instance; NULL: this kernel has none and follows
 * nothing. No such entry is a success; -EINVAL for a tuple that would be everything. */
int conntrack_flush(struct mnl_socket *socket, const struct conntrack_tuple *tuple,
		    struct hw_err *e);
/* The second way, for tests. */
int conntrack_flush_each(struct mnl_socket *socket, const struct conntrack_tuple *tuple,
			 struct hw_err *e);

#endif
