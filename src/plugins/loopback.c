/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/loopback.c - plugin loopback: the interface lo of a pod
 *
 * What:  ADD brings lo up, DEL brings it down, CHECK verifies that it is up and
 *        has its addresses. CNI_IFNAME is ignored: the interface is always lo.
 * How:   lo exists as long as its namespace. So ADD writes no record, GC and
 *        STATUS have nothing to do (no .gc, no .status) and always succeed. In a
 *        chain the result of the previous plugin is passed on unchanged.
 * Rules: a failed ADD does not bring lo down if it was up before: the pod may be
 *        using it.
 */
#include <errno.h>
#include <sys/socket.h>

#include <hawser/plugin.h>

#include "base/err.h"
#include "base/ip.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/netns.h"
#include "net/rtnl/addr.h"
#include "net/rtnl/link.h"
#include "net/rtnl/rtnl.h"
#include "plugins/plugins.h"

/* hw_call.created, for the undo of a failed ADD. Never recorded. */
struct loopback_undo {
	bool was_up;
};

/* Opens a netlink socket inside the namespace, and looks up its interface lo. */
static int open_lo(int netns, struct rtnl **ret_nl, struct link *ret_lo, struct hw_err *e)
{
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	int r;

	r = rtnl_open(netns, &nl, e);
	if (r < 0)
		return r;
	r = link_get(nl, "lo", ret_lo, e);
	if (r < 0)
		return r;
	*ret_nl = take_ptr(nl);
	return r;
}

static int open_lo_by_path(const char *netns, struct rtnl **ret_nl, struct link *ret_lo,
			   struct hw_err *e)
{
	autoclose int fd = -1;
	int r;

	r = netns_open(netns, &fd, e);
	return r < 0 ? r : open_lo(fd, ret_nl, ret_lo, e);
}

/* Adds lo and its first address of each family to the result, as in upstream. */
static void report_lo(const struct hw_call *call, const struct link *lo,
		      const struct addr_list *list)
{
	struct hw_iface *iface = hw_result_add_iface(call->result);
	char mac[HW_MAC_TEXT];
	int seen = AF_UNSPEC;

	iface->name = str_copy(lo->name);
	iface->mac = str_copy(hw_mac_format(&lo->mac, mac));
	iface->sandbox = str_copy(call->netns);
	for (size_t i = 0; i < list->n; i++) {
		const struct hw_prefix *address = &list->v[i].prefix;

		if (address->ip.family != seen)
			*hw_result_add_ip(call->result) =
				(struct hw_ipconf){ .has_iface = true, .address = *address };
		seen = address->ip.family;
	}
}

static int loopback_add(struct hw_call *call, struct hw_err *e)
{
	struct loopback_undo *undo = call->created;
	AUTO(addr_list_done) struct addr_list list = { 0 };
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	char text[HW_IP_TEXT];
	struct link lo;
	int r;

	r = open_lo_by_path(call->netns, &nl, &lo, e);
	if (r < 0)
		return r;
	undo->was_up = lo.flags & IFF_UP;
	link_set_up(nl, &lo);
	r = rtnl_commit(nl, e);
	if (r < 0)
		return r;
	r = addr_get(nl, &lo, AF_UNSPEC, &list, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < list.n; i++)
		if (!ip_is_loopback(&list.v[i].prefix.ip))
			return err_text(e, -EINVAL,
					"loopback interface found with non-loopback address \"%s\"",
					hw_ip_format(&list.v[i].prefix.ip, text));
	if (!call->prev)
		report_lo(call, &lo, &list);
	return 0;
}

static int loopback_del(struct hw_call *call, struct hw_err *e)
{
	const struct loopback_undo *undo = call->created;
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	autoclose int fd = -1;
	struct link lo;
	int r;

	if (undo->was_up)
		return 0;
	r = netns_find(call->netns, &fd, e);
	if (r <= 0)
		return r;
	r = open_lo(fd, &nl, &lo, e);
	if (r < 0)
		return r;
	link_set_down(nl, &lo);
	return rtnl_commit(nl, e);
}

static int require_address(const struct addr_list *list, const char *text, struct hw_err *e)
{
	struct hw_prefix prefix;
	int r;

	r = hw_prefix_parse(text, &prefix, e);
	if (r < 0 || addr_list_has(list, &prefix))
		return r;
	return err_text(e, -ENOENT, "loopback interface lacks address \"%s\"", text);
}

static int loopback_check(struct hw_call *call, struct hw_err *e)
{
	AUTO(addr_list_done) struct addr_list list = { 0 };
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	struct link lo;
	int r;

	r = open_lo_by_path(call->netns, &nl, &lo, e);
	if (r < 0)
		return r;
	if (!(lo.flags & IFF_UP))
		return err_text(e, -ENETDOWN, "loopback interface is down");
	r = addr_get(nl, &lo, AF_UNSPEC, &list, e);
	if (r < 0)
		return r;
	r = require_address(&list, "127.0.0.1/8", e);
	if (r < 0)
		return r;
	if (lo.ipv6)
		r = require_address(&list, "::1/128", e);
	return r;
}

const struct hw_plugin loopback_plugin = {
	.size = sizeof(struct hw_plugin),
	.name = "loopback",
	.summary = "brings up the loopback interface of a pod",
	.add = loopback_add,
	.del = loopback_del,
	.check = loopback_check,
	.created_size = sizeof(struct loopback_undo),
};
