/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/link.c - the veth pair between a pod and the host
 */
#include "plugins/pod/link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"
#include "net/netns.h"
#include "net/rtnl/bridge.h"
#include "net/rtnl/rtnl.h"
#include "net/sysctl.h"
#include "plugins/pod/ipam.h"
#include "plugins/pod/rules.h"

#define NAME_PREFIX "veth"
#define NAME_DIGITS 8
#define NAME_TRIES  10

const struct hw_field pod_link_record_fields[] = {
	{ "host", HW_STRING, HW_AT(struct pod_link_record, host) },
	{ "leased", HW_BOOL, HW_AT(struct pod_link_record, leased) },
	{ "masq", HW_STRINGS, HW_AT(struct pod_link_record, masq) },
	{ "masqExclude", HW_STRINGS, HW_AT(struct pod_link_record, exclude) },
	{ "mac", HW_STRING, HW_AT(struct pod_link_record, mac) },
	{ "filters", HW_BOOL, HW_AT(struct pod_link_record, vlan_filtering) },
	{ 0 },
};

int pod_link_open(struct pod_link *l, const struct hw_call *call, struct hw_err *e)
{
	int r;

	r = netns_open(call->netns, &l->netns_fd, e);
	if (r < 0)
		return err_ctx(e, "failed to open netns \"%s\"", call->netns);
	r = rtnl_open(l->netns_fd, &l->pod_nl, e);
	if (r < 0)
		return r;
	return rtnl_open(-1, &l->nl, e);
}

void pod_link_done(struct pod_link *l)
{
	rtnl_close(l->nl);
	rtnl_close(l->pod_nl);
	mem_close_fd(&l->netns_fd);
	sysctl_release();
}

/* ---- the name of the host end --------------------------------------------------------- */

static char *format_host_name(const struct hw_call *call, unsigned attempt)
{
	const char *parts[] = { call->network, call->container_id, call->ifname };
	char hex[NAME_DIGITS + 1];

	hash_parts(parts, ARRAY_SIZE(parts), NAME_DIGITS, hex);
	return str_printf(NAME_PREFIX "%08x", (unsigned)strtoul(hex, NULL, 16) + attempt);
}

static int refuse_existing(const struct pod_link *l, const struct hw_call *call, const char *host,
			   struct hw_err *e)
{
	struct link existing;
	int r;

	r = link_find(l->pod_nl, call->ifname, &existing, e);
	if (r <= 0)
		return r;
	return err_text(e, -EEXIST,
			"container veth name (\"%s\") peer provided (\"%s\") already exists",
			call->ifname, host);
}

/* Chooses an unused name, because a DEL after a crash deletes the link that has the recorded name.
 * If all names are in use, returns the last one; creating the pair then fails. */
static int choose_name(const struct pod_link *l, const struct hw_call *call, char **ret_name,
		       struct hw_err *e)
{
	struct link existing;
	int r = 1;

	for (unsigned i = 0; r > 0 && i < NAME_TRIES; i++) {
		free(*ret_name);
		*ret_name = format_host_name(call, i);
		r = link_find(l->nl, *ret_name, &existing, e);
	}
	return r < 0 ? r : 0;
}

int pod_link_plan(struct pod_link *l, struct hw_call *call, bool leases, struct hw_err *e)
{
	struct pod_link_record *record = call->created;
	autofree char *host = NULL;
	int r;

	r = choose_name(l, call, &host, e);
	if (r < 0)
		return r;
	r = refuse_existing(l, call, host, e);
	if (r < 0)
		return r;
	record->host = take_ptr(host);
	record->leased = leases;
	return hw_record_save(call, e);
}

/* ---- ADD --------------------------------------------------------------------------------- */

/* A veth uses one queue by default. If the request does not contain the number, the kernel creates
 * one queue per CPU and then frees all but one, which costs two RCU grace periods. */
#define QUEUES 1

static int create_pair(struct pod_link *l, const struct hw_call *call,
		       const struct pod_link_options *options, struct hw_err *e)
{
	struct pod_link_record *record = call->created;
	uint32_t mtu = options->mtu > 0 ? (uint32_t)options->mtu : 0;
	struct link_new pod = {
		.name = call->ifname,
		.netns_fd = l->netns_fd,
		.mtu = mtu,
		.queues = QUEUES,
		.mac = options->mac,
	};
	struct link_new host = {
		.name = record->host,
		.kind = "veth",
		.mtu = mtu,
		.queues = QUEUES,
		.master = options->master,
		.up = true,
		.peer = &pod,
	};
	int r;

	link_put_new(l->nl, &host);
	r = rtnl_commit(l->nl, e);
	record->pair_requested = r != -EEXIST;
	return r;
}

/* Called after -EEXIST: one of the two names is in use. If it is the name in the pod, that is an
 * error; if it is the name on the host, tries the next names. */
static int create_under_next_name(struct pod_link *l, struct hw_call *call,
				  const struct pod_link_options *options, struct hw_err *e)
{
	struct pod_link_record *record = call->created;
	int r = -EEXIST;

	for (unsigned i = 1; r == -EEXIST && i < NAME_TRIES; i++) {
		r = refuse_existing(l, call, record->host, e);
		if (r < 0)
			return r;
		free(record->host);
		record->host = format_host_name(call, i);
		r = hw_record_save(call, e);
		if (r >= 0)
			r = create_pair(l, call, options, e);
	}
	return r;
}

int pod_link_create(struct pod_link *l, struct hw_call *call,
		    const struct pod_link_options *options, struct hw_err *e)
{
	const struct pod_link_record *record = call->created;
	struct hw_err ignored;
	int r;

	r = create_pair(l, call, options, e);
	if (r == -EEXIST)
		r = create_under_next_name(l, call, options, e);
	if (r < 0)
		return r == -EEXIST ? r : err_ctx(e, "failed to make veth pair");
	r = link_get_brief(l->nl, record->host, &l->host, e);
	if (r < 0)
		return r;
	r = link_get_brief(l->pod_nl, call->ifname, &l->pod, e);
	if (r < 0)
		return r;
	(void)sysctl_write_conf(-1, AF_INET6, l->host.name, "accept_ra", "0", &ignored);
	/* On a new port both hairpin mode and isolation are off. */
	if (options->hairpin || options->isolated)
		bridge_port_set(l->nl, &l->host, options->hairpin, options->isolated);
	return rtnl_commit(l->nl, e);
}

void pod_link_report(struct hw_call *call, const struct link *link, const char *sandbox)
{
	struct hw_iface *iface = hw_result_add_iface(call->result);
	char mac[HW_MAC_TEXT];

	iface->name = str_copy(link->name);
	iface->mac = str_copy(hw_mac_format(&link->mac, mac));
	iface->sandbox = str_copy(sandbox);
}

/* ---- DEL --------------------------------------------------------------------------------- */

/* Does not delete a link of another kind: it was not created by these plugins. Return: 1 if the link
 * was found, 0 if not, or a negative errno */
static int delete_veth(struct rtnl *nl, const char *name, struct hw_err *e)
{
	struct link link;
	int r;

	r = link_find(nl, name, &link, e);
	if (r <= 0 || !str_equal(link.kind, "veth"))
		return r;
	r = link_delete(nl, name, e);
	return r < 0 ? r : 1;
}

static int delete_in_pod(const struct hw_call *call, struct hw_err *e)
{
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	autoclose int fd = -1;
	int r;

	r = netns_find(call->netns, &fd, e);
	if (r <= 0)
		return r;
	r = rtnl_open(fd, &nl, e);
	if (r < 0)
		return r;
	r = delete_veth(nl, call->ifname, e);
	return r < 0 ? r : 0;
}

/*
 * Deletes the host end that the record names. Without a record, or if that link does not exist
 * because it was renamed, deletes the pod's interface instead. The undo of a failed ADD deletes
 * only the pair that this ADD created: an interface that the pod had before is not deleted.
 */
static int delete_pair(const struct hw_call *call, struct hw_err *e)
{
	const struct pod_link_record *record = call->created;
	bool undo = str_equal(call->command, "ADD");
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	int r;

	if (undo && !record->pair_requested)
		return 0;
	if (!call->recorded)
		return delete_in_pod(call, e);
	if (str_empty(record->host))
		return 0;
	r = rtnl_open(-1, &nl, e);
	if (r < 0)
		return r;
	r = delete_veth(nl, record->host, e);
	if (r < 0)
		return r;
	return r > 0 || undo ? 0 : delete_in_pod(call, e);
}

int pod_link_teardown(struct hw_call *call, const struct ipam_conf *ipam,
		      const struct pod_rules *rules, struct hw_err *e)
{
	const struct pod_link_record *record = call->created;
	bool undo = str_equal(call->command, "ADD");
	int r;

	r = delete_pair(call, e);
	if (r < 0)
		return r;
	r = pod_rules_delete(call, rules, e);
	if (r < 0)
		return r;
	/* An undo has no lease to release if its ADD did not call IPAM or did not find the IPAM
	 * plugin. */
	if (undo && !record->leased)
		return 0;
	r = ipam_delegate(call, ipam, "DEL", e);
	return r < 0 && undo && ipam_is_missing(e) ? 0 : r;
}
