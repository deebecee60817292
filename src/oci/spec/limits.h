/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/limits.h - resource limits in the cgroup of a container
 *
 *	cpu_period, _quota, _shares	written as given, in the ranges that the kernel accepts
 *	cpuset_cpus, _mems		written as given: lists of what this machine can have
 *	memory_limit			written as given, at least SPEC_MEMORY_MIN
 *	memory_swap_limit		memory and swap together. If it is not set, it is the memory limit:
 *					the container gets no swap. If the kernel does not limit swap, it
 *					must be unset, equal to the memory limit, or unlimited.
 *	hugepages			a page size that the kernel cannot limit must have the limit 0,
 *					and is left out: a kubelet always sends two sizes
 *	pids_limit			written as given
 *	unified				cgroup v2 only: crun ignores it on v1. Names of files, not paths.
 *	oom_score_adj			belongs to the process: process.h
 *
 * A limit that is 0 is not set: the kernel's default, or that of the pod, remains.
 */
#ifndef OCI_SPEC_LIMITS_H
#define OCI_SPEC_LIMITS_H

#include "oci/cgroup.h"
#include "oci/resources.h"
#include "oci/spec/spec.h"

/* With less, the kernel kills crun before it executes the container's program. */
#define SPEC_MEMORY_MIN (512 << 10)

/* What the cgroups of this host can limit. Does not change while the host runs. */
struct spec_host {
	bool v2;
	bool swap;
	unsigned n_cpus, n_nodes;     /* possible ones: CPUs, nodes of memory */
	struct hw_strings page_sizes; /* of huge pages, such as "2MB" */
};

/* @root: see cgroup_fs_new() */
int spec_host_init(struct spec_host *ret_host, const struct cgroup_fs *fs, const char *root,
		   struct hw_err *e);
void spec_host_done(struct spec_host *host);
AUTO_VALUE_DEFINE(spec_host_done, struct spec_host);

/* Writes all limits to *ret, except for device rules; for s->limits, or for an update. On success the
 * caller frees *ret with spec_limits_done(), or as part of a configuration.
 * Return: 0; -EINVAL with the name of the invalid limit */
int spec_limits_init(struct oci_limits *ret, const struct oci_resources *r,
		     const struct spec_host *host, struct hw_err *e);
void spec_limits_done(struct oci_limits *limits);
AUTO_VALUE_DEFINE(spec_limits_done, struct oci_limits);

#endif
