/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/test-limits.c - resource limits in the cgroup of a container
 */
#include "oci/spec/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/os/remove-tree.h"
#include "oci/spec/test.h"

static const struct spec_host v1 = { .swap = true, .n_cpus = 4, .n_nodes = 1 },
			      v1_without_swap = { .n_cpus = 4, .n_nodes = 1 };
static struct spec_host v2 = { .v2 = true, .swap = true, .n_cpus = 4, .n_nodes = 1 };

static void decode(const char *json, struct oci_resources *ret)
{
	struct hw_err e;

	assert_ok(hw_field_decode(oci_resources_fields, json, strlen(json), ret, &e), &e);
}

static void assert_limits(const struct spec_host *host, const char *resources, const char *expected)
{
	AUTO(resources_done) struct oci_resources r = { 0 };
	AUTO(spec_limits_done) struct oci_limits limits = { 0 };
	autofree char *text = NULL;
	struct hw_err e;

	decode(resources, &r);
	assert_ok(spec_limits_init(&limits, &r, host, &e), &e);
	text = hw_field_encode(spec_limits_fields, &limits, 0);
	assert_string_equal(text, expected);
}

static void assert_refused(const struct spec_host *host, const char *resources, const char *msg)
{
	AUTO(resources_done) struct oci_resources r = { 0 };
	struct oci_limits limits = { 0 };
	struct hw_err e;

	decode(resources, &r);
	assert_int_equal(spec_limits_init(&limits, &r, host, &e), -EINVAL);
	assert_string_equal(e.msg, msg);
}

static void unset_limits_are_left_out(void **state)
{
	(void)state;
	assert_limits(&v1, "{}", "{}");
	assert_limits(&v1,
		      "{\"cpu_period\":100000,\"cpu_quota\":-1,\"cpu_shares\":2,\"cpuset_cpus\":"
		      "\"0-1\",\"cpuset_mems\":\"0\",\"pids_limit\":100,\"oom_score_adj\":5}",
		      "{\"cpu\":{\"shares\":2,\"quota\":-1,\"period\":100000,\"cpus\":\"0-1\","
		      "\"mems\":\"0\"},\"pids\":{\"limit\":100}}");
}

static void without_a_swap_limit_there_is_no_swap(void **state)
{
	static const char both[] =
		"{\"memory_limit_in_bytes\":900000,\"memory_swap_limit_in_bytes\":1200000}";

	(void)state;
	assert_limits(&v1, "{\"memory_limit_in_bytes\":900000}",
		      "{\"memory\":{\"limit\":900000,\"swap\":900000}}");
	assert_limits(&v2, both, "{\"memory\":{\"limit\":900000,\"swap\":1200000}}");
	assert_limits(&v1, "{\"memory_limit_in_bytes\":900000,\"memory_swap_limit_in_bytes\":-1}",
		      "{\"memory\":{\"limit\":900000,\"swap\":-1}}");
	assert_limits(&v1_without_swap, "{\"memory_limit_in_bytes\":900000}",
		      "{\"memory\":{\"limit\":900000}}");
	assert_limits(&v1_without_swap,
		      "{\"memory_limit_in_bytes\":900000,\"memory_swap_limit_in_bytes\":900000}",
		      "{\"memory\":{\"limit\":900000}}");
	assert_refused(&v1_without_swap, both,
		       "memory_swap_limit_in_bytes: this kernel does not limit swap");
	assert_refused(&v1, "{\"memory_swap_limit_in_bytes\":900000}",
		       "memory_swap_limit_in_bytes: 900000 is less than memory_limit_in_bytes");
	assert_refused(&v1,
		       "{\"memory_limit_in_bytes\":900000,\"memory_swap_limit_in_bytes\":800000}",
		       "memory_swap_limit_in_bytes: 800000 is less than memory_limit_in_bytes");
}

static void invalid_numbers_are_refused_by_name(void **state)
{
	static const struct {
		const char *name, *range;
		int64_t bad[3];
	} v[] = {
		{ "cpu_shares", "2 to 262144", { -1, 1, 262145 } },
		{ "cpu_period", "1000 to 1000000", { -1, 999, 1000001 } },
		{ "cpu_quota", "1000 to 17592186044415", { -2, 999, INT64_MAX } },
		{ "memory_limit_in_bytes", "524288 to 9223372036854775807", { -2, 1, 524287 } },
		{ "memory_swap_limit_in_bytes", "1 to 9223372036854775807", { -2, -3, INT64_MIN } },
		{ "pids_limit", "1 to 2147483647", { -2, INT64_MIN, INT64_MAX } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		for (size_t j = 0; j < ARRAY_SIZE(v[i].bad); j++) {
			long long bad = v[i].bad[j];
			autofree char *json = str_printf("{\"%s\":%lld}", v[i].name, bad);
			autofree char *msg = str_printf("%s: %lld is not in the range %s",
							v[i].name, bad, v[i].range);

			assert_refused(&v1, json, msg);
		}
}

static void cpusets_are_lists_of_what_exists(void **state)
{
	static const char *const good[] = { "0", "3", "0-3", "0,2", "1-2,3" },
				 *const malformed[] = { "x",   ",",   "0,",  "-1",   "1-",
							"3-1", "0-x", "0 1", "0-1/2" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		autofree char *json = str_printf("{\"cpuset_cpus\":\"%s\"}", good[i]);
		autofree char *expected = str_printf("{\"cpu\":{\"cpus\":\"%s\"}}", good[i]);

		assert_limits(&v1, json, expected);
	}
	for (size_t i = 0; i < ARRAY_SIZE(malformed); i++) {
		autofree char *json = str_printf("{\"cpuset_mems\":\"%s\"}", malformed[i]);
		autofree char *msg =
			str_printf("cpuset_mems: \"%s\" is not a list of numbers", malformed[i]);

		assert_refused(&v2, json, msg);
	}
	assert_refused(&v1, "{\"cpuset_cpus\":\"0-4\"}",
		       "cpuset_cpus: 4 is not in the range 0 to 3");
	assert_refused(&v1, "{\"cpuset_cpus\":\"99999999999999999999\"}",
		       "cpuset_cpus: 18446744073709551615 is not in the range 0 to 3");
	assert_refused(&v1, "{\"cpuset_mems\":\"1\"}", "cpuset_mems: 1 is not in the range 0 to 0");
}

static void page_sizes_must_be_limitable(void **state)
{
	static const char zero[] = "{\"hugepage_limits\":[{\"page_size\":\"2MB\"},"
				   "{\"page_size\":\"1GB\"}]}";

	(void)state;
	assert_limits(&v1, zero, "{}");
	assert_refused(&v1, "{\"hugepage_limits\":[{\"page_size\":\"2MB\",\"limit\":5}]}",
		       "hugepage_limits: this kernel does not limit pages of 2MB");
	assert_refused(&v1, "{\"hugepage_limits\":[{\"limit\":5}]}",
		       "hugepage_limits: this kernel does not limit pages of \"\"");
	strings_add(&v2.page_sizes, "2MB");
	assert_limits(&v2, zero, "{\"hugepageLimits\":[{\"pageSize\":\"2MB\",\"limit\":0}]}");
	assert_refused(&v2, "{\"hugepage_limits\":[{\"page_size\":\"2MB\",\"limit\":-1}]}",
		       "hugepage_limits: invalid value -1");
	hw_strings_free(&v2.page_sizes);
}

static void unified_is_for_v2_and_has_plain_names(void **state)
{
	static const char *const bad[] = { "",	   "x",	 "../memory.max", "a/memory.max",
					   ".max", "..", "memory max.",	  "memory..max" };

	(void)state;
	assert_limits(&v2, "{\"unified\":{\"memory.high\":\"max\",\"hugetlb.2MB.max\":\"0\"}}",
		      "{\"unified\":{\"memory.high\":\"max\",\"hugetlb.2MB.max\":\"0\"}}");
	assert_refused(&v1, "{\"unified\":{\"memory.high\":\"max\"}}",
		       "unified: this host has cgroup v1");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		autofree char *json = str_printf("{\"unified\":{\"%s\":\"1\"}}", bad[i]);
		autofree char *msg = str_printf("unified: invalid name \"%s\"", bad[i]);

		assert_refused(&v2, json, msg);
	}
}

/* ---- the host ------------------------------------------------------------------------------------ */

static void make(const char *path)
{
	struct hw_err e;

	assert_ok(file_mkdirs(AT_FDCWD, path, 0755, &e), &e);
}

static void the_host_is_probed(void **state)
{
	char *memory[] = { (char *)"memory", (char *)"hugetlb" }, *none[] = { (char *)"cpu" };
	struct cgroup_hierarchy one = { false, (char *)"/tmp/h/cg", { memory, 2 } };
	struct cgroup_fs fs = { CGROUP_V1, &one, 1 };
	struct hw_err e;

	(void)state;
	make("/tmp/h/cg/memory.memsw.limit_in_bytes");
	make("/tmp/h/sys/kernel/mm/hugepages/hugepages-2048kB");
	make("/tmp/h/sys/kernel/mm/hugepages/hugepages-1048576kB");
	make("/tmp/h/sys/kernel/mm/hugepages/hugepages-64kB");
	make("/tmp/h/sys/kernel/mm/hugepages/other");
	make("/tmp/h/sys/devices/system/cpu");
	assert_ok(file_replace(AT_FDCWD, "/tmp/h/sys/devices/system/cpu/possible", "0,2-95\n", 7,
			       0644, 0, &e),
		  &e);
	for (int i = 0; i < 4; i++) {
		AUTO(spec_host_done) struct spec_host host = { 0 };

		/* v1; v2; v1 with a controller in the cgroup2 beside it; neither controller */
		one.v2 = i == 1 || i == 2;
		fs.mode = (enum cgroup_mode[]){ CGROUP_V1, CGROUP_V2, CGROUP_HYBRID, CGROUP_V1 }[i];
		if (i == 3)
			one.controllers = (struct hw_strings){ none, 1 };
		assert_ok(spec_host_init(&host, &fs, "/tmp/h", &e), &e);
		assert_int_equal(host.v2, i == 1);
		assert_int_equal(host.n_cpus, 96);
		assert_int_equal(host.n_nodes, 1);
		assert_int_equal(host.swap, i == 0);
		assert_int_equal(host.page_sizes.n, i < 2 ? 3 : 0);
		if (i < 2) {
			assert_true(strings_has(&host.page_sizes, "2MB"));
			assert_true(strings_has(&host.page_sizes, "1GB"));
			assert_true(strings_has(&host.page_sizes, "64KB"));
		}
	}
	assert_int_equal(chdir("/tmp"), 0);
	assert_ok(remove_tree(AT_FDCWD, "h", &e), &e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "limits: limits that are not set are left out", unset_limits_are_left_out },
		{ "limits: without a swap limit the container gets no swap",
		  without_a_swap_limit_there_is_no_swap },
		{ "limits: invalid numbers are refused by name",
		  invalid_numbers_are_refused_by_name },
		{ "limits: CPUs and nodes are lists of those of the machine",
		  cpusets_are_lists_of_what_exists },
		{ "limits: a page size must be one that the kernel can limit",
		  page_sizes_must_be_limitable },
		{ "limits: unified needs cgroup v2 and plain file names",
		  unified_is_for_v2_and_has_plain_names },
		{ "limits: the host is asked which limits it has", the_host_is_probed },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
