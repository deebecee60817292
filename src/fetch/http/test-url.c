/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/test-url.c - origins of URLs, and which redirects are allowed
 */
#include "fetch/http/url.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

static void test_origin(void **state)
{
	static const struct {
		const char *url, *scheme, *host, *port; /* scheme NULL: the URL is rejected */
	} cases[] = {
		{ "https://a.example/v2/", "https", "a.example", "443" },
		{ "http://a.example", "http", "a.example", "80" },
		{ "https://a.example:5000/x?y#z", "https", "a.example", "5000" },
		{ "http://[::1]:5000/", "http", "[::1]", "5000" },
		{ "HTTPS://A.example/", "https", "A.example", "443" },
		{ "file:///etc/passwd", NULL, NULL, NULL },
		{ "ftp://a.example/", NULL, NULL, NULL },
		{ "//a.example/", NULL, NULL, NULL },
		{ "a.example", NULL, NULL, NULL },
		{ "http://", NULL, NULL, NULL },
		{ "", NULL, NULL, NULL },
		{ "http://a b/", NULL, NULL, NULL },
		{ "http://a:99999/", NULL, NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(url_origin_done) struct url_origin o = { 0 };
		struct hw_err e;
		int r = url_origin_parse(cases[i].url, &o, &e);

		assert_int_equal(r, cases[i].scheme ? 0 : -EPERM);
		if (r < 0)
			continue;
		assert_string_equal(o.scheme, cases[i].scheme);
		assert_string_equal(o.host, cases[i].host);
		assert_string_equal(o.port, cases[i].port);
	}
}

static void test_local(void **state)
{
	static const struct {
		const char *url;
		bool local;
	} cases[] = {
		{ "http://127.0.0.1/", true },	   { "http://127.9.9.9/", true },
		{ "http://localhost/", true },	   { "http://LOCALHOST:80/", true },
		{ "http://a.localhost/", true },   { "http://[::1]/", true },
		{ "http://0.0.0.0/", true },	   { "http://[::]/", true },
		{ "http://10.0.0.1/", false },	   { "http://localhost.example/", false },
		{ "http://notlocalhost/", false }, { "http://[fe80::1]/", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(url_origin_done) struct url_origin o = { 0 };
		struct hw_err e;

		assert_int_equal(url_origin_parse(cases[i].url, &o, &e), 0);
		assert_int_equal(url_origin_is_local(&o), cases[i].local);
	}
}

static void test_redirects(void **state)
{
	static const struct {
		const char *from, *to;
		bool remote;
		int r;
	} cases[] = {
		{ "https://a/", "https://b/", true, 0 },
		{ "http://a/", "https://b/", true, 0 },
		{ "http://a/", "http://b/", true, 0 },
		{ "https://a/", "http://a/", true, -EPERM },
		{ "https://a/", "https://localhost/", true, -EPERM },
		{ "https://localhost/", "https://127.0.0.1/", false, 0 },
		/* the server "a" is on this machine */
		{ "https://a/", "https://localhost/", false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(url_origin_done) struct url_origin from = { 0 }, to = { 0 };
		struct hw_err e;

		assert_int_equal(url_origin_parse(cases[i].from, &from, &e), 0);
		assert_int_equal(url_origin_parse(cases[i].to, &to, &e), 0);
		assert_int_equal(url_check_redirect(&from, &to, cases[i].remote, cases[i].to, &e),
				 cases[i].r);
	}
}

static void test_join(void **state)
{
	static const char *const cases[][3] = {
		{ "https://a/v2/x", "/y", "https://a/y" },
		{ "https://a/v2/x", "y", "https://a/v2/y" },
		{ "https://a/v2/x", "//b/y", "https://b/y" },
		{ "https://a/v2/x", "http://b/y?z=%2F", "http://b/y?z=%2F" },
		{ "https://a/v2/x", "file:///etc/passwd", "file:///etc/passwd" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *whole = url_join(cases[i][0], cases[i][1]);

		assert_string_equal(whole, cases[i][2]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "url: an HTTP URL is split into its origin, other URLs are rejected", test_origin,
		  NULL, NULL, NULL },
		{ "url: localhost names and loopback addresses are recognized as this machine",
		  test_local, NULL, NULL, NULL },
		{ "url: redirects from https to http, or from a remote server to localhost, are "
		  "refused",
		  test_redirects, NULL, NULL, NULL },
		{ "url: a Location header is resolved relative to the URL of its response",
		  test_join, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
