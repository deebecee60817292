/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/test-version.c - tests of spec versions
 */
#include "cni/version.h"

#include "cni/test.h"

static void lists_seven(void **state)
{
	static const char *const want[] = { "0.1.0", "0.2.0", "0.3.0", "0.3.1",
					    "0.4.0", "1.0.0", "1.1.0" };
	const char *const *v = hw_versions();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		assert_string_equal(v[i], want[i]);
	assert_null(v[ARRAY_SIZE(want)]);
}

static void compares_numbers(void **state)
{
	static const struct {
		const char *a, *b;
		int order;
	} cases[] = {
		{ "0.1.0", "0.2.0", -1 },   { "1.1.0", "1.0.0", 1 }, { "0.10.0", "0.9.0", 1 },
		{ "0.3.1", "0.3.1", 0 },    { "", "0.1.0", 0 },	     { NULL, "0.1.0", 0 },
		{ "1", "1.0.0", 0 },	    { "1.1", "1.1.0", 0 },   { "2.0.0", "1.99.99", 1 },
		{ "0.-42.0", "0.0.0", -1 },
	};
	struct hw_err e;
	int order;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_ok(hw_version_compare(cases[i].a, cases[i].b, &order, &e), e);
		assert_int_equal(order, cases[i].order);
		assert_ok(hw_version_compare(cases[i].b, cases[i].a, &order, &e), e);
		assert_int_equal(order, -cases[i].order);
	}
}

static void refuses_malformed(void **state)
{
	static const char *const wrong[] = { "1.0.0.0", "1.0.0.", "a",		 "1.x.0",
					     "1..0",	"1.",	  ".1",		 " 1",
					     "1 ",	"--1",	  "99999999999", "1,0" };
	struct hw_err e;
	int order = 77;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		if (hw_version_compare(wrong[i], "1.0.0", &order, &e) == 0)
			fail_msg("\"%s\" was accepted", wrong[i]);
		assert_contains(e.msg, wrong[i]);
		assert_true(hw_version_compare("1.0.0", wrong[i], &order, &e) < 0);
		assert_int_equal(order, 77);
		assert_false(version_at_least(wrong[i], "0.1.0"));
	}
}

static void knows_families(void **state)
{
	(void)state;
	assert_int_equal(version_family(NULL), VERSION_FAMILY_IP4);
	assert_int_equal(version_family(""), VERSION_FAMILY_IP4);
	assert_int_equal(version_family("0.2.0"), VERSION_FAMILY_IP4);
	assert_int_equal(version_family("0.3.0"), VERSION_FAMILY_IPS);
	assert_int_equal(version_family("0.4.0"), VERSION_FAMILY_IPS);
	assert_int_equal(version_family("1.0.0"), VERSION_FAMILY_V1);
	assert_int_equal(version_family("1.1.0"), VERSION_FAMILY_V1);
	assert_int_equal(version_family("1.1"), VERSION_FAMILY_NONE);
	assert_int_equal(version_family("0.5.0"), VERSION_FAMILY_NONE);
	assert_int_equal(version_family("2.0.0"), VERSION_FAMILY_NONE);
}

static void at_least(void **state)
{
	(void)state;
	assert_true(version_at_least("0.4.0", "0.4.0"));
	assert_true(version_at_least("1.0.0", "0.4.0"));
	assert_false(version_at_least("0.3.1", "0.4.0"));
	assert_false(version_at_least("", "0.4.0"));
	assert_true(version_at_least("", "0.1.0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "version: the list contains all seven versions, oldest first", lists_seven },
		{ "version: parts are compared as numbers, and a missing part counts as 0",
		  compares_numbers },
		{ "version: more than three parts and parts that are not numbers are refused",
		  refuses_malformed },
		{ "version: only the exact text of a supported version has a result family",
		  knows_families },
		{ "version: version_at_least() compares a version with a minimum", at_least },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
