/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/pool.h - the configuration of host-local: range sets and requested addresses
 *
 * What:  collects range sets and requested addresses from the same places, in the
 *        same order and with the same error texts as upstream.
 */
#ifndef PLUGINS_HOST_LOCAL_POOL_H
#define PLUGINS_HOST_LOCAL_POOL_H

#include <hawser/plugin.h>

#include "plugins/host-local/range.h"

struct pool_conf {
	struct pool_ipam {
		struct range
			single; /* older format: the keys of a single range, directly in "ipam" */
		char *ranges;	/* JSON: a list of sets, each a list of ranges */
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
		char *ranges; /* JSON, in the same format as in ipam */
		struct hw_strings ips;
	} runtime;
};

extern const struct hw_field pool_fields[];

struct pool {
	struct range_set *sets;
	size_t n;
	struct ip_list requested; /* not sorted: in the order in which they were read */
};

/*
 * Collect and check the sets and the requested addresses.
 * @pool:    call pool_done() also after an error
 * @args:    CNI_ARGS
 * @version: cniVersion of the configuration
 */
int pool_init(struct pool *pool, const struct pool_conf *conf, const char *args,
	      const char *version, struct hw_err *e);
void pool_done(struct pool *pool);

AUTO_VALUE_DEFINE(pool_done, struct pool);

#endif
