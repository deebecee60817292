/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/pace.h - the minimum speed of a transfer
 *
 * What:  a slow server must not keep a pull, and its thread in the daemon, busy for ever. After a
 *        while, a transfer must have an average speed of at least 1 KiB/s, and at least such that the
 *        remaining bytes would take an hour.
 * Rules: a transfer begins with its first byte: before, the server may have to fetch the bytes
 *        itself, and other timeouts apply. It may consist of several requests.
 *        Time in which the receiver of the bytes has worked does not count.
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
	int64_t away;	  /* nanoseconds in which the receiver has worked */
	bool is_too_slow; /* pace_check() has failed */
};

void pace_receive(struct pace *p, size_t len, int64_t now);
/* @slow_ms: how long a transfer may be slow after its start. Return: 0, or -ETIMEDOUT */
int pace_check(struct pace *p, int64_t now, int slow_ms, struct hw_err *e);

#endif
