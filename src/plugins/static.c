/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/static.c - IPAM plugin static: addresses from the configuration itself
 *
 * What:  ADD replies with the addresses, routes and dns of its configuration.
 *        There is no state: DEL and GC have nothing to do.
 * How:   the addresses are those in ipam.addresses, followed by those in
 *        CNI_ARGS. If args.cni.ips is set, it replaces both; if runtimeConfig.ips
 *        is set, it replaces all three. A GATEWAY in CNI_ARGS becomes the gateway
 *        of every address whose network contains it. Upstream intends to do this
 *        too, but sets the gateways before it reads ipam.addresses.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <hawser/plugin.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cni/result.h"
#include "cni/version.h"
#include "plugins/plugins.h"

struct static_address {
	char *address;
	struct hw_ip gateway;
};

struct static_conf {
	struct static_ipam {
		struct hw_list addresses;
		struct hw_list routes;
		struct hw_dns dns;
	} ipam;
	bool has_ipam;
	struct static_args {
		struct static_args_cni {
			struct hw_strings ips;
		} cni;
	} args;
	struct static_runtime {
		struct hw_strings ips;
	} runtime;
};

static const struct hw_field static_address_fields[] = {
	{ "address", HW_STRING, HW_AT(struct static_address, address),
	  .help = "an address with its prefix length" },
	{ "gateway", HW_IP, HW_AT(struct static_address, gateway),
	  .help = "gateway for this address" },
	{ 0 },
};

static const struct hw_field static_ipam_fields[] = {
	{ "addresses", HW_LIST, HW_AT(struct static_ipam, addresses), .sub = static_address_fields,
	  .size = sizeof(struct static_address), .help = "addresses of the interface" },
	{ "routes", HW_LIST, HW_AT(struct static_ipam, routes), .sub = result_route_fields,
	  .size = sizeof(struct hw_route), .help = "copied to the result" },
	{ "dns", HW_OBJECT, HW_AT(struct static_ipam, dns), .sub = result_dns_fields,
	  .help = "copied to the result" },
	{ 0 },
};

static const struct hw_field static_args_cni_fields[] = {
	{ "ips", HW_STRINGS, HW_AT(struct static_args_cni, ips),
	  .help = "addresses with their prefix lengths; they replace ipam.addresses" },
	{ 0 },
};

static const struct hw_field static_args_fields[] = {
	{ "cni", HW_OBJECT, HW_AT(struct static_args, cni), .sub = static_args_cni_fields },
	{ 0 },
};

static const struct hw_field static_runtime_fields[] = {
	{ "ips", HW_STRINGS, HW_AT(struct static_runtime, ips),
	  .help = "addresses with their prefix lengths; they replace all other addresses "
		  "(capability ips)" },
	{ 0 },
};

static const struct hw_field static_fields[] = {
	{ "ipam", HW_OBJECT, HW_AT(struct static_conf, ipam), .sub = static_ipam_fields,
	  .has = HW_HAS(struct static_conf, has_ipam) },
	{ "args", HW_OBJECT, HW_AT(struct static_conf, args), .sub = static_args_fields },
	{ "runtimeConfig", HW_OBJECT, HW_AT(struct static_conf, runtime),
	  .sub = static_runtime_fields },
	{ 0 },
};

/* ---- addresses ------------------------------------------------------------------------- */

/* @error: start of the message if @text is not an address with a prefix length */
static int add_address(struct hw_result *result, const char *text, const struct hw_ip *gateway,
		       const char *error, struct hw_err *e)
{
	struct hw_prefix prefix;

	if (hw_prefix_parse(text, &prefix, e) < 0)
		return err_text(e, -EINVAL, "%s in CIDR notation, got: '%.100s'", error, text);
	*hw_result_add_ip(result) = (struct hw_ipconf){ .address = prefix, .gateway = *gateway };
	return 0;
}

/* Splits a list such as "a, b" at the commas, and removes blanks around the items. NULL and "" have
 * no items. */
static void split_items(const char *list, struct hw_strings *ret_items)
{
	if (str_empty(list))
		return;
	strings_split(list, ',', ret_items);
	for (size_t i = 0; i < ret_items->n; i++) {
		char *item = ret_items->v[i];
		size_t start = strspn(item, " \t\r\n"), len = strlen(item + start);

		while (len > 0 && strchr(" \t\r\n", item[start + len - 1]))
			len--;
		memmove(item, item + start, len);
		item[len] = '\0';
	}
}

static int add_from_args(struct hw_result *result, const char *args, struct hw_err *e)
{
	int r;

	static const char *const keys[] = { "IP", "GATEWAY", NULL };
	AUTO(hw_strings_free) struct hw_strings values = { 0 }, ips = { 0 }, gateways = { 0 };
	struct hw_ip gateway;

	r = hw_args_parse(args, keys, &values, e);
	if (r < 0)
		return r;
	split_items(values.v[0], &ips);
	for (size_t i = 0; i < ips.n; i++) {
		r = add_address(result, ips.v[i], &(struct hw_ip){ 0 },
				"the 'ip' field is expected to be", e);
		if (r < 0)
			return r;
	}
	split_items(values.v[1], &gateways);
	for (size_t i = 0; i < gateways.n; i++) {
		if (hw_ip_parse(gateways.v[i], &gateway, e) < 0)
			return err_text(e, -EINVAL, "invalid gateway address: %.100s",
					gateways.v[i]);
		for (size_t k = 0; k < result->n_ips; k++)
			if (hw_prefix_contains(&result->ips[k].address, &gateway))
				result->ips[k].gateway = gateway;
	}
	return 0;
}

/* Replaces all addresses by those in the list, unless the list is empty. */
static int replace_addresses(struct hw_result *result, const struct hw_strings *ips,
			     struct hw_err *e)
{
	int r = 0;

	if (ips->n)
		result->n_ips = 0;
	for (size_t i = 0; r >= 0 && i < ips->n; i++)
		r = add_address(result, ips->v[i], &(struct hw_ip){ 0 },
				"an entry in the 'ips' field is NOT", e);
	return r;
}

/* Collects the addresses of a call from all sources. */
static int collect_addresses(const struct hw_call *call, struct hw_result *result, struct hw_err *e)
{
	const struct static_conf *conf = call->conf;
	const struct static_address *v = conf->ipam.addresses.v;
	size_t v4 = 0;
	int r = 0;

	if (!conf->has_ipam)
		return err_text(e, -EINVAL, "IPAM config missing 'ipam' key");
	for (size_t i = 0; r >= 0 && i < conf->ipam.addresses.n; i++)
		r = add_address(result, str_or(v[i].address, ""), &v[i].gateway,
				"the 'address' field is expected to be", e);
	if (r < 0)
		return r;
	r = add_from_args(result, call->args, e);
	if (r < 0)
		return r;
	r = replace_addresses(result, &conf->args.cni.ips, e);
	if (r < 0)
		return r;
	r = replace_addresses(result, &conf->runtime.ips, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < result->n_ips; i++)
		v4 += result->ips[i].address.ip.family == AF_INET;
	if ((v4 > 1 || result->n_ips - v4 > 1) && !version_at_least(call->version, "0.3.0"))
		return err_text(e, -EINVAL,
				"CNI version %s does not support more than 1 address per family",
				call->version);
	return 0;
}

/* ---- verbs ------------------------------------------------------------------------- */

static void copy_strings(struct hw_strings *to, const struct hw_strings *from)
{
	for (size_t i = 0; i < from->n; i++)
		strings_add(to, from->v[i]);
}

/* The result of an IPAM plugin contains only addresses, routes and dns: a previous result is not
 * passed on. */
static int static_add(struct hw_call *call, struct hw_err *e)
{
	const struct static_ipam *ipam = &((const struct static_conf *)call->conf)->ipam;
	struct hw_result *result = hw_result_new();

	hw_result_free(call->result);
	call->result = result;
	for (size_t i = 0; i < ipam->routes.n; i++)
		*hw_result_add_route(result) = ((const struct hw_route *)ipam->routes.v)[i];
	copy_strings(&result->dns.nameservers, &ipam->dns.nameservers);
	copy_strings(&result->dns.search, &ipam->dns.search);
	copy_strings(&result->dns.options, &ipam->dns.options);
	result->dns.domain = str_copy(ipam->dns.domain);
	return collect_addresses(call, result, e);
}

static int check_address(const struct hw_call *call, const struct hw_ipconf *want, struct hw_err *e)
{
	char text[HW_IP_TEXT];

	for (size_t i = 0; i < call->prev->n_ips; i++) {
		const struct hw_ipconf *ip = &call->prev->ips[i];

		if (!hw_ip_equal(&ip->address.ip, &want->address.ip))
			continue;
		if (!want->gateway.family || hw_ip_equal(&ip->gateway, &want->gateway))
			return 0;
		return err_text(e, -EINVAL, "static: Failed to match addr %s on interface %s",
				hw_ip_format(&want->address.ip, text), call->ifname);
	}
	return err_text(e, -ENOENT, "static: Failed to find addr %s of interface %s in prevResult",
			hw_ip_format(&want->address.ip, text), call->ifname);
}

static int static_check(struct hw_call *call, struct hw_err *e)
{
	AUTO(hw_result_free) struct hw_result *want = hw_result_new();
	int r;

	r = collect_addresses(call, want, e);
	if (r < 0)
		return r;
	if (!call->prev)
		return err_text(e, -EINVAL, "Required prevResult missing");
	for (size_t i = 0; r >= 0 && i < want->n_ips; i++)
		r = check_address(call, &want->ips[i], e);
	return r;
}

static int static_status(struct hw_call *call, struct hw_err *e)
{
	AUTO(hw_result_free) struct hw_result *want = hw_result_new();

	return collect_addresses(call, want, e);
}

const struct hw_plugin static_plugin = {
	.size = sizeof(struct hw_plugin),
	.name = "static",
	.summary = "returns the addresses that the configuration contains",
	.add = static_add,
	.check = static_check,
	.status = static_status,
	.fields = static_fields,
	.conf_size = sizeof(struct static_conf),
};
