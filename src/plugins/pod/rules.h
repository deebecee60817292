/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/rules.h - ipMasq and macspoofchk: a pod's nftables elements
 *
 * What:  adds, checks and deletes a pod's elements in our sets (net/nft/nft.h),
 *        for the plugins bridge and ptp.
 * How:   the record has the pod's addresses and its MAC address; the elements are
 *        computed from these. ADD and repair also complete our rule in chain
 *        POSTROUTING of iptables (net/nft/postrouting.h), which belongs to no pod.
 * Rules: without a record, CHECK requires the rules of upstream's plugin. DEL
 *        without a record searches the sets for elements of this owner, and also
 *        removes rules that upstream's plugin created: nftables rules and
 *        chains of iptables-nft.
 */
#ifndef PLUGINS_POD_RULES_H
#define PLUGINS_POD_RULES_H

#include <hawser/plugin.h>

/* The settings in the configuration */
struct pod_rules {
	bool masq;	     /* ipMasq */
	const char *backend; /* "iptables", "nftables" or NULL; nftables is used in all cases */
	const struct hw_strings *exclude; /* ipMasqExclude: networks that are not masqueraded */
	bool mac_check;			  /* macspoofchk */
};

/* Refuse an unknown backend, and a malformed network in ipMasqExclude. */
int pod_rules_check_conf(const struct pod_rules *rules, struct hw_err *e);

/* STATUS: could an ADD write these rules? If not, the error has CNI code 50. */
int pod_rules_status(const struct pod_rules *rules, struct hw_err *e);

/*
 * Save the record, then write the elements. The addresses are those of call->result.
 * @mac: MAC address of the pod's interface
 */
int pod_rules_add(struct hw_call *call, const struct pod_rules *rules, const struct hw_mac *mac,
		  struct hw_err *e);
int pod_rules_delete(struct hw_call *call, const struct pod_rules *rules, struct hw_err *e);
int pod_rules_check(struct hw_call *call, const struct pod_rules *rules, struct hw_err *e);
/* hw_plugin.repair: write all elements of the record again. */
int pod_rules_repair(struct hw_call *call, struct hw_err *e);

/* Remove the rule in chain POSTROUTING of iptables that @note, the name of a host object, describes.
 * Return: 1 if removed, 0 if the rule did not exist; -EBUSY if pods still need it */
int pod_rules_host_object_remove(const char *note, struct hw_err *e);

#endif
