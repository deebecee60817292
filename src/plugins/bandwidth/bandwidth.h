/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/bandwidth/bandwidth.h - what bandwidth is asked for, and where it is done
 */
#ifndef PLUGINS_BANDWIDTH_BANDWIDTH_H
#define PLUGINS_BANDWIDTH_BANDWIDTH_H

#include <hawser/plugin.h>

#include "base/mem.h"
#include "net/rtnl/link.h"
#include "net/tc/tc.h"

struct rtnl;

/* The same keys stand in the configuration and in runtimeConfig.bandwidth. Ingress is what comes to
 * the pod, egress what it sends. */
struct bandwidth_keys {
	int64_t ingress_rate, ingress_burst, egress_rate, egress_burst; /* bits, per second */
	struct hw_strings shaped, unshaped;
	char *egress;
};

struct bandwidth_conf {
	struct bandwidth_keys keys;
	struct bandwidth_runtime {
		struct bandwidth_keys bandwidth;
	} runtime;
};

extern const struct hw_field bandwidth_fields[];

struct bandwidth_limit {
	uint64_t rate, burst; /* 0: none */
};

/* What results from both. */
struct bandwidth {
	struct bandwidth_limit ingress, egress;
	struct hw_prefix *subnets;
	size_t n_subnets;
	bool only; /* limit only what is of the subnets, else all but that */
	bool ifb;  /* limit what the pod sends on the host */
};

/* In any case to be ended by bandwidth_done(). */
int bandwidth_init(struct bandwidth *b, const struct bandwidth_conf *conf, struct hw_err *e);
void bandwidth_done(struct bandwidth *b);
/* The keys, empty so far, from which the same results again */
void bandwidth_to_keys(const struct bandwidth *b, struct bandwidth_keys *keys);
bool bandwidth_is_none(const struct bandwidth *b);
/* How to limit on a link what comes to the pod, or what it sends. */
struct tc_shape bandwidth_ingress(const struct bandwidth *b, const struct link *link);
struct tc_shape bandwidth_egress(const struct bandwidth *b, const struct link *link);

AUTO_VALUE_DEFINE(bandwidth_done, struct bandwidth);

/* ---- links ------------------------------------------------------------------------------ */

/* A pod's interface, and what is at its other end on the host. */
struct bandwidth_links {
	int netns_fd;
	struct rtnl *nl, *pod_nl;
	struct link host, pod; /* index 0: not looked for, or not there */
};

#define BANDWIDTH_LINKS_NONE                                                                       \
	{                                                                                          \
		.netns_fd = -1                                                                     \
	}

int bandwidth_open(struct bandwidth_links *links, const struct hw_call *call, struct hw_err *e);
void bandwidth_close(struct bandwidth_links *links);
int bandwidth_find_pod(struct bandwidth_links *links, const struct hw_call *call, struct hw_err *e);
int bandwidth_find_host(struct bandwidth_links *links, const struct hw_call *call,
			struct hw_err *e);
/* The name that upstream gives an attachment's ifb: */
#define IFB_PREFIX "bwp"
#define IFB_DIGITS 12
char *bandwidth_ifb_name(const struct hw_call *call);

AUTO_VALUE_DEFINE(bandwidth_close, struct bandwidth_links);

/* ---- the record, and the end ------------------------------------------------------------ */

/* What the record says. Indexes, because a name may be another link's by now. */
struct bandwidth_made {
	char *host; /* name, for people */
	int host_index, pod_index;
	char *ifb, *ifb_mac;
	struct bandwidth_keys asked; /* by configuration and runtime together */
};

extern const struct hw_field bandwidth_made_fields[];

extern const struct hw_plugin bandwidth_plugin;

#endif
