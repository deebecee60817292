/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/meter.h - how much of an archive has passed, on a terminal
 *
 * What:  one line on standard error that is drawn over, and gone at the end.
 * Rules: nothing is written where nothing can be drawn over (cli/terminal.h).
 *
 *	AUTO(meter_end) struct meter m = { .what = "loading", .total = size };
 *
 *	meter_add(&m, n);
 */
#ifndef CLI_METER_H
#define CLI_METER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

struct meter {
	const char *what;     /* NULL: nothing is shown */
	uint64_t done, total; /* bytes; total 0: not known */
	int64_t drawn_at;     /* 0: not yet */
};

void meter_add(struct meter *m, uint64_t bytes);
void meter_end(struct meter *m);

AUTO_VALUE_DEFINE(meter_end, struct meter);

#endif
