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

static void test_scope(void **state)
{
	static const struct {
		const char *url;
		enum scope scope;
	} cases[] = {
		{ "http://127.0.0.1/", SCOPE_LOOPBACK },
		{ "http://localhost/", SCOPE_LOOPBACK },
		{ "http://LOCALHOST:80/", SCOPE_LOOPBACK },
		{ "http://localhost./", SCOPE_LOOPBACK },
		{ "http://a.localhost/", SCOPE_LOOPBACK },
		{ "http://a.localhost./", SCOPE_LOOPBACK },
		{ "http://[::1]/", SCOPE_LOOPBACK },
		{ "http://[fe80::1]/", SCOPE_LINK },
		{ "http://[fe80::1%25eth0]/", SCOPE_LINK },
		{ "http://169.254.169.254/", SCOPE_LINK },
		{ "http://192.0.2.1/", SCOPE_REMOTE },
		{ "http://localhost.example/", SCOPE_REMOTE },
		{ "http://notlocalhost/", SCOPE_REMOTE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(url_origin_done) struct url_origin o = { 0 };
		struct hw_err e;

		assert_int_equal(url_origin_parse(cases[i].url, &o, &e), 0);
		assert_int_equal(url_origin_scope(&o), cases[i].scope);
	}
}

static void test_redirects(void **state)
{
	static const struct {
		const char *from, *to;
		enum scope scope;
		int r;
	} cases[] = {
		{ "https://a/", "https://b/", SCOPE_REMOTE, 0 },
		{ "http://a/", "https://b/", SCOPE_REMOTE, 0 },
		{ "http://a/", "http://b/", SCOPE_REMOTE, 0 },
		{ "https://a/", "http://a/", SCOPE_REMOTE, -EPERM },
		{ "https://a/", "https://localhost/", SCOPE_REMOTE, -EPERM },
		{ "https://a/", "https://169.254.169.254/", SCOPE_REMOTE, -EPERM },
		{ "https://localhost/", "https://127.0.0.1/", SCOPE_LOOPBACK, 0 },
		/* the name "a" resolves to an address of the scope */
		{ "https://a/", "https://localhost/", SCOPE_LOOPBACK, 0 },
		{ "https://a/", "https://localhost/", SCOPE_NODE, -EPERM },
		{ "https://a/", "https://localhost/", SCOPE_LINK, -EPERM },
		{ "https://a/", "https://169.254.1.1/", SCOPE_LINK, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(url_origin_done) struct url_origin from = { 0 }, to = { 0 };
		struct hw_err e;

		assert_int_equal(url_origin_parse(cases[i].from, &from, &e), 0);
		assert_int_equal(url_origin_parse(cases[i].to, &to, &e), 0);
		assert_int_equal(url_check_redirect(&from, &to, cases[i].scope, cases[i].to, &e),
				 cases[i].r);
	}
}

static void test_message(void **state)
{
	static const char *const cases[][2] = {
		{ "https://a:5000/v2/x", "https://a:5000/v2/x" },
		{ "https://a/x?token=secret", "https://a/x" },
		{ "https://a?token=secret", "https://a" },
		{ "https://a/x#secret", "https://a/x" },
		{ "https://me:secret@a/x@y", "https://a/x@y" },
		{ "https://me:secret@word@a", "https://a" },
		{ "me:secret@a/x", "a/x" },
		{ "secret@[https://a/x", "[https://a/x" },
		{ "[https://me:secret@a/x", "a/x" },
		{ "x?token=secret//b", "x" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *text = url_for_message(cases[i][0]);

		assert_string_equal(text, cases[i][1]);
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
		{ "url: addresses and names of localhost have a scope, other names are remote",
		  test_scope, NULL, NULL, NULL },
		{ "url: redirects from https to http, or out of the server's scope, are refused",
		  test_redirects, NULL, NULL, NULL },
		{ "url: a message contains neither user information nor the query", test_message,
		  NULL, NULL, NULL },
		{ "url: a Location header is resolved relative to the URL of its response",
		  test_join, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
