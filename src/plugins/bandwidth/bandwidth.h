/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/bandwidth/bandwidth.h - internal interfaces of the bandwidth plugin
 *
 * bandwidth.c  the CNI verbs
 * conf.c       configuration and attachment record; converts limits to struct tc_shape
 */
#ifndef PLUGINS_BANDWIDTH_BANDWIDTH_H
#define PLUGINS_BANDWIDTH_BANDWIDTH_H

#include <hawser/plugin.h>

#include "base/mem.h"
#include "net/tc/tc.h"

struct link;

/* The configuration and runtimeConfig.bandwidth have the same keys. Ingress is traffic to the pod,
 * egress is traffic from the pod. */
struct bandwidth_keys {
	int64_t ingress_rate, ingress_burst, egress_rate,
		egress_burst;		    /* rates in bits per second, bursts in bits */
	struct hw_strings shaped, unshaped; /* subnets */
	char *egress;			    /* "pod" or "ifb"; NULL or "": "pod" */
};

struct bandwidth_conf {
	struct bandwidth_keys keys;
	struct bandwidth_runtime {
		struct bandwidth_keys bandwidth;
	} runtime;
};

extern const struct hw_field bandwidth_fields[];

/* The part of an attachment record that bandwidth writes. Links are identified by index because the
 * name of a deleted link may be used again. */
struct bandwidth_record {
	char *host;	     /* name of the link on the host */
	bool host_unlimited; /* its packets are only redirected; false in records of 0.1.0 */
	int host_index, pod_index;
	char *ifb, *ifb_mac;
};

extern const struct hw_field bandwidth_record_fields[];

struct bandwidth_limit {
	uint64_t rate, burst; /* rate 0: no limit */
};

/* The limits of a pod, from configuration and runtimeConfig */
struct bandwidth {
	struct bandwidth_limit ingress, egress;
	struct hw_prefix *subnets;
	size_t n_subnets;
	bool only; /* true: limit only traffic with the subnets; false: limit all other traffic */
	bool ifb;  /* limit egress on the host, with an ifb */
};

/* Combine the configuration with runtimeConfig. The limits of a direction, the subnets and "egress"
 * in runtimeConfig override those of the configuration. Invalid settings: CNI code 7. Call
 * bandwidth_done() also after an error. */
int bandwidth_init(struct bandwidth *b, const struct bandwidth_conf *conf, struct hw_err *e);
void bandwidth_done(struct bandwidth *b);
bool bandwidth_is_unlimited(const struct bandwidth *b);
/* The shape for packets that leave @link. For ingress, @link is the host's link; for egress, it is
 * the pod's interface or the ifb. The shape borrows b->subnets. */
struct tc_shape bandwidth_ingress(const struct bandwidth *b, const struct link *link);
struct tc_shape bandwidth_egress(const struct bandwidth *b, const struct link *link);

AUTO_VALUE_DEFINE(bandwidth_done, struct bandwidth);

extern const struct hw_plugin bandwidth_plugin;

#endif
