/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/test-proxy.c - proxies from the environment
 */
#include "fetch/http/proxy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"

static const char *const names[] = { "http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY",
				     "all_proxy",  "ALL_PROXY",	 "no_proxy",	"NO_PROXY" };

static int clear(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		unsetenv(names[i]);
	return 0;
}

static const char *find(const char *url)
{
	AUTO(url_origin_done) struct url_origin o = { 0 };
	struct hw_err e;

	assert_int_equal(url_origin_parse(url, &o, &e), 0);
	return str_or(proxy_find(&o), "none");
}

static void test_variables(void **state)
{
	(void)state;
	assert_string_equal(find("http://a/"), "none");
	setenv("ALL_PROXY", "http://all", 1);
	assert_string_equal(find("http://a/"), "http://all");
	assert_string_equal(find("https://a/"), "http://all");
	setenv("HTTP_PROXY", "http://upper", 1);
	setenv("HTTPS_PROXY", "http://upper-s", 1);
	assert_string_equal(find("http://a/"), "http://upper");
	assert_string_equal(find("https://a/"), "http://upper-s");
	setenv("http_proxy", "http://lower", 1);
	setenv("https_proxy", "http://lower-s", 1);
	assert_string_equal(find("http://a/"), "http://lower");
	assert_string_equal(find("https://a/"), "http://lower-s");
	setenv("http_proxy", "", 1);
	assert_string_equal(find("http://a/"), "http://upper");
}

static void test_exceptions(void **state)
{
	static const struct {
		const char *list, *host;
		bool proxied;
	} cases[] = {
		{ "a.example", "a.example", false },
		{ "a.example", "b.a.example", false },
		{ ".a.example", "b.a.example", false },
		{ ".a.example", "a.example", false },
		{ "A.Example", "b.a.example:5000", false },
		{ "a.example", "ba.example", true },
		{ "b.a.example", "a.example", true },
		{ "x, a.example", "a.example", false },
		{ "x,a.example,y", "a.example", false },
		{ "x a.example\ty", "a.example", false },
		{ " , ,", "a.example", true },
		{ ".", "a.example", true },
		{ "*", "a.example", false },
		{ "*", "10.0.0.1", false },
		{ "10.0.0.1", "10.0.0.1:5000", false },
		{ "10.0.0.1", "10.0.0.11", true },
		{ "10.0.0.0/8", "10.9.9.9", false },
		{ "10.0.0.0/8", "11.0.0.1", true },
		{ "10.0.0.0/8", "a.example", true },
		{ "0.0.1", "10.0.0.1", true },
		{ "fd00::1", "[fd00::1]:5000", false },
		{ "fd00:0::1", "[fd00::1]", false },
		{ "fd00::/8", "[fd12::1]", false },
		{ "fd00::/8", "[fe12::1]", true },
		{ "10.0.0.0/99", "10.0.0.1", true },
	};

	(void)state;
	setenv("http_proxy", "http://proxy", 1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *url = str_printf("http://%s/", cases[i].host);

		setenv("NO_PROXY", cases[i].list, 1);
		if (str_equal(find(url), "http://proxy") != cases[i].proxied)
			fail_msg("%s with \"%s\"", url, cases[i].list);
	}
	setenv("no_proxy", "other", 1);
	assert_string_equal(find("http://10.0.0.1/"), "http://proxy");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "proxy: the variable of the scheme is used, in lower or upper case",
		  test_variables, clear, NULL, NULL },
		{ "proxy: names, addresses and networks in no_proxy are exempt", test_exceptions,
		  clear, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
