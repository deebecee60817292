/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/conntrack.h - delete connection tracking entries
 *
 * What:  delete all entries with a given tuple, such as the UDP entries of a host
 *        port that is now mapped to another pod.
 */
#ifndef NET_CONNTRACK_H
#define NET_CONNTRACK_H

#include <stdint.h>

#include <hawser/addr.h>

#include "base/err.h"

struct mnl_socket;

/* Addresses and ports of a connection's first packet, before address translation. Members that are
 * zero are not compared. */
struct conntrack_tuple {
	uint8_t family; /* AF_INET or AF_INET6: required */
	uint8_t proto;	/* IPPROTO_...; required with a port */
	struct hw_ip src, dst;
	uint16_t sport, dport; /* host byte order */
};

/* Delete all entries that match the tuple.
 * socket: a bound NETLINK_NETFILTER socket such as nft_socket(); NULL: the kernel has no netfilter,
 * so there is nothing to delete. The caller passes its socket because close() of a new one would
 * block if nftables elements were deleted before (net/nft/nft.h).
 * Return: 0, also if no entry matched; -EINVAL if the tuple has no family, has a port without a
 * protocol, or has neither address nor port; or another negative errno */
int conntrack_flush(struct mnl_socket *socket, const struct conntrack_tuple *tuple,
		    struct hw_err *e);
/* Like conntrack_flush(), but lists the entries and deletes them one by one. conntrack_flush() uses
 * this method on older kernels; the function is exported for tests. */
int conntrack_flush_by_dump(struct mnl_socket *socket, const struct conntrack_tuple *tuple,
			    struct hw_err *e);

#endif
