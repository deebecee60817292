/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/fuzz-head.c - fuzz test: parsers of HTTP header sections and challenges
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "fetch/http/head.h"
#include "fetch/registry/challenge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void feed_lines(struct http_response *r, const char *text, size_t size)
{
	while (size > 0) {
		const char *end = memchr(text, '\n', size);
		size_t len = end ? (size_t)(end - text) + 1 : size;

		http_head_line(r, text, len);
		text += len;
		size -= len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(http_response_done) struct http_response r = { 0 };
	AUTO(challenge_done) struct challenge c = { 0 };
	struct hw_err e;

	http_head_reset(&r);
	feed_lines(&r, (const char *)data, size);
	challenge_choose(&r.challenges, &c);
	assert(c.kind != CHALLENGE_BEARER || (c.realm && *c.realm));
	assert(r.range_start < 0 || r.range_total > r.range_start);
	assert(r.retry_after >= -1);
	assert(r.status == 0 || (r.status >= 100 && r.status <= 999));
	buf_add(&r.body, data, size);
	assert(http_status_error(&r, &e) < 0);
	return 0;
}
