/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/tc/tc.h - traffic control: as little of it as limiting a pod's bandwidth needs
 *
 * What:  hold what leaves a link to a rate, all of it or by subnets; an ingress
 *        hook with one filter that sends all that comes in to another link
 *        (an ifb).
 * Rules: tc_put_*() put their request into the batch of net/rtnl/rtnl.h; nothing
 *        happens before rtnl_commit().
 *        Our root qdiscs have a handle of their own (TC_HANDLE), by which they
 *        are told from others: only they are ever deleted.
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

#define TC_HANDLE 0x68770000U /* 6877:, which is "hw" */

/* A bucket of tokens. */
struct tc_tbf {
	uint64_t rate;	 /* bytes per second */
	uint32_t buffer; /* the burst as the kernel keeps it: in ticks of 64 ns at that rate */
	uint32_t limit;	 /* bytes that may wait */
};

/* How what leaves a link is held back. */
struct tc_shape {
	struct tc_tbf bucket;
	const struct hw_prefix *subnets; /* none: all is held back */
	size_t n_subnets;
	bool only;	/* only what is of these subnets is held back, else all but that */
	bool by_source; /* what is of a subnet is told by its source, else by its destination */
};

/* A qdisc: at the root of a link, or below a class. */
struct tc_qdisc {
	char kind[16]; /* "tbf", "htb", "noqueue" ...; "": none */
	uint32_t handle;
	struct tc_tbf tbf; /* when kind is "tbf"; of "bfifo" the limit */
	uint32_t other;	   /* when kind is "htb": the class of what no filter knows; 0: none */
};

/* What filters see of what comes in. */
struct tc_ingress {
	bool hook;	 /* there is one */
	bool redirected; /* by it all goes to the link that was asked about */
	size_t others;	 /* filters that do something else */
};

/* From what a configuration says (bits per second, bits), with upstream's 25 ms of latency. A
 * bucket that no packet of that MTU fits into would let none through: it is made larger. The
 * kernel's bucket ends at 274 seconds, though: below 44 bit/s packets of 1500 bytes never pass. */
struct tc_tbf tc_tbf_from_bits(uint64_t rate, uint64_t burst, uint32_t mtu);

/* -EEXIST when the link has a root qdisc other than the default one. */
void tc_put_shape(struct rtnl *nl, const struct link *link, const struct tc_shape *shape);
/* The root qdisc, if it is ours: else -EINVAL, or -ENOENT when there is none at all. */
void tc_put_del_shape(struct rtnl *nl, const struct link *link);
/* Is it still as it was put? An error says what is not. */
int tc_check_shape(struct rtnl *nl, const struct link *link, const struct tc_shape *shape,
		   struct hw_err *e);

/* -EEXIST when there is one. Handle ffff:0. Deleting it deletes its filters; -ENOENT or -EINVAL
 * when there is none. */
void tc_put_ingress(struct rtnl *nl, const struct link *link);
void tc_put_del_ingress(struct rtnl *nl, const struct link *link);
/* Everything that comes in by link leaves by to instead; needs tc_put_ingress() before. */
void tc_put_redirect(struct rtnl *nl, const struct link *link, const struct link *to);
/* What comes in, and whether it leaves by the other link; index 0: by one that is gone. */
int tc_get_ingress(struct rtnl *nl, const struct link *link, const struct link *to,
		   struct tc_ingress *ret_ingress, struct hw_err *e);

int tc_get_root(struct rtnl *nl, const struct link *link, struct tc_qdisc *ret_qdisc,
		struct hw_err *e);

#endif
