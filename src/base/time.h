/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/time.h - monotonic time and deadlines
 *
 * A deadline is a point of CLOCK_MONOTONIC in nanoseconds; TIME_NEVER is none.
 */
#ifndef BASE_TIME_H
#define BASE_TIME_H

#include <stdbool.h>
#include <stdint.h>

#define TIME_NEVER INT64_MAX

int64_t time_now(void);	       /* CLOCK_MONOTONIC, ns */
int64_t time_boot(void);       /* CLOCK_BOOTTIME, ns: for records that others read */
int64_t time_deadline(int ms); /* ms from now; 0 or less: TIME_NEVER */
int64_t time_sooner(int64_t a, int64_t b);
bool time_is_over(int64_t deadline);
int time_left_ms(int64_t deadline); /* for poll(): rounded up, 0 when over, -1 for never */
void time_sleep(int ms);

#endif
