/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/test-scope.c - scopes of addresses
 */
#include "fetch/http/scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/mem.h"

/* test/image/test_fetch_redirects.py tests addresses of this machine */
static void test_of_ip(void **state)
{
	static const struct {
		const char *ip;
		enum scope scope;
	} cases[] = {
		{ "127.0.0.1", SCOPE_LOOPBACK },
		{ "127.255.0.1", SCOPE_LOOPBACK },
		{ "0.0.0.0", SCOPE_LOOPBACK },
		{ "::", SCOPE_LOOPBACK },
		{ "::1", SCOPE_LOOPBACK },
		{ "::ffff:127.0.0.1", SCOPE_LOOPBACK },
		{ "::127.0.0.1", SCOPE_LOOPBACK },
		{ "::ffff:0:127.0.0.1", SCOPE_LOOPBACK },
		{ "64:ff9b::127.0.0.1", SCOPE_LOOPBACK },
		{ "64:ff9b::0.0.0.0", SCOPE_LOOPBACK },
		{ "2002:7f00:1::1", SCOPE_LOOPBACK },
		{ "169.254.0.1", SCOPE_LINK },
		{ "169.254.169.254", SCOPE_LINK },
		{ "fe80::1", SCOPE_LINK },
		{ "febf::1", SCOPE_LINK },
		{ "::ffff:169.254.169.254", SCOPE_LINK },
		{ "::169.254.169.254", SCOPE_LINK },
		{ "64:ff9b::169.254.169.254", SCOPE_LINK },
		{ "64:ff9b:1:2:3:4:169.254.169.254", SCOPE_LINK },
		{ "2002:a9fe:a9fe::1", SCOPE_LINK },
		{ "fd00:ec2::254", SCOPE_LINK },
		{ "fd20:ce::254", SCOPE_LINK },
		{ "100.100.100.200", SCOPE_LINK },
		{ "168.63.129.16", SCOPE_LINK },
		{ "64:ff9b::168.63.129.16", SCOPE_LINK },
		{ "192.0.2.1", SCOPE_REMOTE },
		{ "128.0.0.1", SCOPE_REMOTE },
		{ "168.63.129.17", SCOPE_REMOTE },
		{ "169.253.0.1", SCOPE_REMOTE },
		{ "2001:db8::1", SCOPE_REMOTE },
		{ "2001:db8::127.0.0.1", SCOPE_REMOTE },
		{ "64:ff9b::192.0.2.1", SCOPE_REMOTE },
		{ "2002:c000:201::1", SCOPE_REMOTE },
		{ "fec0::1", SCOPE_REMOTE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct hw_err e;
		struct hw_ip ip;

		assert_int_equal(hw_ip_parse(cases[i].ip, &ip, &e), 0);
		if (scope_of_ip(&ip) != cases[i].scope)
			fail_msg("%s is a %s", cases[i].ip, scope_name(scope_of_ip(&ip)));
	}
}

/* libcurl passes on what the resolver returns, which may be a mapped address. hw_ip_parse() converts
 * it to an IPv4 address. */
static void test_mapped(void **state)
{
	struct hw_ip ip = { AF_INET6, { [10] = 0xff, 0xff, 169, 254, 169, 254 } };

	(void)state;
	assert_int_equal(scope_of_ip(&ip), SCOPE_LINK);
	ip.bytes[12] = 127;
	assert_int_equal(scope_of_ip(&ip), SCOPE_LOOPBACK);
}

static void test_leads(void **state)
{
	(void)state;
	for (enum scope s = SCOPE_LOOPBACK; s <= SCOPE_REMOTE; s++) {
		assert_true(scope_may_lead_to(SCOPE_LOOPBACK, s));
		assert_true(scope_may_lead_to(s, s));
		assert_true(scope_may_lead_to(s, SCOPE_REMOTE));
		assert_int_equal(scope_may_lead_to(SCOPE_REMOTE, s), s == SCOPE_REMOTE);
	}
	assert_false(scope_may_lead_to(SCOPE_NODE, SCOPE_LOOPBACK));
	assert_false(scope_may_lead_to(SCOPE_NODE, SCOPE_LINK));
	assert_false(scope_may_lead_to(SCOPE_LINK, SCOPE_NODE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "scope: loopback, link-local and metadata addresses are recognized in IPv6, too",
		  test_of_ip, NULL, NULL, NULL },
		{ "scope: a mapped address has the scope of its IPv4 address", test_mapped, NULL,
		  NULL, NULL },
		{ "scope: a remote server leads to remote servers only", test_leads, NULL, NULL,
		  NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
