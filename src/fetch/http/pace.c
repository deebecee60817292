/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/pace.c - the minimum speed of a transfer
 */
#include "fetch/http/pace.h"

#include <errno.h>

#define BYTES_MIN   1024 /* per second */
#define SECONDS_MAX 3600
#define MS	    INT64_C(1000000) /* nanoseconds */

void pace_receive(struct pace *p, size_t len, int64_t now)
{
	if (p->began == 0)
		p->began = now;
	p->received += (int64_t)len;
}

void pace_wait(struct pace *p, int64_t nanoseconds)
{
	int64_t left = SECONDS_MAX * 1000 * MS - p->waited;

	if (p->began == 0)
		return;
	if (nanoseconds > left)
		nanoseconds = left;
	p->waited += nanoseconds;
	p->away += nanoseconds;
}

int pace_check(struct pace *p, int64_t now, int slow_ms, struct hw_err *e)
{
	int64_t ms = (now - p->began - p->away) / MS;
	int64_t wanted /* per second */ = (p->expected - p->received) / SECONDS_MAX;

	if (wanted < BYTES_MIN)
		wanted = BYTES_MIN;
	if (p->began == 0 || ms < slow_ms || p->received * 1000 / ms >= wanted)
		return 0;
	p->is_too_slow = true;
	return err_text(e, -ETIMEDOUT,
			"transfer too slow: received %lld bytes in %lld s, expected at least %lld "
			"bytes per second",
			(long long)p->received, (long long)ms / 1000, (long long)wanted);
}
