/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/seccomp/test-default-profile.c - the profile RuntimeDefault
 */
#include "oci/seccomp/default-profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "oci/seccomp/test.h"

/* The rule of a call. Return: NULL: none */
static const struct profile_rule *find(const struct profile *p, const char *call)
{
	const struct profile_rule *rules = p->rules.v;

	for (size_t i = 0; i < p->rules.n; i++)
		if (strings_has(&rules[i].names, call))
			return &rules[i];
	return NULL;
}

static bool allows(const struct profile_target *target, const char *call)
{
	AUTO(profile_done) struct profile p = { 0 };
	const struct profile_rule *rule;

	default_profile(target, &p);
	rule = find(&p, call);
	return rule && str_equal(rule->action, PROFILE_ALLOW) && !rule->arguments.n;
}

static void calls_are_allowed_with_their_capability(void **state)
{
	static const struct {
		const char *capability, *call;
	} cases[] = {
		{ "CAP_SYS_ADMIN", "mount" },
		{ "CAP_SYS_ADMIN", "unshare" },
		{ "CAP_SYS_ADMIN", "setns" },
		{ "CAP_SYS_ADMIN", "sethostname" },
		{ "CAP_SYS_ADMIN", "bpf" },
		{ "CAP_BPF", "bpf" },
		{ "CAP_SYS_ADMIN", "clone" },
		{ "CAP_SYS_ADMIN", "clone3" },
		{ "CAP_SYS_ADMIN", "syslog" },
		{ "CAP_SYSLOG", "syslog" },
		{ "CAP_SYS_BOOT", "reboot" },
		{ "CAP_SYS_MODULE", "init_module" },
		{ "CAP_SYS_CHROOT", "chroot" },
		{ "CAP_SYS_PACCT", "acct" },
		{ "CAP_SYS_PTRACE", "kcmp" },
		{ "CAP_SYS_RAWIO", "iopl" },
		{ "CAP_SYS_TIME", "settimeofday" },
		{ "CAP_SYS_TTY_CONFIG", "vhangup" },
		{ "CAP_SYS_NICE", "mbind" },
		{ "CAP_PERFMON", "perf_event_open" },
		{ "CAP_DAC_READ_SEARCH", "open_by_handle_at" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct profile_target with = target_with(&STRINGS(cases[i].capability));
		struct profile_target without = target_with(&STRINGS("CAP_NET_RAW"));

		if (!allows(&with, cases[i].call) || allows(&without, cases[i].call))
			fail_msg("%s, %s", cases[i].capability, cases[i].call);
	}
}

static void some_calls_are_never_allowed(void **state)
{
	static const char *const calls[] = { "add_key",	       "keyctl",     "request_key",
					     "io_uring_setup", "kexec_load", "userfaultfd",
					     "move_pages",     "pivot_root", "swapon" };
	struct profile_target all =
		target_with(&STRINGS("CAP_SYS_ADMIN", "CAP_SYS_BOOT", "CAP_SYS_MODULE",
				     "CAP_SYS_NICE", "CAP_SYS_PTRACE", "CAP_SYS_RAWIO"));

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		assert_false(allows(&all, calls[i]));
}

static void each_machine_has_its_own_calls_and_architectures(void **state)
{
	struct profile_target x86 = target_with(NO_CAPABILITIES), arm = x86;
	AUTO(profile_done) struct profile for_x86 = { 0 }, for_arm = { 0 };

	(void)state;
	arm.machine = profile_machine("arm64");
	default_profile(&x86, &for_x86);
	default_profile(&arm, &for_arm);
	assert_int_equal(for_x86.architectures.n, 3);
	assert_true(strings_has(&for_x86.architectures, "SCMP_ARCH_X32"));
	assert_int_equal(for_arm.architectures.n, 2);
	assert_true(strings_has(&for_arm.architectures, "SCMP_ARCH_ARM"));
	assert_true(find(&for_x86, "arch_prctl") && !find(&for_x86, "cacheflush"));
	assert_true(find(&for_arm, "cacheflush") && !find(&for_arm, "arch_prctl"));
	assert_non_null(profile_machine(NULL));
	assert_null(profile_machine("pdp11"));
}

static void a_call_that_is_not_allowed_fails_with_eperm_and_clone3_with_enosys(void **state)
{
	struct profile_target target = target_with(NO_CAPABILITIES);
	AUTO(profile_done) struct profile p = { 0 };
	const struct profile_rule *clone3;

	(void)state;
	default_profile(&target, &p);
	assert_string_equal(p.default_action, PROFILE_ERRNO);
	assert_true(p.has_default_errno && p.default_errno == EPERM);
	clone3 = find(&p, "clone3");
	assert_string_equal(clone3->action, PROFILE_ERRNO);
	assert_true(clone3->has_errno && clone3->error == ENOSYS);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A call in two groups with the same conditions would be a mistake. */
static void no_call_is_named_twice(void **state)
{
	struct profile_target target = target_with(&STRINGS("CAP_SYS_ADMIN"));
	AUTO(profile_done) struct profile p = { 0 };
	AUTO(hw_strings_free) struct hw_strings all = { 0 };
	const struct profile_rule *rules;

	(void)state;
	default_profile(&target, &p);
	rules = p.rules.v;
	for (size_t i = 0; i < p.rules.n; i++)
		for (size_t k = 0; k < rules[i].names.n && !rules[i].arguments.n; k++)
			strings_add(&all, rules[i].names.v[k]);
	assert_true(all.n > 300);
	if (all.v)
		qsort(all.v, all.n, sizeof(*all.v), compare);
	for (size_t i = 1; all.v && i < all.n; i++)
		if (str_equal(all.v[i - 1], all.v[i]))
			fail_msg("%s", all.v[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "default profile: calls are allowed with their capability",
		  calls_are_allowed_with_their_capability },
		{ "default profile: some calls are never allowed", some_calls_are_never_allowed },
		{ "default profile: each machine has its own calls and architectures",
		  each_machine_has_its_own_calls_and_architectures },
		{ "default profile: a call that is not allowed fails with EPERM, and clone3 with "
		  "ENOSYS",
		  a_call_that_is_not_allowed_fails_with_eperm_and_clone3_with_enosys },
		{ "default profile: no call is named twice", no_call_is_named_twice },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
