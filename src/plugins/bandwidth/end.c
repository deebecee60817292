/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/bandwidth/end.c - the end of a pod's limits
 *
 * Rules: what is gone, or has become somebody else's, is left alone and no error.
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "net/netns.h"
#include "net/rtnl/rtnl.h"
#include "plugins/bandwidth/bandwidth.h"

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

/**
 * bandwidth_end() - delete what an ADD made
 *
 * On the host and in the pod: the one does not wait for the other.
 */
int bandwidth_end(const struct hw_call *call, const struct bandwidth_made *made, struct hw_err *e)
{
	struct hw_err why;

	int first = end_on_host(made, e);
	int r = end_in_pod(call, made, &why);
	if (r < 0 && first >= 0)
		*e = why;
	return first < 0 ? first : r;
}

/**
 * bandwidth_end_upstreams() - delete what upstream's DEL deletes: the ifb
 *
 * The rest goes with the link.
 */
int bandwidth_end_upstreams(const struct hw_call *call, struct hw_err *e)
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
