/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/histogram.h - durations, counted for metrics in Prometheus' text format
 *
 * Counting is allowed from any thread and takes no lock.
 */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/buf.h"

#define HISTOGRAM_BUCKETS 11

struct histogram {
	_Atomic uint64_t buckets[HISTOGRAM_BUCKETS];
	_Atomic uint64_t us;
};

void histogram_add(struct histogram *h, int64_t ns);
/* Appends the lines of a metric: its buckets, _sum and _count; nothing if nothing was counted.
 * @labels: such as method="x", without braces */
void histogram_format(const struct histogram *h, const char *name, const char *labels,
		      struct buf *b);

#endif
