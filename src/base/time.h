/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/time.h - clocks and deadlines
 *
 * A deadline is a time of CLOCK_MONOTONIC in nanoseconds; TIME_NEVER means no deadline.
 */
#ifndef BASE_TIME_H
#define BASE_TIME_H

#include <stdbool.h>
#include <stdint.h>

#define TIME_NEVER INT64_MAX

int64_t time_now(void);			    /* CLOCK_MONOTONIC, ns */
int64_t time_real(void);		    /* CLOCK_REALTIME, ns since 1970 */
int64_t time_boot(void);		    /* CLOCK_BOOTTIME, ns; for records on disk */
int64_t time_deadline(int ms);		    /* ms from now; TIME_NEVER for 0 or less */
int64_t time_earlier(int64_t a, int64_t b); /* the earlier of two deadlines */
bool time_has_passed(int64_t deadline);
int time_left_ms(int64_t deadline); /* for poll(): rounded up; 0 if passed, -1 for TIME_NEVER */
void time_sleep(int ms);	    /* continues to sleep if a signal interrupts it */

#endif
