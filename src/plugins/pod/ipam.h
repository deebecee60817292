/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/ipam.h - calls of a main plugin to its IPAM plugin
 *
 * What:  decodes the configuration keys "ipam" and "dns", copies the result of
 *        IPAM into the main plugin's result, and delegates the other verbs.
 * Rules: without ipam.type no plugin is called and every function except
 *        ipam_require() succeeds. A main plugin that needs addresses calls
 *        ipam_require() first.
 */
#ifndef PLUGINS_POD_IPAM_H
#define PLUGINS_POD_IPAM_H

#include <hawser/plugin.h>

struct ipam_conf {
	char *type;
};

struct ipam_dns {
	struct hw_dns dns;
	bool has_nameservers, has_search, has_options;
};

/* Field tables of the objects "ipam" and "dns" */
extern const struct hw_field ipam_fields[];
extern const struct hw_field ipam_dns_fields[];

/* Refuse a configuration without ipam.type. */
int ipam_require(const struct ipam_conf *ipam, struct hw_err *e);

/*
 * ADD: allocate addresses. Sets the ips, routes and dns of call->result; its ips and routes must be
 * empty.
 * @iface: index in the result of the interface that the addresses belong to
 */
int ipam_add(struct hw_call *call, const struct ipam_conf *ipam, int iface, struct hw_err *e);
/* Call the IPAM plugin with DEL, CHECK, GC or STATUS and the unchanged input of this call.
 * Return: 0, also if no IPAM plugin is configured; or a negative errno */
int ipam_delegate(struct hw_call *call, const struct ipam_conf *ipam, const char *command,
		  struct hw_err *e);
/* Did a call fail because the IPAM plugin was not found? */
bool ipam_is_missing(const struct hw_err *e);

/* If the configuration has any key below "dns", replace the complete dns of the result by that of
 * the configuration. As in upstream, a key with an empty list is enough. */
void ipam_override_dns(struct hw_call *call, const struct ipam_dns *dns);

#endif
