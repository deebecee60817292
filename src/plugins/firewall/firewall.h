/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/firewall/firewall.h - what the parts of the firewall plugin share
 */
#ifndef PLUGINS_FIREWALL_FIREWALL_H
#define PLUGINS_FIREWALL_FIREWALL_H

#include <hawser/plugin.h>

struct nft;
struct nft_elems;

struct firewall_conf {
	char *backend;
	char *admin;
	char *zone;
	char *policy;
	int bit;
};

extern const struct hw_field firewall_fields[];

/* What the record says; everything in nftables and firewalld follows from it. */
struct firewall_made {
	struct hw_strings ips;
	int bit;
	char *admin;  /* NULL: FORWARD is not ours to open */
	char *zone;   /* of firewalld; NULL: it is not asked */
	char *bridge; /* with an ingressPolicy */
	char *policy;
	bool is_pods; /* the bridge is none, but goes with the pod */
};

extern const struct hw_field firewall_made_fields[];

/* Error 7 for what cannot be done */
int firewall_conf_check(const struct firewall_conf *conf, struct hw_err *e);
/* Put what the record says: elements, and the rules that use them. */
int firewall_rules_write(struct hw_call *call, const struct firewall_made *made, struct hw_err *e);
/* Remove what the record says, but not what another says, too; that may be NULL. */
int firewall_rules_remove(struct hw_call *call, const struct firewall_made *made,
			  const struct firewall_made *but, struct hw_err *e);
/* The elements are there; rules in foreign chains are put back. */
int firewall_rules_check(struct hw_call *call, const struct firewall_made *made, struct hw_err *e);

/* The elements of the record's bridge */
void firewall_policy_fill(struct nft_elems *elems, const struct firewall_made *made);
/* Forget those of a bridge that are of another policy, unless other pods have that */
int firewall_policy_settle(struct nft *nft, const struct hw_call *call, const char *bridge,
			   const char *policy, struct hw_err *e);

/* Of a note of that kind. Return: 1 when they were removed, 0 when gone; -EBUSY while pods need them */
int firewall_furniture_remove(const char *note, struct hw_err *e);

extern const struct hw_plugin firewall_plugin;

#endif
