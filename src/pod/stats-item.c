/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/stats-item.c - reads one pod or container
 */
#include <stdlib.h>
#include <sys/resource.h>

#include "base/log.h"
#include "base/os/tree-usage.h"
#include "base/time.h"
#include "net/netns.h"
#include "net/rtnl/link-stats.h"
#include "net/rtnl/rtnl.h"
#include "oci/run/pid.h"
#include "pod/stats-read.h"

#define LAYER_ENTRIES 2000	/* a larger directory is counted by the sampler only */
#define FILES_MAX     (1 << 16) /* open files of a container, which are counted one by one */

static unsigned files_to_read(enum stats_detail detail)
{
	switch (detail) {
	case STATS_CPU:
		return CGROUP_READ_CPU;
	case STATS_USAGE:
		return CGROUP_READ_CPU | CGROUP_READ_USAGE;
	default:
		return CGROUP_READ_CPU | CGROUP_READ_USAGE | CGROUP_READ_ALL;
	}
}

static void count_processes(const struct cgroup_fs *fs, const struct read_item *item,
			    struct stats *ret)
{
	struct cgroup_pids pids = { 0 };
	struct rlimit limit;
	struct hw_err e;
	uint64_t files = 0, sockets = 0;
	int r;

	r = cgroup_list(fs, item->cgroup, &pids, &e);
	if (r < 0)
		return;
	ret->processes = pids.n;
	for (size_t i = 0; r == 0 && i < pids.n; i++)
		r = pid_count_files(pids.v[i], FILES_MAX, &files, &sockets);
	free(pids.v);
	if (r == 0) {
		ret->files = files;
		ret->sockets = sockets;
	}
	if (item->pid > 0 && prlimit(item->pid, RLIMIT_NOFILE, NULL, &limit) == 0 &&
	    limit.rlim_cur != RLIM_INFINITY)
		ret->files_limit = limit.rlim_cur;
}

static void read_links(const struct read_item *item, struct stats *ret)
{
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	autoclose int fd = -1;
	struct hw_err e;
	int r;

	r = netns_find(item->netns, &fd, &e);
	if (r > 0)
		r = rtnl_open(fd, &nl, &e) < 0 ? e.code : 1;
	if (r > 0)
		r = link_stats_list(nl, &ret->links, &e) < 0 ? e.code : 1;
	if (r > 0)
		ret->links_time = time_real();
	else if (r < 0)
		log_debug("traffic of pod %s: %s", item->id, e.msg);
}

static bool is_small(void *ctx)
{
	return --*(int *)ctx > 0;
}

static void count_layer(const struct read_item *item, struct stats *ret)
{
	struct tree_usage usage;
	int left = LAYER_ENTRIES;
	struct hw_err ignored;

	if (tree_usage(item->layer, is_small, &left, &usage, &ignored) == 0)
		ret->layer = (struct stats_layer){ time_real(), usage.bytes, usage.inodes };
}

void stats_init(struct stats *ret)
{
	*ret = (struct stats){ .cpu_rate = CGROUP_UNKNOWN,
			       .processes = CGROUP_UNKNOWN,
			       .files = CGROUP_UNKNOWN,
			       .sockets = CGROUP_UNKNOWN,
			       .files_limit = CGROUP_UNKNOWN };
	cgroup_stats_init(&ret->cgroup);
}

void stats_done(struct stats *s)
{
	cgroup_stats_done(&s->cgroup);
	free(take_ptr(s->links.v));
}

void stats_read_item(const struct cgroup_fs *fs, const struct read_item *item, struct stats *ret)
{
	int64_t at = time_now(), now = time_real();
	struct hw_err e;

	stats_init(ret);
	if (item->cgroup && cgroup_stats_read(fs, item->cgroup, files_to_read(item->detail),
					      &ret->cgroup, &e) == 0) {
		ret->at = at;
		ret->time = now;
	}
	if (item->cgroup && item->detail == STATS_METRICS)
		count_processes(fs, item, ret);
	if (item->netns)
		read_links(item, ret);
	if (item->layer)
		count_layer(item, ret);
}
