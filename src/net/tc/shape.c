/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/tc/shape.c - shape the egress of a link to a rate, in total or by subnets
 *
 * What:  without subnets, the root qdisc is a tbf. With subnets it is
 *
 *	htb 6877: ─┬─ class 6877:1, limits the rate ── bfifo, the queue
 *	           └─ htb's direct queue: traffic that is not shaped
 *
 *        with one u32 filter per subnet. If only the subnets are shaped, the filters
 *        select the class; otherwise they select the direct queue.
 * How:   a filter that selects 6877:0 selects htb's direct queue. Without a default
 *        class, unclassified traffic uses the direct queue, too. So traffic that is
 *        not shaped passes no token bucket at all.
 *        Rate and burst are the same as those of the tbf. The queue limit is also the
 *        same, but at least the size of two GSO packets, the large packets that the
 *        kernel merges from many small ones: a tbf splits packets that exceed its
 *        limit, but a bfifo would drop them.
 * Rules: the kernel requires all filters of one priority to have one protocol.
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

#define CLASS_SHAPED (TC_HANDLE | 1)
#define CLASS_DIRECT TC_HANDLE
#define QUANTUM	     65536 /* has no effect, as there is only one class */
#define DIRECT_QLEN  1000
#define QUEUE_MIN    (2U * 80 * 1024)
#define WORDS_MAX    4 /* 32-bit words of an IPv6 address */

/* ---- filters ----------------------------------------------------------------------------- */

/* A u32 selector with its keys, as in a message */
union u32_selector {
	struct tc_u32_sel sel;
	char room[sizeof(struct tc_u32_sel) + WORDS_MAX * sizeof(struct tc_u32_key)];
};

static size_t selector_size(const union u32_selector *s)
{
	return sizeof(s->sel) + s->sel.nkeys * sizeof(s->sel.keys[0]);
}

/* Makes a selector with one key for each 32-bit word of the address. A word whose mask is 0 needs
 * no key, but there must be at least one key. */
static union u32_selector make_selector(const struct hw_prefix *subnet, bool by_source)
{
	bool six = subnet->ip.family == AF_INET6;
	int at = six ? (by_source ? 8 : 24) : (by_source ? 12 : 16);
	struct hw_ip network = prefix_network(subnet);
	union u32_selector s = { .sel.flags = TC_U32_TERMINAL };

	for (unsigned word = 0; word < ip_bits(&subnet->ip) / 32; word++) {
		unsigned bits = subnet->len > word * 32 ? subnet->len - word * 32 : 0;
		struct tc_u32_key key = {
			.mask = htonl(bits >= 32 ? UINT32_MAX : ~(UINT32_MAX >> bits)),
			.off = at + 4 * (int)word,
		};

		memcpy(&key.val, network.bytes + (size_t)4 * word, sizeof(key.val));
		if (key.mask || word == 0)
			s.sel.keys[s.sel.nkeys++] = key;
	}
	return s;
}

static uint32_t subnet_class(const struct tc_shape *shape)
{
	return shape->only ? CLASS_SHAPED : CLASS_DIRECT;
}

static void put_filter(struct rtnl *nl, const struct link *link, const struct tc_shape *shape,
		       const struct hw_prefix *subnet)
{
	union u32_selector selector = make_selector(subnet, shape->by_source);
	bool six = subnet->ip.family == AF_INET6;
	struct tcmsg head = {
		.tcm_ifindex = link->index,
		.tcm_parent = TC_HANDLE,
		/* the same priorities as in upstream */
		.tcm_info = TC_H_MAKE((six ? 15U : 16U) << 16, htons(six ? ETH_P_IPV6 : ETH_P_IP)),
	};
	char text[HW_PREFIX_TEXT];
	struct nlmsghdr *m = rtnl_put(nl, RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL, &head,
				      sizeof(head), "add a filter for subnet %s to %s",
				      hw_prefix_format(subnet, text), link->name);
	struct nlattr *options;

	mnl_attr_put_strz(m, TCA_KIND, "u32");
	options = mnl_attr_nest_start(m, TCA_OPTIONS);
	mnl_attr_put_u32(m, TCA_U32_CLASSID, subnet_class(shape));
	mnl_attr_put(m, TCA_U32_SEL, selector_size(&selector), &selector);
	mnl_attr_nest_end(m, options);
}

/* ---- htb --------------------------------------------------------------------------------- */

static uint32_t default_class(const struct tc_shape *shape)
{
	return shape->only ? 0 : TC_H_MIN(CLASS_SHAPED);
}

static void put_htb(struct rtnl *nl, const struct link *link, const struct tc_shape *shape)
{
	struct tc_htb_glob init = { .version = 3,
				    .rate2quantum = 10,
				    .defcls = default_class(shape) };
	struct nlmsghdr *m = tc_put_qdisc(nl, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, link,
					  TC_H_ROOT, TC_HANDLE, "limit the rate");
	struct nlattr *options;

	mnl_attr_put_strz(m, TCA_KIND, "htb");
	options = mnl_attr_nest_start(m, TCA_OPTIONS);
	mnl_attr_put(m, TCA_HTB_INIT, sizeof(init), &init);
	mnl_attr_put_u32(m, TCA_HTB_DIRECT_QLEN, DIRECT_QLEN);
	mnl_attr_nest_end(m, options);
}

static uint32_t queue_limit(const struct tc_tbf *bucket)
{
	return bucket->limit > QUEUE_MIN ? bucket->limit : QUEUE_MIN;
}

static void put_class(struct rtnl *nl, const struct link *link, const struct tc_tbf *bucket)
{
	struct tc_htb_opt parms = { .rate = tc_ratespec(bucket->rate),
				    .ceil = tc_ratespec(bucket->rate),
				    .buffer = bucket->buffer,
				    .cbuffer = bucket->buffer,
				    .quantum = QUANTUM };
	struct tc_fifo_qopt fifo = { .limit = queue_limit(bucket) };
	struct nlmsghdr *m = tc_put_qdisc(nl, RTM_NEWTCLASS, NLM_F_CREATE | NLM_F_EXCL, link,
					  TC_HANDLE, CLASS_SHAPED, "add the shaped class");
	struct nlattr *options;

	mnl_attr_put_strz(m, TCA_KIND, "htb");
	options = mnl_attr_nest_start(m, TCA_OPTIONS);
	mnl_attr_put(m, TCA_HTB_PARMS, sizeof(parms), &parms);
	if (bucket->rate > UINT32_MAX) {
		mnl_attr_put_u64(m, TCA_HTB_RATE64, bucket->rate);
		mnl_attr_put_u64(m, TCA_HTB_CEIL64, bucket->rate);
	}
	mnl_attr_nest_end(m, options);

	m = tc_put_qdisc(nl, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, link, CLASS_SHAPED, 0,
			 "limit the queue");
	mnl_attr_put_strz(m, TCA_KIND, "bfifo");
	mnl_attr_put(m, TCA_OPTIONS, sizeof(fifo), &fifo);
}

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

/* ---- check ------------------------------------------------------------------------------- */

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

/* Reads rate and burst of the class and the limit of its queue; zeros if they do not exist. */
static int get_class(struct rtnl *nl, const struct link *link, struct tc_tbf *ret_bucket,
		     struct hw_err *e)
{
	struct tc_tbf bucket = { 0 };
	struct tc_qdisc leaf = { 0 };
	int r;

	tc_put_qdisc(nl, RTM_GETTCLASS, NLM_F_ECHO, link, 0, CLASS_SHAPED, "read the shaped class");
	r = rtnl_query(nl, decode_class, &bucket, e);
	if (r >= 0)
		r = tc_get_qdisc(nl, link, CLASS_SHAPED, &leaf, e);
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
				" bytes/s, want %" PRIu64,
				link->name, has->rate, want->rate);
	if (has->limit != want->limit)
		return err_text(e, -EINVAL,
				"Limit doesn't match: interface %s queues up to %u bytes, want %u",
				link->name, has->limit, want->limit);
	if (has->buffer != want->buffer)
		return err_text(e, -EINVAL,
				"Buffer doesn't match: interface %s has a burst of %u ticks, want "
				"%u",
				link->name, has->buffer, want->buffer);
	return 0;
}

/* The filters in the kernel: which subnets have one, and how many filters match no subnet */
struct subnet_filters {
	const struct tc_shape *shape;
	bool *found;
	size_t unexpected;
};

static bool is_subnet_filter(const struct nlattr *options, const struct tc_shape *shape,
			     const struct hw_prefix *subnet)
{
	const struct nlattr *class;
	const struct nlattr *attr = tc_find_attr(options, TCA_U32_SEL);
	union u32_selector want = make_selector(subnet, shape->by_source);
	const struct tc_u32_sel *sel;

	class = tc_find_attr(options, TCA_U32_CLASSID);
	if (!class || rtnl_attr_number(class) != subnet_class(shape) ||
	    mnl_attr_get_payload_len(attr) < selector_size(&want))
		return false;
	sel = mnl_attr_get_payload(attr);
	return sel->nkeys == want.sel.nkeys &&
	       !memcmp(sel->keys, want.sel.keys, sel->nkeys * sizeof(want.sel.keys[0]));
}

static int decode_subnet_filter(void *ctx, const struct nlmsghdr *answer, struct hw_err *e)
{
	struct subnet_filters *filters = ctx;
	const struct tc_shape *shape = filters->shape;
	const struct nlattr *attr;

	(void)e;
	mnl_attr_for_each(attr, answer, sizeof(struct tcmsg)) {
		bool known = false;

		/* an entry without a selector is a hash table of u32, not a filter */
		if (mnl_attr_get_type(attr) != TCA_OPTIONS || !tc_find_attr(attr, TCA_U32_SEL))
			continue;
		for (size_t i = 0; i < shape->n_subnets; i++)
			if (is_subnet_filter(attr, shape, &shape->subnets[i]))
				filters->found[i] = known = true;
		filters->unexpected += !known;
	}
	return 0;
}

static int check_filters(struct rtnl *nl, const struct link *link, const struct tc_shape *shape,
			 struct hw_err *e)
{
	struct tcmsg head = { .tcm_ifindex = link->index, .tcm_parent = TC_HANDLE };
	autofree bool *found = mem_new(shape->n_subnets * sizeof(*found));
	struct subnet_filters filters = { shape, found, 0 };
	char text[HW_PREFIX_TEXT];
	int r;

	rtnl_put(nl, RTM_GETTFILTER, NLM_F_DUMP, &head, sizeof(head), "list filters of %s",
		 link->name);
	r = rtnl_query(nl, decode_subnet_filter, &filters, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < shape->n_subnets; i++)
		if (!found[i])
			return err_text(e, -ENOENT, "interface %s has no filter for subnet %s",
					link->name, hw_prefix_format(&shape->subnets[i], text));
	if (filters.unexpected)
		return err_text(e, -EINVAL, "interface %s has %zu unexpected filters", link->name,
				filters.unexpected);
	return 0;
}

int tc_check_shape(struct rtnl *nl, const struct link *link, const struct tc_shape *shape,
		   struct hw_err *e)
{
	const char *kind = shape->n_subnets ? "htb" : "tbf";
	struct tc_tbf want = shape->bucket;
	struct tc_qdisc root = { 0 };
	int r;

	r = tc_get_root(nl, link, &root, e);
	if (r < 0)
		return r;
	if (!str_equal(root.kind, kind) || (shape->n_subnets && root.other != default_class(shape)))
		return err_text(e, -ENOENT,
				"interface %s has no rate limit set by hawser: root qdisc is %s",
				link->name, *root.kind ? root.kind : "missing");
	if (shape->n_subnets) {
		want.limit = queue_limit(&want);
		r = get_class(nl, link, &root.tbf, e);
	}
	if (r >= 0)
		r = check_bucket(link, &root.tbf, &want, e);
	return r < 0 || !shape->n_subnets ? r : check_filters(nl, link, shape, e);
}
