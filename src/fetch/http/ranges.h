/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/ranges.h - HTTP range requests in parallel
 *
 * What:  requests several ranges of a large body at a time and passes their bytes on in order.
 * Rules: at most @parallel ranges are in memory. Redirects are not followed and nothing is retried.
 *        After an error, all ranges before the failed one have been passed on, and the caller can
 *        continue after them.
 */
#ifndef FETCH_HTTP_RANGES_H
#define FETCH_HTTP_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "fetch/http/http.h"

struct http_ranges {
	const char *url;	   /* known to support ranges */
	const char *authorization; /* NULL: none */
	int64_t first, end;	   /* bytes to fetch: first to end - 1 */
	int64_t size;		   /* maximum size of a range */
	int parallel;
	enum scope from;   /* of the server that redirected to the URL, see struct http_response */
	struct pace *pace; /* of the transfer, which the ranges are a part of */
	int (*on_data)(void *ctx, const void *data, size_t len, struct hw_err *e);
	void *ctx;
};

/* Fetch the ranges. Each transfer has the timeouts of http_perform(), so the function always
 * returns.
 * Return: 0; the error of on_data(); or an error of http_perform() */
int http_fetch_ranges(struct http *h, const struct http_ranges *ranges, struct hw_err *e);

#endif
