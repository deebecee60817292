/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/bandwidth/links.c - the links at which a pod's bandwidth is limited
 *
 * How:   the host's link is the peer of the pod's interface, if that has one; it must
 *        be in prevResult, as upstream requires. Otherwise it is the first link on the
 *        host that prevResult names and that is neither a bridge nor an ifb: a tap,
 *        for example.
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"
#include "net/netns.h"
#include "net/rtnl/rtnl.h"
#include "plugins/bandwidth/bandwidth.h"

int bandwidth_open(struct bandwidth_links *links, const struct hw_call *call, struct hw_err *e)
{
	int r = netns_open(call->netns, &links->netns_fd, e);
	if (r < 0)
		return err_ctx(e, "failed to open netns \"%s\"", call->netns);
	r = rtnl_open(links->netns_fd, &links->pod_nl, e);
	return r < 0 ? r : rtnl_open(-1, &links->nl, e);
}

void bandwidth_close(struct bandwidth_links *links)
{
	rtnl_close(links->nl);
	rtnl_close(links->pod_nl);
	mem_close_fd(&links->netns_fd);
}

int bandwidth_find_pod(struct bandwidth_links *links, const struct hw_call *call, struct hw_err *e)
{
	return links->pod.index ? 0 : link_get(links->pod_nl, call->ifname, &links->pod, e);
}

static bool has_host_iface(const struct hw_result *result, const char *name)
{
	for (size_t i = 0; i < result->n_ifaces; i++)
		if (str_empty(result->ifaces[i].sandbox) && str_equal(result->ifaces[i].name, name))
			return true;
	return false;
}

static bool has_peer(const struct link *link)
{
	return link->parent && (str_equal(link->kind, "veth") || str_equal(link->kind, "netkit"));
}

/* If the peer is in another namespace, an unrelated link of the host may have its index. */
static int find_peer(struct bandwidth_links *links, const struct hw_call *call, struct hw_err *e)
{
	struct link host;

	int r = link_get_index(links->nl, links->pod.parent, &host, e);
	if (r == -ENODEV || (r >= 0 && host.parent != links->pod.index))
		return err_text(e, -ENODEV, "veth peer with index %d is not in host ns",
				links->pod.parent);
	if (r < 0)
		return r;
	if (!has_host_iface(call->prev, host.name))
		return err_text(e, -ENODEV, "no veth peer of container interface found in host ns");
	links->host = host;
	return 0;
}

/* Return: 1 if found, 0 if not */
static int find_host_link(struct bandwidth_links *links, const struct hw_result *result,
			  struct hw_err *e)
{
	for (size_t i = 0; i < result->n_ifaces; i++) {
		struct link link;

		if (!str_empty(result->ifaces[i].sandbox) || str_empty(result->ifaces[i].name))
			continue;
		int r = link_get(links->nl, result->ifaces[i].name, &link, e);
		if (r < 0 && r != -ENODEV)
			return r;
		if (r < 0 || str_equal(link.kind, "bridge") || str_equal(link.kind, "ifb"))
			continue;
		links->host = link;
		return 1;
	}
	return 0;
}

int bandwidth_find_host(struct bandwidth_links *links, const struct hw_call *call, struct hw_err *e)
{
	struct hw_err why;

	if (!call->prev->n_ifaces)
		return err_text(e, -EINVAL, "no interfaces provided");
	int r = bandwidth_find_pod(links, call, &why);
	if (r < 0 && r != -ENODEV) {
		*e = why;
		return r;
	}
	if (r >= 0 && has_peer(&links->pod))
		return find_peer(links, call, e);
	r = find_host_link(links, call->prev, e);
	if (r != 0)
		return r < 0 ? r : 0;
	if (links->pod.index)
		err_text(&why, -ENODEV, "interface \"%s\" was not a veth interface", call->ifname);
	return err_text(e, -ENODEV, "container interface %s has no veth peer: %s", call->ifname,
			why.msg);
}

char *bandwidth_ifb_name(const struct hw_call *call)
{
	autofree char *attachment = str_printf("%s%s", call->network, call->container_id);
	char hex[IFB_DIGITS + 1];

	hash_hex(attachment, IFB_DIGITS, hex);
	return str_printf(IFB_PREFIX "%s", hex);
}
