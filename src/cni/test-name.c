/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/test-name.c - tests of network names, container IDs and interface names
 */
#include "cni/name.h"

#include "cni/test.h"

struct name_case {
	const char *name;
	int wire;
	const char *msg, *details;
};

static void assert_names(int (*check)(const char *, struct hw_err *), const struct name_case *cases,
			 size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct hw_err e = { 0 };
		int r = check(cases[i].name, &e);

		if ((r == 0) != (cases[i].wire == 0))
			fail_msg("\"%s\": %d, %s", cases[i].name, r, e.msg);
		if (r == 0)
			continue;
		assert_int_equal(err_wire(&e), cases[i].wire);
		assert_string_equal(e.msg, cases[i].msg);
		assert_string_equal(e.details, cases[i].details);
	}
}

static void network_names(void **state)
{
	static const char msg[] = "invalid characters found in network name";
	static const struct name_case cases[] = {
		{ "k8s-pod_network.1", 0 },
		{ "0", 0 },
		{ NULL, HW_CNI_INVALID_CONFIG, "missing network name:", "" },
		{ "", HW_CNI_INVALID_CONFIG, "missing network name:", "" },
		{ "-a", HW_CNI_INVALID_CONFIG, msg, "-a" },
		{ "a/b", HW_CNI_INVALID_CONFIG, msg, "a/b" },
		{ "a\n", HW_CNI_INVALID_CONFIG, msg, "a\n" },
		{ "b\xc3\xa4r", HW_CNI_INVALID_CONFIG, msg, "b\xc3\xa4r" },
	};

	(void)state;
	assert_names(name_check_network, cases, ARRAY_SIZE(cases));
}

static void container_ids(void **state)
{
	static const char msg[] = "invalid characters in containerID";
	static const struct name_case cases[] = {
		{ "cnitool-77383ca0a0715733ca6f", 0 },
		{ "", HW_CNI_UNKNOWN_CONTAINER, "missing containerID", "" },
		{ "_x", HW_CNI_INVALID_ENV, msg, "_x" },
		{ "a b", HW_CNI_INVALID_ENV, msg, "a b" },
		{ "../x", HW_CNI_INVALID_ENV, msg, "../x" },
	};
	char longest[1000];
	struct hw_err e;

	(void)state;
	assert_names(name_check_container, cases, ARRAY_SIZE(cases));
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_ok(name_check_container(longest, &e), e);
}

static void ifnames(void **state)
{
	static const char forbidden[] = "interface name contains / or : or whitespace characters";
	static const struct name_case cases[] = {
		{ "eth0", 0 },
		{ "123456789012345", 0 },
		{ "\xc3\xa4\xe2\x82\xac", 0 },
		{ "\xff\xfe", 0 },
		{ "...", 0 },
		{ "", HW_CNI_INVALID_ENV, "interface name is empty", "" },
		{ "1234567890123456", HW_CNI_INVALID_ENV, "interface name is too long",
		  "interface name should be less than 16 characters" },
		{ ".", HW_CNI_INVALID_ENV, "interface name is . or ..", "" },
		{ "..", HW_CNI_INVALID_ENV, "interface name is . or ..", "" },
		{ "a/b", HW_CNI_INVALID_ENV, forbidden, "" },
		{ "a:b", HW_CNI_INVALID_ENV, forbidden, "" },
		{ "a b", HW_CNI_INVALID_ENV, forbidden, "" },
		{ "a\v", HW_CNI_INVALID_ENV, forbidden, "" },
		{ "a\xc2\xa0", HW_CNI_INVALID_ENV, forbidden, "" },
		{ "\xc2\x85", HW_CNI_INVALID_ENV, forbidden, "" },
		{ "a\xe2\x80\x83z", HW_CNI_INVALID_ENV, forbidden, "" },
		{ "\xe2\x80\xaf", HW_CNI_INVALID_ENV, forbidden, "" },
		{ "\xe3\x80\x80", HW_CNI_INVALID_ENV, forbidden, "" },
	};

	(void)state;
	assert_names(name_check_ifname, cases, ARRAY_SIZE(cases));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "name: network names are accepted or rejected as in upstream", network_names },
		{ "name: container IDs of any length are accepted or rejected as in upstream",
		  container_ids },
		{ "name: interface names are checked as in upstream, including Unicode white space",
		  ifnames },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
