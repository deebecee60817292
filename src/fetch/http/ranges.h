/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/ranges.h - a large answer in parts, several at a time
 *
 * What:  asks for ranges of bytes ahead, and hands them on in order.
 * Rules: memory is at_once parts. Redirects are not followed, nothing is asked
 *        twice: where something is not as it should be, what came before has been
 *        handed on, and the caller goes on by itself.
 */
#ifndef FETCH_HTTP_RANGES_H
#define FETCH_HTTP_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "fetch/http/http.h"

struct http_ranges {
	const char *url;	   /* that has given a part before */
	const char *authorization; /* NULL: none */
	int64_t first, end;	   /* from the byte, and to before it */
	int64_t part;		   /* bytes in each, at most */
	int at_once;
	bool guarded; /* it must not lead to this machine */
	int (*data)(void *ctx, const void *data, size_t len, struct hw_err *e);
	void *ctx;
};

int http_fetch_ranges(struct http *h, const struct http_ranges *p, struct hw_err *e);

#endif
