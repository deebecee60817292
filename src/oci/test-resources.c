/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/test-resources.c - merging of resource limits
 */
#include "oci/resources.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/mem.h"

static void assert_merged(const char *from, const char *update, const char *expected)
{
	AUTO(resources_done) struct oci_resources old = { 0 }, changes = { 0 }, merged = { 0 };
	autofree char *text = NULL;
	struct hw_err e;

	if (hw_field_decode(oci_resources_fields, from, strlen(from), &old, &e) < 0 ||
	    hw_field_decode(oci_resources_fields, update, strlen(update), &changes, &e) < 0)
		fail_msg("%s", e.msg);
	resources_merge(&old, &changes, &merged);
	text = hw_field_encode(oci_resources_fields, &merged, 0);
	assert_string_equal(text, expected);
}

static void zero_is_unchanged(void **state)
{
	(void)state;
	assert_merged("{}", "{}", "{}");
	assert_merged(
		"{\"cpu_period\":1,\"cpu_shares\":2,\"cpuset_cpus\":\"0-1\"}",
		"{\"cpu_period\":0,\"cpu_shares\":3,\"cpuset_cpus\":\"\",\"pids_limit\":-1}",
		"{\"cpu_period\":1,\"cpu_shares\":3,\"cpuset_cpus\":\"0-1\",\"pids_limit\":-1}");
}

static void pages_and_files_are_replaced_by_name(void **state)
{
	(void)state;
	assert_merged("{\"hugepage_limits\":[{\"page_size\":\"2MB\",\"limit\":5},"
		      "{\"page_size\":\"1GB\",\"limit\":6}]}",
		      "{\"hugepage_limits\":[{\"page_size\":\"2MB\"},{\"page_size\":\"64KB\","
		      "\"limit\":7}]}",
		      "{\"hugepage_limits\":[{\"page_size\":\"2MB\"},{\"page_size\":\"1GB\","
		      "\"limit\":6},{\"page_size\":\"64KB\",\"limit\":7}]}");
	assert_merged("{\"unified\":{\"memory.high\":\"1\",\"memory.min\":\"2\"}}",
		      "{\"unified\":{\"memory.high\":\"max\",\"pids.max\":\"9\"}}",
		      "{\"unified\":{\"memory.high\":\"max\",\"memory.min\":\"2\","
		      "\"pids.max\":\"9\"}}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "resources: an update changes only the limits that it sets", zero_is_unchanged },
		{ "resources: an update changes page sizes and files of cgroup v2 by name",
		  pages_and_files_are_replaced_by_name },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
