/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/rules.h - what a pod has in nftables: ipMasq, macspoofchk
 *
 * What:  elements of our sets (net/nft/nft.h), which bridge and ptp need alike.
 * How:   the record says for which addresses, and for which hardware address;
 *        the elements follow from that.
 * Rules: without a record CHECK looks for what Go's plugin makes, and
 *        DEL looks through the sets for its own, and removes what Go's plugin made, in case it was that: nftables rules, and chains of
 *        iptables-nft.
 */
#ifndef PLUGINS_POD_RULES_H
#define PLUGINS_POD_RULES_H

#include <hawser/plugin.h>

/* What the configuration asks for */
struct pod_rules {
	bool masq;
	const char *backend; /* "iptables", "nftables" or none: the traffic is the same */
	bool mac_check;
};

int pod_rules_check_conf(const struct pod_rules *rules, struct hw_err *e);

/* CNI's code 50 when the host cannot do it. */
int pod_rules_status(const struct pod_rules *rules, struct hw_err *e);

/* After the addresses are in the result. Writes the record first. @mac: of the pod's interface */
int pod_rules_add(struct hw_call *call, const struct pod_rules *rules, const struct hw_mac *mac,
		  struct hw_err *e);
int pod_rules_end(struct hw_call *call, const struct pod_rules *rules, struct hw_err *e);
/* What the record says is there; or, without one, what Go's plugin makes. */
int pod_rules_check(struct hw_call *call, const struct pod_rules *rules, struct hw_err *e);
/* What the record says is put back. */
int pod_rules_repair(struct hw_call *call, struct hw_err *e);

#endif
