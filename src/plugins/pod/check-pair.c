/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/check-pair.c - CHECK of plugins that create a veth pair between a pod and the host
 */
#include "plugins/pod/check-pair.h"

#include <errno.h>
#include <net/ethernet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "cni/lock.h"
#include "cni/plugin/record.h"
#include "net/rtnl/rtnl.h"
#include "net/sysctl.h"
#include "plugins/pod/ipam.h"
#include "plugins/pod/link.h"
#include "plugins/pod/rules.h"

static int find_pod_iface(const struct hw_call *call, const struct hw_iface **ret, struct hw_err *e)
{
	const char *sandbox = NULL;

	if (!call->prev)
		return err_text(e, -EINVAL, "Required prevResult missing");
	for (size_t i = 0; i < call->prev->n_ifaces; i++) {
		const struct hw_iface *iface = &call->prev->ifaces[i];

		if (!str_equal(iface->name, call->ifname) || str_empty(iface->sandbox))
			continue;
		sandbox = iface->sandbox;
		if (str_equal(sandbox, call->netns)) {
			*ret = iface;
			return 0;
		}
	}
	if (sandbox)
		return err_text(e, -EINVAL,
				"Sandbox in prevResult %s doesn't match configured netns: %s",
				sandbox, call->netns);
	return err_text(e, -EINVAL, "prevResult has no container interface \"%s\"", call->ifname);
}

/* Finds the host end in the previous result: the interface that the record names, or without a
 * record the first interface on the host that is not the bridge. */
static const struct hw_iface *find_host_iface(const struct hw_call *call, const char *bridge)
{
	const struct pod_link_record *record = call->created;

	for (size_t i = 0; i < call->prev->n_ifaces; i++) {
		const struct hw_iface *iface = &call->prev->ifaces[i];

		if (!str_empty(iface->sandbox) || str_equal(iface->name, bridge))
			continue;
		if (!record->host || str_equal(iface->name, record->host))
			return iface;
	}
	return NULL;
}

int pod_check_mac(const struct hw_iface *iface, const struct link *link, struct hw_err *e)
{
	char text[HW_MAC_TEXT];
	struct hw_err ignored;
	struct hw_mac mac;

	if (str_empty(iface->mac) || hw_mac_parse(iface->mac, &mac, &ignored) < 0 ||
	    (mac.len == link->mac.len && !memcmp(mac.bytes, link->mac.bytes, mac.len)))
		return 0;
	return err_text(e, -EINVAL, "interface %s: MAC address mismatch: got %s, want %s",
			link->name, hw_mac_format(&link->mac, text), iface->mac);
}

/*
 * Has the plugin tuning changed the pod's interface? If so, tuning's own CHECK compares the MTU.
 * (The MAC address is compared here, because the previous result contains the changed one.)
 * Upstream's tuning leaves a file; ours also leaves a record.
 */
static bool is_tuned(const struct hw_call *call)
{
	autofree char *saved =
		str_printf(POD_TUNING_DIR "/%s_%s.json", call->container_id, call->ifname);
	AUTO(record_done) struct record record = { 0 };
	autofree char *state = state_dir_default();
	struct hw_err ignored;

	return access(saved, F_OK) == 0 ||
	       record_read(state, "tuning", call->network, call->container_id, call->ifname, "",
			   &record, &ignored) > 0;
}

/* @mtu: expected MTU; 0: any */
static int check_end(struct rtnl *nl, const struct hw_iface *iface, int mtu, struct link *ret_link,
		     struct hw_err *e)
{
	const char *where = str_empty(iface->sandbox) ? "host" : "container";
	int r;

	r = link_find(nl, iface->name, ret_link, e);
	if (r < 0)
		return r;
	if (r == 0)
		return err_text(e, -ENODEV, "%s interface %s is missing", where, iface->name);
	if (!str_equal(ret_link->kind, "veth"))
		return err_text(e, -EINVAL, "%s interface %s is not a veth", where, iface->name);
	if (mtu && ret_link->mtu != (uint32_t)mtu)
		return err_text(e, -EINVAL, "%s interface %s: MTU mismatch: got %u, want %d", where,
				iface->name, ret_link->mtu, mtu);
	return pod_check_mac(iface, ret_link, e);
}

/* Opens @l, and fills both ends. */
static int check_pair(struct pod_link *l, const struct hw_call *call, const struct pod_check *check,
		      struct hw_err *e)
{
	int mtu = check->mtu > 0 ? check->mtu : ETHERMTU;
	const struct hw_iface *pod = NULL, *host;
	int r;

	r = find_pod_iface(call, &pod, e);
	if (r < 0)
		return r;
	host = find_host_iface(call, check->bridge);
	if (!host)
		return err_text(e, -EINVAL, "prevResult has no host interface for %s",
				call->ifname);
	r = pod_link_open(l, call, e);
	if (r < 0)
		return r;
	r = check_end(l->nl, host, mtu, &l->host, e);
	if (r < 0)
		return r;
	r = check_end(l->pod_nl, pod, is_tuned(call) ? 0 : mtu, &l->pod, e);
	if (r < 0)
		return r;
	if (l->pod.parent != l->host.index)
		return err_text(e, -EINVAL, "host interface %s is not the veth peer of %s",
				l->host.name, l->pod.name);
	if (!(l->host.flags & IFF_UP))
		return err_text(e, -ENETDOWN, "host interface %s is down", l->host.name);
	return 0;
}

int pod_check(struct hw_call *call, const struct pod_check *check, struct hw_err *e)
{
	AUTO(pod_link_done) struct pod_link l = POD_LINK_INIT;
	int r;

	r = ipam_delegate(call, check->ipam, "CHECK", e);
	if (r < 0)
		return r;
	r = check_pair(&l, call, check, e);
	if (r < 0)
		return r;
	r = check->own(&l, call, e);
	return r < 0 ? r : pod_rules_check(call, check->rules, e);
}

int pod_check_sysctl(const struct pod_link *l, const struct hw_call *call, int family,
		     const char *key, const char *value, struct hw_err *e)
{
	autofree char *now = NULL;
	int r;

	r = sysctl_read_conf(l->netns_fd, family, l->pod.name, key, &now, e);
	if (r == -ENOENT)
		return 0;
	if (r < 0 || sysctl_equal(now, value) || is_tuned(call))
		return r;
	if (access("/proc/sys/net/ipv4/ip_forward", W_OK) < 0)
		return 0;
	return err_text(e, -EINVAL, "container interface %s: %s mismatch: got %s, want %s",
			l->pod.name, key, now, value);
}

int pod_check_forwarding(const struct hw_result *result, struct hw_err *e)
{
	for (size_t i = 0; i < result->n_ips; i++) {
		const char *name = result->ips[i].address.ip.family == AF_INET6
					   ? "net/ipv6/conf/all/forwarding"
					   : "net/ipv4/ip_forward";
		autofree char *value = NULL;
		int r;

		r = sysctl_read(-1, name, &value, e);
		if (r < 0)
			return r;
		if (str_equal(value, "0"))
			return err_text(e, -EINVAL, "forwarding is disabled: %s is 0", name);
	}
	return 0;
}
