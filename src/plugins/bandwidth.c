/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/bandwidth.c - how fast a pod may send and be sent to
 *
 * What:  what comes to the pod is limited where it leaves the host, at the
 *        host's end of its link; what the pod sends where it leaves the pod, on
 *        its own interface.
 * How:   one qdisc each (net/tc.h); nothing else is made, and both go with the
 *        link. A pod that may change its own network could remove the second:
 *        with "egress": "ifb" all that comes in by the host's end takes the way
 *        through an ifb, a link that only exists to be limited, as upstream does
 *        it for every pod.
 * Rules: of qdiscs, only those with our handle are deleted; of ifbs, only the one
 *        with the hardware address that is in the record. The hook for what
 *        comes in has no mark: where there is one, ADD refuses to make another.
 *        An ADD on top of another takes its place.
 */
#include <errno.h>
#include <string.h>

#include <hawser/plugin.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/netns.h"
#include "net/rtnl.h"
#include "plugins/bandwidth.h"
#include "plugins/plugins.h"

#define IFB_TXQLEN 1000
#define IFB_QUEUES 1

/* What the record says. Indexes, because a name may be another link's by now. */
struct made {
	char *host; /* name, for people and for CHECK */
	int host_index, pod_index;
	char *ifb, *ifb_mac;
};

static const struct hw_field made_fields[] = {
	{ "host", HW_STRING, HW_AT(struct made, host) },
	{ "hostIndex", HW_INT, HW_AT(struct made, host_index) },
	{ "podIndex", HW_INT, HW_AT(struct made, pod_index) },
	{ "ifb", HW_STRING, HW_AT(struct made, ifb) },
	{ "ifbMac", HW_STRING, HW_AT(struct made, ifb_mac) },
	{ 0 },
};

/* ---- DEL ------------------------------------------------------------------------------------ */

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

static int delete_ifb(struct rtnl *nl, const struct made *made, struct hw_err *e)
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

static int end_on_host(const struct made *made, struct hw_err *e)
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

static int end_in_pod(const struct hw_call *call, const struct made *made, struct hw_err *e)
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

/* The one does not wait for the other. */
static int end(const struct hw_call *call, const struct made *made, struct hw_err *e)
{
	struct hw_err why;

	int first = end_on_host(made, e);
	int r = end_in_pod(call, made, &why);
	if (r < 0 && first >= 0)
		*e = why;
	return first < 0 ? first : r;
}

/* Upstream's DEL: the ifb. The rest goes with the link. */
static int end_upstreams(const struct hw_call *call, struct hw_err *e)
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

static int bandwidth_del(struct hw_call *call, struct hw_err *e)
{
	return call->recorded ? end(call, call->made, e) : end_upstreams(call, e);
}

/* ---- ADD --------------------------------------------------------------------------------------- */

static int find_ends(struct bandwidth_ends *ends, const struct bandwidth *b,
		     const struct hw_call *call, struct hw_err *e)
{
	int r = 0;

	if (b->ingress.rate || b->ifb)
		r = bandwidth_find_host(ends, call, e);
	if (r >= 0 && b->egress.rate && !b->ifb)
		r = bandwidth_find_pod(ends, call, e);
	return r;
}

/* Upstream's name, so that its DEL finds the ifb; but a second interface of the pod gets another. */
static int plan_ifb(struct made *made, const struct bandwidth_ends *ends,
		    const struct hw_call *call, struct hw_err *e)
{
	const char *parts[] = { call->network, call->container_id, call->ifname };
	struct hw_mac mac = { .len = 6, .bytes = { 0x02 } }; /* locally administered */
	char hex[2 * 5 + 1], text[HW_MAC_TEXT];
	struct tc_ingress ingress;
	struct link there = { 0 };

	int r = tc_get_ingress(ends->nl, &ends->host, &there, &ingress, e);
	if (r < 0)
		return r;
	if (ingress.hook)
		return err_text(e, -EEXIST,
				"somebody else has filters on what comes in by %s: there is an "
				"ingress qdisc",
				ends->host.name);
	hash_parts(parts, ARRAY_SIZE(parts), sizeof(hex) - 1, hex);
	for (size_t i = 0; i < 5; i++)
		mac.bytes[i + 1] =
			(uint8_t)strtoul((char[]){ hex[2 * i], hex[2 * i + 1], 0 }, NULL, 16);
	made->ifb_mac = str_copy(hw_mac_format(&mac, text));
	made->ifb = bandwidth_ifb_name(call);
	r = link_get(ends->nl, made->ifb, &there, e);
	if (r == -ENODEV)
		return 0;
	free(made->ifb);
	made->ifb = str_printf("bwp%s", hex);
	return r;
}

static int plan(struct hw_call *call, const struct bandwidth *b, const struct bandwidth_ends *ends,
		struct hw_err *e)
{
	struct made *made = call->made;
	int r = 0;

	if (ends->host.index)
		made->host = str_copy(ends->host.name);
	made->host_index = ends->host.index;
	if (b->egress.rate && !b->ifb)
		made->pod_index = ends->pod.index;
	if (b->egress.rate && b->ifb)
		r = plan_ifb(made, ends, call, e);
	return r < 0 ? r : hw_record_save(call, e);
}

static int limit(struct rtnl *nl, const struct link *link, const struct tc_shape *shape,
		 struct hw_err *e)
{
	tc_put_shape(nl, link, shape);
	return rtnl_commit(nl, e);
}

static int make_ifb(const struct bandwidth_ends *ends, const struct made *made,
		    struct link *ret_link, struct hw_err *e)
{
	struct link_new new = { .name = made->ifb,
				.kind = "ifb",
				.mtu = ends->host.mtu,
				.txqlen = IFB_TXQLEN,
				.queues = IFB_QUEUES,
				.up = true };

	int r = hw_mac_parse(made->ifb_mac, &new.mac, e);
	if (r < 0)
		return r;
	link_put_new(ends->nl, &new);
	return link_get(ends->nl, made->ifb, ret_link, e);
}

static int limit_by_ifb(struct hw_call *call, const struct bandwidth *b,
			const struct bandwidth_ends *ends, struct hw_err *e)
{
	const struct made *made = call->made;
	struct hw_iface *iface;
	struct link ifb;

	int r = make_ifb(ends, made, &ifb, e);
	if (r < 0)
		return r;
	struct tc_shape egress = bandwidth_egress(b, &ifb);
	tc_put_shape(ends->nl, &ifb, &egress);
	tc_put_ingress(ends->nl, &ends->host);
	tc_put_redirect(ends->nl, &ends->host, &ifb);
	r = rtnl_commit(ends->nl, e);
	if (r < 0)
		return r;
	iface = hw_result_add_iface(call->result);
	iface->name = str_copy(made->ifb);
	iface->mac = str_copy(made->ifb_mac);
	return 0;
}

static int apply(struct hw_call *call, const struct bandwidth *b, const struct bandwidth_ends *ends,
		 struct hw_err *e)
{
	int r = 0;

	if (b->ingress.rate) {
		struct tc_shape ingress = bandwidth_ingress(b, &ends->host);

		r = limit(ends->nl, &ends->host, &ingress, e);
	}
	if (r < 0 || !b->egress.rate)
		return r;
	if (b->ifb)
		return limit_by_ifb(call, b, ends, e);
	struct tc_shape egress = bandwidth_egress(b, &ends->pod);
	return limit(ends->pod_nl, &ends->pod, &egress, e);
}

static int bandwidth_add(struct hw_call *call, struct hw_err *e)
{
	AUTO(bandwidth_close) struct bandwidth_ends ends = BANDWIDTH_ENDS_NONE;
	AUTO(bandwidth_done) struct bandwidth b = { 0 };

	int r = bandwidth_init(&b, call->conf, e);
	if (r >= 0 && !call->prev)
		r = err_text(e, -EINVAL, "must be called as chained plugin");
	if (r >= 0 && call->earlier)
		r = end(call, call->earlier, e);
	if (r < 0 || bandwidth_is_none(&b))
		return r;
	r = bandwidth_open(&ends, call, e);
	if (r >= 0)
		r = find_ends(&ends, &b, call, e);
	if (r >= 0)
		r = plan(call, &b, &ends, e);
	return r < 0 ? r : apply(call, &b, &ends, e);
}

/* ---- CHECK and repair ------------------------------------------------------------------------ */

static int check_egress_by_ifb(const struct bandwidth *b, const struct bandwidth_ends *ends,
			       const char *name, struct hw_err *e)
{
	struct tc_ingress ingress;
	struct link ifb;

	int r = link_get(ends->nl, name, &ifb, e);
	if (r == -ENODEV)
		return err_text(e, r, "get ifb device: %s is missing", name);
	if (r < 0)
		return r;
	if (!(ifb.flags & IFF_UP))
		return err_text(e, -ENETDOWN, "ifb device %s is down", name);
	r = tc_get_ingress(ends->nl, &ends->host, &ifb, &ingress, e);
	if (r < 0)
		return r;
	if (!ingress.redirected)
		return err_text(e, -ENOENT, "what comes in by %s is not redirected to %s",
				ends->host.name, name);
	struct tc_shape egress = bandwidth_egress(b, &ifb);
	return tc_check_shape(ends->nl, &ifb, &egress, e);
}

/* Of an attachment that another program made, the name that it gives the ifb. */
static char *ifb_of(const struct hw_call *call, const struct bandwidth *b)
{
	const struct made *made = call->made;

	if (call->recorded)
		return str_copy(made->ifb);
	return b->egress.rate ? bandwidth_ifb_name(call) : NULL;
}

static int check(const struct hw_call *call, const struct bandwidth *b,
		 const struct bandwidth_ends *ends, struct hw_err *e)
{
	autofree char *ifb = ifb_of(call, b);
	int r = 0;

	if (b->ingress.rate) {
		struct tc_shape ingress = bandwidth_ingress(b, &ends->host);

		r = tc_check_shape(ends->nl, &ends->host, &ingress, e);
	}
	if (r < 0 || !b->egress.rate)
		return r;
	if (ifb)
		return check_egress_by_ifb(b, ends, ifb, e);
	struct tc_shape egress = bandwidth_egress(b, &ends->pod);
	return tc_check_shape(ends->pod_nl, &ends->pod, &egress, e);
}

static int bandwidth_check(struct hw_call *call, struct hw_err *e)
{
	AUTO(bandwidth_close) struct bandwidth_ends ends = BANDWIDTH_ENDS_NONE;
	AUTO(bandwidth_done) struct bandwidth b = { 0 };

	int r = bandwidth_init(&b, call->conf, e);
	if (r >= 0 && !call->prev)
		r = err_text(e, -EINVAL, "must be called as a chained plugin");
	if (r < 0 || bandwidth_is_none(&b))
		return r;
	b.ifb |= !call->recorded;
	r = bandwidth_open(&ends, call, e);
	if (r >= 0)
		r = find_ends(&ends, &b, call, e);
	return r < 0 ? r : check(call, &b, &ends, e);
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
	.made_fields = made_fields,
	.made_size = sizeof(struct made),
};
