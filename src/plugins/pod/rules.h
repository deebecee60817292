/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/rules.h - ipMasq and macspoofchk: a pod's nftables elements
 *
 * What:  elements of our sets (net/nft/nft.h), for bridge and ptp.
 * How:   the record has the addresses and the MAC address; the elements follow
 *        from them.
 * Rules: without a record, CHECK looks for the rules of upstream's plugin. DEL
 *        then searches the sets for elements of this owner, and also removes the
 *        rules of upstream's plugin, if it made any: nftables rules and chains
 *        of iptables-nft.
 */
#ifndef PLUGINS_POD_RULES_H
#define PLUGINS_POD_RULES_H

#include <hawser/plugin.h>

/* From the configuration */
struct pod_rules {
	bool masq;
	const char *backend; /* "iptables", "nftables" or NULL: no difference, nftables is used */
	bool mac_check;
};

/* Refuse an unknown backend. */
int pod_rules_check_conf(const struct pod_rules *rules, struct hw_err *e);

/* Could an ADD write these rules? CNI code 50 if not */
int pod_rules_status(const struct pod_rules *rules, struct hw_err *e);

/*
 * Save the record, then write the elements. The addresses are those of call->result. Elements of an
 * earlier ADD of the same attachment are replaced; if that fails, they are restored.
 * @mac: of the pod's interface
 */
int pod_rules_add(struct hw_call *call, const struct pod_rules *rules, const struct hw_mac *mac,
		  struct hw_err *e);
int pod_rules_delete(struct hw_call *call, const struct pod_rules *rules, struct hw_err *e);
int pod_rules_check(struct hw_call *call, const struct pod_rules *rules, struct hw_err *e);
/* hw_plugin.repair: write all elements of the record again. */
int pod_rules_repair(struct hw_call *call, struct hw_err *e);

#endif
