/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/ipam.c - calls of a main plugin to its IPAM plugin
 */
#include "plugins/pod/ipam.h"

#include <errno.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cni/result.h"

const struct hw_field ipam_fields[] = {
	{ "type", HW_STRING, HW_AT(struct ipam_conf, type),
	  .help = "name of the IPAM plugin; the keys of that plugin are in the same object" },
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

int ipam_require(const struct ipam_conf *ipam, struct hw_err *e)
{
	if (str_empty(ipam->type))
		return err_cni(e, HW_CNI_INVALID_CONFIG, "no plugin name provided");
	return 0;
}

int ipam_add(struct hw_call *call, const struct ipam_conf *ipam, int iface, struct hw_err *e)
{
	AUTO(hw_result_free) struct hw_result *lease = NULL;
	struct hw_result *result = call->result;
	struct hw_dns dns = result->dns;
	int r;

	if (str_empty(ipam->type))
		return 0;
	r = hw_delegate(call, ipam->type, "ADD", NULL, &lease, e);
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

int ipam_delegate(struct hw_call *call, const struct ipam_conf *ipam, const char *command,
		  struct hw_err *e)
{
	return str_empty(ipam->type) ? 0 : hw_delegate(call, ipam->type, command, NULL, NULL, e);
}

bool ipam_is_missing(const struct hw_err *e)
{
	/* Errors that the plugin itself reported have the CNI domain. */
	return e->code == -ENOENT && e->domain != HW_DOMAIN_CNI;
}

static void replace_list(struct hw_strings *list, const struct hw_strings *from)
{
	hw_strings_free(list);
	for (size_t i = 0; i < from->n; i++)
		strings_add(list, from->v[i]);
}

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
