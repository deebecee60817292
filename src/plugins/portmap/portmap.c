/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/portmap.c - the portmap plugin: forwards host ports to a pod
 *
 * What:  ADD adds elements to our nftables maps, according to
 *        runtimeConfig.portMappings, and returns prevResult unchanged. DEL and GC
 *        delete the elements; CHECK verifies that they exist.
 * How:   the kernel forwards packets to 127.0.0.1 only if route_localnet is set on
 *        the interface to the pod, so ADD sets it. The chain "guard" of our rules
 *        drops packets to 127.0.0.1 that do not come from the host itself.
 * Rules: DEL uses the record and does not need portMappings. Without a record it
 *        deletes the elements for the ports in the configuration, and the rules
 *        that upstream's plugin added.
 */
#include <errno.h>
#include <linux/netfilter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <hawser/plugin.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"
#include "cni/lock.h"
#include "cni/plugin/attach.h"
#include "net/nft/foreign.h"
#include "net/rtnl/link.h"
#include "net/rtnl/route.h"
#include "net/rtnl/rtnl.h"
#include "net/sysctl.h"
#include "plugins/portmap/portmap.h"

#define UPSTREAM_CHAIN 28 /* length of a chain name in upstream: prefix and hash */

/* ---- route_localnet -------------------------------------------------------------------------- */

/* Finds the interface of the host that leads to the pod, if host ports at 127.0.0.1 are to work.
 * Return: 1 if found, 0 if not found or if route_localnet is not needed */
static int find_pod_link(const struct portmap_record *record, struct link *ret_link,
			 struct hw_err *e)
{
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	struct route route = { 0 };
	struct hw_prefix pod;
	struct hw_err ignored;
	int r;

	if (!record->snat || !record->entries.n || !record->pod4 ||
	    hw_prefix_parse(record->pod4, &pod, &ignored) < 0)
		return 0;
	r = rtnl_open(-1, &nl, e);
	if (r < 0)
		return r;
	return route_lookup(nl, &pod.ip, &route, &ignored) >= 0 &&
	       link_get_index(nl, route.oif, ret_link, &ignored) >= 0;
}

static int enable_route_localnet(const struct portmap_record *record, struct hw_err *e)
{
	struct link link;
	int r;

	r = find_pod_link(record, &link, e);
	if (r <= 0)
		return r;
	r = sysctl_write_conf(-1, AF_INET, link.name, "route_localnet", "1", e);
	return r < 0 ? err_ctx(e, "unable to enable route_localnet") : 0;
}

/* The sysctl takes effect if it is set for the interface or for "all". */
static int check_route_localnet(const struct portmap_record *record, struct hw_err *e)
{
	struct link link;
	int r;

	r = find_pod_link(record, &link, e);
	if (r <= 0)
		return r;
	const char *names[] = { link.name, "all" };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		autofree char *value = NULL;

		r = sysctl_read_conf(-1, AF_INET, names[i], "route_localnet", &value, e);
		if (r < 0 || sysctl_equal(value, "1"))
			return r < 0 ? r : 0;
	}
	return err_text(e, -ENOENT,
			"route_localnet is off on interface %s, so host ports on 127.0.0.1 do not "
			"work; hawser-plugin repair restores it",
			link.name);
}

/* ---- rules of upstream's plugin -------------------------------------------------------------- */

/* Deletes the chains and rules that upstream's portmap added for this container. iptables chains
 * are found by name; nftables rules are found by their comment, which is the container ID. */
static int delete_upstream(const struct hw_call *call, struct hw_err *e)
{
	int r;

	static const struct {
		const char *prefix;
		const char *parents[2];
	} iptables_chains[] = {
		{ "CNI-DN-", { "CNI-HOSTPORT-DNAT", NULL } },
		{ "CNI-SN-", { "CNI-HOSTPORT-SNAT", NULL } }, /* created only by old versions */
	};
	static const char *const nft_chains[] = { "hostports", "hostip_hostports", "masquerading" };
	static const uint8_t families[] = { NFPROTO_IPV4, NFPROTO_IPV6 };
	autofree char *attachment = str_printf("%s%s", call->network, call->container_id);
	char hash[UPSTREAM_CHAIN - 7 + 1], name[UPSTREAM_CHAIN + 1];
	AUTO(nft_close) struct nft *nft = NULL;

	hash_hex(attachment, sizeof(hash) - 1, hash);
	r = nft_open(&nft, e);
	for (size_t i = 0; i < ARRAY_SIZE(iptables_chains); i++) {
		snprintf(name, sizeof(name), "%s%s", iptables_chains[i].prefix, hash);
		for (size_t f = 0; r >= 0 && f < ARRAY_SIZE(families); f++) {
			struct nft_chain_ref chain = { families[f], "nat", name };

			r = nft_foreign_delete_chain(nft, &chain, iptables_chains[i].parents, e);
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(nft_chains); i++)
		for (size_t f = 0; r >= 0 && f < ARRAY_SIZE(families); f++) {
			struct nft_chain_ref chain = { families[f], "cni_hostport", nft_chains[i] };

			r = nft_foreign_delete_rules(nft, &chain, call->container_id, e);
		}
	return r;
}

/* ---- verbs ----------------------------------------------------------------------------------- */

static int portmap_add(struct hw_call *call, struct hw_err *e)
{
	struct portmap_record *record = call->created;
	autoclose int lock = -1;
	int r;

	r = portmap_conf_check(call->conf, e);
	if (r >= 0)
		r = portmap_conf_read(call, record, e);
	if (r < 0)
		return err_ctx(e, "failed to parse config");
	if (!call->prev)
		return err_text(e, -EINVAL, "must be called as chained plugin");
	if (!record->entries.n)
		return 0;
	r = portmap_lock(call, &lock, e);
	if (r < 0) {
		/* The undo that follows has nothing to delete. With an empty record it does not
		 * wait for the lock again. */
		portmap_record_done(record);
		return r;
	}
	r = hw_record_save(call, e);
	if (r >= 0)
		r = enable_route_localnet(record, e);
	return r < 0 ? r : portmap_rules_add(call, e);
}

/* Deletes what a second ADD of 0.1.0 left: it was killed when it had replaced the ports of the first
 * ADD in the record, but not yet in nftables. */
static int delete_earlier(const struct hw_call *call, const struct portmap_record *record,
			  struct hw_err *e)
{
	AUTO(portmap_record_done) struct portmap_record earlier = { 0 };
	struct hw_err ignored;

	if (!record->earlier || hw_field_decode(portmap_record_fields, record->earlier,
						strlen(record->earlier), &earlier, &ignored) < 0)
		return 0;
	return portmap_rules_del(call, &earlier, e);
}

static int portmap_del(struct hw_call *call, struct hw_err *e)
{
	AUTO(portmap_record_done) struct portmap_record from_conf = { 0 };
	const struct portmap_record *record = call->recorded ? call->created : &from_conf;
	const struct portmap_conf *conf = call->conf;
	autoclose int lock = -1;
	struct hw_err ignored;
	int r;

	if (!call->recorded) {
		(void)portmap_conf_read(call, &from_conf, &ignored);
		if (!call->prev) {
			/* The elements of ports are found without the pod's address; any address
			 * works here. */
			from_conf.pod4 = str_copy("0.0.0.0/32");
			from_conf.pod6 = str_copy("::/128");
		}
	}
	r = record->entries.n || record->earlier ? portmap_lock(call, &lock, e) : 0;
	if (r >= 0)
		r = portmap_rules_del(call, record, e);
	if (r >= 0)
		r = delete_earlier(call, record, e);
	/* Remove the record before the lock is released: another DEL of the container could
	 * otherwise transfer a port to this attachment. */
	if (r >= 0)
		r = attach_remove_record(call, e);
	if (r < 0 || call->recorded || !conf->entries.n)
		return r;
	if (!call->prev)
		r = portmap_rules_sweep(call, e);
	return r < 0 ? r : delete_upstream(call, e);
}

static int portmap_check(struct hw_call *call, struct hw_err *e)
{
	AUTO(portmap_record_done) struct portmap_record record = { 0 };
	int r;

	r = portmap_conf_check(call->conf, e);
	if (r >= 0)
		r = portmap_conf_read(call, &record, e);
	if (r < 0)
		return r;
	if (!call->prev)
		return err_text(e, -EINVAL, "Required prevResult missing");
	r = portmap_rules_check(call, &record, e);
	return r < 0 ? r : check_route_localnet(&record, e);
}

static int portmap_status(struct hw_call *call, struct hw_err *e)
{
	AUTO(portmap_record_done) struct portmap_record record = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;
	int r;

	r = portmap_conf_check(call->conf, e);
	if (r >= 0)
		r = portmap_conf_read(call, &record, e);
	if (r < 0)
		return r;
	r = nft_open(&nft, e);
	if (r >= 0)
		r = nft_can_load(nft, NFT_INET, e);
	if (r >= 0)
		return 0;
	err_ctx(e, "host ports are not available");
	return err_recode(e, HW_CNI_NOT_AVAILABLE);
}

static int portmap_repair(struct hw_call *call, struct hw_err *e)
{
	autoclose int lock = -1;
	struct hw_err ignored;
	int r;

	r = portmap_lock(call, &lock, e);
	if (r >= 0)
		r = portmap_rules_repair(call, e);
	if (r == -EADDRINUSE) { /* the other ports need it */
		(void)enable_route_localnet(call->created, &ignored);
		return r;
	}
	return r < 0 ? r : enable_route_localnet(call->created, e);
}

const struct hw_plugin portmap_plugin = {
	.size = sizeof(struct hw_plugin),
	.name = "portmap",
	.summary = "forwards host ports to a pod",
	.add = portmap_add,
	.del = portmap_del,
	.check = portmap_check,
	.status = portmap_status,
	.repair = portmap_repair,
	.fields = portmap_fields,
	.conf_size = sizeof(struct portmap_conf),
	.record = true,
	.created_fields = portmap_record_fields,
	.created_size = sizeof(struct portmap_record),
};
