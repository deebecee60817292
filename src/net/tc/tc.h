/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/tc/tc.h - traffic control for limiting a pod's bandwidth
 *
 * What:  limits the rate of a link's egress traffic, either of all traffic or
 *        depending on subnets. Redirects all ingress traffic of a link to another
 *        link (an ifb), with one filter at the ingress hook.
 * Rules: tc_put_*() add their request to the batch of net/rtnl/rtnl.h; nothing
 *        happens before rtnl_commit().
 *        hawser's root qdiscs have a reserved handle, TC_HANDLE. Root qdiscs with
 *        another handle are never deleted.
 */
#ifndef NET_TC_TC_H
#define NET_TC_TC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/addr.h>

#include "base/err.h"

struct link;
struct rtnl;

#define TC_HANDLE 0x68770000U /* tc(8) shows it as 6877:, which is "hw" in ASCII */

/* A token bucket */
struct tc_tbf {
	uint64_t rate;	 /* bytes per second */
	uint32_t buffer; /* burst: the time to send it at that rate, in ticks of 64 ns */
	uint32_t limit;	 /* maximum number of bytes in the queue */
};

/* How the egress of a link is shaped */
struct tc_shape {
	struct tc_tbf bucket;
	const struct hw_prefix *subnets;
	size_t n_subnets; /* 0: all egress is shaped */
	bool only;	  /* true: shape only traffic of these subnets; false: all other traffic */
	bool by_source;	  /* true: compare source addresses; false: destination addresses */
};

/* A qdisc at the root of a link, or below a class */
struct tc_qdisc {
	char kind[16]; /* "tbf", "htb", "noqueue" ...; "": there is no qdisc */
	uint32_t handle;
	struct tc_tbf tbf; /* set if the kind is "tbf"; if it is "bfifo", only the limit is set */
	uint32_t other;	   /* if the kind is "htb": the class of unclassified traffic; 0: none */
};

/* The ingress hook of a link and its filters */
struct tc_ingress {
	bool hook;	 /* the ingress hook exists */
	bool redirected; /* a filter redirects all ingress to the given link */
	size_t others;	 /* number of other filters */
};

/* Compute a token bucket. rate: bits per second, at least 8; burst: bits; mtu: that of the link.
 * The latency is 25 ms, as in upstream. A bucket smaller than a packet of that MTU would let
 * nothing through, so it is enlarged. The kernel limits a bucket to 274 seconds: below 44 bit/s,
 * packets of 1500 bytes never pass. */
struct tc_tbf tc_tbf_from_bits(uint64_t rate, uint64_t burst, uint32_t mtu);

/* Shape the egress of a link. Fails with -EEXIST if the link has a root qdisc other than the
 * kernel's default. */
void tc_put_shape(struct rtnl *nl, const struct link *link, const struct tc_shape *shape);
/* Delete the root qdisc if it is hawser's. Fails with -EINVAL if another program created it, and
 * with -ENOENT if the link has no qdisc. */
void tc_put_del_shape(struct rtnl *nl, const struct link *link);
/* Return: 0 if the link is shaped in the way that tc_put_shape() sets up; else a negative errno,
 * with a text that describes the difference */
int tc_check_shape(struct rtnl *nl, const struct link *link, const struct tc_shape *shape,
		   struct hw_err *e);

/* Add or delete the ingress hook, handle ffff:0. Adding fails with -EEXIST if the hook exists.
 * Deleting also deletes the filters of the hook, and fails with -ENOENT or -EINVAL if the hook does
 * not exist. */
void tc_put_ingress(struct rtnl *nl, const struct link *link);
void tc_put_del_ingress(struct rtnl *nl, const struct link *link);
/* Redirect all ingress of link to the egress of to; the ingress hook must exist. */
void tc_put_redirect(struct rtnl *nl, const struct link *link, const struct link *to);
/* Read the ingress hook and its filters. to: look for a redirection to this link; index 0 means a
 * link that has been deleted */
int tc_get_ingress(struct rtnl *nl, const struct link *link, const struct link *to,
		   struct tc_ingress *ret_ingress, struct hw_err *e);

/* Read the root qdisc. Its kind is "" if the link has no qdisc; for example, a link that has never
 * been up has none. */
int tc_get_root(struct rtnl *nl, const struct link *link, struct tc_qdisc *ret_qdisc,
		struct hw_err *e);

#endif
