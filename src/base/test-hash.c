/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/test-hash.c - SHA-512 of names in hex
 */
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <string.h>

static void derives_upstream_names(void **state)
{
	char hex[HASH_HEX_MAX + 1];

	(void)state;
	/* upstream's names: an ipMasq chain, an nftables comment, a container ID of cnitool */
	hash_hex("mynetc1", 24, hex);
	assert_string_equal(hex, "f0bca4ac77cde1bf2f3da5df");
	hash_hex("mynet", 16, hex);
	assert_string_equal(hex, "d23676b4f2d9fe04");
	hash_hex("/var/run/netns/testing", 20, hex);
	assert_string_equal(hex, "77383ca0a0715733ca6f");
}

static void is_sha512(void **state)
{
	char hex[HASH_HEX_MAX + 1];

	(void)state;
	/* FIPS 180-2, appendix C.1 */
	hash_hex("abc", HASH_HEX_MAX, hex);
	assert_string_equal(hex,
			    "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
			    "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f");
}

static void truncates_at_any_digit(void **state)
{
	char hex[HASH_HEX_MAX + 1];

	(void)state;
	hash_hex("abc", 5, hex);
	assert_string_equal(hex, "ddaf3");
	hash_hex("abc", 0, hex);
	assert_string_equal(hex, "");
}

static void parts_are_separate(void **state)
{
	static const char *const one[] = { "ab", "c" }, *const two[] = { "a", "bc" };
	static const char *const three[] = { "abc", "" };
	char x[33], y[33], z[33];

	(void)state;
	hash_parts(one, 2, 32, x);
	hash_parts(two, 2, 32, y);
	hash_parts(three, 2, 32, z);
	assert_string_not_equal(x, y);
	assert_string_not_equal(x, z);
	/* printf 'ab\0c\0' | sha512sum */
	assert_string_equal(x, "faa82c7c65446e894039388b88548655");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "hash: the derived names are the same as in upstream", derives_upstream_names },
		{ "hash: the hash is SHA-512", is_sha512 },
		{ "hash: the hash can be truncated to any number of digits",
		  truncates_at_any_digit },
		{ "hash: the same bytes, divided differently into strings, have different hashes",
		  parts_are_separate },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
