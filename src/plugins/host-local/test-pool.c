/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/test-pool.c - unit tests of the configuration of host-local, and of reading
 * resolv.conf
 */
#include "plugins/host-local/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "plugins/host-local/resolv.h"

/* Return: "SETS | REQUESTED", or the error message */
static char *pool_text(const char *json, const char *args, const char *version)
{
	AUTO(pool_done) struct pool pool = { 0 };
	AUTO(buf_done) struct buf b = { 0 };
	struct pool_conf conf;
	char text[HW_IP_TEXT];
	struct hw_err e;

	if (hw_field_decode(pool_fields, json, strlen(json), &conf, &e) < 0)
		return str_copy(e.msg);
	int r = pool_init(&pool, &conf, args, version, &e);
	hw_field_clear(pool_fields, &conf);
	if (r < 0)
		return str_copy(e.msg);
	for (size_t i = 0; i < pool.n; i++) {
		autofree char *set = range_set_format(&pool.sets[i]);
		buf_printf(&b, "%s%s", i ? "; " : "", set);
	}
	for (size_t i = 0; i < pool.requested.n; i++)
		buf_printf(&b, "%s%s", i ? " " : " | ", hw_ip_format(&pool.requested.v[i], text));
	return buf_take(&b);
}

static void assert_pool(const char *json, const char *args, const char *want)
{
	autofree char *got = pool_text(json, args, "1.0.0");

	assert_string_equal(got, want);
}

#define A "10.1.0.1-10.1.0.254"
#define B "10.2.0.1-10.2.0.254"
#define C "fd00::1-fd00::ff"

static void order_of_sets(void **state)
{
	(void)state;
	assert_pool("{\"ipam\":{\"subnet\":\"10.1.0.0/24\"}}", "", A);
	assert_pool("{\"ipam\":{\"ranges\":[[{\"subnet\":\"10.2.0.0/24\"}]],"
		    "\"subnet\":\"10.1.0.0/24\"}}",
		    "", A "; " B);
	assert_pool("{\"ipam\":{\"ranges\":[[{\"subnet\":\"10.2.0.0/24\"}]],"
		    "\"subnet\":\"10.1.0.0/24\"},"
		    "\"runtimeConfig\":{\"ipRanges\":[[{\"subnet\":\"fd00::/120\"}]]}}",
		    "", C "; " A "; " B);
	assert_pool("{\"ipam\":{\"ranges\":[[{\"subnet\":\"10.1.0.0/24\"},"
		    "{\"subnet\":\"10.2.0.0/24\"}]]},\"runtimeConfig\":{\"ipRanges\":null}}",
		    "", A "," B);
}

static void requested(void **state)
{
	static const char json[] = "{\"ipam\":{\"subnet\":\"10.1.0.0/24\"},"
				   "\"args\":{\"cni\":{\"ips\":[\"10.1.0.7\",\"fd00::7/64\"]}},"
				   "\"runtimeConfig\":{\"ips\":[\"10.1.0.8/24\",\"10.1.0.7\"]}}";

	(void)state;
	assert_pool(json, "IP=10.1.0.6", A " | 10.1.0.6 10.1.0.7 fd00::7 10.1.0.8");
	assert_pool(json, "", A " | 10.1.0.7 fd00::7 10.1.0.8");
	assert_pool(json, "IP=x",
		    "ARGS: error parsing value of pair \"IP=x\": invalid IP address x");
	assert_pool(json, "X=1", "ARGS: unknown args [\"X=1\"]");
}

static void errors(void **state)
{
	(void)state;
	assert_pool("{}", "", "IPAM config missing 'ipam' key");
	assert_pool("{\"ipam\":null}", "", "IPAM config missing 'ipam' key");
	assert_pool("{\"ipam\":{}}", "", "no IP ranges specified");
	assert_pool("{\"ipam\":{\"ranges\":[[]]}}", "", "invalid range set 0: empty range set");
	assert_pool("{\"ipam\":{\"ranges\":7}}", "", "ipam.ranges: expected a list, got a number");
	assert_pool("{\"ipam\":{\"ranges\":[7]}}", "",
		    "ipam.ranges: range set: expected a list, got a number");
	assert_pool("{\"ipam\":{\"ranges\":[[{\"subnet\":\"10.1.0.0/24\"}],"
		    "[{\"subnet\":\"10.1.0.128/25\"}]]}}",
		    "", "range set 0 overlaps with 1");
	autofree char *old = pool_text("{\"ipam\":{\"ranges\":[[{\"subnet\":\"10.1.0.0/24\"}],"
				       "[{\"subnet\":\"10.2.0.0/24\"}]]}}",
				       "", "0.2.0");
	assert_string_equal(old, "CNI version 0.2.0 does not support more than 1 address per "
				 "family");
}

static void resolv(void **state)
{
	char text[] = "# no\n; no\nnameserver 1.1.1.1 rest\n\tnameserver\t2.2.2.2\r\nnameserver\n"
		      "domain a\ndomain b\nsearch c  d\nsearch e\noptions f #g\nsearch";
	struct hw_dns dns = { 0 };

	(void)state;
	resolv_parse(text, &dns);
	assert_int_equal(dns.nameservers.n, 2);
	assert_string_equal(dns.nameservers.v[1], "2.2.2.2");
	assert_string_equal(dns.domain, "b");
	assert_int_equal(dns.search.n, 3);
	assert_string_equal(dns.search.v[2], "e");
	assert_int_equal(dns.options.n, 2);
	hw_strings_free(&dns.nameservers);
	hw_strings_free(&dns.search);
	hw_strings_free(&dns.options);
	free(dns.domain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "pool: sets are ordered: runtimeConfig.ipRanges, the single range, ipam.ranges",
		  order_of_sets },
		{ "pool: requested addresses are collected from three places, without duplicates",
		  requested },
		{ "pool: each invalid configuration is rejected with its own message", errors },
		{ "resolv: comments, repeated lines and words are parsed as in upstream", resolv },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
