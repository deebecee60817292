/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/firewall/firewall.c - pods pass the host's firewall
 *
 * What:  a pod's addresses may send to anywhere and get answers, on a host that
 *        forwards nothing by itself; ingressPolicy keeps bridges, or all pods,
 *        apart.
 * How:   an address is an element of our own set, which gives its packets a mark;
 *        one rule in the FORWARD chain of iptables accepts that. Where firewalld
 *        runs the addresses become sources of one of its zones instead.
 *        The rules themselves are rules.c's.
 * Rules: whether firewalld is asked is decided at ADD, and recorded.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/ip.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/forward/forward.h"
#include "net/nft/nft.h"
#include "net/rtnl/link.h"
#include "net/rtnl/rtnl.h"
#include "plugins/firewall/firewall.h"
#include "plugins/firewall/firewalld.h"

/* ---- ADD ----------------------------------------------------------------------------------- */

static void note_addresses(struct firewall_made *made, const struct hw_result *result)
{
	char text[HW_IP_TEXT];

	for (size_t i = 0; result && i < result->n_ips; i++)
		strings_add(&made->ips, hw_ip_format(&result->ips[i].address.ip, text));
}

static bool is_backend(const struct firewall_conf *conf, const char *name)
{
	return str_equal(conf->backend, name);
}

/* As upstream: firewalld where it is named, or where it runs and iptables is not named. Whether it
 * can be asked at all is seen now, before the record says that there is something to undo.
 * Return: 1 when it is to be used */
static int choose_firewalld(const struct firewall_conf *conf, struct hw_err *e)
{
	AUTO(firewalld_close) struct firewalld *firewalld = NULL;

	if (is_backend(conf, "iptables"))
		return 0;
	int r = firewalld_open(&firewalld, e);
	if (r < 0 || !is_backend(conf, "firewalld"))
		return r;
	return firewalld
		       ? 1
		       : err_text(e, -ENOENT, "firewalld is asked for, but there is no system bus");
}

/* The bridge is the first interface of the result. Another kind of link is the pod's own. */
static int note_bridge(struct firewall_made *made, const struct firewall_conf *conf,
		       const struct hw_result *prev, struct hw_err *e)
{
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	struct link link;

	if (str_empty(conf->policy) || str_equal(conf->policy, "open"))
		return 0;
	if (!prev->n_ifaces)
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "interface needs to be set for ingress policy \"%s\", make sure to "
			       "chain \"firewall\" plugin with \"bridge\"",
			       conf->policy);
	int r = rtnl_open(-1, &nl, e);
	if (r >= 0)
		r = link_get(nl, str_or(prev->ifaces[0].name, ""), &link, e);
	if (r < 0)
		return err_ctx(e, "ingress policy %s", conf->policy);
	made->policy = str_copy(conf->policy);
	made->bridge = str_copy(link.name);
	made->is_pods = !str_equal(link.kind, "bridge");
	return 0;
}

/* What the record says, before anything is changed */
static int plan(struct hw_call *call, struct hw_err *e)
{
	const struct firewall_conf *conf = call->conf;
	struct firewall_made *made = call->made;

	int r = firewall_conf_check(conf, e);
	if (r >= 0 && !call->prev)
		r = err_text(e, -EINVAL, "missing prevResult from earlier plugin");
	if (r >= 0)
		r = note_bridge(made, conf, call->prev, e);
	if (r >= 0)
		r = choose_firewalld(conf, e);
	if (r < 0)
		return r;
	made->zone = r > 0 ? str_copy(conf->zone) : NULL;
	made->admin = r > 0 ? NULL : str_copy(conf->admin);
	made->bit = conf->bit;
	note_addresses(made, call->prev);
	return 0;
}

/* The bridge may have had another policy before. */
static int settle_policy(struct hw_call *call, struct hw_err *e)
{
	const struct firewall_made *made = call->made;
	AUTO(nft_close) struct nft *nft = NULL;

	if (!call->prev->n_ifaces || !str_empty(call->prev->ifaces[0].sandbox) ||
	    str_empty(call->prev->ifaces[0].name))
		return 0;
	int r = nft_open(&nft, e);
	return r < 0 ? r
		     : firewall_policy_settle(nft, call, call->prev->ifaces[0].name, made->policy,
					      e);
}

/* The attachment has worked so far, and goes on as it was. */
static void go_back(struct hw_call *call, struct hw_err *e)
{
	struct hw_err left, lost;

	if (firewall_rules_remove(call, call->made, call->earlier, &left) < 0)
		err_details(e, "some of it may be left: %s", left.msg);
	if (firewall_rules_write(call, call->earlier, &lost) < 0)
		err_details(e, "what was there before cannot be restored: %s", lost.msg);
}

static int firewall_add(struct hw_call *call, struct hw_err *e)
{
	int r = plan(call, e);

	if (r < 0)
		return r;
	/* An address can only be in one zone of firewalld: so what was there goes first. */
	if (call->earlier)
		r = firewall_rules_remove(call, call->earlier, call->made, e);
	if (r >= 0)
		r = hw_record_save(call, e);
	if (r >= 0)
		r = firewall_rules_write(call, call->made, e);
	if (r >= 0)
		r = settle_policy(call, e);
	if (r < 0 && call->earlier)
		go_back(call, e);
	return r;
}

/* ---- DEL ----------------------------------------------------------------------------------- */

struct owned {
	const char *owner;
	struct firewall_made *made;
};

static int note_owned(void *ctx, const struct nft_elem *elem, struct hw_err *e)
{
	struct hw_ip ip = { .family = str_equal(elem->set, "allow4") ? AF_INET : AF_INET6 };
	const struct owned *owned = ctx;
	char text[HW_IP_TEXT];

	(void)e;
	if (!str_equal(elem->owner, owned->owner) || elem->key.len != ip_bits(&ip) / 8)
		return 0;
	memcpy(ip.bytes, elem->key.v, elem->key.len);
	strings_add(&owned->made->ips, hw_ip_format(&ip, text));
	return 0;
}

/* Ours can be told by their owner, also those that firewalld has, what Go's plugin has made by the
 * addresses only. */
static int end_unrecorded(struct hw_call *call, struct firewall_made *made, struct hw_err *e)
{
	static const char *const sets[] = { "allow4", "allow6", "protected", "samebridge",
					    "isolated" };
	AUTO(nft_close) struct nft *nft = NULL;
	char owner[NFT_OWNER];
	struct owned owned = { owner, made };
	struct hw_ip ip;
	struct hw_err torn;

	nft_owner(call->network, call->container_id, call->ifname, owner);
	int r = nft_open(&nft, e);
	for (size_t i = 0; r >= 0 && i < 2; i++)
		r = nft_list(nft, NFT_INET, sets[i], note_owned, &owned, e);
	if (r >= 0)
		r = firewall_rules_remove(call, made, NULL, e);
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(sets); i++)
		r = nft_sweep(nft, NFT_INET, sets[i], owner, e);
	for (size_t i = 0; r >= 0 && i < made->ips.n; i++)
		if (hw_ip_parse(made->ips.v[i], &ip, &torn) >= 0)
			r = forward_remove_upstream_rules(nft, &ip, e);
	return r;
}

static int firewall_del(struct hw_call *call, struct hw_err *e)
{
	const struct firewall_conf *conf = call->conf;
	struct firewall_made *made = call->made;
	struct hw_err unknown;

	if (call->recorded)
		return firewall_rules_remove(call, made, NULL, e);
	note_addresses(made, call->prev);
	if (choose_firewalld(conf, &unknown) > 0)
		made->zone = str_copy(conf->zone);
	return end_unrecorded(call, made, e);
}

/* ---- the other verbs -------------------------------------------------------------------------- */

/* Go's plugin has made it, or the record is lost. */
static int check_unrecorded(const struct hw_call *call, struct hw_err *e)
{
	AUTO(nft_close) struct nft *nft = NULL;
	char text[HW_IP_TEXT];

	int r = nft_open(&nft, e);
	for (size_t i = 0; r >= 0 && i < call->prev->n_ips; i++) {
		const struct hw_ip *ip = &call->prev->ips[i].address.ip;

		r = forward_has_upstream_rules(nft, ip, e);
		if (r == 0)
			return err_text(
				e, -ENOENT,
				"there is no record of this attachment, nor are there rules "
				"of another plugin for %s",
				hw_ip_format(ip, text));
	}
	return r < 0 ? r : 0;
}

static int firewall_check(struct hw_call *call, struct hw_err *e)
{
	int r = firewall_conf_check(call->conf, e);

	if (r >= 0 && !call->prev)
		return err_text(e, -EINVAL, "missing prevResult from earlier plugin");
	if (r >= 0 && !call->recorded)
		return check_unrecorded(call, e);
	return r < 0 ? r : firewall_rules_check(call, call->made, e);
}

static int see(void *ctx, const struct nft_elem *elem, struct hw_err *e)
{
	(void)elem;
	(void)e;
	*(bool *)ctx = true;
	return 0;
}

/* Does the host let pods pass, or could it be asked to? */
static int look_at_host(const struct firewall_conf *conf, bool firewalld_runs, struct hw_err *e)
{
	const char *skip = firewalld_runs ? "firewalld" : NULL;
	AUTO(nft_close) struct nft *nft = NULL;
	bool six = false; /* some pod has such an address */

	int r = nft_open(&nft, e);
	if (r >= 0)
		r = nft_can_load(nft, NFT_INET, e);
	if (r >= 0)
		r = nft_list(nft, NFT_INET, "allow6", see, &six, e);
	if (r >= 0)
		r = forward_check_native(nft, 1U << conf->bit, six, skip, e);
	if (r >= 0 && !firewalld_runs)
		r = forward_check_legacy(1U << conf->bit, six, e);
	return r;
}

static int firewall_status(struct hw_call *call, struct hw_err *e)
{
	const struct firewall_conf *conf = call->conf;
	AUTO(firewalld_close) struct firewalld *firewalld = NULL;
	int runs = 0;

	int r = firewall_conf_check(conf, e);
	if (r >= 0 && !is_backend(conf, "iptables"))
		r = runs = firewalld_open(&firewalld, e);
	if (r < 0)
		return r;
	if (!runs && is_backend(conf, "firewalld"))
		return err_cni(e, HW_CNI_NOT_AVAILABLE, "firewalld does not run");
	r = look_at_host(conf, runs, e);
	if (r >= 0)
		return 0;
	autofree char *why = str_copy(e->msg);
	return err_cni(e, HW_CNI_NOT_AVAILABLE, "%s", why);
}

static int firewall_repair(struct hw_call *call, struct hw_err *e)
{
	return firewall_rules_write(call, call->made, e);
}

static const char *const firewall_versions[] = { "0.4.0", "1.0.0", "1.1.0", NULL };

const struct hw_plugin firewall_plugin = {
	.size = sizeof(struct hw_plugin),
	.name = "firewall",
	.summary = "lets a pod's addresses pass the host's firewall",
	.add = firewall_add,
	.del = firewall_del,
	.check = firewall_check,
	.status = firewall_status,
	.versions = firewall_versions,
	.fields = firewall_fields,
	.conf_size = sizeof(struct firewall_conf),
	.record = true,
	.made_fields = firewall_made_fields,
	.made_size = sizeof(struct firewall_made),
	.repair = firewall_repair,
};
