/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/tc.h - traffic control: as little of it as limiting a pod's bandwidth needs
 *
 * What:  a token bucket at the root of a link; an ingress hook with one filter
 *        that sends all that comes in to another link (an ifb).
 * Rules: tc_put_*() put their request into the batch of net/rtnl.h; nothing
 *        happens before rtnl_commit().
 */
#ifndef NET_TC_H
#define NET_TC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct link;
struct rtnl;

struct tc_tbf {
	uint64_t rate;	 /* bytes per second */
	uint32_t buffer; /* the burst as the kernel keeps it: in ticks of 64 ns at that rate */
	uint32_t limit;	 /* bytes that may wait */
};

/* The qdisc at the root of a link. */
struct tc_qdisc {
	char kind[16]; /* "tbf", "noqueue" ... */
	uint32_t handle;
	struct tc_tbf tbf; /* when kind is "tbf" */
};

/* From what a configuration says (bits per second, bits), with upstream's 25 ms of latency. */
struct tc_tbf tc_tbf_from_bits(uint64_t rate, uint64_t burst);

/* -EEXIST when the link has a root qdisc other than the default one. Handle 1:0. */
void tc_put_tbf(struct rtnl *nl, const struct link *link, const struct tc_tbf *tbf);
/* -ENOENT when there is only the default one. */
void tc_put_del_root(struct rtnl *nl, const struct link *link);

/* -EEXIST when there is one. Handle ffff:0. Deleting it deletes its filters; -ENOENT or -EINVAL
 * when there is none. */
void tc_put_ingress(struct rtnl *nl, const struct link *link);
void tc_put_del_ingress(struct rtnl *nl, const struct link *link);
/* Everything that comes in by link leaves by to instead; needs tc_put_ingress() before. */
void tc_put_redirect(struct rtnl *nl, const struct link *link, const struct link *to);

int tc_get_root(struct rtnl *nl, const struct link *link, struct tc_qdisc *ret_qdisc,
		struct hw_err *e);
/* Does all that comes in by link go to the other one? 1 or 0. */
int tc_is_redirected(struct rtnl *nl, const struct link *link, const struct link *to,
		     struct hw_err *e);

#endif
