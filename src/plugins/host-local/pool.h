/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/pool.h - the configuration of host-local: range sets and requested addresses
 *
 * What:  collects both from all the places where upstream looks for them, in
 *        upstream's order and with upstream's error texts.
 */
#ifndef PLUGINS_HOST_LOCAL_POOL_H
#define PLUGINS_HOST_LOCAL_POOL_H

#include <hawser/plugin.h>

#include "plugins/host-local/range.h"

struct pool_conf {
	struct pool_ipam {
		struct range single; /* the older form: one range beside the other keys */
		char *ranges;	     /* JSON: a list of sets, each a list of ranges */
		struct hw_list routes;
		char *data_dir;
		char *resolv_conf;
	} ipam;
	bool has_ipam;
	struct pool_args {
		struct pool_args_cni {
			struct hw_strings ips;
		} cni;
	} args;
	struct pool_runtime {
		char *ranges; /* JSON, as in ipam */
		struct hw_strings ips;
	} runtime;
};

extern const struct hw_field pool_fields[];

struct pool {
	struct range_set *sets;
	size_t n;
	struct ip_list requested; /* not sorted: in the order of the sources */
};

/*
 * Collect and check the sets and the requested addresses.
 * @pool:    the caller calls pool_done() also after a failure
 * @args:    CNI_ARGS
 * @version: cniVersion of the configuration
 */
int pool_init(struct pool *pool, const struct pool_conf *conf, const char *args,
	      const char *version, struct hw_err *e);
void pool_done(struct pool *pool);

AUTO_VALUE_DEFINE(pool_done, struct pool);

#endif
