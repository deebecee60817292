/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/time.c - clocks and deadlines
 */
#include "base/time.h"

#include <errno.h>
#include <limits.h>
#include <time.h>

#define NS_PER_MS  INT64_C(1000000)
#define NS_PER_SEC INT64_C(1000000000)

static int64_t read_clock(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

int64_t time_now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t time_real(void)
{
	return read_clock(CLOCK_REALTIME);
}

int64_t time_boot(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

int64_t time_deadline(int ms)
{
	return ms > 0 ? time_now() + ms * NS_PER_MS : TIME_NEVER;
}

int64_t time_earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

bool time_has_passed(int64_t deadline)
{
	return deadline != TIME_NEVER && time_now() >= deadline;
}

int time_left_ms(int64_t deadline)
{
	int64_t left;

	if (deadline == TIME_NEVER)
		return -1;
	left = deadline - time_now();
	if (left <= 0)
		return 0;
	left = (left - 1) / NS_PER_MS + 1;
	return left > INT_MAX ? INT_MAX : (int)left;
}

void time_sleep(int ms)
{
	int64_t end = time_now() + ms * NS_PER_MS;
	struct timespec ts = { .tv_sec = end / NS_PER_SEC, .tv_nsec = end % NS_PER_SEC };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}
