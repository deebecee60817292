/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/test-digest.c - SHA-256 digests and chain IDs; test-reference.c tests the text form
 */
#include "image/digest.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#define EMPTY "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define ABC   "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static void test_digest_of(void **state)
{
	char text[DIGEST_TEXT];
	struct hw_err e;

	(void)state;
	digest_of("", 0, text);
	assert_string_equal(text, EMPTY);
	digest_of("abc", 3, text);
	assert_string_equal(text, ABC);
	assert_int_equal(digest_check(text, &e), 0);
	assert_true(digest_is_sha256(text));
	assert_false(digest_is_sha256("sha256:abc"));
	assert_false(digest_is_sha256("sha512:abc"));
}

static void test_chain_ids(void **state)
{
	char first[DIGEST_TEXT], second[DIGEST_TEXT], want[DIGEST_TEXT];

	(void)state;
	digest_chain(NULL, EMPTY, first);
	assert_string_equal(first, EMPTY);
	digest_chain(first, ABC, second);
	digest_of(EMPTY " " ABC, strlen(EMPTY " " ABC), want);
	assert_string_equal(second, want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "digest: digest_of() returns the SHA-256 digest as text", test_digest_of },
		{ "digest: a chain ID is the diff ID for the lowest layer, a hash for other layers",
		  test_chain_ids },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
