/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/firewall/firewall.h - internal interfaces of the firewall plugin
 *
 * firewall.c   the CNI verbs, configuration and attachment record
 * rules.c      a pod's elements in nftables, its sources in firewalld; the rules in FORWARD
 * policy.c     ingressPolicy
 * firewalld.c  client for firewalld's D-Bus interface
 */
#ifndef PLUGINS_FIREWALL_FIREWALL_H
#define PLUGINS_FIREWALL_FIREWALL_H

#include <hawser/plugin.h>

struct nft;
struct nft_elems;

struct firewall_conf {
	char *backend;
	char *admin;
	bool has_admin; /* the configuration has the key */
	char *zone;
	char *policy;
	int bit;
};

/* The part of an attachment record that firewall writes. All elements, rules and sources are
 * computed from it. */
struct firewall_record {
	struct hw_strings ips;
	int bit;	   /* bit of the packet mark that FORWARD accepts */
	char *admin;	   /* the administrator's chain; NULL: no rules in FORWARD */
	bool create;	   /* the configuration asks for iptables: FORWARD must exist */
	char *zone;	   /* zone of firewalld; NULL: firewalld is not used */
	char *bridge;	   /* first interface of the result; NULL: no ingressPolicy */
	char *policy;	   /* "same-bridge" or "isolated"; NULL: open */
	bool owned_by_pod; /* the interface is not a bridge: its elements belong to the pod */
};

extern const struct hw_field firewall_record_fields[];

/* Add the elements and the firewalld sources of the record, and the rules in FORWARD if they are
 * missing. */
int firewall_rules_add(struct hw_call *call, const struct firewall_record *record,
		       struct hw_err *e);
/* Remove the sources and elements of the record from firewalld and nftables, except those that
 * belong to another attachment by now. Elements are removed even if an error occurs with
 * firewalld. */
int firewall_rules_remove(struct hw_call *call, const struct firewall_record *record,
			  struct hw_err *e);
/* For CHECK: fails if an element, a source or a rule in FORWARD is missing. */
int firewall_rules_check(struct hw_call *call, const struct firewall_record *record,
			 struct hw_err *e);

/* Append the elements of the record's ingressPolicy. They have no owner, unless
 * record->owned_by_pod is set. */
void firewall_policy_put(struct nft_elems *elems, const struct firewall_record *record);
/* Delete the elements of a bridge for policies that no pod on this bridge has any more.
 * @policy: policy of the pod that is being added; NULL or "": open */
int firewall_policy_delete_stale(struct nft *nft, const struct hw_call *call, const char *bridge,
				 const char *policy, struct hw_err *e);

/* Remove the rules in FORWARD that @note, the name of a host object, describes.
 * Return: 1 if removed, 0 if the rules did not exist; -EBUSY if pods still need them */
int firewall_host_object_remove(const char *note, struct hw_err *e);

/* Remove the chain FORWARD that this plugin created, named "ip FORWARD" or "ip6 FORWARD", if nothing
 * uses it. Return: 1 if removed, 0 if not */
int firewall_host_chain_remove(const char *note, struct hw_err *e);

extern const struct hw_plugin firewall_plugin;

#endif
