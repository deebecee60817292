/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/conntrack.h - delete connection tracking entries
 *
 * What:  delete all entries with a given tuple, such as those of UDP to a host
 *        port that now leads to another pod.
 */
#ifndef NET_CONNTRACK_H
#define NET_CONNTRACK_H

#include <stdint.h>

#include <hawser/addr.h>

#include "base/err.h"

struct mnl_socket;

/* Addresses and ports of a connection's first packet, before translation. Zero members are not
 * compared. */
struct conntrack_tuple {
	uint8_t family; /* AF_INET or AF_INET6: required */
	uint8_t proto;	/* IPPROTO_...; required with a port */
	struct hw_ip src, dst;
	uint16_t sport, dport; /* host byte order */
};

/* socket: a bound NETLINK_NETFILTER socket such as nft_socket(); NULL: the kernel has no netfilter
 * and there is nothing to delete. A socket that is opened and closed here after nftables elements
 * were deleted would block in close() (net/nft/nft.h), therefore the caller's is used.
 * Return: 0, also if no entry matched; -EINVAL for an incomplete tuple, or one with neither address
 * nor port; or another negative errno. */
int conntrack_flush(struct mnl_socket *socket, const struct conntrack_tuple *tuple,
		    struct hw_err *e);
/* The same by listing the entries and deleting them one by one, as conntrack_flush() does for older
 * kernels; exported for tests. */
int conntrack_flush_by_dump(struct mnl_socket *socket, const struct conntrack_tuple *tuple,
			    struct hw_err *e);

#endif
