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

static const struct spec_host v1 = { .swap = true }, v1_without_swap = { 0 };
static struct spec_host v2 = { .v2 = true, .swap = true };

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
		"{\"memory_limit_in_bytes\":9,\"memory_swap_limit_in_bytes\":12}";

	(void)state;
	assert_limits(&v1, "{\"memory_limit_in_bytes\":9}",
		      "{\"memory\":{\"limit\":9,\"swap\":9}}");
	assert_limits(&v2, both, "{\"memory\":{\"limit\":9,\"swap\":12}}");
	assert_limits(&v1, "{\"memory_limit_in_bytes\":9,\"memory_swap_limit_in_bytes\":-1}",
		      "{\"memory\":{\"limit\":9,\"swap\":-1}}");
	assert_limits(&v1_without_swap, "{\"memory_limit_in_bytes\":9}",
		      "{\"memory\":{\"limit\":9}}");
	assert_limits(&v1_without_swap,
		      "{\"memory_limit_in_bytes\":9,\"memory_swap_limit_in_bytes\":9}",
		      "{\"memory\":{\"limit\":9}}");
	assert_refused(&v1_without_swap, both,
		       "memory_swap_limit_in_bytes: this kernel does not limit swap");
	assert_refused(&v1, "{\"memory_swap_limit_in_bytes\":9}",
		       "memory_swap_limit_in_bytes: 9 is less than memory_limit_in_bytes");
	assert_refused(&v1, "{\"memory_limit_in_bytes\":9,\"memory_swap_limit_in_bytes\":8}",
		       "memory_swap_limit_in_bytes: 8 is less than memory_limit_in_bytes");
}

static void invalid_numbers_are_refused_by_name(void **state)
{
	(void)state;
	assert_refused(&v1, "{\"cpu_shares\":-1}", "cpu_shares: invalid value -1");
	assert_refused(&v1, "{\"cpu_period\":-1}", "cpu_period: invalid value -1");
	assert_refused(&v1, "{\"cpu_quota\":-2}", "cpu_quota: invalid value -2");
	assert_refused(&v1, "{\"memory_limit_in_bytes\":-2}",
		       "memory_limit_in_bytes: invalid value -2");
	assert_refused(&v1, "{\"pids_limit\":-2}", "pids_limit: invalid value -2");
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
					   ".max", "..", "memory max." };

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
	for (int i = 0; i < 4; i++) {
		AUTO(spec_host_done) struct spec_host host = { 0 };

		/* v1; v2; v1 with a controller in the cgroup2 beside it; neither controller */
		one.v2 = i == 1 || i == 2;
		fs.mode = (enum cgroup_mode[]){ CGROUP_V1, CGROUP_V2, CGROUP_HYBRID, CGROUP_V1 }[i];
		if (i == 3)
			one.controllers = (struct hw_strings){ none, 1 };
		assert_ok(spec_host_init(&host, &fs, "/tmp/h", &e), &e);
		assert_int_equal(host.v2, i == 1);
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
		{ "limits: a page size must be one that the kernel can limit",
		  page_sizes_must_be_limitable },
		{ "limits: unified needs cgroup v2 and plain file names",
		  unified_is_for_v2_and_has_plain_names },
		{ "limits: the host is asked which limits it has", the_host_is_probed },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
