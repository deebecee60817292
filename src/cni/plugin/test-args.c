/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/test-args.c - tests of CNI_ARGS
 */
#include <hawser/plugin.h>

#include "cni/runtime/conf.h"
#include "cni/test.h"

static const char *const keys[] = { "IP", "MAC", NULL };

static void assert_refused(const char *args, const char *msg)
{
	struct hw_strings values = { 0 };
	struct hw_err e;

	assert_true(hw_args_parse(args, keys, &values, &e) < 0);
	assert_string_equal(e.msg, msg);
	assert_int_equal(hw_err_wire(&e), HW_CNI_INTERNAL);
	assert_null(values.v);
}

static void assert_values(const char *args, const char *ip, const char *mac)
{
	AUTO(hw_strings_free) struct hw_strings values = { 0 };
	struct hw_err e;

	assert_ok(hw_args_parse(args, keys, &values, &e), e);
	assert_int_equal(values.n, 2);
	assert_true(str_equal(values.v[0], ip));
	assert_true(str_equal(values.v[1], mac));
}

static void known_keys(void **state)
{
	(void)state;
	assert_values("IP=10.0.0.1;MAC=02:00:00:00:00:01", "10.0.0.1", "02:00:00:00:00:01");
	assert_values("MAC=", NULL, "");
}

static void no_args(void **state)
{
	(void)state;
	assert_values("", NULL, NULL);
	assert_values(NULL, NULL, NULL);
}

static void last_wins(void **state)
{
	(void)state;
	assert_values("IP=a;IP=b", "b", NULL);
}

static void bad_pairs(void **state)
{
	(void)state;
	assert_refused("IP", "ARGS: invalid pair \"IP\"");
	assert_refused("IP=a=b", "ARGS: invalid pair \"IP=a=b\"");
	assert_refused("IP=a;", "ARGS: invalid pair \"\"");
	assert_refused(";IP=a", "ARGS: invalid pair \"\"");
}

static void unknown_keys(void **state)
{
	(void)state;
	assert_refused("ip=a;IP=b;X=", "ARGS: unknown args [\"ip=a\" \"X=\"]");
	assert_refused("X=1;IgnoreUnknown=0", "ARGS: unknown args [\"X=1\"]");
	assert_refused("X=1;ignoreunknown=1", "ARGS: unknown args [\"X=1\" \"ignoreunknown=1\"]");
}

static void ignore_unknown(void **state)
{
	(void)state;
	assert_values("X=1;IP=a;IgnoreUnknown=1", "a", NULL);
	assert_values("IgnoreUnknown=TRUE;K8S_POD_NAME=p", NULL, NULL);
	assert_refused("IgnoreUnknown=yes", "ARGS: error parsing value of pair "
					    "\"IgnoreUnknown=yes\": boolean unmarshal error: "
					    "invalid input yes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "args: the values of known keys are returned", known_keys },
		{ "args: without arguments all values are missing", no_args },
		{ "args: the last value of a repeated key is used", last_wins },
		{ "args: a pair without = or with more than one = is refused", bad_pairs },
		{ "args: unknown keys are refused and named in the error; keys are case-sensitive",
		  unknown_keys },
		{ "args: unknown keys are ignored if the boolean IgnoreUnknown is true",
		  ignore_unknown },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
