/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/ipam.h - calls of a main plugin to its IPAM plugin
 *
 * What:  the configuration keys "ipam" and "dns", the IPAM result in the
 *        plugin's own result, and delegation of the other verbs.
 * Rules: without ipam.type nothing is called and every function succeeds; a
 *        plugin that needs addresses calls ipam_require() first.
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

/* of the objects "ipam" and "dns" */
extern const struct hw_field ipam_fields[];
extern const struct hw_field ipam_dns_fields[];

/* Refuse a configuration without ipam.type. */
int ipam_require(const struct ipam_conf *ipam, struct hw_err *e);

/*
 * ADD: allocate addresses. Sets the ips, routes and dns of call->result, which has no ips and routes
 * yet.
 * @iface: index in the result of the interface that the addresses belong to
 */
int ipam_add(struct hw_call *call, const struct ipam_conf *ipam, int iface, struct hw_err *e);
/* DEL, CHECK, GC or STATUS, with the input of the call itself */
int ipam_delegate(struct hw_call *call, const struct ipam_conf *ipam, const char *command,
		  struct hw_err *e);
/* Did a call fail because the IPAM plugin was not found? */
bool ipam_is_missing(const struct hw_err *e);

/* Replace the result's dns by that of the configuration, if the configuration has any key of it. As
 * in upstream's plugins an empty list counts as a key, and dns is replaced as a whole. */
void ipam_override_dns(struct hw_call *call, const struct ipam_dns *dns);

#endif
