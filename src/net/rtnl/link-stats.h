/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/link-stats.h - what the interfaces of a namespace have received and sent
 */
#ifndef NET_RTNL_LINK_STATS_H
#define NET_RTNL_LINK_STATS_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include <hawser/field.h>

#include "base/err.h"

struct rtnl;

struct link_traffic {
	uint64_t bytes, packets, errors, dropped;
};

struct link_stats {
	char name[IF_NAMESIZE];
	int index;
	struct link_traffic received, sent;
};

#define LINK_STATS_MAX 256

/* Lists at most LINK_STATS_MAX interfaces, without loopback interfaces, ordered by index. @ret_list: struct
 * link_stats; overwritten without freeing it; the caller frees .v */
int link_stats_list(struct rtnl *nl, struct hw_list *ret_list, struct hw_err *e);

#endif
