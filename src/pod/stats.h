/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/stats.h - what pods and containers use: processor, memory, network, disk
 *
 * What:  reads the cgroups of pods and containers, the traffic of pods, and the size of what containers
 *        have written. A value that is not known is CGROUP_UNKNOWN, never 0.
 * How:   cgroups and interfaces are read during the call, each pod or container with a time limit: one
 *        that does not answer costs its own values only (stats-read.h). A thread (sampler.c) reads the
 *        processor time of all every ten seconds, from which the rate is computed, and counts in turn
 *        what containers have written, within a budget.
 */
#ifndef POD_STATS_H
#define POD_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include <hawser/field.h>

#include "base/err.h"
#include "oci/cgroup-stats.h"
#include "pod/containers.h"
#include "pod/pods.h"

/* What a container has written to its root file system. */
struct stats_layer {
	int64_t time; /* when it was counted, ns since 1970; 0: not yet */
	uint64_t bytes, inodes;
};

/* What a pod or a container uses. */
struct stats {
	int64_t time; /* when the cgroup was read, ns since 1970; 0: it does not exist, or did not answer */
	int64_t at; /* as .time, of time_now() */
	struct cgroup_stats cgroup;
	uint64_t cpu_rate; /* nanoseconds of processor time per second */

	/* of a pod with a network namespace */
	int64_t links_time;   /* when the interfaces were listed; 0: they were not */
	struct hw_list links; /* struct link_stats, without loopback interfaces */

	/* of a container */
	struct stats_layer layer;
	uint64_t processes, files, sockets; /* STATS_METRICS */
	uint64_t files_limit;		    /* of the first process; STATS_METRICS */
};

struct stats_list {
	size_t n;
	struct stats *v;
};

/* A pod, or a container. */
struct stats_subject {
	const struct pod_view *pod;
	const struct container_view *container; /* NULL: the pod */
};

enum stats_detail {
	STATS_CPU,     /* processor time */
	STATS_USAGE,   /* what CRI's statistics have */
	STATS_METRICS, /* everything; of pods only the interfaces */
};

/* Reads pods and containers, in this order. What does not run has no cgroup. Overwrites *ret without
 * freeing it. Return: 0; -ETIMEDOUT at the deadline; -ECANCELED: the daemon ends */
int pods_stats(struct pods *p, const struct stats_subject *subjects, size_t n,
	       enum stats_detail detail, int64_t deadline, struct stats_list *ret,
	       struct hw_err *e);
void stats_list_done(struct stats_list *list);

AUTO_VALUE_DEFINE(stats_list_done, struct stats_list);

/* What all containers have written. Containers whose files were not counted yet are left out. *ret:
 * the time of the oldest count; now, if there are no containers; 0 if none was counted yet. Never
 * waits for the disk. */
void pods_layers(struct pods *p, struct stats_layer *ret);

#endif
