/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/firewall/firewall.h - internal interfaces of the firewall plugin
 *
 * firewall.c   the CNI verbs, configuration and attachment record
 * rules.c      a pod's elements in nftables, the rules in FORWARD, sources in firewalld
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
	char *zone;
	char *policy;
	int bit;
};

/* The firewall part of an attachment record. Everything in nftables and firewalld follows from
 * it. */
struct firewall_record {
	struct hw_strings ips;
	int bit;	   /* of the packet mark */
	char *admin;	   /* the administrator's chain; NULL: no rules in FORWARD */
	char *zone;	   /* of firewalld; NULL: firewalld is not used */
	char *bridge;	   /* with an ingressPolicy: the first interface of the result */
	char *policy;	   /* "same-bridge" or "isolated"; NULL: open */
	bool owned_by_pod; /* "bridge" is another kind of link: its elements belong to the pod */
};

extern const struct hw_field firewall_record_fields[];

/* Add the elements of the record, and the rules that use them, where they are missing. */
int firewall_rules_add(struct hw_call *call, const struct firewall_record *record,
		       struct hw_err *e);
/* Remove what the record has and @keep does not (NULL: everything), from firewalld and nftables,
 * if it still belongs to this attachment. An error with one does not keep the other from being
 * cleaned up. */
int firewall_rules_remove(struct hw_call *call, const struct firewall_record *record,
			  const struct firewall_record *keep, struct hw_err *e);
/* For CHECK: an error if an element or a source is missing. Missing rules in FORWARD, which
 * belong to no pod, are added. */
int firewall_rules_check(struct hw_call *call, const struct firewall_record *record,
			 struct hw_err *e);

/* Append the elements of the record's ingressPolicy. Those of a bridge have no owner. */
void firewall_policy_put(struct nft_elems *elems, const struct firewall_record *record);
/* Delete the elements of a bridge for policies that no pod on it has any more.
 * @policy: of the pod that is being added; NULL or "": open */
int firewall_policy_delete_stale(struct nft *nft, const struct hw_call *call, const char *bridge,
				 const char *policy, struct hw_err *e);

/* Remove the rules in FORWARD that @note, the name of a host object, describes.
 * Return: 1 if they were removed, 0 if there were none; -EBUSY while pods need them */
int firewall_host_object_remove(const char *note, struct hw_err *e);

extern const struct hw_plugin firewall_plugin;

#endif
