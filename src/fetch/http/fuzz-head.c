/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/fuzz-head.c - an answer's head from any bytes: its lines, and the challenges in it
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "fetch/http/head.h"
#include "fetch/registry/challenge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void feed_lines(struct http_response *a, const char *text, size_t size)
{
	while (size > 0) {
		const char *end = memchr(text, '\n', size);
		size_t len = end ? (size_t)(end - text) + 1 : size;

		http_head_line(a, text, len);
		text += len;
		size -= len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(http_response_done) struct http_response a = { 0 };
	AUTO(challenge_done) struct challenge c = { 0 };
	struct hw_err e;

	http_head_reset(&a);
	feed_lines(&a, (const char *)data, size);
	challenge_choose(&a.challenges, &c);
	assert(c.kind != CHALLENGE_BEARER || (c.realm && *c.realm));
	assert(a.from < 0 || a.total > a.from);
	assert(a.retry_after >= -1);
	assert(a.status == 0 || (a.status >= 100 && a.status <= 999));
	buf_add(&a.body, data, size);
	assert(http_status_error(&a, &e) < 0);
	return 0;
}
