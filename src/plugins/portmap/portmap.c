/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/portmap.c - ports of the host that lead to a pod
 *
 * What:  ADD makes elements of our nftables maps from runtimeConfig.portMappings
 *        and passes the result on; DEL and GC remove them; CHECK looks for them.
 * How:   whoever asks for 127.0.0.1 is sent on by the host only where
 *        route_localnet says so, of the interface that leads to the pod. The
 *        rules' "guard" keeps others away from 127.0.0.1.
 * Rules: DEL works from the record, without portMappings. Where there is no
 *        record, it removes what Go's plugin has made.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <hawser/plugin.h>

#include "base/err.h"
#include "base/str.h"
#include "net/rtnl/link.h"
#include "net/rtnl/route.h"
#include "net/rtnl/rtnl.h"
#include "net/sysctl.h"
#include "plugins/portmap/portmap.h"

/* ---- beside the rules ------------------------------------------------------------------------- */

/* The link that leads to a pod which 127.0.0.1 is to reach. Return: 1; 0: there is none, and nothing
 * to allow */
static int link_to_pod(const struct portmap_made *made, struct link *ret_link, struct hw_err *e)
{
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	struct route route = { 0 };
	struct hw_prefix pod;
	struct hw_err nowhere;

	if (!made->snat || !made->entries.n || !made->pod4 ||
	    hw_prefix_parse(made->pod4, &pod, &nowhere) < 0)
		return 0;
	int r = rtnl_open(-1, &nl, e);
	if (r < 0)
		return r;
	return route_to(nl, &pod.ip, &route, &nowhere) >= 0 &&
	       link_get_index(nl, route.oif, ret_link, &nowhere) >= 0;
}

static int route_localnet(const struct portmap_made *made, struct hw_err *e)
{
	struct link link;

	int r = link_to_pod(made, &link, e);
	if (r <= 0)
		return r;
	r = sysctl_write_conf(-1, AF_INET, link.name, "route_localnet", "1", e);
	return r < 0 ? err_ctx(e, "unable to enable route_localnet") : 0;
}

/* The kernel takes it of all links, or of this one. */
static int check_route_localnet(const struct portmap_made *made, struct hw_err *e)
{
	struct link link;

	int r = link_to_pod(made, &link, e);
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
			"route_localnet of %s is off, so that nobody reaches the pod by 127.0.0.1; "
			"hawser-plugin repair restores it",
			link.name);
}

/* ---- verbs -------------------------------------------------------------------------------------- */

static int portmap_add(struct hw_call *call, struct hw_err *e)
{
	struct portmap_made *made = call->made;
	autoclose int lock = -1;

	int r = portmap_conf_check(call->conf, e);
	if (r >= 0)
		r = portmap_conf_read(call, made, e);
	if (r < 0)
		return err_ctx(e, "failed to parse config");
	if (!call->prev)
		return err_text(e, -EINVAL, "must be called as chained plugin");
	if (!made->entries.n && !call->earlier)
		return 0;
	if (call->earlier)
		made->earlier = hw_field_encode(portmap_made_fields, call->earlier, 0);
	r = portmap_lock(call, &lock, e);
	if (r < 0) {
		portmap_made_done(made); /* undoing nothing does not wait once more */
		return r;
	}
	r = hw_record_save(call, e);
	if (r >= 0)
		r = route_localnet(made, e);
	if (r >= 0)
		r = portmap_rules_add(call, e);
	if (r >= 0)
		free(take_ptr(made->earlier));
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
	AUTO(portmap_made_done) struct portmap_made guessed = { 0 };
	const struct portmap_made *made = call->recorded ? call->made : &guessed;
	const struct portmap_conf *conf = call->conf;
	autoclose int lock = -1;

	if (!call->recorded)
		guess(call, &guessed);
	int r = made->entries.n || made->earlier ? portmap_lock(call, &lock, e) : 0;
	if (r >= 0)
		r = portmap_rules_del(call, made, e);
	if (r < 0 || call->recorded || !conf->entries.n)
		return r;
	if (!call->prev)
		r = portmap_rules_sweep(call, e);
	return r < 0 ? r : portmap_go_end(call, e);
}

static int portmap_check(struct hw_call *call, struct hw_err *e)
{
	AUTO(portmap_made_done) struct portmap_made made = { 0 };

	int r = portmap_conf_check(call->conf, e);
	if (r >= 0)
		r = portmap_conf_read(call, &made, e);
	if (r < 0)
		return r;
	if (!call->prev)
		return err_text(e, -EINVAL, "Required prevResult missing");
	r = portmap_rules_check(call, &made, e);
	return r < 0 ? r : check_route_localnet(&made, e);
}

static int portmap_status(struct hw_call *call, struct hw_err *e)
{
	AUTO(portmap_made_done) struct portmap_made made = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;

	int r = portmap_conf_check(call->conf, e);
	if (r >= 0)
		r = portmap_conf_read(call, &made, e);
	if (r < 0)
		return r;
	r = nft_open(&nft, e);
	if (r >= 0)
		r = nft_can_load(nft, NFT_INET, e);
	if (r >= 0)
		return 0;
	autofree char *why = str_copy(e->msg);
	return err_cni(e, HW_CNI_NOT_AVAILABLE, "no host ports: %s", why);
}

static int portmap_repair(struct hw_call *call, struct hw_err *e)
{
	autoclose int lock = -1;

	int r = portmap_lock(call, &lock, e);
	if (r >= 0)
		r = portmap_rules_add(call, e);
	return r < 0 ? r : route_localnet(call->made, e);
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
