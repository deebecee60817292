/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/test-range.c - unit tests of ranges, range sets and the walk over a set
 */
#include "plugins/host-local/range.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

static struct hw_ip ip(const char *text)
{
	struct hw_ip ret = { 0 };
	struct hw_err e;

	if (*text)
		assert_int_equal(hw_ip_parse(text, &ret, &e), 0);
	return ret;
}

static struct range range(const char *subnet, const char *start, const char *end,
			  const char *gateway)
{
	struct range r = { .start = ip(start), .end = ip(end), .gateway = ip(gateway) };
	struct hw_err e;

	if (*subnet)
		assert_int_equal(hw_prefix_parse(subnet, &r.subnet, &e), 0);
	return r;
}

/* Return: the first 40 addresses of a walk that starts after @last */
static char *format_walk(const struct range_set *set, const char *last)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_ip from = ip(last);
	char text[HW_IP_TEXT];
	struct range_walk w;

	range_walk_init(&w, set, &from);
	for (int i = 0; i < 40 && range_walk_next(&w); i++)
		buf_printf(&b, "%s%s", i ? " " : "", hw_ip_format(&w.cur, text));
	return buf_take(&b);
}

static void assert_walk(const struct range_set *set, const char *last, const char *want)
{
	autofree char *got = format_walk(set, last);

	assert_string_equal(got, want);
}

static void defaults(void **state)
{
	static const struct {
		const char *subnet, *want, *gateway;
	} v[] = {
		{ "10.1.0.0/24", "10.1.0.1-10.1.0.254", "10.1.0.1" },
		{ "10.1.0.0/30", "10.1.0.1-10.1.0.2", "10.1.0.1" },
		{ "0.0.0.0/0", "0.0.0.1-255.255.255.254", "0.0.0.1" },
		{ "fd00::/64", "fd00::1-fd00::ffff:ffff:ffff:ffff", "fd00::1" },
		{ "fd00::/126", "fd00::1-fd00::3", "fd00::1" },
	};
	char text[HW_IP_TEXT];
	struct hw_err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		struct range r = range(v[i].subnet, "", "", "");
		struct range_set set = { &r, 1 };

		assert_int_equal(range_set_init(&set, &e), 0);
		autofree char *got = range_set_format(&set);
		assert_string_equal(got, v[i].want);
		assert_string_equal(hw_ip_format(&r.gateway, text), v[i].gateway);
	}
}

static void errors(void **state)
{
	static const struct {
		const char *subnet, *start, *end, *want;
	} v[] = {
		{ "", "", "", "IP <nil> not v4 nor v6" },
		{ "10.1.0.0/31", "", "", "Network 10.1.0.0/31 too small to allocate from" },
		{ "10.1.0.1/32", "", "", "Network 10.1.0.1/32 too small to allocate from" },
		{ "fd00::/127", "", "", "Network fd00::/127 too small to allocate from" },
		{ "10.1.0.9/24", "", "",
		  "Network has host bits set. For a subnet mask of length 24 the network address "
		  "is 10.1.0.0" },
		{ "10.1.0.0/24", "10.2.0.1", "", "RangeStart 10.2.0.1 not in network 10.1.0.0/24" },
		{ "10.1.0.0/24", "", "fd00::1", "RangeEnd fd00::1 not in network 10.1.0.0/24" },
		{ "10.1.0.0/24", "10.1.0.9", "10.1.0.8",
		  "RangeStart 10.1.0.9 not in network 10.1.0.0/24" },
	};
	struct range_set none = { 0 };
	struct hw_err e;

	(void)state;
	assert_true(range_set_init(&none, &e) < 0);
	assert_string_equal(e.msg, "empty range set");
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		struct range r = range(v[i].subnet, v[i].start, v[i].end, "");
		struct range_set set = { &r, 1 };

		assert_true(range_set_init(&set, &e) < 0);
		assert_string_equal(e.msg, v[i].want);
	}
}

static void sets(void **state)
{
	struct range mixed[] = { range("10.1.0.0/24", "", "", ""), range("fd00::/64", "", "", "") };
	struct range twice[] = { range("10.1.0.0/24", "", "10.1.0.100", ""),
				 range("10.1.0.0/24", "10.1.0.100", "", "") };
	struct range adjacent[] = { range("10.1.0.0/24", "", "10.1.0.100", ""),
				    range("10.1.0.0/24", "10.1.0.101", "", "") };
	struct range_set set = { mixed, 2 }, a = { adjacent, 1 }, b = { adjacent + 1, 1 };
	struct hw_ip inside = ip("10.1.0.101");
	struct hw_err e;

	(void)state;
	assert_true(range_set_init(&set, &e) < 0);
	assert_string_equal(e.msg, "mixed address families");
	set.v = twice;
	assert_true(range_set_init(&set, &e) < 0);
	assert_string_equal(e.msg, "subnets 10.1.0.1-10.1.0.100 and 10.1.0.100-10.1.0.254 overlap");
	set.v = adjacent;
	assert_int_equal(range_set_init(&set, &e), 0);
	assert_false(range_set_overlaps(&a, &b));
	assert_true(range_set_overlaps(&a, &set));
	assert_ptr_equal(range_set_find(&set, &inside), &adjacent[1]);
	assert_null(range_set_find(&a, &inside));
}

static void walks(void **state)
{
	struct range v[] = { range("10.1.0.0/29", "", "", ""),
			     range("10.2.0.0/24", "10.2.0.1", "10.2.0.3", "10.2.0.2") };
	struct range_set set = { v, 2 };
	struct hw_err e;

	(void)state;
	assert_int_equal(range_set_init(&set, &e), 0);
	assert_walk(&set, "", "10.1.0.2 10.1.0.3 10.1.0.4 10.1.0.5 10.1.0.6 10.2.0.1 10.2.0.3");
	assert_walk(&set, "10.9.0.1",
		    "10.1.0.2 10.1.0.3 10.1.0.4 10.1.0.5 10.1.0.6 10.2.0.1 10.2.0.3");
	assert_walk(&set, "10.1.0.5",
		    "10.1.0.6 10.2.0.1 10.2.0.3 10.1.0.2 10.1.0.3 10.1.0.4 10.1.0.5");
	assert_walk(&set, "10.2.0.3",
		    "10.1.0.2 10.1.0.3 10.1.0.4 10.1.0.5 10.1.0.6 10.2.0.1 10.2.0.3");
}

static void only_gateways(void **state)
{
	struct range r = range("10.1.0.0/24", "10.1.0.1", "10.1.0.1", "");
	struct range_set set = { &r, 1 };
	struct hw_err e;

	(void)state;
	assert_int_equal(range_set_init(&set, &e), 0);
	assert_walk(&set, "", "");
	assert_walk(&set, "10.1.0.1", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "range: missing bounds and gateways get defaults, for both families", defaults },
		{ "range: each invalid range is rejected with the same message as in upstream",
		  errors },
		{ "range: a set with two address families or with overlapping ranges is rejected",
		  sets },
		{ "range: a walk visits all ranges from any address, wraps around and skips "
		  "gateways",
		  walks },
		{ "range: a range that contains only its gateway has no address to allocate",
		  only_gateways },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
