/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/link.h - the veth pair between a pod and the host
 *
 * What:  creates and deletes the veth pair of the plugins bridge and ptp, and
 *        writes its record. One end of the pair is the pod's interface.
 * How:   an ADD calls pod_link_open(), pod_link_plan() and pod_link_create(), in
 *        this order. A DEL, and the undo of a failed ADD, calls
 *        pod_link_teardown().
 * Rules: the name of the host end is a hash of network, container and interface;
 *        if that name is in use, the hash plus 1, and so on. The record is
 *        written before the kernel is changed. A teardown finds the pair and the
 *        rules by the record alone. If there is no record, because upstream's
 *        plugin created the attachment, the teardown deletes the pod's interface.
 */
#ifndef PLUGINS_POD_LINK_H
#define PLUGINS_POD_LINK_H

#include <hawser/plugin.h>

#include "base/mem.h"
#include "net/rtnl/link.h"

struct ipam_conf;
struct pod_rules;
struct rtnl;

/* hw_call.created of bridge and ptp: their part of the attachment record */
struct pod_link_record {
	char *host;		   /* name of the host end */
	bool leased;		   /* IPAM was called for addresses, or is about to be called */
	bool vlan_filtering;	   /* the bridge filtered VLANs at the time of the ADD */
	bool pair_requested;	   /* not stored: this ADD created the pair, or tried to */
	struct hw_strings masq;	   /* masqueraded addresses, with their network's prefix length */
	struct hw_strings exclude; /* networks to which nothing is masqueraded */
	char *mac;		   /* the only MAC address that the pod may send from; NULL: any */
};

extern const struct hw_field pod_link_record_fields[];

struct pod_link {
	int netns_fd;	       /* the pod's namespace; -1: not open */
	struct rtnl *nl;       /* socket on the host */
	struct rtnl *pod_nl;   /* socket in the pod */
	struct link host, pod; /* the two ends */
};

#define POD_LINK_INIT                                                                              \
	{                                                                                          \
		.netns_fd = -1                                                                     \
	}

struct pod_link_options {
	int mtu;	   /* 0 or less: the kernel's default */
	struct hw_mac mac; /* MAC address of the pod's end; length 0: the kernel chooses one */
	int master;	   /* index of the bridge for the host end; 0: no bridge */
	bool hairpin, isolated;
};

/* Open a socket on the host and one in the pod. Call pod_link_done() also after an error. */
int pod_link_open(struct pod_link *l, const struct hw_call *call, struct hw_err *e);
void pod_link_done(struct pod_link *l);

/*
 * Choose the name of the host end and save the record. The kernel is not changed yet.
 * @leases: the caller will call IPAM for addresses
 * Return: 0; -EEXIST if the pod already has an interface named call->ifname
 */
int pod_link_plan(struct pod_link *l, struct hw_call *call, bool leases, struct hw_err *e);
/* Create the pair, and fill l->host and l->pod. Afterwards the host end is up and the pod's end is
 * down. */
int pod_link_create(struct pod_link *l, struct hw_call *call,
		    const struct pod_link_options *options, struct hw_err *e);
/* Add an interface to the result. @sandbox: NULL for an interface of the host */
void pod_link_report(struct hw_call *call, const struct link *link, const char *sandbox);

/*
 * DEL, or the undo of a failed ADD: delete the pair, then the pod's nftables elements, then call
 * IPAM to release the addresses. The order matters. As long as the pair exists, the elements are
 * needed because they protect other pods from this one. As long as the elements exist, the
 * addresses must not be leased to another pod. After an error the remaining steps are left to the
 * next DEL. An undo deletes only objects that its own ADD created.
 */
int pod_link_teardown(struct hw_call *call, const struct ipam_conf *ipam,
		      const struct pod_rules *rules, struct hw_err *e);

AUTO_VALUE_DEFINE(pod_link_done, struct pod_link);

#endif
