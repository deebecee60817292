/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/test-ip.c - IP addresses, prefixes and MAC addresses
 *
 * The expected results, those of Go's net package, are in test/data/go-net.tsv.
 */
#include "base/ip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "base/str.h"

/* ---- comparison with Go ----------------------------------------------------- */

static const char *reformat_ip(const char *text, char *buf)
{
	struct hw_ip ip;
	struct hw_err e;

	return hw_ip_parse(text, &ip, &e) < 0 ? "-" : hw_ip_format(&ip, buf);
}

static const char *reformat_prefix(const char *text, char *buf)
{
	struct hw_prefix prefix;
	struct hw_err e;

	return hw_prefix_parse(text, &prefix, &e) < 0 ? "-" : hw_prefix_format(&prefix, buf);
}

static const char *reformat_mac(const char *text, char *buf)
{
	struct hw_mac mac;
	struct hw_err e;

	return hw_mac_parse(text, &mac, &e) < 0 ? "-" : hw_mac_format(&mac, buf);
}

static const struct {
	const char *kind;
	const char *(*reformat)(const char *text, char *buf);
} kinds[] = { { "ip", reformat_ip }, { "cidr", reformat_prefix }, { "mac", reformat_mac } };

static const char *reformat(const char *kind, const char *text, char *buf)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (str_equal(kinds[i].kind, kind))
			return kinds[i].reformat(text, buf);
	fail_msg("unknown kind %s", kind);
	return NULL;
}

/* The environment variable GO_NET_TSV may name another file, with more rows. */
static FILE *open_go_results(void)
{
	autofree char *path =
		str_printf("%s/test/data/go-net.tsv", str_or(getenv("HAWSER_SRC"), "."));

	return fopen(str_or(getenv("GO_NET_TSV"), path), "re");
}

static void agrees_with_go(void **state)
{
	FILE *f = open_go_results();
	char kind[8], text[128], expected[128], buf[HW_MAC_TEXT];
	size_t seen = 0, wrong = 0;
	autofree char *line = NULL;
	size_t room = 0;

	(void)state;
	assert_non_null(f);
	while (getline(&line, &room, f) > 0) {
		const char *got;

		if (*line == '#')
			continue;
		assert_int_equal(
			sscanf(line, "%7[^\t]\t%127[^\t]\t%127[^\n]", kind, text, expected), 3);
		got = reformat(kind, text, buf);
		seen++;
		if (str_equal(got, expected))
			continue;
		print_message("%s \"%s\": got %s, want %s as in Go\n", kind, text, got, expected);
		wrong++;
	}
	fclose(f);
	assert_int_equal(wrong, 0);
	assert_true(seen > 500);
}

/* ---- text not in the table ---------------------------------------------------- */

static struct hw_ip ip(const char *text)
{
	struct hw_ip ip;
	struct hw_err e;

	if (hw_ip_parse(text, &ip, &e) < 0)
		fail_msg("%s", e.msg);
	return ip;
}

static struct hw_prefix prefix(const char *text)
{
	struct hw_prefix prefix;
	struct hw_err e;

	if (hw_prefix_parse(text, &prefix, &e) < 0)
		fail_msg("%s", e.msg);
	return prefix;
}

static void assert_ip(const struct hw_ip *got, const char *expected)
{
	char buf[HW_IP_TEXT];

	assert_string_equal(hw_ip_format(got, buf), expected);
}

static void fails_with_go_text(void **state)
{
	struct hw_prefix p = { .len = 77 };
	struct hw_ip a = { .family = 77 };
	struct hw_mac m = { .len = 77 };
	struct hw_err e;

	(void)state;
	assert_int_equal(hw_ip_parse("10.0.0.01", &a, &e), -EINVAL);
	assert_string_equal(e.msg, "invalid IP address: 10.0.0.01");
	assert_int_equal(hw_prefix_parse("10.0.0.1", &p, &e), -EINVAL);
	assert_string_equal(e.msg, "invalid CIDR address: 10.0.0.1");
	assert_int_equal(hw_mac_parse("nonsense", &m, &e), -EINVAL);
	assert_string_equal(e.msg, "address nonsense: invalid MAC address");
	assert_int_equal(a.family, 77);
	assert_int_equal(p.len, 77);
	assert_int_equal(m.len, 77);
}

static void rejects_empty_and_very_long(void **state)
{
	autofree char *zeros = str_printf("%070000d", 0);
	autofree char *long_prefix = str_printf("10.0.0.1/%s", zeros);
	autofree char *mac = str_printf("00:%s", zeros);
	char buf[HW_MAC_TEXT];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		assert_string_equal(kinds[i].reformat("", buf), "-");
		assert_string_equal(kinds[i].reformat(zeros, buf), "-");
	}
	assert_string_equal(reformat_mac(mac, buf), "-");
	assert_string_equal(reformat_prefix(long_prefix, buf), "10.0.0.1/0");
}

static void mapped_is_ipv4(void **state)
{
	struct hw_ip a = ip("::ffff:10.1.2.3"), b = ip("10.1.2.3");
	static const uint8_t zero[12];

	(void)state;
	assert_int_equal(a.family, AF_INET);
	assert_memory_equal(a.bytes, "\x0a\x01\x02\x03", 4);
	assert_memory_equal(a.bytes + 4, zero, sizeof(zero));
	assert_true(hw_ip_equal(&a, &b));
}

static void mapped_prefix(void **state)
{
	struct hw_prefix p = prefix("::ffff:10.1.2.3/120");
	struct hw_err e;

	(void)state;
	assert_int_equal(p.ip.family, AF_INET);
	assert_int_equal(p.len, 24);
	assert_int_equal(prefix("::ffff:10.1.2.3/96").len, 0);
	assert_int_equal(hw_prefix_parse("::ffff:10.1.2.3/95", &p, &e), -EINVAL);
	assert_int_equal(hw_prefix_parse("::ffff:10.1.2.3/24", &p, &e), -EINVAL);
	assert_int_equal(hw_prefix_parse("::ffff:10.1.2.3/0", &p, &e), -EINVAL);
}

static void no_address_is_empty_text(void **state)
{
	struct hw_prefix p = { 0 };
	struct hw_mac m = { 0 };
	char buf[HW_MAC_TEXT] = "x";

	(void)state;
	assert_string_equal(hw_ip_format(&p.ip, buf), "");
	buf[0] = 'x';
	assert_string_equal(hw_prefix_format(&p, buf), "");
	buf[0] = 'x';
	assert_string_equal(hw_mac_format(&m, buf), "");
}

static void longest_texts_fit(void **state)
{
	char buf[HW_MAC_TEXT];

	(void)state;
	assert_string_equal(reformat_prefix("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", buf),
			    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128");
	assert_string_equal(
		reformat_prefix("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255/128", buf),
		"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128");
	assert_string_equal(
		reformat_mac("00-01-02-03-04-05-06-07-08-09-0A-0B-0C-0D-0E-0F-10-11-12-13", buf),
		"00:01:02:03:04:05:06:07:08:09:0a:0b:0c:0d:0e:0f:10:11:12:13");
}

/* ---- comparison ---------------------------------------------------------------- */

static void orders_by_family_then_bytes(void **state)
{
	static const char *const order[] = {
		"0.0.0.0", "9.255.255.255", "10.0.0.0", "255.255.255.255", "::", "::1", "1::"
	};
	struct hw_ip none = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		struct hw_ip a = ip(order[i]);

		assert_true(ip_compare(&none, &a) < 0);
		for (size_t k = 0; k < ARRAY_SIZE(order); k++) {
			struct hw_ip b = ip(order[k]);
			int c = ip_compare(&a, &b);

			assert_int_equal((c > 0) - (c < 0), (i > k) - (i < k));
			assert_int_equal(hw_ip_equal(&a, &b), i == k);
		}
	}
	assert_true(hw_ip_equal(&none, &none));
}

static void bytes_beyond_ipv4_do_not_count(void **state)
{
	struct hw_ip a = ip("10.0.0.1"), b = a;

	(void)state;
	b.bytes[4] = 1;
	assert_true(hw_ip_equal(&a, &b));
}

static void prefixes_are_equal_with_their_length(void **state)
{
	struct hw_prefix a = prefix("10.2.3.1/24"), b = prefix("10.2.3.1/24");
	struct hw_prefix other_len = prefix("10.2.3.1/25"), other_ip = prefix("10.2.3.2/24");

	(void)state;
	assert_true(hw_prefix_equal(&a, &b));
	assert_false(hw_prefix_equal(&a, &other_len));
	assert_false(hw_prefix_equal(&a, &other_ip));
}

static void contains(void **state)
{
	static const struct {
		const char *prefix, *ip;
		bool in;
	} rows[] = {
		{ "10.2.3.1/24", "10.2.3.0", true },
		{ "10.2.3.1/24", "10.2.3.255", true },
		{ "10.2.3.1/24", "10.2.4.0", false },
		{ "10.2.3.1/24", "10.2.2.255", false },
		{ "10.2.3.128/25", "10.2.3.127", false },
		{ "10.2.3.128/25", "10.2.3.128", true },
		{ "10.2.3.1/32", "10.2.3.1", true },
		{ "10.2.3.1/32", "10.2.3.0", false },
		{ "0.0.0.0/0", "255.255.255.255", true },
		{ "128.0.0.0/1", "127.255.255.255", false },
		{ "0.0.0.0/0", "::", false },
		{ "::/0", "0.0.0.0", false },
		{ "::/0", "ffff::", true },
		{ "fd00:1::/33", "fd00:1:8000::", false },
		{ "fd00:1::/33", "fd00:1:7fff::1", true },
		{ "fd00::1/128", "fd00::1", true },
		{ "fd00::1/128", "fd00::", false },
		{ "::ffff:10.2.3.0/120", "10.2.3.9", true },
		{ "10.2.3.0/24", "::ffff:10.2.3.9", true },
	};
	struct hw_prefix none = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct hw_prefix p = prefix(rows[i].prefix);
		struct hw_ip a = ip(rows[i].ip);

		if (hw_prefix_contains(&p, &a) != rows[i].in)
			fail_msg("%s in %s", rows[i].ip, rows[i].prefix);
	}
	assert_false(hw_prefix_contains(&none, &none.ip));
}

static void invalid_length_contains_nothing(void **state)
{
	struct hw_prefix p = prefix("10.0.0.1/32");

	(void)state;
	p.len = 33;
	assert_false(hw_prefix_contains(&p, &p.ip));
}

static void overlaps(void **state)
{
	static const struct {
		const char *a, *b;
		bool overlap;
	} rows[] = {
		{ "10.0.0.0/8", "10.2.3.0/24", true },
		{ "10.2.3.0/24", "10.2.4.0/24", false },
		{ "10.2.3.0/25", "10.2.3.128/25", false },
		{ "10.2.3.9/24", "10.2.3.7/24", true },
		{ "10.2.3.9/32", "10.2.3.7/32", false },
		{ "0.0.0.0/0", "::/0", false },
		{ "::/0", "fd00::1/128", true },
		{ "fd00::/64", "fd00:0:0:1::/64", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct hw_prefix a = prefix(rows[i].a), b = prefix(rows[i].b);

		if (prefix_overlaps(&a, &b) != rows[i].overlap ||
		    prefix_overlaps(&b, &a) != rows[i].overlap)
			fail_msg("%s and %s", rows[i].a, rows[i].b);
	}
}

/* ---- arithmetic ---------------------------------------------------------------- */

static void steps_over_bytes(void **state)
{
	static const char *const pairs[][2] = {
		{ "10.0.0.1", "10.0.0.2" },
		{ "10.0.0.255", "10.0.1.0" },
		{ "10.255.255.255", "11.0.0.0" },
		{ "fd00::ffff", "fd00::1:0" },
		{ "fd00::ffff:ffff:ffff:ffff", "fd00:0:0:1::" },
	};
	struct hw_ip next, prev;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		struct hw_ip a = ip(pairs[i][0]), b = ip(pairs[i][1]);

		assert_true(ip_next(&a, &next));
		assert_ip(&next, pairs[i][1]);
		assert_true(ip_prev(&b, &prev));
		assert_ip(&prev, pairs[i][0]);
	}
}

static void stops_at_the_ends(void **state)
{
	static const char *const ends[][2] = {
		{ "0.0.0.0", "255.255.255.255" },
		{ "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
	};
	struct hw_ip none = { 0 }, ret = ip("1.2.3.4");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		struct hw_ip first = ip(ends[i][0]), last = ip(ends[i][1]);

		assert_false(ip_prev(&first, &ret));
		assert_false(ip_next(&last, &ret));
	}
	assert_false(ip_next(&none, &ret));
	assert_false(ip_prev(&none, &ret));
	assert_ip(&ret, "1.2.3.4");
}

static void adds(void **state)
{
	static const struct {
		const char *ip;
		uint64_t n;
		const char *sum; /* NULL: the addition overflows */
	} rows[] = {
		{ "10.0.0.1", 0, "10.0.0.1" },
		{ "10.0.0.255", 257, "10.0.2.0" },
		{ "0.0.0.0", UINT32_MAX, "255.255.255.255" },
		{ "0.0.0.1", UINT32_MAX, NULL },
		{ "0.0.0.0", (uint64_t)UINT32_MAX + 1, NULL },
		{ "255.255.255.255", 0, "255.255.255.255" },
		{ "255.255.255.255", UINT64_MAX, NULL },
		{ "::", UINT64_MAX, "::ffff:ffff:ffff:ffff" },
		{ "::ffff:ffff:ffff:ffff", UINT64_MAX, "::1:ffff:ffff:ffff:fffe" },
		{ "ffff:ffff:ffff:ffff::", UINT64_MAX, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
		{ "ffff:ffff:ffff:ffff::1", UINT64_MAX, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct hw_ip a = ip(rows[i].ip), sum;

		assert_int_equal(ip_add(&a, rows[i].n, &sum), rows[i].sum != NULL);
		if (rows[i].sum)
			assert_ip(&sum, rows[i].sum);
	}
}

static void adds_in_place(void **state)
{
	struct hw_ip a = ip("10.0.0.255");

	(void)state;
	assert_true(ip_add(&a, 1, &a));
	assert_ip(&a, "10.0.1.0");
	assert_true(ip_prev(&a, &a));
	assert_ip(&a, "10.0.0.255");
}

static void first_and_last(void **state)
{
	static const char *const rows[][3] = {
		{ "10.2.3.77/24", "10.2.3.0", "10.2.3.255" },
		{ "10.2.3.77/26", "10.2.3.64", "10.2.3.127" },
		{ "10.2.3.77/31", "10.2.3.76", "10.2.3.77" },
		{ "10.2.3.77/32", "10.2.3.77", "10.2.3.77" },
		{ "10.2.3.77/0", "0.0.0.0", "255.255.255.255" },
		{ "fd00:1:2:3::5/64", "fd00:1:2:3::", "fd00:1:2:3:ffff:ffff:ffff:ffff" },
		{ "fd00::5/127", "fd00::4", "fd00::5" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct hw_prefix p = prefix(rows[i][0]);
		struct hw_ip first = prefix_network(&p), last = prefix_last(&p);

		assert_ip(&first, rows[i][1]);
		assert_ip(&last, rows[i][2]);
	}
}

static void bits(void **state)
{
	struct hw_ip none = { 0 }, four = ip("1.2.3.4"), six = ip("::1");

	(void)state;
	assert_int_equal(ip_bits(&none), 0);
	assert_int_equal(ip_bits(&four), 32);
	assert_int_equal(ip_bits(&six), 128);
}

static void classifies_addresses(void **state)
{
	enum { LOOP = 1, ZERO = 2, MULTI = 4, LINK = 8 };
	static const struct {
		const char *ip;
		int is;
	} rows[] = {
		{ "127.0.0.1", LOOP },
		{ "127.255.255.255", LOOP },
		{ "128.0.0.1", 0 },
		{ "126.255.255.255", 0 },
		{ "::1", LOOP },
		{ "::2", 0 },
		{ "1::1", 0 },
		{ "0.0.0.0", ZERO },
		{ "0.0.0.1", 0 },
		{ "::", ZERO },
		{ "224.0.0.1", MULTI },
		{ "239.255.255.255", MULTI },
		{ "240.0.0.0", 0 },
		{ "223.255.255.255", 0 },
		{ "ff02::1", MULTI },
		{ "fe00::1", 0 },
		{ "169.254.0.1", LINK },
		{ "169.253.0.1", 0 },
		{ "168.254.0.1", 0 },
		{ "fe80::1", LINK },
		{ "febf::1", LINK },
		{ "fec0::1", 0 },
		{ "fd80::1", 0 },
		{ "7f00::1", 0 },
		{ "e000::1", 0 },
		{ "a9fe::1", 0 },
		{ "::ffff:127.0.0.1", LOOP },
		{ "254.128.0.1", 0 },
		{ "255.0.0.1", 0 },
	};
	struct hw_ip none = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct hw_ip a = ip(rows[i].ip);
		int is = (ip_is_loopback(&a) ? LOOP : 0) | (ip_is_unspecified(&a) ? ZERO : 0) |
			 (ip_is_multicast(&a) ? MULTI : 0) | (ip_is_link_local(&a) ? LINK : 0);

		if (is != rows[i].is)
			fail_msg("%s: got classes 0x%x, want 0x%x", rows[i].ip, is, rows[i].is);
	}
	assert_false(ip_is_unspecified(&none));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "ip: addresses, prefixes and MACs are parsed, rejected and formatted as in Go",
		  agrees_with_go },
		{ "ip: errors have the same text as in Go and leave the output unchanged",
		  fails_with_go_text },
		{ "ip: empty and very long texts are rejected", rejects_empty_and_very_long },
		{ "ip: an IPv4-mapped address is parsed as IPv4", mapped_is_ipv4 },
		{ "ip: an IPv4-mapped prefix is parsed as IPv4, and rejected below 96 bits",
		  mapped_prefix },
		{ "ip: an unset address is formatted as \"\"", no_address_is_empty_text },
		{ "ip: the longest texts fit the buffers", longest_texts_fit },
		{ "ip: IPv4 addresses sort before IPv6; each family sorts byte by byte",
		  orders_by_family_then_bytes },
		{ "ip: only the first four bytes of an IPv4 address are compared",
		  bytes_beyond_ipv4_do_not_count },
		{ "ip: prefixes are equal if addresses and lengths are equal",
		  prefixes_are_equal_with_their_length },
		{ "ip: a prefix contains the addresses of its network and family", contains },
		{ "ip: a prefix with an invalid length contains nothing",
		  invalid_length_contains_nothing },
		{ "ip: prefixes overlap if one contains the other", overlaps },
		{ "ip: the next and the previous address carry from byte to byte",
		  steps_over_bytes },
		{ "ip: there is no address before the first one or after the last one",
		  stops_at_the_ends },
		{ "ip: adding a number carries between bytes, and fails beyond the last address",
		  adds },
		{ "ip: the result may overwrite the operand", adds_in_place },
		{ "ip: the first and the last address of a network are computed", first_and_last },
		{ "ip: an address has 32 or 128 bits, an unset address has 0", bits },
		{ "ip: loopback, unspecified, multicast and link-local addresses are recognised",
		  classifies_addresses },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
