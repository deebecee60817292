/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/link.h - the veth pair between a pod and the host
 *
 * What:  creates and deletes the pair whose one end is the pod's interface, and
 *        keeps the record of it, for bridge and ptp.
 * How:   an ADD calls pod_link_open(), pod_link_plan(), pod_link_create(), in this
 *        order; a DEL, and the undo of a failed ADD, pod_link_teardown().
 * Rules: the name of the host end is a hash of network, container and interface,
 *        so that it is found without a search; if it is taken, the next value.
 *        The record is written before the kernel is changed. It is all that a
 *        teardown needs to find pair and rules; without one, because upstream's
 *        plugin made the attachment, the pod's interface is deleted.
 */
#ifndef PLUGINS_POD_LINK_H
#define PLUGINS_POD_LINK_H

#include <hawser/plugin.h>

#include "base/mem.h"
#include "net/rtnl/link.h"

struct ipam_conf;
struct pod_rules;
struct rtnl;

/* hw_call.made of bridge and ptp: their part of the attachment record */
struct pod_link_record {
	char *host;		/* name of the host end */
	bool leased;		/* IPAM was called for addresses */
	bool vlan_filtering;	/* the bridge filtered VLANs */
	bool pair_requested;	/* not stored: this ADD created the pair, or tried to */
	struct hw_strings masq; /* masqueraded addresses, with their network's prefix length */
	char *mac;		/* the only MAC address that the pod may send from; NULL: any */
	/* JSON of this struct, of an earlier ADD of the same attachment, until this ADD has
	 * replaced its rules */
	char *earlier;
};

extern const struct hw_field pod_link_record_fields[];

struct pod_link {
	int netns_fd;	     /* the pod's; -1: not open */
	struct rtnl *nl;     /* on the host */
	struct rtnl *pod_nl; /* in the pod */
	struct link host, pod;
};

#define POD_LINK_INIT                                                                              \
	{                                                                                          \
		.netns_fd = -1                                                                     \
	}

struct pod_link_options {
	int mtu;	   /* 0 or less: the kernel's default */
	struct hw_mac mac; /* of the pod's end; length 0: chosen by the kernel */
	int master;	   /* index of the host end's bridge; 0: none */
	bool hairpin, isolated;
};

/* Open a socket on the host and one in the pod. The caller calls pod_link_done() in any case. */
int pod_link_open(struct pod_link *l, const struct hw_call *call, struct hw_err *e);
void pod_link_done(struct pod_link *l);

/*
 * Choose the name of the host end and save the record. The kernel is not changed yet.
 * @leases: IPAM will be called for addresses
 * Return: 0; -EEXIST if the pod already has an interface of that name
 */
int pod_link_plan(struct pod_link *l, struct hw_call *call, bool leases, struct hw_err *e);
/* Create the pair, and fill l->host and l->pod. The host end is up, the pod's end down. */
int pod_link_create(struct pod_link *l, struct hw_call *call,
		    const struct pod_link_options *options, struct hw_err *e);
/* Add an interface to the result. @sandbox: NULL for an interface of the host */
void pod_link_report(struct hw_call *call, const struct link *link, const char *sandbox);

/*
 * DEL, or the undo of a failed ADD: delete the pair, then the pod's nftables elements, then let IPAM
 * release the lease. The order matters: as long as the pair exists, its elements protect other pods
 * from it, and as long as the elements exist, the addresses must not be leased again. After a failure
 * the rest is left for the next DEL.
 * An undo deletes only what its own ADD made.
 */
int pod_link_teardown(struct hw_call *call, const struct ipam_conf *ipam,
		      const struct pod_rules *rules, struct hw_err *e);

AUTO_VALUE_DEFINE(pod_link_done, struct pod_link);

#endif
