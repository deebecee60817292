/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/histogram.c - durations, counted for metrics in Prometheus' text format
 */
#include "base/histogram.h"

#include <inttypes.h>

/* Upper bounds in microseconds; the last bucket has no bound and is not listed. */
static const int64_t bounds[HISTOGRAM_BUCKETS - 1] = {
	500, 1000, 2500, 10000, 50000, 250000, 1000000, 5000000, 30000000, 120000000,
};

void histogram_add(struct histogram *h, int64_t ns)
{
	int64_t us = ns / 1000;
	size_t i = 0;

	while (i < ARRAY_SIZE(bounds) && us > bounds[i])
		i++;
	atomic_fetch_add_explicit(&h->buckets[i], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&h->us, (uint64_t)us, memory_order_relaxed);
}

void histogram_format(const struct histogram *h, const char *name, const char *labels,
		      struct buf *b)
{
	uint64_t n[HISTOGRAM_BUCKETS], all = 0;

	for (size_t i = 0; i < ARRAY_SIZE(n); i++)
		all += n[i] = atomic_load_explicit(&h->buckets[i], memory_order_relaxed);
	if (all == 0)
		return;
	all = 0;
	for (size_t i = 0; i < ARRAY_SIZE(bounds); i++) {
		all += n[i];
		buf_printf(b, "%s_bucket{%s,le=\"%g\"} %" PRIu64 "\n", name, labels,
			   (double)bounds[i] / 1e6, all);
	}
	all += n[ARRAY_SIZE(bounds)];
	buf_printf(b, "%s_bucket{%s,le=\"+Inf\"} %" PRIu64 "\n", name, labels, all);
	buf_printf(b, "%s_sum{%s} %.6f\n", name, labels,
		   (double)atomic_load_explicit(&h->us, memory_order_relaxed) / 1e6);
	buf_printf(b, "%s_count{%s} %" PRIu64 "\n", name, labels, all);
}
