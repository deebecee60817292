/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/ipam.c - what a main plugin does with its IPAM plugin
 */
#include "plugins/pod/ipam.h"

#include <errno.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cni/result.h"

const struct hw_field ipam_fields[] = {
	{ "type", HW_STRING, HW_AT(struct ipam_conf, type),
	  .help = "the IPAM plugin; its own keys stand beside this one" },
	{ 0 },
};

const struct hw_field ipam_dns_fields[] = {
	{ "nameservers", HW_STRINGS, HW_AT(struct ipam_dns, dns.nameservers),
	  .has = HW_HAS(struct ipam_dns, has_nameservers), .help = "addresses of name servers" },
	{ "domain", HW_STRING, HW_AT(struct ipam_dns, dns.domain), .help = "the local domain" },
	{ "search", HW_STRINGS, HW_AT(struct ipam_dns, dns.search),
	  .has = HW_HAS(struct ipam_dns, has_search), .help = "domains to search" },
	{ "options", HW_STRINGS, HW_AT(struct ipam_dns, dns.options),
	  .has = HW_HAS(struct ipam_dns, has_options), .help = "options for the resolver" },
	{ 0 },
};

/**
 * ipam_require() - refuse a configuration without an IPAM plugin
 */
int ipam_require(const struct ipam_conf *ipam, struct hw_err *e)
{
	if (str_empty(ipam->type))
		return err_cni(e, HW_CNI_INVALID_CONFIG, "no plugin name provided");
	return 0;
}

/**
 * ipam_add() - lease addresses and put them into the result
 * @iface: index of the interface that they are for
 */
int ipam_add(struct hw_call *call, const struct ipam_conf *ipam, int iface, struct hw_err *e)
{
	AUTO(hw_result_free) struct hw_result *lease = NULL;
	struct hw_result *result = call->result;
	struct hw_dns dns = result->dns;

	if (str_empty(ipam->type))
		return 0;
	int r = hw_delegate(call, ipam->type, "ADD", NULL, &lease, e);
	if (r < 0)
		return r;
	if (!lease->n_ips)
		return err_text(e, -ENODATA, "IPAM plugin returned missing IP config");
	for (size_t i = 0; i < lease->n_ips; i++) {
		lease->ips[i].has_iface = true;
		lease->ips[i].iface = iface;
	}
	result->ips = take_ptr(lease->ips);
	result->n_ips = lease->n_ips;
	result->routes = take_ptr(lease->routes);
	result->n_routes = lease->n_routes;
	lease->n_ips = lease->n_routes = 0;
	result->dns = lease->dns;
	lease->dns = dns;
	return 0;
}

/**
 * ipam_pass() - pass a verb on
 */
int ipam_pass(struct hw_call *call, const struct ipam_conf *ipam, const char *command,
	      struct hw_err *e)
{
	return str_empty(ipam->type) ? 0 : hw_delegate(call, ipam->type, command, NULL, NULL, e);
}

/**
 * ipam_is_missing() - did a call fail because there is no such plugin?
 *
 * A plugin's own errors are of CNI's domain.
 */
bool ipam_is_missing(const struct hw_err *e)
{
	return e->code == -ENOENT && e->domain != HW_DOMAIN_CNI;
}

static void replace_list(struct hw_strings *list, const struct hw_strings *by)
{
	hw_strings_free(list);
	for (size_t i = 0; i < by->n; i++)
		strings_add(list, by->v[i]);
}

/**
 * ipam_override_dns() - put the configuration's dns into the result
 *
 * All of it or nothing of it; a list that is there but empty says something, as in upstream's.
 */
void ipam_override_dns(struct hw_call *call, const struct ipam_dns *dns)
{
	struct hw_dns *to = &call->result->dns;

	if (!dns->has_nameservers && !dns->has_search && !dns->has_options &&
	    str_empty(dns->dns.domain))
		return;
	replace_list(&to->nameservers, &dns->dns.nameservers);
	replace_list(&to->search, &dns->dns.search);
	replace_list(&to->options, &dns->dns.options);
	free(to->domain);
	to->domain = str_copy(dns->dns.domain);
}
