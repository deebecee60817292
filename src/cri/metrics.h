/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/metrics.h - numbers for Prometheus
 *
 * What:  calls by method and code, with how long they took; gauges of the process;
 *        and what others add, all in Prometheus' text format 0.0.4.
 * Rules: counting is for any thread and takes no lock. The methods are named before
 *        the first call.
 */
#ifndef CRI_METRICS_H
#define CRI_METRICS_H

#include <stdint.h>

#include "base/buf.h"
#include "rpc/server.h"

struct metrics;

struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);
void metrics_add_methods(struct metrics *m, const struct rpc_method *methods);

/* For struct rpc_config: ctx is the metrics. */
void metrics_count_call(void *ctx, const struct rpc_finished_call *call);

void metrics_calls(const struct metrics *m, struct buf *b);
void metrics_process(struct buf *b);
/* One number: @type is "gauge" or "counter". */
void metrics_number(struct buf *b, const char *name, const char *type, const char *help,
		    int64_t value);

#endif
