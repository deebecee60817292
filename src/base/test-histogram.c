/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/test-histogram.c - durations, counted for metrics
 */
#include "base/histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

static void empty_histogram_has_no_lines(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct histogram h = { 0 };

	(void)state;
	histogram_format(&h, "x", "a=\"b\"", &b);
	assert_int_equal(b.len, 0);
}

static void buckets_are_cumulative(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct histogram h = { 0 };

	(void)state;
	histogram_add(&h, 500 * 1000);
	histogram_add(&h, 501 * 1000);
	histogram_add(&h, INT64_C(200) * 1000000000);
	histogram_format(&h, "x", "a=\"b\"", &b);
	assert_string_equal(b.data, "x_bucket{a=\"b\",le=\"0.0005\"} 1\n"
				    "x_bucket{a=\"b\",le=\"0.001\"} 2\n"
				    "x_bucket{a=\"b\",le=\"0.0025\"} 2\n"
				    "x_bucket{a=\"b\",le=\"0.01\"} 2\n"
				    "x_bucket{a=\"b\",le=\"0.05\"} 2\n"
				    "x_bucket{a=\"b\",le=\"0.25\"} 2\n"
				    "x_bucket{a=\"b\",le=\"1\"} 2\n"
				    "x_bucket{a=\"b\",le=\"5\"} 2\n"
				    "x_bucket{a=\"b\",le=\"30\"} 2\n"
				    "x_bucket{a=\"b\",le=\"120\"} 2\n"
				    "x_bucket{a=\"b\",le=\"+Inf\"} 3\n"
				    "x_sum{a=\"b\"} 200.001001\n"
				    "x_count{a=\"b\"} 3\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "histogram: nothing counted, nothing printed", empty_histogram_has_no_lines },
		{ "histogram: each bucket includes the smaller ones", buckets_are_cumulative },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
