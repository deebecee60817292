/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/link.c - the pair of links between a pod and the host
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

const struct hw_field pod_link_made_fields[] = {
	{ "host", HW_STRING, HW_AT(struct pod_link_made, host) },
	{ "leased", HW_BOOL, HW_AT(struct pod_link_made, leased) },
	{ "masq", HW_STRINGS, HW_AT(struct pod_link_made, masq) },
	{ "mac", HW_STRING, HW_AT(struct pod_link_made, mac) },
	{ "filters", HW_BOOL, HW_AT(struct pod_link_made, filters) },
	{ "earlier", HW_JSON, HW_AT(struct pod_link_made, earlier) },
	{ 0 },
};

/**
 * pod_link_open() - a socket on the host and one in the pod
 */
int pod_link_open(struct pod_link *l, const struct hw_call *call, struct hw_err *e)
{
	int r = netns_open(call->netns, &l->netns_fd, e);
	if (r < 0)
		return err_ctx(e, "failed to open netns \"%s\"", call->netns);
	r = rtnl_open(l->netns_fd, &l->pod_nl, e);
	if (r >= 0)
		r = rtnl_open(-1, &l->nl, e);
	return r;
}

/**
 * pod_link_done() - close what pod_link_open() opened
 */
void pod_link_done(struct pod_link *l)
{
	rtnl_close(l->nl);
	rtnl_close(l->pod_nl);
	mem_close_fd(&l->netns_fd);
}

/* ---- the host end's name ------------------------------------------------------- */

/* The attempt-th name of this attachment. */
static char *name_of(const struct hw_call *call, unsigned attempt)
{
	const char *parts[] = { call->network, call->container_id, call->ifname };
	char hex[NAME_DIGITS + 1];

	hash_parts(parts, ARRAY_SIZE(parts), NAME_DIGITS, hex);
	return str_printf(NAME_PREFIX "%08x", (unsigned)strtoul(hex, NULL, 16) + attempt);
}

static bool is_earlier(const struct hw_call *call, const char *name)
{
	const struct pod_link_made *earlier = call->earlier;

	return earlier && str_equal(earlier->host, name);
}

static int refuse_taken(const struct pod_link *l, const struct hw_call *call, const char *host,
			struct hw_err *e)
{
	struct link there;

	int r = link_get(l->pod_nl, call->ifname, &there, e);
	if (r == -ENODEV)
		return 0;
	if (r < 0)
		return r;
	return err_text(e, -EEXIST,
			"container veth name (\"%s\") peer provided (\"%s\") already exists",
			call->ifname, host);
}

/* One that nobody has: a DEL after a crash deletes what has the name. */
static int choose_name(const struct pod_link *l, const struct hw_call *call, char **ret_name,
		       struct hw_err *e)
{
	struct link there;
	int r = 0;

	for (unsigned i = 0; r >= 0 && i < NAME_TRIES; i++) {
		free(*ret_name);
		*ret_name = name_of(call, i);
		if (is_earlier(call, *ret_name))
			return 0;
		r = link_get(l->nl, *ret_name, &there, e);
	}
	return r == -ENODEV ? 0 : r;
}

/**
 * pod_link_plan() - name the host's end and write it down
 * @leases: IPAM will be asked for addresses
 */
int pod_link_plan(struct pod_link *l, struct hw_call *call, bool leases, struct hw_err *e)
{
	struct pod_link_made *made = call->made;
	autofree char *host = NULL;

	int r = choose_name(l, call, &host, e);
	if (r >= 0)
		r = refuse_taken(l, call, host, e);
	if (r < 0)
		return r;
	made->host = take_ptr(host);
	made->leased = leases;
	if (call->earlier)
		made->earlier = hw_field_encode(pod_link_made_fields, call->earlier, 0);
	return hw_record_save(call, e);
}

/* ---- making ---------------------------------------------------------------------- */

/* As many as are in use by default. The kernel would make one for each processor and then give up
 * all but one, for which it waits twice until no processor looks at them. */
#define QUEUES 1

static int make_pair(struct pod_link *l, const struct hw_call *call,
		     const struct pod_link_want *want, struct hw_err *e)
{
	struct pod_link_made *made = call->made;
	uint32_t mtu = want->mtu > 0 ? (uint32_t)want->mtu : 0;
	struct link_new pod = {
		.name = call->ifname,
		.netns_fd = l->netns_fd,
		.mtu = mtu,
		.queues = QUEUES,
		.mac = want->mac,
	};
	struct link_new host = {
		.name = made->host,
		.kind = "veth",
		.mtu = mtu,
		.queues = QUEUES,
		.master = want->master,
		.up = true,
		.peer = &pod,
	};

	link_put_new(l->nl, &host);
	int r = rtnl_commit(l->nl, e);
	made->asked = r != -EEXIST;
	return r;
}

/* Somebody has one of the names: in the pod, which is an error, or on the host, where the next one
 * will do. */
static int make_under_other_name(struct pod_link *l, struct hw_call *call,
				 const struct pod_link_want *want, struct hw_err *e)
{
	struct pod_link_made *made = call->made;
	int r = -EEXIST;

	for (unsigned i = 1; r == -EEXIST && i < NAME_TRIES; i++) {
		r = refuse_taken(l, call, made->host, e);
		if (r < 0)
			return r;
		free(made->host);
		made->host = name_of(call, i);
		r = hw_record_save(call, e);
		if (r >= 0)
			r = make_pair(l, call, want, e);
	}
	return r;
}

static int make(struct pod_link *l, struct hw_call *call, const struct pod_link_want *want,
		struct hw_err *e)
{
	const struct pod_link_made *made = call->made;
	int r = 0;

	/* The pod has lost its end: what the earlier ADD left on the host is of no use. */
	if (is_earlier(call, made->host))
		r = link_delete(l->nl, made->host, e);
	if (r >= 0)
		r = make_pair(l, call, want, e);
	if (r == -EEXIST)
		r = make_under_other_name(l, call, want, e);
	if (r < 0)
		return r == -EEXIST ? r : err_ctx(e, "failed to make veth pair");
	return r;
}

/**
 * pod_link_make() - make the pair: the host's end up, the pod's down
 */
int pod_link_make(struct pod_link *l, struct hw_call *call, const struct pod_link_want *want,
		  struct hw_err *e)
{
	const struct pod_link_made *made = call->made;
	struct hw_err ignored;

	int r = make(l, call, want, e);
	if (r >= 0)
		r = link_look(l->nl, made->host, &l->host, e);
	if (r >= 0)
		r = link_look(l->pod_nl, call->ifname, &l->pod, e);
	if (r < 0)
		return r;
	(void)sysctl_write_conf(-1, AF_INET6, l->host.name, "accept_ra", "0", &ignored);
	/* A new port has neither. */
	if (want->hairpin || want->isolated)
		bridge_port_set(l->nl, &l->host, want->hairpin, want->isolated);
	return rtnl_commit(l->nl, e);
}

/**
 * pod_link_report() - add an interface to the result
 */
void pod_link_report(struct hw_call *call, const struct link *link, const char *sandbox)
{
	struct hw_iface *iface = hw_result_add_iface(call->result);
	char mac[HW_MAC_TEXT];

	iface->name = str_copy(link->name);
	iface->mac = str_copy(hw_mac_format(&link->mac, mac));
	iface->sandbox = str_copy(sandbox);
}

/* ---- DEL ----------------------------------------------------------------------------- */

/* Only a veth: whatever else has that name is not what these plugins make. */
static int delete_veth(struct rtnl *nl, const char *name, struct hw_err *e)
{
	struct link link;

	int r = link_get(nl, name, &link, e);
	if (r < 0 || !str_equal(link.kind, "veth"))
		return r;
	return link_delete(nl, name, e);
}

static int delete_in_pod(const struct hw_call *call, struct hw_err *e)
{
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	autoclose int fd = -1;

	int r = netns_find(call->netns, &fd, e);
	if (r <= 0)
		return r;
	r = rtnl_open(fd, &nl, e);
	if (r >= 0)
		r = delete_veth(nl, call->ifname, e);
	return r == -ENODEV ? 0 : r;
}

/*
 * What the record says, or else the pod's interface. Also where the host's end is gone under its
 * name the pod's is looked for: somebody may have renamed the host's. Undoing an ADD is about what
 * that ADD made: a link of that name that was there before is somebody else's.
 */
static int delete_links(const struct hw_call *call, struct hw_err *e)
{
	const struct pod_link_made *made = call->made;
	bool undo = str_equal(call->command, "ADD");
	AUTO(rtnl_close) struct rtnl *nl = NULL;

	if (undo && !made->asked)
		return 0;
	if (!call->recorded)
		return delete_in_pod(call, e);
	if (str_empty(made->host))
		return 0;
	int r = rtnl_open(-1, &nl, e);
	if (r >= 0)
		r = delete_veth(nl, made->host, e);
	if (r != -ENODEV)
		return r;
	return undo ? 0 : delete_in_pod(call, e);
}

/* Undoing an ADD that did not get as far as IPAM, or did not find it, does not bother it. */
static int end_lease(struct hw_call *call, const struct ipam_conf *ipam, struct hw_err *e)
{
	const struct pod_link_made *made = call->made;
	bool undo = str_equal(call->command, "ADD");

	if (undo && !made->leased)
		return 0;
	int r = ipam_pass(call, ipam, "DEL", e);
	return r < 0 && undo && ipam_is_missing(e) ? 0 : r;
}

/**
 * pod_link_end() - DEL: the links, what the pod has in nftables, then the lease
 *
 * In that order: a link that cannot be deleted keeps what protects others from it, and while one of
 * them is there the addresses are not free: the lease waits for the next DEL.
 */
int pod_link_end(struct hw_call *call, const struct ipam_conf *ipam, const struct pod_rules *rules,
		 struct hw_err *e)
{
	int r = delete_links(call, e);
	if (r >= 0)
		r = pod_rules_end(call, rules, e);
	return r < 0 ? r : end_lease(call, ipam, e);
}
