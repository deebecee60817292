/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/static.c - addresses that the configuration itself names
 *
 * What:  ADD answers with the addresses, routes and dns that it is given. There
 *        is no state: DEL and GC have nothing to do.
 * How:   the addresses are those of ipam.addresses and behind them those of
 *        CNI_ARGS; args.cni.ips replaces all of these, runtimeConfig.ips all
 *        before it. A GATEWAY of CNI_ARGS is that of every address in whose
 *        network it is; upstream means that too, but looks before it has read
 *        the addresses of the configuration.
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
	{ "gateway", HW_IP, HW_AT(struct static_address, gateway), .help = "its gateway" },
	{ 0 },
};

static const struct hw_field static_ipam_fields[] = {
	{ "addresses", HW_LIST, HW_AT(struct static_ipam, addresses), .sub = static_address_fields,
	  .size = sizeof(struct static_address), .help = "what the interface gets" },
	{ "routes", HW_LIST, HW_AT(struct static_ipam, routes), .sub = result_route_fields,
	  .size = sizeof(struct hw_route), .help = "copied to the result" },
	{ "dns", HW_OBJECT, HW_AT(struct static_ipam, dns), .sub = result_dns_fields,
	  .help = "copied to the result" },
	{ 0 },
};

static const struct hw_field static_args_cni_fields[] = {
	{ "ips", HW_STRINGS, HW_AT(struct static_args_cni, ips),
	  .help = "addresses with their prefix lengths, instead of ipam.addresses" },
	{ 0 },
};

static const struct hw_field static_args_fields[] = {
	{ "cni", HW_OBJECT, HW_AT(struct static_args, cni), .sub = static_args_cni_fields },
	{ 0 },
};

static const struct hw_field static_runtime_fields[] = {
	{ "ips", HW_STRINGS, HW_AT(struct static_runtime, ips),
	  .help = "addresses with their prefix lengths, instead of all others (capability ips)" },
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

/* ---- which addresses ----------------------------------------------------------------- */

static int add_address(struct hw_result *result, const char *text, const struct hw_ip *gateway,
		       const char *wrong, struct hw_err *e)
{
	struct hw_prefix prefix;

	if (hw_prefix_parse(text, &prefix, e) < 0)
		return err_text(e, -EINVAL, "%s in CIDR notation, got: '%.100s'", wrong, text);
	*hw_result_add_ip(result) = (struct hw_ipconf){ .address = prefix, .gateway = *gateway };
	return 0;
}

static char *trimmed(const char *text)
{
	size_t len;

	text += strspn(text, " \t\r\n");
	for (len = strlen(text); len > 0 && strchr(" \t\r\n", text[len - 1]);)
		len--;
	return str_ncopy(text, len);
}

/* One after the other of a list "a,b"; an item without the blanks around it. */
static int each_item(struct hw_result *result, const char *list,
		     int (*each)(struct hw_result *result, const char *item, struct hw_err *e),
		     struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings items = { 0 };
	int r = 0;

	if (str_empty(list))
		return 0;
	strings_split(list, ',', &items);
	for (size_t i = 0; r >= 0 && i < items.n; i++) {
		autofree char *item = trimmed(items.v[i]);

		r = each(result, item, e);
	}
	return r;
}

static int add_item(struct hw_result *result, const char *item, struct hw_err *e)
{
	return add_address(result, item, &(struct hw_ip){ 0 }, "the 'ip' field is expected to be",
			   e);
}

static int set_gateway(struct hw_result *result, const char *item, struct hw_err *e)
{
	struct hw_ip gateway;

	if (hw_ip_parse(item, &gateway, e) < 0)
		return err_text(e, -EINVAL, "invalid gateway address: %.100s", item);
	for (size_t i = 0; i < result->n_ips; i++)
		if (hw_prefix_contains(&result->ips[i].address, &gateway))
			result->ips[i].gateway = gateway;
	return 0;
}

static int add_configured(struct hw_result *result, const struct static_conf *conf,
			  struct hw_err *e)
{
	const struct static_address *v = conf->ipam.addresses.v;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < conf->ipam.addresses.n; i++)
		r = add_address(result, str_or(v[i].address, ""), &v[i].gateway,
				"the 'address' field is expected to be", e);
	return r;
}

static int add_from_args(struct hw_result *result, const char *args, struct hw_err *e)
{
	static const char *const keys[] = { "IP", "GATEWAY", NULL };
	AUTO(hw_strings_free) struct hw_strings values = { 0 };

	int r = hw_args_parse(args, keys, &values, e);
	if (r >= 0)
		r = each_item(result, values.v[0], add_item, e);
	if (r >= 0)
		r = each_item(result, values.v[1], set_gateway, e);
	return r;
}

/* Instead of those that are there, if there are any in the list. */
static int replace(struct hw_result *result, const struct hw_strings *ips, struct hw_err *e)
{
	int r = 0;

	if (ips->n)
		result->n_ips = 0;
	for (size_t i = 0; r >= 0 && i < ips->n; i++)
		r = add_address(result, ips->v[i], &(struct hw_ip){ 0 },
				"an entry in the 'ips' field is NOT", e);
	return r;
}

static int check_families(const struct hw_result *result, const char *version, struct hw_err *e)
{
	size_t v4 = 0;

	for (size_t i = 0; i < result->n_ips; i++)
		v4 += result->ips[i].address.ip.family == AF_INET;
	if ((v4 > 1 || result->n_ips - v4 > 1) && !version_at_least(version, "0.3.0"))
		return err_text(e, -EINVAL,
				"CNI version %s does not support more than 1 address per family",
				version);
	return 0;
}

/* The addresses of a call, from all its sources. */
static int gather(const struct hw_call *call, struct hw_result *result, struct hw_err *e)
{
	const struct static_conf *conf = call->conf;

	if (!conf->has_ipam)
		return err_text(e, -EINVAL, "IPAM config missing 'ipam' key");
	int r = add_configured(result, conf, e);
	if (r >= 0)
		r = add_from_args(result, call->args, e);
	if (r >= 0)
		r = replace(result, &conf->args.cni.ips, e);
	if (r >= 0)
		r = replace(result, &conf->runtime.ips, e);
	if (r >= 0)
		r = check_families(result, call->version, e);
	return r;
}

/* ---- the verbs ------------------------------------------------------------------------- */

static void copy_strings(struct hw_strings *to, const struct hw_strings *from)
{
	for (size_t i = 0; i < from->n; i++)
		strings_add(to, from->v[i]);
}

/* An IPAM plugin answers with its own part alone, whatever came before it. */
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
	return gather(call, result, e);
}

static int check_address(const struct hw_call *call, const struct hw_ipconf *want, struct hw_err *e)
{
	char text[HW_IP_TEXT];

	for (size_t i = 0; i < call->prev->n_ips; i++) {
		const struct hw_ipconf *there = &call->prev->ips[i];

		if (!hw_ip_equal(&there->address.ip, &want->address.ip))
			continue;
		if (!want->gateway.family || hw_ip_equal(&there->gateway, &want->gateway))
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

	int r = gather(call, want, e);
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

	return gather(call, want, e);
}

const struct hw_plugin static_plugin = {
	.size = sizeof(struct hw_plugin),
	.name = "static",
	.summary = "gives the addresses that the configuration names",
	.add = static_add,
	.check = static_check,
	.status = static_status,
	.fields = static_fields,
	.conf_size = sizeof(struct static_conf),
};
