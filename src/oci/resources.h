/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/resources.h - resource limits of a pod or a container
 *
 * What:  the limits as a client gives them. spec/limits.h writes them to an OCI configuration.
 */
#ifndef OCI_RESOURCES_H
#define OCI_RESOURCES_H

#include <stdint.h>

#include <hawser/field.h>

#include "base/mem.h"

struct oci_hugepage {
	char *page_size; /* such as "2MB" */
	int64_t limit;	 /* bytes; 0: none may be used */
};

/* A number that is 0 and an empty text mean: not set. */
struct oci_resources {
	int64_t cpu_period, cpu_quota; /* microseconds; a quota of -1: no limit */
	int64_t cpu_shares;
	int64_t memory_limit; /* bytes */
	int64_t oom_score_adj;
	char *cpuset_cpus, *cpuset_mems;
	struct hw_list hugepages;  /* struct oci_hugepage */
	struct hw_map unified;	   /* files of cgroup v2 and what to write to them */
	int64_t memory_swap_limit; /* bytes, memory and swap together; -1: no limit */
	int64_t pids_limit;	   /* -1: no limit */
};

extern const struct hw_field oci_resources_fields[];

void resources_done(struct oci_resources *r);
AUTO_VALUE_DEFINE(resources_done, struct oci_resources);

/* The limits of @from, and those of @update where they are set. Page sizes and files of @update are
 * added to those of @from, or replace them. Overwrites *ret without freeing it; @ret may be neither
 * of the others. */
void resources_merge(const struct oci_resources *from, const struct oci_resources *update,
		     struct oci_resources *ret);

#endif
