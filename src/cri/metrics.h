/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/metrics.h - counters of calls, and metrics in Prometheus' text format 0.0.4
 *
 * What:  counts calls by method and status code, and measures their duration. Formats
 *        these metrics, metrics of the process, and any other gauge or counter.
 * Rules: counting is allowed from any thread and takes no lock. All methods are added
 *        before the first call.
 */
#ifndef CRI_METRICS_H
#define CRI_METRICS_H

#include <stdint.h>

#include "base/buf.h"
#include "rpc/server.h"

struct metrics;

struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);
/* Methods to count by name; the table ends with { 0 }. Other methods are counted as "unknown". */
void metrics_add_methods(struct metrics *m, const struct rpc_method *methods);

/* For rpc_config.finished; ctx is the struct metrics. */
void metrics_count_call(void *ctx, const struct rpc_finished_call *call);

/* These functions append to @b. */
void metrics_format_calls(const struct metrics *m, struct buf *b);
void metrics_format_process(struct buf *b); /* threads, descriptors, memory */
/* @type is "gauge" or "counter". */
void metrics_format_number(struct buf *b, const char *name, const char *type, const char *help,
			   int64_t value);

#endif
