/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/tc/tc.h - traffic control for limiting a pod's bandwidth
 *
 * What:  shape the egress of a link to a rate, in total or by subnets; an
 *        ingress hook with one filter that redirects all ingress to another link
 *        (an ifb).
 * Rules: tc_put_*() add their request to the batch of net/rtnl/rtnl.h; nothing
 *        happens before rtnl_commit().
 *        hawser's root qdiscs have a reserved handle, TC_HANDLE: only qdiscs with
 *        this handle are ever deleted.
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

#define TC_HANDLE 0x68770000U /* 6877:, ASCII for "hw" */

/* A token bucket */
struct tc_tbf {
	uint64_t rate;	 /* bytes per second */
	uint32_t buffer; /* the burst in the kernel's unit: ticks of 64 ns at that rate */
	uint32_t limit;	 /* bytes that may be queued */
};

/* How the egress of a link is shaped */
struct tc_shape {
	struct tc_tbf bucket;
	const struct hw_prefix *subnets; /* none: all egress is shaped */
	size_t n_subnets;
	bool only;	/* shape only traffic of these subnets; else all other traffic */
	bool by_source; /* match the subnets with the source address; else with the destination */
};

/* A qdisc at the root of a link, or below a class */
struct tc_qdisc {
	char kind[16]; /* "tbf", "htb", "noqueue" ...; "": none */
	uint32_t handle;
	struct tc_tbf tbf; /* of kind "tbf"; of kind "bfifo" only the limit */
	uint32_t other;	   /* of kind "htb": the class of unclassified traffic; 0: none */
};

/* The ingress hook of a link and its filters */
struct tc_ingress {
	bool hook;	 /* it exists */
	bool redirected; /* a filter redirects all ingress to the given link */
	size_t others;	 /* number of other filters */
};

/* A bucket from the values of a configuration (rate: bits per second, at least 8; burst: bits;
 * mtu: of the link), with upstream's latency of 25 ms. A bucket smaller than a packet of that MTU
 * would let nothing through and is enlarged. The kernel's bucket is limited to 274 seconds: below
 * 44 bit/s packets of 1500 bytes never pass. */
struct tc_tbf tc_tbf_from_bits(uint64_t rate, uint64_t burst, uint32_t mtu);

/* Fails with -EEXIST if the link has a root qdisc other than the default one. */
void tc_put_shape(struct rtnl *nl, const struct link *link, const struct tc_shape *shape);
/* Delete the root qdisc if it is hawser's; fails with -EINVAL if it is not, with -ENOENT if the
 * link has no qdisc. */
void tc_put_del_shape(struct rtnl *nl, const struct link *link);
/* Return: 0 if the link is shaped as by tc_put_shape(), or an error with the difference */
int tc_check_shape(struct rtnl *nl, const struct link *link, const struct tc_shape *shape,
		   struct hw_err *e);

/* The ingress hook, handle ffff:0. Adding fails with -EEXIST if it exists. Deleting also deletes
 * its filters, and fails with -ENOENT or -EINVAL if it does not exist. */
void tc_put_ingress(struct rtnl *nl, const struct link *link);
void tc_put_del_ingress(struct rtnl *nl, const struct link *link);
/* Redirect all ingress of link to the egress of to; needs the ingress hook. */
void tc_put_redirect(struct rtnl *nl, const struct link *link, const struct link *to);
/* to: the target of the redirection to look for; with index 0, a deleted link */
int tc_get_ingress(struct rtnl *nl, const struct link *link, const struct link *to,
		   struct tc_ingress *ret_ingress, struct hw_err *e);

/* The root qdisc; its kind is "" if the link has no qdisc, as on a link that has never been up. */
int tc_get_root(struct rtnl *nl, const struct link *link, struct tc_qdisc *ret_qdisc,
		struct hw_err *e);

#endif
