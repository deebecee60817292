/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/protocol/test-layer-report.c - report about an unpacked layer
 */
#include "image/protocol/layer-report.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/str.h"

#define DIFF_ID "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void test_round_trip(void **state)
{
	AUTO(unpacked_done) struct unpacked u = { 0 }, again = { 0 };
	struct hw_err e;

	(void)state;
	u.diff_id = str_copy(DIFF_ID);
	u.archive = INT64_C(1) << 40;
	u.inodes = 3;
	u.rebuildable = true;
	strings_add(&u.implied, "");
	strings_add(&u.implied, "a/\xff\"b\\ %41\n\xc3\xbc");
	autofree char *json = unpacked_encode(&u);
	assert_int_equal(unpacked_decode(json, strlen(json), &again, &e), 0);
	assert_string_equal(again.diff_id, DIFF_ID);
	assert_int_equal(again.archive, u.archive);
	assert_int_equal(again.inodes, 3);
	assert_true(again.rebuildable);
	assert_int_equal(again.implied.n, 2);
	assert_string_equal(again.implied.v[0], "");
	assert_string_equal(again.implied.v[1], u.implied.v[1]);
}

static void test_malformed(void **state)
{
	static const char *const v[] = {
		"",
		"null",
		"{}",
		"{\"diff_id\":\"x\"}",
		"{\"diff_id\":\"../../etc\"}",
		"{\"diff_id\":\"" DIFF_ID "\",\"archive\":-1}",
		"{\"diff_id\":\"" DIFF_ID "\",\"implied\":\"a\"}",
		"{\"diff_id\":\"" DIFF_ID "\",\"implied\":[\"a%\"]}",
		"{\"diff_id\":\"" DIFF_ID "\",\"implied\":[\"a%4\"]}",
		"{\"diff_id\":\"" DIFF_ID "\",\"implied\":[\"a%00\"]}",
		"{\"diff_id\":\"" DIFF_ID "\",\"implied\":[\"a%xyz\"]}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		struct unpacked u = { 0 };
		struct hw_err e = { 0 };

		assert_int_equal(unpacked_decode(v[i], strlen(v[i]), &u, &e), -EBADMSG);
		assert_null(u.diff_id);
		assert_true(e.msg[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "unpacked: decoding restores an encoded report", test_round_trip },
		{ "unpacked: a malformed report is rejected", test_malformed },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
