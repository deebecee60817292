/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/pace.h - the minimum speed of a transfer
 *
 * What:  a slow server must not keep a pull, and its thread in the daemon, busy for ever. After a
 *        while, a transfer must have an average speed of at least 1 KiB/s, and at least such that the
 *        remaining bytes would take an hour.
 * Rules: a transfer begins with its first byte: before, the server may have to fetch the bytes
 *        itself, and other timeouts apply. It may consist of several requests.
 *        Time in which the receiver of the bytes has worked does not count, and neither does
 *        the time before a request is repeated: a server with a limit of requests may demand to
 *        wait. At most an hour of that is left out, so that a transfer still ends.
 */
#ifndef FETCH_HTTP_PACE_H
#define FETCH_HTTP_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct pace {
	int64_t expected; /* bytes to receive; 0: unknown */
	int64_t received;
	int64_t began;	  /* time of the first byte; 0: not begun */
	int64_t away;	  /* nanoseconds that do not count */
	int64_t waited;	  /* those of them that pace_wait() has added */
	bool is_too_slow; /* pace_check() has failed */
};

void pace_receive(struct pace *p, size_t len, int64_t now);
/* The receiver has waited for this time before it repeats a request. */
void pace_wait(struct pace *p, int64_t nanoseconds);
/* @slow_ms: how long a transfer may be slow after its start. Return: 0, or -ETIMEDOUT */
int pace_check(struct pace *p, int64_t now, int slow_ms, struct hw_err *e);

#endif
