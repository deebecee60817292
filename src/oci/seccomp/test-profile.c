/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/seccomp/test-profile.c - profiles in the forms of OCI and Docker, and their conditions
 */
#include "oci/seccomp/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "oci/seccomp/test.h"

/* Decodes a profile, decides its conditions, and compares the result. */
static void assert_resolved(const char *json, const struct profile_target *target,
			    const char *expected)
{
	autofree char *want = unquote(expected), *got = NULL;
	AUTO(profile_done) struct profile p = { 0 };
	struct hw_err e;

	assert_ok(decode(json, &p, &e), &e);
	assert_ok(profile_resolve(&p, target, &e), &e);
	got = profile_encode(&p);
	assert_string_equal(got, want);
}

static void an_oci_profile_stays_as_it_is(void **state)
{
	static const char json[] =
		"{'defaultAction':'SCMP_ACT_ERRNO','defaultErrnoRet':38,"
		"'architectures':['SCMP_ARCH_X86_64'],'flags':['SECCOMP_FILTER_FLAG_LOG'],"
		"'syscalls':[{'names':['read','write'],'action':'SCMP_ACT_ALLOW'},"
		"{'names':['clone'],'action':'SCMP_ACT_ERRNO','errnoRet':0,"
		"'args':[{'index':0,'value':4294967295,'valueTwo':1,'op':'SCMP_CMP_MASKED_EQ'},"
		"{'index':5,'value':0,'op':'SCMP_CMP_EQ'}]}]}";
	struct profile_target target = target_with(NO_CAPABILITIES);

	(void)state;
	assert_resolved(json, &target, json);
}

static void conditions_of_docker_are_decided(void **state)
{
	static const char json[] =
		"{'defaultAction':'SCMP_ACT_ERRNO','syscalls':["
		"{'name':'a','action':'X','comment':'c','includes':{},'excludes':{},'args':null},"
		"{'names':['b'],'action':'X','includes':{'caps':['CAP_SYS_ADMIN','CAP_BPF']}},"
		"{'names':['c'],'action':'X','excludes':{'caps':['CAP_SYS_ADMIN','CAP_BPF']}},"
		"{'names':['d'],'action':'X','includes':{'arches':['amd64','x32']}},"
		"{'names':['e'],'action':'X','excludes':{'arches':['amd64']}},"
		"{'names':['f'],'action':'X','includes':{'minKernel':'6.1'}},"
		"{'names':['g'],'action':'X','includes':{'minKernel':'6.2'}},"
		"{'names':['h'],'action':'X','excludes':{'minKernel':'5.15'}},"
		"{'names':['i'],'action':'X','excludes':{'minKernel':'10.0'}}]}";
	struct profile_target none = target_with(NO_CAPABILITIES),
			      one = target_with(&STRINGS("CAP_BPF")),
			      both = target_with(&STRINGS("CAP_BPF", "CAP_SYS_ADMIN")), arm = none;

	(void)state;
#define RULES(...) "{'defaultAction':'SCMP_ACT_ERRNO','syscalls':[" __VA_ARGS__ "]}"
#define CALL(name) "{'names':['" name "'],'action':'X'}"
	assert_resolved(json, &none,
			RULES(CALL("a") "," CALL("c") "," CALL("d") "," CALL("f") "," CALL("i")));
	assert_resolved(json, &one, RULES(CALL("a") "," CALL("d") "," CALL("f") "," CALL("i")));
	assert_resolved(json, &both,
			RULES(CALL("a") "," CALL("b") "," CALL("d") "," CALL("f") "," CALL("i")));
	arm.machine = profile_machine("arm64");
	assert_resolved(json, &arm,
			RULES(CALL("a") "," CALL("c") "," CALL("e") "," CALL("f") "," CALL("i")));
}

static void the_map_of_architectures_has_an_entry_for_each_machine(void **state)
{
	static const char json[] =
		"{'defaultAction':'A','archMap':[{'architecture':'SCMP_ARCH_X86_64',"
		"'subArchitectures':['SCMP_ARCH_X86','SCMP_ARCH_X32']},"
		"{'architecture':'SCMP_ARCH_AARCH64','subArchitectures':null}]}";
	struct profile_target target = target_with(NO_CAPABILITIES);

	(void)state;
	assert_resolved(json, &target,
			"{'defaultAction':'A','architectures':['SCMP_ARCH_X86_64','SCMP_ARCH_X86',"
			"'SCMP_ARCH_X32']}");
	target.machine = profile_machine("arm64");
	assert_resolved(json, &target,
			"{'defaultAction':'A','architectures':['SCMP_ARCH_AARCH64']}");
}

static void malformed_profiles_are_refused(void **state)
{
	static const struct {
		const char *json, *error;
	} cases[] = {
		{ "", NULL },
		{ "[]", NULL },
		{ "{}", "defaultAction: required key is missing" },
		{ "{'defaultAction':1}", NULL },
		{ "{'defaultAction':'A','syscalls':[{'action':'A'}]}",
		  "syscalls[0].names is missing" },
		{ "{'defaultAction':'A','syscalls':[{'names':['a']}]}", NULL },
		{ "{'defaultAction':'A','syscalls':[{'name':'a','names':['b'],'action':'A'}]}",
		  "syscalls[0]: name and names exclude each other" },
		{ "{'defaultAction':'A','syscalls':[{'names':['a'],'action':'A',"
		  "'args':[{'index':6,'value':0,'op':'X'}]}]}",
		  NULL },
		{ "{'defaultAction':'A','syscalls':[{'names':['a'],'action':'A',"
		  "'args':[{'index':0,'value':-1,'op':'X'}]}]}",
		  NULL },
		{ "{'defaultAction':'A','syscalls':[{'names':['a'],'action':'A',"
		  "'errnoRet':4096}]}",
		  NULL },
		{ "{'defaultAction':'A','architectures':['X'],'archMap':[{'architecture':'X'}]}",
		  "architectures and archMap exclude each other" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct profile p;
		struct hw_err e;

		assert_int_equal(decode(cases[i].json, &p, &e), -EINVAL);
		if (cases[i].error)
			assert_string_equal(e.msg, cases[i].error);
	}
}

static void a_condition_or_listener_that_cannot_be_honoured_is_refused(void **state)
{
	static const struct {
		const char *json, *error;
	} cases[] = {
		{ "{'defaultAction':'A','listenerPath':'/run/x'}",
		  "listenerPath is not supported" },
		{ "{'defaultAction':'A','syscalls':[{'names':['a'],'action':'A',"
		  "'includes':{'minKernel':'six'}}]}",
		  "syscalls[0]: kernel \"six\": expected MAJOR.MINOR" },
		{ "{'defaultAction':'A','syscalls':[{'names':['a'],'action':'A',"
		  "'excludes':{'minKernel':'6'}}]}",
		  "syscalls[0]: kernel \"6\": expected MAJOR.MINOR" },
	};
	struct profile_target target = target_with(NO_CAPABILITIES);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(profile_done) struct profile p = { 0 };
		struct hw_err e;

		assert_ok(decode(cases[i].json, &p, &e), &e);
		assert_int_equal(profile_resolve(&p, &target, &e), -EINVAL);
		assert_string_equal(e.msg, cases[i].error);
	}
}

static void a_profile_has_at_most_a_mebibyte(void **state)
{
	autofree char *text = mem_new(PROFILE_MAX + 1);
	struct profile p;
	struct hw_err e;

	(void)state;
	memset(text, ' ', PROFILE_MAX + 1);
	assert_int_equal(profile_decode(text, PROFILE_MAX + 1, &p, &e), -EFBIG);
	assert_string_equal(e.msg, "more than 1048576 bytes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "profile: a profile in the form of OCI stays as it is",
		  an_oci_profile_stays_as_it_is },
		{ "profile: conditions of Docker's form are decided",
		  conditions_of_docker_are_decided },
		{ "profile: the map of architectures has an entry for each machine",
		  the_map_of_architectures_has_an_entry_for_each_machine },
		{ "profile: malformed profiles are refused", malformed_profiles_are_refused },
		{ "profile: a condition or listener that cannot be honoured is refused",
		  a_condition_or_listener_that_cannot_be_honoured_is_refused },
		{ "profile: a profile has at most a mebibyte", a_profile_has_at_most_a_mebibyte },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
