/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/ipam.h - what a main plugin does with its IPAM plugin
 *
 * What:  the keys "ipam" and "dns" of a configuration, the lease in a result,
 *        and the other verbs passed on.
 * Rules: without ipam.type nothing is passed on and nothing is an error; a
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

int ipam_require(const struct ipam_conf *ipam, struct hw_err *e);

/* Lease addresses: ips, each of the interface with that index, routes and dns of call->result, which
 * has none yet. */
int ipam_add(struct hw_call *call, const struct ipam_conf *ipam, int iface, struct hw_err *e);
/* DEL, CHECK, GC or STATUS, with the call's own input */
int ipam_pass(struct hw_call *call, const struct ipam_conf *ipam, const char *command,
	      struct hw_err *e);
bool ipam_is_missing(const struct hw_err *e); /* of a call that failed: no such plugin */

/* The configuration's dns instead of the lease's, if it says anything. */
void ipam_override_dns(struct hw_call *call, const struct ipam_dns *dns);

#endif
