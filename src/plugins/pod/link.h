/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/link.h - the pair of links between a pod and the host
 *
 * What:  a veth pair whose one end is the pod's interface: bridge and ptp make
 *        and delete it alike, and keep the same record of it.
 * How:   pod_link_open(), pod_link_plan() (chooses the host end's name and
 *        writes the record; nothing is changed yet), pod_link_make().
 * Rules: the host end's name is a hash of network, container and interface, so
 *        that it is found without a search; where it is taken, the next value.
 *        pod_link_end() needs the record only. Where there is none, because
 *        another program made the attachment, it is the pod's interface that
 *        is looked for.
 */
#ifndef PLUGINS_POD_LINK_H
#define PLUGINS_POD_LINK_H

#include <hawser/plugin.h>

#include "base/mem.h"
#include "net/rtnl/link.h"

struct ipam_conf;
struct pod_rules;
struct rtnl;

/* hw_call.made: what the record says */
struct pod_link_made {
	char *host;		/* name of the host end */
	bool leased;		/* IPAM was asked for addresses */
	bool filters;		/* the bridge told VLANs apart */
	bool asked;		/* not in the record: this ADD had the pair made, or tried to */
	struct hw_strings masq; /* addresses that are masqueraded, with their networks' length */
	char *mac;		/* of the pod's end, when only that may send; NULL: any */
	char *earlier; /* JSON of this struct: of an ADD on top of another, which has not ended yet */
};

extern const struct hw_field pod_link_made_fields[];

struct pod_link {
	int netns_fd;	     /* the pod's; -1: not open */
	struct rtnl *nl;     /* on the host */
	struct rtnl *pod_nl; /* in the pod */
	struct link host, pod;
};

#define POD_LINK_NONE                                                                              \
	{                                                                                          \
		.netns_fd = -1                                                                     \
	}

struct pod_link_want {
	int mtu;	   /* 0 or less: the kernel's choice */
	struct hw_mac mac; /* of the pod's end; none: the kernel's choice */
	int master;	   /* index of the host end's bridge; 0: none */
	bool hairpin, isolated;
};

int pod_link_open(struct pod_link *l, const struct hw_call *call, struct hw_err *e);
void pod_link_done(struct pod_link *l);

/* Nothing is changed yet: -EEXIST when the pod has an interface of that name. */
int pod_link_plan(struct pod_link *l, struct hw_call *call, bool leases, struct hw_err *e);
/* The pod's end is left down. */
int pod_link_make(struct pod_link *l, struct hw_call *call, const struct pod_link_want *want,
		  struct hw_err *e);
/* An interface of the result; sandbox NULL: on the host */
void pod_link_report(struct hw_call *call, const struct link *link, const char *sandbox);

/* DEL: delete the pod's rules and the pair, then let IPAM release its lease. */
int pod_link_end(struct hw_call *call, const struct ipam_conf *ipam, const struct pod_rules *rules,
		 struct hw_err *e);

AUTO_VALUE_DEFINE(pod_link_done, struct pod_link);

#endif
