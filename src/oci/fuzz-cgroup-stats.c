/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/fuzz-cgroup-stats.c - fuzz test: files of cgroups
 *
 * The input is the name of a file, a newline, and its text, which is read as a file of v1 and of v2.
 */
#include <assert.h>
#include <string.h>

#include "base/str.h"
#include "oci/cgroup-stats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse(bool v2, const char *name, const char *text)
{
	AUTO(cgroup_stats_done) struct cgroup_stats s;
	uint64_t set;

	cgroup_stats_init(&s);
	cgroup_stats_parse(v2, name, text, &s);
	assert(s.devices.n <= 256);
	set = cgroup_stats_working_set(&s);
	assert(set == CGROUP_UNKNOWN || set <= s.v[CGROUP_MEMORY_USAGE]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *all = str_ncopy((const char *)data, size);
	char *end = strchr(all, '\n');

	if (!end)
		return 0;
	*end = '\0';
	parse(false, all, end + 1);
	parse(true, all, end + 1);
	return 0;
}
