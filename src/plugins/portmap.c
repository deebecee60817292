/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap.c - ports of the host that lead to a pod
 *
 * What:  ADD makes elements of our nftables maps from runtimeConfig.portMappings
 *        and passes the result on; DEL and GC remove them; CHECK looks for them.
 * How:   whoever asks for 127.0.0.1 is sent on by the host only where
 *        route_localnet says so, of the interface that leads to the pod. The
 *        rules' "guard" keeps others away from 127.0.0.1.
 *        UDP has no connections, so what the kernel remembers of a port as it was
 *        before is forgotten, on ADD and on DEL.
 * Rules: DEL works from the record, without portMappings. Where there is no
 *        record, it removes what Go's plugin has made.
 */
#include <errno.h>
#include <netinet/in.h>

#include <hawser/plugin.h>

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "net/conntrack.h"
#include "net/link.h"
#include "net/route.h"
#include "net/rtnl.h"
#include "net/sysctl.h"
#include "plugins/plugins.h"
#include "plugins/portmap.h"

static void made_done(struct portmap_made *made)
{
	hw_field_clear(portmap_made_fields, made);
}
AUTO_VALUE_DEFINE(made_done, struct portmap_made);

/* ---- beside the rules ------------------------------------------------------------------------- */

/* Failing is no reason to fail: such a flow ends by itself when nothing comes for a while. */
static void forget_udp(const struct portmap_made *made)
{
	const struct portmap_entry *entries = made->entries.v;
	struct hw_prefix pods[2];
	struct portmap_port port;
	struct hw_err e;
	size_t n = portmap_pods(made, pods);

	for (size_t p = 0; p < n; p++)
		for (size_t i = 0; i < made->entries.n; i++) {
			if (!portmap_applies(&entries[i], &pods[p], &port) ||
			    port.proto != IPPROTO_UDP)
				continue;
			struct conntrack_tuple tuple = { .family = pods[p].ip.family,
							 .proto = IPPROTO_UDP,
							 .dst = port.host,
							 .dport = port.host_port };
			if (conntrack_flush(-1, &tuple, &e) < 0)
				log_warn("portmap: udp port %u: %s", port.host_port, e.msg);
		}
}

/* Without a way to the pod there is nothing to allow. */
static int route_localnet(const struct portmap_made *made, struct hw_err *e)
{
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	struct route route = { 0 };
	struct hw_prefix pod;
	struct hw_err nowhere;
	struct link link;

	if (!made->snat || !made->pod4 || hw_prefix_parse(made->pod4, &pod, &nowhere) < 0)
		return 0;
	int r = rtnl_open(-1, &nl, e);
	if (r < 0)
		return r;
	if (route_to(nl, &pod.ip, &route, &nowhere) < 0 ||
	    link_get_index(nl, route.oif, &link, &nowhere) < 0)
		return 0;
	r = sysctl_write_conf(-1, AF_INET, link.name, "route_localnet", "1", e);
	return r < 0 ? err_ctx(e, "unable to enable route_localnet") : 0;
}

/* ---- verbs -------------------------------------------------------------------------------------- */

static int portmap_add(struct hw_call *call, struct hw_err *e)
{
	struct portmap_made *made = call->made;

	int r = portmap_conf_check(call->conf, e);
	if (r >= 0)
		r = portmap_conf_read(call, made, e);
	if (r < 0)
		return err_ctx(e, "failed to parse config");
	if (!call->prev)
		return err_text(e, -EINVAL, "must be called as chained plugin");
	if (!made->entries.n && !call->earlier)
		return 0;
	r = hw_record_save(call, e);
	if (r >= 0)
		r = route_localnet(made, e);
	if (r >= 0)
		r = portmap_rules_add(call, e);
	if (r >= 0)
		forget_udp(made);
	return r;
}

/* Whatever the configuration and the result still tell; an address that is not known is not needed
 * to find a port. */
static void guess(const struct hw_call *call, struct portmap_made *made)
{
	struct hw_err torn;

	(void)portmap_conf_read(call, made, &torn);
	if (!call->prev) {
		made->pod4 = str_copy("0.0.0.0/32");
		made->pod6 = str_copy("::/128");
	}
}

static int portmap_del(struct hw_call *call, struct hw_err *e)
{
	AUTO(made_done) struct portmap_made guessed = { 0 };
	const struct portmap_made *made = call->recorded ? call->made : &guessed;
	const struct portmap_conf *conf = call->conf;

	if (!call->recorded)
		guess(call, &guessed);
	int r = portmap_rules_del(call, made, e);
	if (r >= 0 && !call->recorded && conf->entries.n)
		r = portmap_go_end(call, e);
	if (r >= 0)
		forget_udp(made);
	return r;
}

static int portmap_check(struct hw_call *call, struct hw_err *e)
{
	AUTO(made_done) struct portmap_made made = { 0 };

	int r = portmap_conf_check(call->conf, e);
	if (r >= 0)
		r = portmap_conf_read(call, &made, e);
	if (r < 0)
		return r;
	if (!call->prev)
		return err_text(e, -EINVAL, "Required prevResult missing");
	return portmap_rules_check(call, &made, e);
}

static int portmap_status(struct hw_call *call, struct hw_err *e)
{
	AUTO(made_done) struct portmap_made made = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;
	struct nft_elem any = nft_elem(NFT_INET, "version", NFT_SHARED), there;

	int r = portmap_conf_check(call->conf, e);
	if (r >= 0)
		r = portmap_conf_read(call, &made, e);
	if (r < 0)
		return r;
	nft_key_number(&any, 1);
	r = nft_open(&nft, e);
	if (r >= 0)
		r = nft_get(nft, &any, &there, e);
	if (r >= 0)
		return 0;
	autofree char *why = str_copy(e->msg);
	return err_cni(e, HW_CNI_NOT_AVAILABLE, "no host ports: %s", why);
}

static int portmap_repair(struct hw_call *call, struct hw_err *e)
{
	AUTO(nft_close) struct nft *nft = NULL;

	int r = nft_open(&nft, e);
	if (r >= 0)
		r = portmap_chains_make(nft, call->made, true, e);
	return r < 0 ? r : portmap_rules_add(call, e);
}

const struct hw_plugin portmap_plugin = {
	.size = sizeof(struct hw_plugin),
	.name = "portmap",
	.summary = "leads ports of the host to a pod",
	.add = portmap_add,
	.del = portmap_del,
	.check = portmap_check,
	.status = portmap_status,
	.repair = portmap_repair,
	.fields = portmap_fields,
	.conf_size = sizeof(struct portmap_conf),
	.record = true,
	.made_fields = portmap_made_fields,
	.made_size = sizeof(struct portmap_made),
};
