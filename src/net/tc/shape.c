/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/tc/shape.c - hold what leaves a link to a rate: all of it, or by subnets
 *
 * What:  without subnets a tbf. With them
 *
 *	htb 6877: ─┬─ class 6877:1, the rate ── bfifo, what may wait
 *	           └─ its direct queue: what is not held back
 *
 *        and one u32 filter per subnet, which leads to the class when only the
 *        subnets are held back, else past it, to the direct queue.
 * How:   a filter to 6877:0 is htb's own way to say "direct", and what no filter
 *        knows goes there, too, when there is no default class. So what is not
 *        held back passes no bucket at all, however fast it comes.
 *        Rate and burst are the tbf's, and so is what may wait, unless that is less
 *        than two of the large packets that the kernel makes of many: a tbf cuts
 *        them up again where they do not fit, the others would drop them all.
 * Rules: the kernel wants a priority to have one protocol.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/ip.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/rtnl/link.h"
#include "net/rtnl/rtnl.h"
#include "net/tc/wire.h"

#define CLASS_HELD   (TC_HANDLE | 1)
#define CLASS_DIRECT TC_HANDLE
#define QUANTUM	     65536 /* there is nobody to take turns with */
#define DIRECT_QLEN  1000
#define WAIT_LEAST   (2U * 80 * 1024)
#define WORDS_MAX    4 /* of an address, of 32 bits */

/* ---- filters -------------------------------------------------------------------------------- */

/* One u32 selector, as it is in a message. */
union selector {
	struct tc_u32_sel sel;
	char room[sizeof(struct tc_u32_sel) + WORDS_MAX * sizeof(struct tc_u32_key)];
};

static size_t selector_size(const union selector *s)
{
	return sizeof(s->sel) + s->sel.nkeys * sizeof(s->sel.keys[0]);
}

static uint32_t mask_of_word(unsigned len, unsigned word)
{
	unsigned bits = len > word * 32 ? len - word * 32 : 0;

	return htonl(bits >= 32 ? UINT32_MAX : ~(UINT32_MAX >> bits));
}

/* Words that are not looked at need no key; but one there must be. */
static union selector selector_of(const struct hw_prefix *subnet, bool by_source)
{
	bool six = subnet->ip.family == AF_INET6;
	int at = six ? (by_source ? 8 : 24) : (by_source ? 12 : 16);
	struct hw_ip network = prefix_network(subnet);
	union selector s = { .sel.flags = TC_U32_TERMINAL };

	for (unsigned word = 0; word < ip_bits(&subnet->ip) / 32; word++) {
		struct tc_u32_key key = { .mask = mask_of_word(subnet->len, word),
					  .off = at + 4 * (int)word };

		memcpy(&key.val, network.bytes + (size_t)4 * word, sizeof(key.val));
		if (key.mask || word == 0)
			s.sel.keys[s.sel.nkeys++] = key;
	}
	return s;
}

static uint32_t class_of_subnets(const struct tc_shape *shape)
{
	return shape->only ? CLASS_HELD : CLASS_DIRECT;
}

static void put_filter(struct rtnl *nl, const struct link *link, const struct tc_shape *shape,
		       const struct hw_prefix *subnet)
{
	union selector selector = selector_of(subnet, shape->by_source);
	bool six = subnet->ip.family == AF_INET6;
	struct tcmsg head = {
		.tcm_ifindex = link->index,
		.tcm_parent = TC_HANDLE,
		/* upstream's numbers */
		.tcm_info = TC_H_MAKE((six ? 15U : 16U) << 16, htons(six ? ETH_P_IPV6 : ETH_P_IP)),
	};
	char text[HW_PREFIX_TEXT];
	struct nlmsghdr *m =
		rtnl_put(nl, RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL, &head, sizeof(head),
			 "filter subnet %s on %s", hw_prefix_format(subnet, text), link->name);
	struct nlattr *options;

	mnl_attr_put_strz(m, TCA_KIND, "u32");
	options = mnl_attr_nest_start(m, TCA_OPTIONS);
	mnl_attr_put_u32(m, TCA_U32_CLASSID, class_of_subnets(shape));
	mnl_attr_put(m, TCA_U32_SEL, selector_size(&selector), &selector);
	mnl_attr_nest_end(m, options);
}

/* ---- htb --------------------------------------------------------------------------------------- */

static uint32_t class_of_others(const struct tc_shape *shape)
{
	return shape->only ? 0 : TC_H_MIN(CLASS_HELD);
}

static void put_htb(struct rtnl *nl, const struct link *link, const struct tc_shape *shape)
{
	struct tc_htb_glob init = { .version = 3,
				    .rate2quantum = 10,
				    .defcls = class_of_others(shape) };
	struct nlmsghdr *m = tc_put_qdisc(nl, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, link,
					  TC_H_ROOT, TC_HANDLE, "limit the rate");
	struct nlattr *options;

	mnl_attr_put_strz(m, TCA_KIND, "htb");
	options = mnl_attr_nest_start(m, TCA_OPTIONS);
	mnl_attr_put(m, TCA_HTB_INIT, sizeof(init), &init);
	mnl_attr_put_u32(m, TCA_HTB_DIRECT_QLEN, DIRECT_QLEN);
	mnl_attr_nest_end(m, options);
}

static uint32_t may_wait(const struct tc_tbf *bucket)
{
	return bucket->limit > WAIT_LEAST ? bucket->limit : WAIT_LEAST;
}

static void put_class(struct rtnl *nl, const struct link *link, const struct tc_tbf *bucket)
{
	struct tc_htb_opt parms = { .rate = tc_ratespec(bucket->rate),
				    .ceil = tc_ratespec(bucket->rate),
				    .buffer = bucket->buffer,
				    .cbuffer = bucket->buffer,
				    .quantum = QUANTUM };
	struct tc_fifo_qopt fifo = { .limit = may_wait(bucket) };
	struct nlmsghdr *m =
		tc_put_qdisc(nl, RTM_NEWTCLASS, NLM_F_CREATE | NLM_F_EXCL, link, TC_HANDLE,
			     CLASS_HELD, "add the class of what is limited");
	struct nlattr *options;

	mnl_attr_put_strz(m, TCA_KIND, "htb");
	options = mnl_attr_nest_start(m, TCA_OPTIONS);
	mnl_attr_put(m, TCA_HTB_PARMS, sizeof(parms), &parms);
	if (bucket->rate > UINT32_MAX) {
		mnl_attr_put_u64(m, TCA_HTB_RATE64, bucket->rate);
		mnl_attr_put_u64(m, TCA_HTB_CEIL64, bucket->rate);
	}
	mnl_attr_nest_end(m, options);

	m = tc_put_qdisc(nl, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, link, CLASS_HELD, 0,
			 "limit what may wait");
	mnl_attr_put_strz(m, TCA_KIND, "bfifo");
	mnl_attr_put(m, TCA_OPTIONS, sizeof(fifo), &fifo);
}

/**
 * tc_put_shape() - put "hold what leaves the link to a rate" into the batch
 */
void tc_put_shape(struct rtnl *nl, const struct link *link, const struct tc_shape *shape)
{
	if (!shape->n_subnets) {
		tc_put_tbf(nl, link, &shape->bucket);
		return;
	}
	put_htb(nl, link, shape);
	put_class(nl, link, &shape->bucket);
	for (size_t i = 0; i < shape->n_subnets; i++)
		put_filter(nl, link, shape, &shape->subnets[i]);
}

/* ---- is it still so? ---------------------------------------------------------------------------- */

static int decode_class(void *ctx, const struct nlmsghdr *answer, struct hw_err *e)
{
	struct tc_tbf *bucket = ctx;
	const struct nlattr *attr;

	(void)e;
	mnl_attr_for_each(attr, answer, sizeof(struct tcmsg)) {
		const struct nlattr *parms, *rate64;
		const struct tc_htb_opt *opt;

		if (mnl_attr_get_type(attr) != TCA_OPTIONS)
			continue;
		parms = tc_find_attr(attr, TCA_HTB_PARMS);
		rate64 = tc_find_attr(attr, TCA_HTB_RATE64);
		if (!parms || mnl_attr_get_payload_len(parms) < sizeof(*opt))
			continue;
		opt = mnl_attr_get_payload(parms);
		bucket->rate = opt->rate.rate;
		bucket->buffer = opt->buffer;
		if (rate64 && mnl_attr_validate(rate64, MNL_TYPE_U64) >= 0)
			bucket->rate = mnl_attr_get_u64(rate64);
	}
	return 0;
}

/* What the class and its queue have, in place of a tbf; nothing when they are gone. */
static int get_class(struct rtnl *nl, const struct link *link, struct tc_tbf *ret_bucket,
		     struct hw_err *e)
{
	struct tc_tbf bucket = { 0 };
	struct tc_qdisc leaf = { 0 };

	tc_put_qdisc(nl, RTM_GETTCLASS, NLM_F_ECHO, link, 0, CLASS_HELD, "look at a class");
	int r = rtnl_query(nl, decode_class, &bucket, e);
	if (r >= 0)
		r = tc_get_qdisc(nl, link, CLASS_HELD, &leaf, e);
	bucket.limit = leaf.tbf.limit;
	*ret_bucket = bucket;
	return r == -ENOENT ? 0 : r;
}

static int check_bucket(const struct link *link, const struct tc_tbf *has,
			const struct tc_tbf *want, struct hw_err *e)
{
	if (has->rate != want->rate)
		return err_text(e, -EINVAL,
				"Rate doesn't match: interface %s is limited to %" PRIu64
				" bytes/s, not %" PRIu64,
				link->name, has->rate, want->rate);
	if (has->limit != want->limit)
		return err_text(e, -EINVAL,
				"Limit doesn't match: on interface %s %u bytes may wait, not %u",
				link->name, has->limit, want->limit);
	if (has->buffer != want->buffer)
		return err_text(e, -EINVAL,
				"Buffer doesn't match: interface %s has a burst of %u ticks, not "
				"%u",
				link->name, has->buffer, want->buffer);
	return 0;
}

/* Which of the subnets' filters are there. */
struct filters {
	const struct tc_shape *shape;
	bool *found;
	size_t others;
};

static bool is_filter_of(const struct nlattr *options, const struct tc_shape *shape,
			 const struct hw_prefix *subnet)
{
	const struct nlattr *class = tc_find_attr(options, TCA_U32_CLASSID);
	const struct nlattr *attr = tc_find_attr(options, TCA_U32_SEL);
	union selector want = selector_of(subnet, shape->by_source);
	const struct tc_u32_sel *sel;

	if (!class || rtnl_attr_number(class) != class_of_subnets(shape) ||
	    mnl_attr_get_payload_len(attr) < selector_size(&want))
		return false;
	sel = mnl_attr_get_payload(attr);
	return sel->nkeys == want.sel.nkeys &&
	       !memcmp(sel->keys, want.sel.keys, sel->nkeys * sizeof(want.sel.keys[0]));
}

static int look_at_filter(void *ctx, const struct nlmsghdr *answer, struct hw_err *e)
{
	struct filters *filters = ctx;
	const struct tc_shape *shape = filters->shape;
	const struct nlattr *attr;

	(void)e;
	mnl_attr_for_each(attr, answer, sizeof(struct tcmsg)) {
		bool known = false;

		/* without a selector it is u32's own table */
		if (mnl_attr_get_type(attr) != TCA_OPTIONS || !tc_find_attr(attr, TCA_U32_SEL))
			continue;
		for (size_t i = 0; i < shape->n_subnets; i++)
			if (is_filter_of(attr, shape, &shape->subnets[i]))
				filters->found[i] = known = true;
		filters->others += !known;
	}
	return 0;
}

static int check_filters(struct rtnl *nl, const struct link *link, const struct tc_shape *shape,
			 struct hw_err *e)
{
	struct tcmsg head = { .tcm_ifindex = link->index, .tcm_parent = TC_HANDLE };
	autofree bool *found = mem_new(shape->n_subnets * sizeof(*found));
	struct filters filters = { shape, found, 0 };
	char text[HW_PREFIX_TEXT];

	rtnl_put(nl, RTM_GETTFILTER, NLM_F_DUMP, &head, sizeof(head), "list filters of %s",
		 link->name);
	int r = rtnl_query(nl, look_at_filter, &filters, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < shape->n_subnets; i++)
		if (!found[i])
			return err_text(e, -ENOENT, "interface %s has no filter for subnet %s",
					link->name, hw_prefix_format(&shape->subnets[i], text));
	if (filters.others)
		return err_text(e, -EINVAL, "interface %s has %zu filters of somebody else",
				link->name, filters.others);
	return 0;
}

/**
 * tc_check_shape() - is what tc_put_shape() did still so?
 *
 * Return: 0, or an error that says what is not
 */
int tc_check_shape(struct rtnl *nl, const struct link *link, const struct tc_shape *shape,
		   struct hw_err *e)
{
	const char *kind = shape->n_subnets ? "htb" : "tbf";
	struct tc_tbf want = shape->bucket;
	struct tc_qdisc root = { 0 };

	int r = tc_get_root(nl, link, &root, e);
	if (r < 0)
		return r;
	if (!str_equal(root.kind, kind) ||
	    (shape->n_subnets && root.other != class_of_others(shape)))
		return err_text(e, -ENOENT,
				"interface %s has no rate limit of ours: its queue is %s",
				link->name, *root.kind ? root.kind : "gone");
	if (shape->n_subnets) {
		want.limit = may_wait(&want);
		r = get_class(nl, link, &root.tbf, e);
	}
	if (r >= 0)
		r = check_bucket(link, &root.tbf, &want, e);
	return r < 0 || !shape->n_subnets ? r : check_filters(nl, link, shape, e);
}
