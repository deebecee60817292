/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/cgroup-stats.h - what a cgroup uses: processor, memory, swap, pressure, tasks, devices
 *
 * What:  reads the files of a cgroup, of v1 or v2, into one struct. A value that the kernel does not
 *        provide is CGROUP_UNKNOWN, never 0.
 * Rules: reading a file may take as long as the kernel wants: see pod/stats.h. A file is read up to a
 *        limit, and lines that are unknown or malformed are ignored.
 *        Values include those of the cgroups below, except for limits.
 */
#ifndef OCI_CGROUP_STATS_H
#define OCI_CGROUP_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include <hawser/field.h>

#include "base/err.h"
#include "base/mem.h"
#include "oci/cgroup.h"

/* Not provided by the kernel, or a limit that is not set. */
#define CGROUP_UNKNOWN UINT64_MAX

/* Times are in nanoseconds, sizes in bytes. */
enum cgroup_value {
	CGROUP_CPU_USAGE,
	CGROUP_CPU_USER,
	CGROUP_CPU_SYSTEM,
	CGROUP_CPU_PERIODS, /* of a CPU quota */
	CGROUP_CPU_THROTTLED_PERIODS,
	CGROUP_CPU_THROTTLED_TIME,
	CGROUP_MEMORY_USAGE,
	CGROUP_MEMORY_LIMIT, /* v1: the lowest limit of the cgroup and those above it */
	CGROUP_MEMORY_RESERVATION,
	CGROUP_MEMORY_PEAK,
	CGROUP_MEMORY_ANONYMOUS,
	CGROUP_MEMORY_CACHE,
	CGROUP_MEMORY_MAPPED,
	CGROUP_MEMORY_KERNEL,
	CGROUP_MEMORY_INACTIVE_FILE,
	CGROUP_MEMORY_LIMIT_HITS,
	CGROUP_PAGE_FAULTS,
	CGROUP_MAJOR_PAGE_FAULTS,
	CGROUP_OOM_KILLS,
	CGROUP_SWAP_USAGE,
	CGROUP_SWAP_LIMIT,
	CGROUP_TASKS, /* processes and their threads */
	CGROUP_TASKS_LIMIT,
	CGROUP_VALUES,
};

/* How long tasks have waited for a resource, and the share of the last seconds, in percent. */
struct cgroup_stall {
	bool known;
	double avg10, avg60, avg300;
	uint64_t total; /* nanoseconds */
};

struct cgroup_pressure {
	struct cgroup_stall some, full; /* some of the tasks; all of them */
};

enum cgroup_resource { CGROUP_CPU, CGROUP_MEMORY, CGROUP_IO, CGROUP_RESOURCES };

/* A block device. */
struct cgroup_device {
	unsigned major, minor;
	uint64_t read_bytes, written_bytes, reads, writes;
};

struct cgroup_hugepages {
	char size[16]; /* of a page, such as "2MB" */
	uint64_t usage, peak;
};

struct cgroup_stats {
	uint64_t v[CGROUP_VALUES];
	struct cgroup_pressure pressure[CGROUP_RESOURCES];
	struct hw_list devices;	  /* struct cgroup_device */
	struct hw_list hugepages; /* struct cgroup_hugepages */
};

/* What is read: fewer files take less time. */
enum cgroup_read {
	CGROUP_READ_CPU = 1 << 0,   /* CGROUP_CPU_USAGE */
	CGROUP_READ_USAGE = 1 << 1, /* memory, swap, pressure, tasks */
	CGROUP_READ_ALL = 1 << 2,   /* the rest, with CGROUP_READ_CPU and CGROUP_READ_USAGE */
};

/* Reads a cgroup. Overwrites *ret without freeing it. @what: enum cgroup_read. Return: 0; -ENOENT if
 * the cgroup does not exist; then all values are unknown */
int cgroup_stats_read(const struct cgroup_fs *fs, const char *path, unsigned what,
		      struct cgroup_stats *ret, struct hw_err *e);
/* Return: memory that is in use and cannot be freed at once; CGROUP_UNKNOWN */
uint64_t cgroup_stats_working_set(const struct cgroup_stats *s);
/* Return: how much of a limit is left; CGROUP_UNKNOWN if one of both is */
uint64_t cgroup_stats_left(uint64_t limit, uint64_t used);
void cgroup_stats_done(struct cgroup_stats *s);

AUTO_VALUE_DEFINE(cgroup_stats_done, struct cgroup_stats);

/* ---- for tests ----------------------------------------------------------------------------- */

/* All values are unknown. */
void cgroup_stats_init(struct cgroup_stats *ret);
/* Adds the values of one file, such as "memory.stat", with this text. */
void cgroup_stats_parse(bool v2, const char *name, const char *text, struct cgroup_stats *s);

#endif
