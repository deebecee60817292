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
#include <string.h>

#include <hawser/plugin.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/netns.h"
#include "net/rtnl/rtnl.h"
#include "plugins/bandwidth/bandwidth.h"

#define IFB_TXQLEN 1000
#define IFB_QUEUES 1

/* ---- removing limits ------------------------------------------------------------------------ */

/* What is gone, or is not ours any more, needs no deleting. */
static int unless_gone(int r)
{
	return r == -ENODEV || r == -ENOENT || r == -EINVAL ? 0 : r;
}

static int delete_shape(struct rtnl *nl, const char *name, int index, struct hw_err *e)
{
	struct link link = { .index = index };

	memcpy(link.name, name, strnlen(name, sizeof(link.name) - 1));
	tc_put_del_shape(nl, &link);
	return unless_gone(rtnl_commit(nl, e));
}

static bool has_mac(const struct link *link, const char *mac)
{
	char text[HW_MAC_TEXT];

	return str_equal(hw_mac_format(&link->mac, text), mac);
}

/* The hook, while it leads to our ifb or to one that is gone (what the pod sends would be lost), or
 * nowhere yet. */
static int delete_hook(struct rtnl *nl, int host_index, const struct link *ifb, struct hw_err *e)
{
	struct tc_ingress ingress;
	struct link host;

	int r = link_get_index(nl, host_index, &host, e);
	if (r >= 0)
		r = tc_get_ingress(nl, &host, ifb, &ingress, e);
	if (r < 0)
		return unless_gone(r);
	if (!ingress.hook || (!ingress.redirected && ingress.others))
		return 0;
	tc_put_del_ingress(nl, &host);
	return unless_gone(rtnl_commit(nl, e));
}

static int delete_ifb(struct rtnl *nl, const struct bandwidth_made *made, struct hw_err *e)
{
	struct link ifb = { 0 };

	int r = link_get(nl, made->ifb, &ifb, e);
	if (r < 0 && r != -ENODEV)
		return r;
	if (ifb.index && (!str_equal(ifb.kind, "ifb") || !has_mac(&ifb, made->ifb_mac)))
		return 0;
	r = delete_hook(nl, made->host_index, &ifb, e);
	return r < 0 || !ifb.index ? r : link_delete(nl, made->ifb, e);
}

static int end_on_host(const struct bandwidth_made *made, struct hw_err *e)
{
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	int r;

	if (!made->host_index)
		return 0;
	r = rtnl_open(-1, &nl, e);
	if (r >= 0)
		r = delete_shape(nl, str_or(made->host, ""), made->host_index, e);
	if (r >= 0 && made->ifb)
		r = delete_ifb(nl, made, e);
	return r;
}

static int end_in_pod(const struct hw_call *call, const struct bandwidth_made *made,
		      struct hw_err *e)
{
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	autoclose int fd = -1;
	int r;

	if (!made->pod_index)
		return 0;
	r = netns_find(call->netns, &fd, e);
	if (r <= 0)
		return r;
	r = rtnl_open(fd, &nl, e);
	return r < 0 ? r : delete_shape(nl, call->ifname, made->pod_index, e);
}

/* Delete what an ADD made, on the host and in the pod: the one does not wait for the other. */
static int bandwidth_end(const struct hw_call *call, const struct bandwidth_made *made,
			 struct hw_err *e)
{
	struct hw_err why;

	int first = end_on_host(made, e);
	int r = end_in_pod(call, made, &why);
	if (r < 0 && first >= 0)
		*e = why;
	return first < 0 ? first : r;
}

/* Delete what upstream's DEL deletes: the ifb. The rest goes with the link. */
static int bandwidth_end_upstreams(const struct hw_call *call, struct hw_err *e)
{
	autofree char *name = bandwidth_ifb_name(call);
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	struct link ifb;

	int r = rtnl_open(-1, &nl, e);
	if (r >= 0)
		r = link_get(nl, name, &ifb, e);
	if (r < 0 || !str_equal(ifb.kind, "ifb"))
		return unless_gone(r);
	return link_delete(nl, name, e);
}

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
