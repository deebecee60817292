/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/bandwidth/bandwidth.c - the bandwidth plugin: rate limits for a pod's traffic
 *
 * What:  traffic to the pod is limited where it leaves the host: on the peer of the pod's
 *        interface, or on the pod's tap. Traffic from the pod is limited where it leaves
 *        the pod: on the pod's own interface.
 * How:   each of these two links gets a root qdisc (net/tc/tc.h), which the kernel deletes
 *        together with the link. A pod that may change its own network could delete the
 *        qdisc on its interface. For such pods there is "egress": "ifb": all packets that
 *        the host's link receives are redirected to an ifb, an interface of the host that
 *        exists only for its queue. Upstream does this for every pod.
 * Rules: DEL deletes only qdiscs with our handle, and only the ifb with the MAC address
 *        in the record. The ingress qdisc that redirects packets has no handle of ours:
 *        if the link already has an ingress qdisc, ADD fails.
 */
#include <errno.h>
#include <string.h>

#include <hawser/plugin.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/netns.h"
#include "net/rtnl/link.h"
#include "net/rtnl/rtnl.h"
#include "plugins/bandwidth/bandwidth.h"

#define IFB_PREFIX "bwp"
#define IFB_DIGITS 12
#define IFB_TXQLEN 1000
#define IFB_QUEUES 1

/* ---- links ----------------------------------------------------------------------------------- */

/* A pod's interface, and the link on the host to which it is connected */
struct pod_links {
	int netns_fd;
	struct rtnl *nl, *pod_nl; /* sockets on the host and in the pod */
	struct link host, pod;	  /* index 0: not looked up yet, or not found */
};

#define POD_LINKS_NONE                                                                             \
	{                                                                                          \
		.netns_fd = -1                                                                     \
	}

static int links_open(struct pod_links *links, const struct hw_call *call, struct hw_err *e)
{
	int r;

	r = netns_open(call->netns, &links->netns_fd, e);
	if (r < 0)
		return err_ctx(e, "failed to open netns \"%s\"", call->netns);
	r = rtnl_open(links->netns_fd, &links->pod_nl, e);
	return r < 0 ? r : rtnl_open(-1, &links->nl, e);
}

static void links_close(struct pod_links *links)
{
	rtnl_close(links->nl);
	rtnl_close(links->pod_nl);
	mem_close_fd(&links->netns_fd);
}

AUTO_VALUE_DEFINE(links_close, struct pod_links);

static int find_pod_link(struct pod_links *links, const struct hw_call *call, struct hw_err *e)
{
	return links->pod.index ? 0 : link_get(links->pod_nl, call->ifname, &links->pod, e);
}

/* Each link must be the parent of the other: if the peer is in a third namespace, an unrelated link
 * of the host may have the same index. */
static int find_peer(struct pod_links *links, const struct hw_result *result, struct hw_err *e)
{
	struct link host;
	int r;

	r = link_find_index(links->nl, links->pod.parent, &host, e);
	if (r < 0)
		return r;
	if (r == 0 || host.parent != links->pod.index)
		return err_text(e, -ENODEV, "veth peer with index %d is not in host ns",
				links->pod.parent);
	for (size_t i = 0; i < result->n_ifaces; i++)
		if (str_empty(result->ifaces[i].sandbox) &&
		    str_equal(result->ifaces[i].name, host.name)) {
			links->host = host;
			return 0;
		}
	return err_text(e, -ENODEV, "no veth peer of container interface found in host ns");
}

/* A tap belongs to one pod, in contrast to other links of the host, unless it is the lower link of
 * the pod's interface. */
static bool is_tap_of_pod(const struct link *link, const struct link *pod)
{
	return (str_equal(link->kind, "tun") || str_equal(link->kind, "macvtap") ||
		str_equal(link->kind, "ipvtap")) &&
	       link->index != pod->parent;
}

/* Return: 1 if found, 0 if not */
static int find_tap(struct pod_links *links, const struct hw_result *result, struct hw_err *e)
{
	for (size_t i = 0; i < result->n_ifaces; i++) {
		struct link link;
		int r;

		if (!str_empty(result->ifaces[i].sandbox) || str_empty(result->ifaces[i].name))
			continue;
		r = link_find(links->nl, result->ifaces[i].name, &link, e);
		if (r < 0)
			return r;
		if (r == 0 || !is_tap_of_pod(&link, &links->pod))
			continue;
		links->host = link;
		return 1;
	}
	return 0;
}

/* If the pod's interface has a peer, the peer is the host link; it must be in prevResult, as in
 * upstream. Otherwise the host link is the first tap of the host that prevResult names. Other links
 * may be shared, such as the uplink of a macvlan: a limit would affect all pods. */
static int find_host_link(struct pod_links *links, const struct hw_call *call, struct hw_err *e)
{
	struct hw_err why;
	int r;

	if (!call->prev->n_ifaces)
		return err_text(e, -EINVAL, "no interfaces provided");
	r = find_pod_link(links, call, &why);
	if (r < 0 && r != -ENODEV) {
		*e = why;
		return r;
	}
	if (r >= 0 && links->pod.parent &&
	    (str_equal(links->pod.kind, "veth") || str_equal(links->pod.kind, "netkit")))
		return find_peer(links, call->prev, e);
	r = find_tap(links, call->prev, e);
	if (r != 0)
		return r < 0 ? r : 0;
	if (links->pod.index)
		err_text(&why, -ENODEV, "interface \"%s\" was not a veth interface", call->ifname);
	return err_text(e, -ENODEV, "container interface %s has no veth peer: %s", call->ifname,
			why.msg);
}

/* The name that upstream gives to the ifb of an attachment. It does not depend on the interface
 * name. */
static char *upstream_ifb_name(const struct hw_call *call)
{
	autofree char *attachment = str_printf("%s%s", call->network, call->container_id);
	char hex[IFB_DIGITS + 1];

	hash_hex(attachment, IFB_DIGITS, hex);
	return str_printf(IFB_PREFIX "%s", hex);
}

static void hash_attachment(const struct hw_call *call, char ret_hex[IFB_DIGITS + 1])
{
	const char *parts[] = { call->network, call->container_id, call->ifname };

	hash_parts(parts, ARRAY_SIZE(parts), IFB_DIGITS, ret_hex);
}

static char *format_ifb_mac(const struct hw_call *call)
{
	char hex[IFB_DIGITS + 1];

	hash_attachment(call, hex);
	return str_printf("02:%.2s:%.2s:%.2s:%.2s:%.2s", hex, hex + 2, hex + 4, hex + 6, hex + 8);
}

/* ---- deleting limits ------------------------------------------------------------------------- */

/* Deleting an object succeeds if it no longer exists, or is not ours. */
static int ignore_missing(int r)
{
	return r == -ENODEV || r == -ENOENT || r == -EINVAL ? 0 : r;
}

static int delete_shape(struct rtnl *nl, const char *name, int index, struct hw_err *e)
{
	struct link link = { .index = index };

	memcpy(link.name, name, strnlen(name, sizeof(link.name) - 1));
	tc_put_del_shape(nl, &link);
	return ignore_missing(rtnl_commit(nl, e));
}

/* Deletes the shape, the ifb and, in three cases, the ingress qdisc: if it redirects to this ifb,
 * if it redirects to an ifb that no longer exists (the pod's packets would be lost), or if it has
 * no filter yet. */
static int delete_on_host(const struct bandwidth_record *record, struct hw_err *e)
{
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	struct tc_ingress ingress;
	struct link host, ifb = { 0 };
	char mac[HW_MAC_TEXT];
	int r;

	if (!record->host_index)
		return 0;
	r = rtnl_open(-1, &nl, e);
	if (r < 0)
		return r;
	if (!record->host_unlimited)
		r = delete_shape(nl, str_or(record->host, ""), record->host_index, e);
	if (r < 0 || !record->ifb)
		return r;
	r = link_find(nl, record->ifb, &ifb, e);
	if (r < 0)
		return r;
	if (ifb.index && (!str_equal(ifb.kind, "ifb") ||
			  !str_equal(hw_mac_format(&ifb.mac, mac), record->ifb_mac)))
		return 0;
	r = link_get_index(nl, record->host_index, &host, e);
	if (r >= 0)
		r = tc_get_ingress(nl, &host, &ifb, &ingress, e);
	if (r >= 0 && ingress.hook && (ingress.redirected || !ingress.others)) {
		tc_put_del_ingress(nl, &host);
		r = rtnl_commit(nl, e);
	}
	r = ignore_missing(r);
	return r < 0 || !ifb.index ? r : link_delete(nl, record->ifb, e);
}

static int delete_in_pod(const struct hw_call *call, const struct bandwidth_record *record,
			 struct hw_err *e)
{
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	autoclose int fd = -1;
	int r;

	if (!record->pod_index)
		return 0;
	r = netns_find(call->netns, &fd, e);
	if (r <= 0)
		return r;
	r = rtnl_open(fd, &nl, e);
	return r < 0 ? r : delete_shape(nl, call->ifname, record->pod_index, e);
}

/* Deletes the limits of a record. The limits in the pod are deleted even if an error occurs on the
 * host. */
static int delete_limits(const struct hw_call *call, const struct bandwidth_record *record,
			 struct hw_err *e)
{
	struct hw_err why;
	int first, r;

	first = delete_on_host(record, e);
	r = delete_in_pod(call, record, &why);
	if (r < 0 && first >= 0)
		*e = why;
	return first < 0 ? first : r;
}

/* ---- ADD ------------------------------------------------------------------------------------- */

static int find_links(struct pod_links *links, const struct bandwidth *b,
		      const struct hw_call *call, struct hw_err *e)
{
	int r = 0;

	if (b->ingress.rate || b->ifb)
		r = find_host_link(links, call, e);
	if (r >= 0 && b->egress.rate && !b->ifb)
		r = find_pod_link(links, call, e);
	return r;
}

static int refuse_limited(struct rtnl *nl, const struct link *link, struct hw_err *e)
{
	struct tc_qdisc root = { 0 };
	int r;

	r = tc_get_root(nl, link, &root, e);
	if (r < 0 || root.handle != TC_HANDLE)
		return r;
	return err_text(e, -EEXIST, "interface %s already has a rate limit set by hawser",
			link->name);
}

static int refuse_ingress(const struct pod_links *links, struct hw_err *e)
{
	struct link none = { 0 };
	struct tc_ingress ingress;
	int r;

	r = tc_get_ingress(links->nl, &links->host, &none, &ingress, e);
	if (r < 0 || !ingress.hook)
		return r;
	return err_text(e, -EEXIST, "interface %s already has an ingress qdisc", links->host.name);
}

/* Chooses name and MAC address of the ifb. It gets upstream's name, so that upstream's DEL finds
 * it. If that name is in use, for example by another interface of the same pod, it gets a name of
 * our own. Our DEL recognizes the ifb by its MAC address, which is a hash of the attachment. */
static int record_ifb(struct bandwidth_record *record, const struct pod_links *links,
		      const struct hw_call *call, struct hw_err *e)
{
	char hex[IFB_DIGITS + 1];
	struct link found;
	int r;

	record->ifb_mac = format_ifb_mac(call);
	record->ifb = upstream_ifb_name(call);
	r = link_find(links->nl, record->ifb, &found, e);
	if (r <= 0)
		return r;
	free(record->ifb);
	hash_attachment(call, hex);
	record->ifb = str_printf(IFB_PREFIX "%s", hex);
	return 0;
}

/* Refuses links that another attachment of the interface has limited, or that redirect packets: DEL and
 * undo delete the limits of the links in the record. */
static int refuse_changed(const struct bandwidth *b, const struct pod_links *links,
			  struct hw_err *e)
{
	int r = 0;

	if (b->ingress.rate)
		r = refuse_limited(links->nl, &links->host, e);
	if (r < 0 || !b->egress.rate)
		return r;
	return b->ifb ? refuse_ingress(links, e) : refuse_limited(links->pod_nl, &links->pod, e);
}

static int fill_record(struct hw_call *call, const struct bandwidth *b,
		       const struct pod_links *links, struct hw_err *e)
{
	struct bandwidth_record *record = call->created;

	if (links->host.index)
		record->host = str_copy(links->host.name);
	record->host_index = links->host.index;
	record->host_unlimited = !b->ingress.rate;
	if (b->egress.rate && !b->ifb)
		record->pod_index = links->pod.index;
	return b->egress.rate && b->ifb ? record_ifb(record, links, call, e) : 0;
}

static int limit_egress(const struct bandwidth_record *record, const struct bandwidth *b,
			const struct pod_links *links, struct hw_err *e)
{
	struct link_new new = { .name = record->ifb,
				.kind = "ifb",
				.mtu = links->host.mtu,
				.txqlen = IFB_TXQLEN,
				.queues = IFB_QUEUES,
				.up = true };
	struct tc_shape egress;
	struct link ifb;
	int r;

	if (!b->egress.rate)
		return 0;
	if (!b->ifb) {
		egress = bandwidth_egress(b, &links->pod);
		tc_put_shape(links->pod_nl, &links->pod, &egress);
		return rtnl_commit(links->pod_nl, e);
	}
	r = hw_mac_parse(record->ifb_mac, &new.mac, e);
	if (r < 0)
		return r;
	link_put_new(links->nl, &new);
	r = link_get(links->nl, record->ifb, &ifb, e);
	if (r < 0)
		return r;
	egress = bandwidth_egress(b, &ifb);
	tc_put_shape(links->nl, &ifb, &egress);
	tc_put_ingress(links->nl, &links->host);
	tc_put_redirect(links->nl, &links->host, &ifb);
	return rtnl_commit(links->nl, e);
}

static int apply_limits(const struct bandwidth_record *record, const struct bandwidth *b,
			const struct pod_links *links, struct hw_err *e)
{
	if (b->ingress.rate) {
		struct tc_shape ingress = bandwidth_ingress(b, &links->host);
		int r;

		tc_put_shape(links->nl, &links->host, &ingress);
		r = rtnl_commit(links->nl, e);
		if (r < 0)
			return r;
	}
	return limit_egress(record, b, links, e);
}

static int bandwidth_add(struct hw_call *call, struct hw_err *e)
{
	AUTO(links_close) struct pod_links links = POD_LINKS_NONE;
	AUTO(bandwidth_done) struct bandwidth b = { 0 };
	const struct bandwidth_record *record = call->created;
	int r;

	r = bandwidth_init(&b, call->conf, e);
	if (r >= 0 && !call->prev)
		r = err_text(e, -EINVAL, "must be called as chained plugin");
	if (r < 0)
		return r;
	if (bandwidth_is_unlimited(&b))
		return 0;
	r = links_open(&links, call, e);
	if (r < 0)
		return r;
	r = find_links(&links, &b, call, e);
	if (r < 0)
		return r;
	r = refuse_changed(&b, &links, e);
	if (r < 0)
		return r;
	r = fill_record(call, &b, &links, e);
	if (r < 0)
		return r;
	r = hw_record_save(call, e);
	if (r < 0)
		return r;
	r = apply_limits(record, &b, &links, e);
	if (r < 0)
		return r;
	if (record->ifb) {
		struct hw_iface *iface = hw_result_add_iface(call->result);

		iface->name = str_copy(record->ifb);
		iface->mac = str_copy(record->ifb_mac);
	}
	return r;
}

/* ---- the other verbs ------------------------------------------------------------------------- */

/* If there is no record, upstream's plugin created the limit. Newer versions of that plugin always
 * create an htb that differs from ours, so an htb without a record is not compared. */
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
			       const struct pod_links *links, const char *name, struct hw_err *e)
{
	struct tc_ingress ingress;
	struct link ifb;
	int r;

	r = link_find(links->nl, name, &ifb, e);
	if (r < 0)
		return r;
	if (r == 0)
		return err_text(e, -ENODEV, "get ifb device: %s is missing", name);
	if (!(ifb.flags & IFF_UP))
		return err_text(e, -ENETDOWN, "ifb device %s is down", name);
	r = tc_get_ingress(links->nl, &links->host, &ifb, &ingress, e);
	if (r < 0)
		return r;
	if (!ingress.redirected)
		return err_text(e, -ENOENT, "packets received on %s are not redirected to %s",
				links->host.name, name);
	struct tc_shape egress = bandwidth_egress(b, &ifb);
	return check_limit(call, links->nl, &ifb, &egress, e);
}

static int bandwidth_check(struct hw_call *call, struct hw_err *e)
{
	AUTO(links_close) struct pod_links links = POD_LINKS_NONE;
	AUTO(bandwidth_done) struct bandwidth b = { 0 };
	const struct bandwidth_record *record = call->created;
	autofree char *ifb = NULL;
	struct tc_shape shape;
	int r;

	r = bandwidth_init(&b, call->conf, e);
	if (r < 0)
		return r;
	if (!call->prev)
		return err_text(e, -EINVAL, "must be called as a chained plugin");
	if (bandwidth_is_unlimited(&b))
		return 0;
	b.ifb |= !call->recorded;
	r = links_open(&links, call, e);
	if (r < 0)
		return r;
	r = find_links(&links, &b, call, e);
	if (r < 0)
		return r;
	if (b.ingress.rate) {
		shape = bandwidth_ingress(&b, &links.host);
		r = check_limit(call, links.nl, &links.host, &shape, e);
		if (r < 0)
			return r;
	}
	if (!b.egress.rate)
		return 0;
	/* If there is no record, upstream's plugin created the attachment. */
	ifb = call->recorded ? str_copy(record->ifb) : upstream_ifb_name(call);
	if (ifb)
		return check_egress_by_ifb(call, &b, &links, ifb, e);
	shape = bandwidth_egress(&b, &links.pod);
	return check_limit(call, links.pod_nl, &links.pod, &shape, e);
}

/* An ifb with our qdisc belongs to the attachment that its MAC address is a hash of: the name, which is
 * upstream's, is the same for all interfaces of a container.
 * Return: 1 if the ifb is that of another interface, 0 if not, or a negative errno */
static int is_of_other_interface(struct rtnl *nl, const struct hw_call *call,
				 const struct link *ifb, struct hw_err *e)
{
	autofree char *own = format_ifb_mac(call);
	struct tc_qdisc root = { 0 };
	char mac[HW_MAC_TEXT];
	int r;

	if (str_equal(hw_mac_format(&ifb->mac, mac), own))
		return 0;
	r = tc_get_root(nl, ifb, &root, e);
	return r < 0 ? r : root.handle == TC_HANDLE;
}

/* Deletes the ifb that upstream's plugin created, or ours if the record is lost. The kernel deletes
 * the plugin's qdiscs together with the links. */
static int delete_unrecorded(const struct hw_call *call, struct hw_err *e)
{
	autofree char *name = upstream_ifb_name(call);
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	struct link ifb;
	int r;

	r = rtnl_open(-1, &nl, e);
	if (r < 0)
		return r;
	r = link_find(nl, name, &ifb, e);
	if (r <= 0 || !str_equal(ifb.kind, "ifb"))
		return r < 0 ? r : 0;
	r = is_of_other_interface(nl, call, &ifb, e);
	return r != 0 ? (r < 0 ? r : 0) : link_delete(nl, name, e);
}

static int bandwidth_del(struct hw_call *call, struct hw_err *e)
{
	return call->recorded ? delete_limits(call, call->created, e) : delete_unrecorded(call, e);
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
	.summary = "limits the rates at which a pod sends and receives",
	.add = bandwidth_add,
	.del = bandwidth_del,
	.check = bandwidth_check,
	.status = bandwidth_status,
	.versions = bandwidth_versions,
	.fields = bandwidth_fields,
	.conf_size = sizeof(struct bandwidth_conf),
	.record = true,
	.created_fields = bandwidth_record_fields,
	.created_size = sizeof(struct bandwidth_record),
};
