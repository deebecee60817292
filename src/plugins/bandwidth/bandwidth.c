/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/bandwidth/bandwidth.c - how fast a pod may send and be sent to
 *
 * What:  what comes to the pod is limited where it leaves the host, at the
 *        host's end of its link; what the pod sends where it leaves the pod, on
 *        its own interface.
 * How:   one qdisc each (net/tc/tc.h); nothing else is made, and both go with the
 *        link. A pod that may change its own network could remove the second:
 *        with "egress": "ifb" all that comes in by the host's end takes the way
 *        through an ifb, a link that only exists to be limited, as upstream does
 *        it for every pod.
 * Rules: of qdiscs, only those with our handle are deleted; of ifbs, only the one
 *        with the hardware address that is in the record. The hook for what
 *        comes in has no mark: where there is one, ADD refuses to make another.
 *        An ADD on top of another takes its place, or, where it cannot, leaves the
 *        other's limits.
 */
#include <errno.h>

#include <hawser/plugin.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/rtnl/rtnl.h"
#include "plugins/bandwidth/bandwidth.h"

#define IFB_TXQLEN 1000
#define IFB_QUEUES 1

/* ---- ADD --------------------------------------------------------------------------------------- */

static int find_links(struct bandwidth_links *links, const struct bandwidth *b,
		      const struct hw_call *call, struct hw_err *e)
{
	int r = 0;

	if (b->ingress.rate || b->ifb)
		r = bandwidth_find_host(links, call, e);
	if (r >= 0 && b->egress.rate && !b->ifb)
		r = bandwidth_find_pod(links, call, e);
	return r;
}

/* One that an earlier ADD has made is about to go. */
static int refuse_hook(const struct bandwidth_links *links, const struct bandwidth_made *earlier,
		       struct hw_err *e)
{
	struct link nowhere = { 0 };
	struct tc_ingress ingress;

	if (earlier && earlier->ifb && earlier->host_index == links->host.index)
		return 0;
	int r = tc_get_ingress(links->nl, &links->host, &nowhere, &ingress, e);
	if (r < 0 || !ingress.hook)
		return r;
	return err_text(e, -EEXIST,
			"somebody else has filters on what comes in by %s: there is an ingress "
			"qdisc",
			links->host.name);
}

/* Upstream's name, so that its DEL finds the ifb; but a second interface of the pod gets another.
 * The hardware address is made from the attachment's name, so that ours finds its own. */
static int plan_ifb(struct bandwidth_made *made, const struct bandwidth_links *links,
		    const struct hw_call *call, struct hw_err *e)
{
	const char *parts[] = { call->network, call->container_id, call->ifname };
	const struct bandwidth_made *earlier = call->earlier;
	char hex[IFB_DIGITS + 1];
	struct link there;

	hash_parts(parts, ARRAY_SIZE(parts), IFB_DIGITS, hex);
	made->ifb_mac =
		str_printf("02:%.2s:%.2s:%.2s:%.2s:%.2s", hex, hex + 2, hex + 4, hex + 6, hex + 8);
	made->ifb = bandwidth_ifb_name(call);
	if (earlier && str_equal(earlier->ifb, made->ifb))
		return 0;
	int r = link_get(links->nl, made->ifb, &there, e);
	if (r == -ENODEV)
		return 0;
	free(made->ifb);
	made->ifb = str_printf(IFB_PREFIX "%s", hex);
	return r;
}

/* What the record says, before anything is changed */
static int plan(struct hw_call *call, const struct bandwidth *b,
		const struct bandwidth_links *links, struct hw_err *e)
{
	struct bandwidth_made *made = call->made;
	int r = 0;

	bandwidth_to_keys(b, &made->asked);
	if (links->host.index)
		made->host = str_copy(links->host.name);
	made->host_index = links->host.index;
	if (b->egress.rate && !b->ifb)
		made->pod_index = links->pod.index;
	if (b->egress.rate && b->ifb) {
		r = refuse_hook(links, call->earlier, e);
		if (r >= 0)
			r = plan_ifb(made, links, call, e);
	}
	return r;
}

static int limit(struct rtnl *nl, const struct link *link, const struct tc_shape *shape,
		 struct hw_err *e)
{
	tc_put_shape(nl, link, shape);
	return rtnl_commit(nl, e);
}

static int make_ifb(const struct bandwidth_links *links, const struct bandwidth_made *made,
		    struct link *ret_link, struct hw_err *e)
{
	struct link_new new = { .name = made->ifb,
				.kind = "ifb",
				.mtu = links->host.mtu,
				.txqlen = IFB_TXQLEN,
				.queues = IFB_QUEUES,
				.up = true };

	int r = hw_mac_parse(made->ifb_mac, &new.mac, e);
	if (r < 0)
		return r;
	link_put_new(links->nl, &new);
	return link_get(links->nl, made->ifb, ret_link, e);
}

static int limit_by_ifb(const struct bandwidth_made *made, const struct bandwidth *b,
			const struct bandwidth_links *links, struct hw_err *e)
{
	struct link ifb;

	int r = make_ifb(links, made, &ifb, e);
	if (r < 0)
		return r;
	struct tc_shape egress = bandwidth_egress(b, &ifb);
	tc_put_shape(links->nl, &ifb, &egress);
	tc_put_ingress(links->nl, &links->host);
	tc_put_redirect(links->nl, &links->host, &ifb);
	return rtnl_commit(links->nl, e);
}

static int limit_egress(const struct bandwidth_made *made, const struct bandwidth *b,
			const struct bandwidth_links *links, struct hw_err *e)
{
	if (!b->egress.rate)
		return 0;
	if (b->ifb)
		return limit_by_ifb(made, b, links, e);
	struct tc_shape egress = bandwidth_egress(b, &links->pod);
	return limit(links->pod_nl, &links->pod, &egress, e);
}

/* One direction does not wait for the other: where limits are put back, some are better than none. */
static int apply(const struct bandwidth_made *made, const struct bandwidth *b,
		 const struct bandwidth_links *links, struct hw_err *e)
{
	struct hw_err why;
	int first = 0;

	if (b->ingress.rate) {
		struct tc_shape ingress = bandwidth_ingress(b, &links->host);

		first = limit(links->nl, &links->host, &ingress, e);
	}
	int r = limit_egress(made, b, links, &why);
	if (r < 0 && first >= 0)
		*e = why;
	return first < 0 ? first : r;
}

/* What an earlier ADD did. (A record of an older version does not say what was asked for.) */
static int apply_again(const struct hw_call *call, const struct bandwidth_made *earlier,
		       struct bandwidth_links *links, struct hw_err *e)
{
	const struct bandwidth_conf asked = { .keys = earlier->asked };
	AUTO(bandwidth_done) struct bandwidth b = { 0 };

	int r = bandwidth_init(&b, &asked, e);
	if (r < 0 || bandwidth_is_none(&b))
		return r;
	r = find_links(links, &b, call, e);
	return r < 0 ? r : apply(earlier, &b, links, e);
}

/* The attachment has worked so far, and goes on as it was. */
static void go_back(const struct hw_call *call, struct bandwidth_links *links, struct hw_err *e)
{
	struct hw_err why;

	int r = bandwidth_end(call, call->made, &why);
	if (r >= 0)
		r = apply_again(call, call->earlier, links, &why);
	if (r < 0)
		err_details(e, "the limits before cannot be restored: %s", why.msg);
}

/* Put a plan into practice, in the place of what an earlier ADD made. */
static int replace(struct hw_call *call, const struct bandwidth *b, struct bandwidth_links *links,
		   struct hw_err *e)
{
	int r = call->earlier ? bandwidth_end(call, call->earlier, e) : 0;

	if (r >= 0)
		r = hw_record_save(call, e);
	if (r >= 0)
		r = apply(call->made, b, links, e);
	if (r < 0 && call->earlier)
		go_back(call, links, e);
	return r;
}

static void tell_ifb(struct hw_call *call)
{
	const struct bandwidth_made *made = call->made;
	struct hw_iface *iface;

	if (!made->ifb)
		return;
	iface = hw_result_add_iface(call->result);
	iface->name = str_copy(made->ifb);
	iface->mac = str_copy(made->ifb_mac);
}

static int bandwidth_add(struct hw_call *call, struct hw_err *e)
{
	AUTO(bandwidth_close) struct bandwidth_links links = BANDWIDTH_LINKS_NONE;
	AUTO(bandwidth_done) struct bandwidth b = { 0 };

	int r = bandwidth_init(&b, call->conf, e);
	if (r >= 0 && !call->prev)
		r = err_text(e, -EINVAL, "must be called as chained plugin");
	if (r < 0)
		return r;
	if (bandwidth_is_none(&b))
		return call->earlier ? bandwidth_end(call, call->earlier, e) : 0;
	r = bandwidth_open(&links, call, e);
	if (r >= 0)
		r = find_links(&links, &b, call, e);
	if (r >= 0)
		r = plan(call, &b, &links, e);
	if (r >= 0)
		r = replace(call, &b, &links, e);
	if (r >= 0)
		tell_ifb(call);
	return r;
}

/* ---- the other verbs -------------------------------------------------------------------------- */

/* Upstream's newer plugins make an htb also without subnets, and of another shape. */
static int check_limit(const struct hw_call *call, struct rtnl *nl, const struct link *link,
		       const struct tc_shape *shape, struct hw_err *e)
{
	struct tc_qdisc root = { 0 };
	int r = 0;

	if (!call->recorded)
		r = tc_get_root(nl, link, &root, e);
	if (r < 0 || str_equal(root.kind, "htb"))
		return r;
	return tc_check_shape(nl, link, shape, e);
}

static int check_egress_by_ifb(const struct hw_call *call, const struct bandwidth *b,
			       const struct bandwidth_links *links, const char *name,
			       struct hw_err *e)
{
	struct tc_ingress ingress;
	struct link ifb;

	int r = link_get(links->nl, name, &ifb, e);
	if (r == -ENODEV)
		return err_text(e, r, "get ifb device: %s is missing", name);
	if (r < 0)
		return r;
	if (!(ifb.flags & IFF_UP))
		return err_text(e, -ENETDOWN, "ifb device %s is down", name);
	r = tc_get_ingress(links->nl, &links->host, &ifb, &ingress, e);
	if (r < 0)
		return r;
	if (!ingress.redirected)
		return err_text(e, -ENOENT, "what comes in by %s is not redirected to %s",
				links->host.name, name);
	struct tc_shape egress = bandwidth_egress(b, &ifb);
	return check_limit(call, links->nl, &ifb, &egress, e);
}

/* Of an attachment that another program made, the name that it gives the ifb. */
static char *ifb_of(const struct hw_call *call, const struct bandwidth *b)
{
	const struct bandwidth_made *made = call->made;

	if (call->recorded)
		return str_copy(made->ifb);
	return b->egress.rate ? bandwidth_ifb_name(call) : NULL;
}

static int check(const struct hw_call *call, const struct bandwidth *b,
		 const struct bandwidth_links *links, struct hw_err *e)
{
	autofree char *ifb = ifb_of(call, b);
	int r = 0;

	if (b->ingress.rate) {
		struct tc_shape ingress = bandwidth_ingress(b, &links->host);

		r = check_limit(call, links->nl, &links->host, &ingress, e);
	}
	if (r < 0 || !b->egress.rate)
		return r;
	if (ifb)
		return check_egress_by_ifb(call, b, links, ifb, e);
	struct tc_shape egress = bandwidth_egress(b, &links->pod);
	return check_limit(call, links->pod_nl, &links->pod, &egress, e);
}

static int bandwidth_check(struct hw_call *call, struct hw_err *e)
{
	AUTO(bandwidth_close) struct bandwidth_links links = BANDWIDTH_LINKS_NONE;
	AUTO(bandwidth_done) struct bandwidth b = { 0 };

	int r = bandwidth_init(&b, call->conf, e);
	if (r >= 0 && !call->prev)
		r = err_text(e, -EINVAL, "must be called as a chained plugin");
	if (r < 0 || bandwidth_is_none(&b))
		return r;
	b.ifb |= !call->recorded;
	r = bandwidth_open(&links, call, e);
	if (r >= 0)
		r = find_links(&links, &b, call, e);
	return r < 0 ? r : check(call, &b, &links, e);
}

static int bandwidth_del(struct hw_call *call, struct hw_err *e)
{
	return call->recorded ? bandwidth_end(call, call->made, e)
			      : bandwidth_end_upstreams(call, e);
}

static int bandwidth_status(struct hw_call *call, struct hw_err *e)
{
	AUTO(bandwidth_done) struct bandwidth b = { 0 };

	return bandwidth_init(&b, call->conf, e);
}

static const char *const bandwidth_versions[] = {
	"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0", NULL
};

const struct hw_plugin bandwidth_plugin = {
	.size = sizeof(struct hw_plugin),
	.name = "bandwidth",
	.summary = "limits how fast a pod may send and be sent to",
	.add = bandwidth_add,
	.del = bandwidth_del,
	.check = bandwidth_check,
	.status = bandwidth_status,
	.versions = bandwidth_versions,
	.fields = bandwidth_fields,
	.conf_size = sizeof(struct bandwidth_conf),
	.record = true,
	.made_fields = bandwidth_made_fields,
	.made_size = sizeof(struct bandwidth_made),
};
