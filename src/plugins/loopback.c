/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/loopback.c - the interface lo of a pod
 *
 * What:  ADD sets lo up, DEL sets it down, CHECK looks whether it is up and has
 *        its addresses. CNI_IFNAME is ignored: it is always lo.
 * How:   lo is born with the namespace and dies with it, so there is nothing to
 *        write down, nothing that GC could collect (no .gc) and nothing that
 *        could keep an ADD from working (no .status): both are successes.
 *        After another plugin of a chain the result passes through unchanged.
 * Rules: a failed ADD leaves a lo up that was up before: a pod may be using it.
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

/* Of an ADD, for its undoing. */
struct loopback_made {
	bool was_up;
};

/* A socket inside the namespace, and its lo. */
static int loopback_enter(int netns, struct rtnl **ret_nl, struct link *ret_lo, struct hw_err *e)
{
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	int r;

	r = rtnl_open(netns, &nl, e);
	if (r >= 0)
		r = link_get(nl, "lo", ret_lo, e);
	if (r >= 0)
		*ret_nl = take_ptr(nl);
	return r;
}

static int loopback_open(const char *netns, struct rtnl **ret_nl, struct link *ret_lo,
			 struct hw_err *e)
{
	autoclose int fd = -1;
	int r;

	r = netns_open(netns, &fd, e);
	return r < 0 ? r : loopback_enter(fd, ret_nl, ret_lo, e);
}

static int loopback_refuse_others(const struct addr_list *list, struct hw_err *e)
{
	char text[HW_IP_TEXT];

	for (size_t i = 0; i < list->n; i++)
		if (!ip_is_loopback(&list->v[i].prefix.ip))
			return err_text(e, -EINVAL,
					"loopback interface found with non-loopback address \"%s\"",
					hw_ip_format(&list->v[i].prefix.ip, text));
	return 0;
}

/* The first address of each family, as upstream reports them. */
static void loopback_report(const struct hw_call *call, const struct link *lo,
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
	struct loopback_made *made = call->made;
	AUTO(addr_list_done) struct addr_list list = { 0 };
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	struct link lo;
	int r;

	r = loopback_open(call->netns, &nl, &lo, e);
	if (r < 0)
		return r;
	made->was_up = lo.flags & IFF_UP;
	link_set_up(nl, &lo);
	r = rtnl_commit(nl, e);
	if (r >= 0)
		r = addr_get(nl, &lo, AF_UNSPEC, &list, e);
	if (r >= 0)
		r = loopback_refuse_others(&list, e);
	if (r >= 0 && !call->prev)
		loopback_report(call, &lo, &list);
	return r;
}

static int loopback_del(struct hw_call *call, struct hw_err *e)
{
	const struct loopback_made *made = call->made;
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	autoclose int fd = -1;
	struct link lo;
	int r;

	if (made->was_up)
		return 0;
	r = netns_find(call->netns, &fd, e);
	if (r <= 0)
		return r;
	r = loopback_enter(fd, &nl, &lo, e);
	if (r < 0)
		return r;
	link_set_down(nl, &lo);
	return rtnl_commit(nl, e);
}

static int loopback_need(const struct addr_list *list, const char *text, struct hw_err *e)
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

	r = loopback_open(call->netns, &nl, &lo, e);
	if (r < 0)
		return r;
	if (!(lo.flags & IFF_UP))
		return err_text(e, -ENETDOWN, "loopback interface is down");
	r = addr_get(nl, &lo, AF_UNSPEC, &list, e);
	if (r >= 0)
		r = loopback_need(&list, "127.0.0.1/8", e);
	if (r >= 0 && lo.ipv6)
		r = loopback_need(&list, "::1/128", e);
	return r;
}

const struct hw_plugin loopback_plugin = {
	.size = sizeof(struct hw_plugin),
	.name = "loopback",
	.summary = "sets the loopback interface of a pod up",
	.add = loopback_add,
	.del = loopback_del,
	.check = loopback_check,
	.made_size = sizeof(struct loopback_made),
};
