/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/tc/tc.c - traffic control: token buckets, root qdiscs, redirection of ingress
 *
 * How:   sends the same messages as upstream's bandwidth plugin: a tbf, the ingress
 *        qdisc ffff:0, and one u32 filter that matches all packets and has one mirred
 *        action.
 * Not:   shaping by subnets is in shape.c.
 */
#include "net/tc/tc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_mirred.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "net/rtnl/link.h"
#include "net/rtnl/rtnl.h"
#include "net/tc/wire.h"

#define TC_TICK_NS	  64 /* from the kernel's PSCHED_SHIFT; /proc/net/psched shows it, too */
#define TC_NS		  1000000000
#define TC_LATENCY_MS	  25
#define TC_HANDLE_INGRESS TC_H_MAKE(TC_H_INGRESS, 0)

static uint64_t tc_scale(uint64_t n, uint64_t by, uint64_t over)
{
	__extension__ unsigned __int128 product = (unsigned __int128)n * by / over;

	return product > UINT64_MAX ? UINT64_MAX : (uint64_t)product;
}

static uint32_t tc_clamp(uint64_t n)
{
	return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

struct tc_tbf tc_tbf_from_bits(uint64_t rate, uint64_t burst, uint32_t mtu)
{
	uint64_t bytes = rate / 8 ? rate / 8 : 1;
	/* rounded down to microseconds, like upstream */
	uint64_t usec = tc_scale(burst / 8, 1000000, bytes);
	uint64_t ticks = tc_scale(usec, 1000, TC_TICK_NS);
	/* sufficient for a packet of that MTU with Ethernet header and VLAN tag, rounded up */
	uint64_t least = tc_scale((uint64_t)mtu + ETH_HLEN + 4, TC_NS / TC_TICK_NS, bytes) + 1;

	return (struct tc_tbf){
		.rate = bytes,
		.buffer = tc_clamp(ticks > least ? ticks : least),
		.limit = tc_clamp(tc_scale(bytes, TC_LATENCY_MS, 1000) +
				  (burst / 8 > mtu ? burst / 8 : mtu)),
	};
}

struct nlmsghdr *tc_put_qdisc(struct rtnl *nl, uint16_t type, uint16_t flags,
			      const struct link *link, uint32_t parent, uint32_t handle,
			      const char *what)
{
	struct tcmsg head = { .tcm_ifindex = link->index,
			      .tcm_parent = parent,
			      .tcm_handle = handle };

	return rtnl_put(nl, type, flags, &head, sizeof(head), "%s of %s", what, link->name);
}

void tc_put_tbf(struct rtnl *nl, const struct link *link, const struct tc_tbf *tbf)
{
	struct tc_tbf_qopt parms = { .rate = tc_ratespec(tbf->rate),
				     .limit = tbf->limit,
				     .buffer = tbf->buffer };
	struct nlmsghdr *m = tc_put_qdisc(nl, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, link,
					  TC_H_ROOT, TC_HANDLE, "limit the rate");
	struct nlattr *options;

	mnl_attr_put_strz(m, TCA_KIND, "tbf");
	options = mnl_attr_nest_start(m, TCA_OPTIONS);
	mnl_attr_put(m, TCA_TBF_PARMS, sizeof(parms), &parms);
	if (tbf->rate > UINT32_MAX)
		mnl_attr_put_u64(m, TCA_TBF_RATE64, tbf->rate);
	mnl_attr_nest_end(m, options);
}

struct tc_ratespec tc_ratespec(uint64_t rate)
{
	return (struct tc_ratespec){ .rate = tc_clamp(rate), .linklayer = TC_LINKLAYER_ETHERNET };
}

void tc_put_del_shape(struct rtnl *nl, const struct link *link)
{
	tc_put_qdisc(nl, RTM_DELQDISC, 0, link, TC_H_ROOT, TC_HANDLE, "delete the root qdisc");
}

void tc_put_ingress(struct rtnl *nl, const struct link *link)
{
	struct nlmsghdr *m = tc_put_qdisc(nl, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, link,
					  TC_H_INGRESS, TC_HANDLE_INGRESS, "add the ingress hook");

	mnl_attr_put_strz(m, TCA_KIND, "ingress");
}

void tc_put_del_ingress(struct rtnl *nl, const struct link *link)
{
	tc_put_qdisc(nl, RTM_DELQDISC, 0, link, TC_H_INGRESS, TC_HANDLE_INGRESS,
		     "delete the ingress hook");
}

void tc_put_redirect(struct rtnl *nl, const struct link *link, const struct link *to)
{
	struct tcmsg head = { .tcm_ifindex = link->index,
			      .tcm_parent = TC_HANDLE_INGRESS,
			      .tcm_info = TC_H_MAKE(1U << 16, htons(ETH_P_ALL)) };
	struct tc_u32_sel sel = { .flags = TC_U32_TERMINAL, .nkeys = 1 };
	/* sel, followed by one key, which is all zero and matches all packets */
	uint8_t match[sizeof(sel) + sizeof(struct tc_u32_key)] = { 0 };
	struct tc_mirred mirred = { .action = TC_ACT_STOLEN,
				    .eaction = TCA_EGRESS_REDIR,
				    .ifindex = (uint32_t)to->index };
	struct nlattr *options, *actions, *first, *action_options;
	struct nlmsghdr *m =
		rtnl_put(nl, RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL, &head, sizeof(head),
			 "redirect ingress of %s to %s", link->name, to->name);

	mnl_attr_put_strz(m, TCA_KIND, "u32");
	options = mnl_attr_nest_start(m, TCA_OPTIONS);
	mnl_attr_put_u32(m, TCA_U32_CLASSID, TC_H_MAKE(1U << 16, 1));
	memcpy(match, &sel, sizeof(sel));
	mnl_attr_put(m, TCA_U32_SEL, sizeof(match), match);
	actions = mnl_attr_nest_start(m, TCA_U32_ACT);
	first = mnl_attr_nest_start(m, 1);
	mnl_attr_put_strz(m, TCA_ACT_KIND, "mirred");
	action_options = mnl_attr_nest_start(m, TCA_ACT_OPTIONS);
	mnl_attr_put(m, TCA_MIRRED_PARMS, sizeof(mirred), &mirred);
	mnl_attr_nest_end(m, action_options);
	mnl_attr_nest_end(m, first);
	mnl_attr_nest_end(m, actions);
	mnl_attr_nest_end(m, options);
}

const struct nlattr *tc_find_attr(const struct nlattr *nest, uint16_t type)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, nest)
		if (mnl_attr_get_type(attr) == type)
			return attr;
	return NULL;
}

static void tc_decode_tbf(const struct nlattr *options, struct tc_tbf *tbf)
{
	const struct nlattr *attr;
	const struct tc_tbf_qopt *parms;

	attr = tc_find_attr(options, TCA_TBF_PARMS);
	if (!attr || mnl_attr_get_payload_len(attr) < sizeof(*parms))
		return;
	parms = mnl_attr_get_payload(attr);
	*tbf = (struct tc_tbf){ .rate = parms->rate.rate,
				.buffer = parms->buffer,
				.limit = parms->limit };
	attr = tc_find_attr(options, TCA_TBF_RATE64);
	if (attr && mnl_attr_validate(attr, MNL_TYPE_U64) >= 0)
		tbf->rate = mnl_attr_get_u64(attr);
}

static void tc_decode_options(const struct nlattr *options, struct tc_qdisc *qdisc)
{
	const struct nlattr *init;

	if (str_equal(qdisc->kind, "tbf"))
		tc_decode_tbf(options, &qdisc->tbf);
	if (str_equal(qdisc->kind, "bfifo") &&
	    mnl_attr_get_payload_len(options) >= sizeof(struct tc_fifo_qopt))
		qdisc->tbf.limit =
			((const struct tc_fifo_qopt *)mnl_attr_get_payload(options))->limit;
	if (!str_equal(qdisc->kind, "htb"))
		return;
	init = tc_find_attr(options, TCA_HTB_INIT);
	if (init && mnl_attr_get_payload_len(init) >= sizeof(struct tc_htb_glob))
		qdisc->other = ((const struct tc_htb_glob *)mnl_attr_get_payload(init))->defcls;
}

static int tc_decode_qdisc(void *ctx, const struct nlmsghdr *answer, struct hw_err *e)
{
	const struct tcmsg *head = mnl_nlmsg_get_payload(answer);
	struct tc_qdisc *qdisc = ctx;
	const struct nlattr *attr;

	(void)e;
	if (answer->nlmsg_type != RTM_NEWQDISC)
		return 0;
	qdisc->handle = head->tcm_handle;
	mnl_attr_for_each(attr, answer, sizeof(*head)) {
		if (mnl_attr_get_type(attr) == TCA_KIND)
			rtnl_attr_text(attr, qdisc->kind, sizeof(qdisc->kind));
		if (mnl_attr_get_type(attr) == TCA_OPTIONS)
			tc_decode_options(attr, qdisc);
	}
	return 0;
}

int tc_get_qdisc(struct rtnl *nl, const struct link *link, uint32_t parent,
		 struct tc_qdisc *ret_qdisc, struct hw_err *e)
{
	struct tc_qdisc qdisc = { 0 };
	int r;

	tc_put_qdisc(nl, RTM_GETQDISC, NLM_F_ECHO, link, parent, 0, "read the qdisc");
	r = rtnl_query(nl, tc_decode_qdisc, &qdisc, e);
	if (r >= 0 || r == -ENOENT)
		*ret_qdisc = qdisc;
	return r == -ENOENT ? 0 : r;
}

int tc_get_root(struct rtnl *nl, const struct link *link, struct tc_qdisc *ret_qdisc,
		struct hw_err *e)
{
	return tc_get_qdisc(nl, link, TC_H_ROOT, ret_qdisc, e);
}

/* Nesting of the attributes: TCA_OPTIONS { TCA_U32_ACT { 1 { TCA_ACT_OPTIONS
 * { TCA_MIRRED_PARMS } } } } */
static bool is_redirect(const struct nlattr *options, int to)
{
	static const uint16_t path[] = { TCA_U32_ACT, 1, TCA_ACT_OPTIONS, TCA_MIRRED_PARMS };
	const struct tc_mirred *parms;

	for (size_t i = 0; options && i < ARRAY_SIZE(path); i++)
		options = tc_find_attr(options, path[i]);
	if (!options || mnl_attr_get_payload_len(options) < sizeof(*parms))
		return false;
	parms = mnl_attr_get_payload(options);
	return parms->eaction == TCA_EGRESS_REDIR && parms->ifindex == (uint32_t)to;
}

struct ingress_search {
	int to;
	struct tc_ingress found;
};

static int decode_ingress_filter(void *ctx, const struct nlmsghdr *answer, struct hw_err *e)
{
	struct ingress_search *search = ctx;
	const struct nlattr *attr;
	char kind[8] = "";

	(void)e;
	mnl_attr_for_each(attr, answer, sizeof(struct tcmsg)) {
		if (mnl_attr_get_type(attr) == TCA_KIND)
			rtnl_attr_text(attr, kind, sizeof(kind));
		if (mnl_attr_get_type(attr) != TCA_OPTIONS)
			continue;
		if (is_redirect(attr, search->to))
			search->found.redirected = true;
		else if (!str_equal(kind, "u32") || tc_find_attr(attr, TCA_U32_SEL))
			search->found.others++; /* a filter; hash tables of u32 are skipped */
	}
	return 0;
}

int tc_get_ingress(struct rtnl *nl, const struct link *link, const struct link *to,
		   struct tc_ingress *ret_ingress, struct hw_err *e)
{
	struct tcmsg head = { .tcm_ifindex = link->index, .tcm_parent = TC_HANDLE_INGRESS };
	struct ingress_search search = { .to = to->index };
	struct tc_qdisc hook;
	int r;

	r = tc_get_qdisc(nl, link, TC_H_INGRESS, &hook, e);
	if (r < 0)
		return r;
	if (*hook.kind) {
		search.found.hook = true;
		rtnl_put(nl, RTM_GETTFILTER, NLM_F_DUMP, &head, sizeof(head), "list filters of %s",
			 link->name);
		r = rtnl_query(nl, decode_ingress_filter, &search, e);
	}
	if (r < 0)
		return r;
	*ret_ingress = search.found;
	return r;
}
