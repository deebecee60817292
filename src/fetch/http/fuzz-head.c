/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/fuzz-head.c - fuzz test: parsers of HTTP header sections, challenges and redirects
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"
#include "fetch/http/head.h"
#include "fetch/http/url.h"
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

/* A redirect of a remote server that is allowed leads to a remote server, by https. */
static void check_redirect(const char *url)
{
	AUTO(url_origin_done) struct url_origin from = { 0 }, to = { 0 };
	struct hw_err e;
	int r;

	if (url_origin_parse(url, &to, &e) < 0)
		return;
	r = url_origin_parse("https://a.example", &from, &e);
	assert(r == 0);
	r = url_check_redirect(&from, &to, SCOPE_REMOTE, url, &e);
	assert(r == 0 || r == -EPERM);
	assert(r < 0 || (str_equal(to.scheme, "https") && url_origin_scope(&to) == SCOPE_REMOTE));
}

/* The URL in a message has neither user information nor a query. */
static void check_message(const char *url)
{
	autofree char *text = url_for_message(url);
	const char *mark = strstr(text, "://"), *server = mark ? mark + 3 : text;

	assert(!strpbrk(text, "?#"));
	assert(!memchr(server, '@', mark ? strcspn(server, "/") : strlen(server)));
}

static void check_location(const char *location)
{
	autofree char *url = url_join("https://a.example/v2/b/blobs/c", location);

	check_redirect(url);
	check_message(url);
	check_message(location);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(http_response_done) struct http_response r = { 0 };
	AUTO(challenge_done) struct challenge c = { 0 };
	AUTO(secrets_done) struct secrets secrets = { 0 };
	struct hw_err e;

	secrets_add(&secrets, "unknown");
	http_head_reset(&r);
	feed_lines(&r, (const char *)data, size);
	if (r.location)
		check_location(r.location);
	challenge_choose(&r.challenges, &c);
	assert(c.kind != CHALLENGE_BEARER || (c.realm && *c.realm));
	if (c.realm)
		check_redirect(c.realm);
	assert(r.range_start < 0 || r.range_total > r.range_start);
	assert(r.retry_after >= -1);
	assert(r.status == 0 || (r.status >= 100 && r.status <= 999));
	buf_add(&r.body, data, size);
	assert(http_status_error(&r, &secrets, &e) < 0);
	return 0;
}
