/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/test-capabilities.c - capabilities of a container
 */
#include "oci/spec/capabilities.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "oci/spec/test.h"

#define BIT(cap) (UINT64_C(1) << (cap))
#define ALL	 (BIT(CAP_LAST_CAP + 1) - 1)
/* The three sets are equal, and inheritable and ambient are empty. */
static void assert_capabilities(const struct spec_capabilities *c, const char *expected)
{
	AUTO(spec_done) struct oci_spec s = { 0 };
	struct hw_err e;

	assert_ok(spec_set_capabilities(&s, c, &e), &e);
	assert_spec(&s, "process.capabilities.bounding", expected);
	assert_spec(&s, "process.capabilities.effective", expected);
	assert_spec(&s, "process.capabilities.permitted", expected);
	assert_spec(&s, "process.capabilities.inheritable", "[]");
	assert_spec(&s, "process.capabilities.ambient", "[]");
}

static void assert_refused(const struct spec_capabilities *c, int code, const char *msg)
{
	AUTO(spec_done) struct oci_spec s = { 0 };
	struct hw_err e;

	assert_int_equal(spec_set_capabilities(&s, c, &e), code);
	assert_string_equal(e.msg, msg);
}

static void the_start_is_the_default_list(void **state)
{
	(void)state;
	assert_capabilities(&(struct spec_capabilities){ .defaults = &STRINGS("kill", "CAP_CHOWN"),
							 .available = ALL },
			    "['CAP_CHOWN','CAP_KILL']");
	assert_capabilities(&(struct spec_capabilities){ .available = ALL }, "[]");
}

static void names_are_added_and_dropped(void **state)
{
	const struct hw_strings *few = &STRINGS("KILL", "CHOWN");

	(void)state;
	assert_capabilities(&(struct spec_capabilities){ .defaults = few,
							 .add = &STRINGS("net_admin", "CAP_BPF"),
							 .drop = &STRINGS("cap_kill"),
							 .available = ALL },
			    "['CAP_CHOWN','CAP_NET_ADMIN','CAP_BPF']");
	assert_capabilities(&(struct spec_capabilities){ .defaults = few,
							 .add = &STRINGS("NET_ADMIN"),
							 .drop = &STRINGS("NET_ADMIN"),
							 .available = ALL },
			    "['CAP_CHOWN','CAP_KILL']");
	assert_capabilities(&(struct spec_capabilities){ .add = &STRINGS("NET_ADMIN"),
							 .drop = &STRINGS("ALL"),
							 .available = ALL },
			    "['CAP_NET_ADMIN']");
	assert_capabilities(
		&(struct spec_capabilities){ .drop = &STRINGS("all"), .available = ALL }, "[]");
}

static void all_is_what_this_process_has(void **state)
{
	uint64_t some = BIT(CAP_SYS_ADMIN) | BIT(CAP_KILL);

	(void)state;
	assert_capabilities(
		&(struct spec_capabilities){ .add = &STRINGS("ALL"), .available = some },
		"['CAP_KILL','CAP_SYS_ADMIN']");
	assert_capabilities(&(struct spec_capabilities){ .add = &STRINGS("ALL"),
							 .drop = &STRINGS("KILL"),
							 .available = some },
			    "['CAP_SYS_ADMIN']");
	assert_capabilities(&(struct spec_capabilities){ .privileged = true,
							 .drop = &STRINGS("ALL"),
							 .available = some },
			    "['CAP_KILL','CAP_SYS_ADMIN']");
	assert_capabilities(&(struct spec_capabilities){ .defaults = &STRINGS("KILL", "CHOWN"),
							 .available = some },
			    "['CAP_KILL']");
	assert_refused(
		&(struct spec_capabilities){ .add = &STRINGS("SYS_TIME"), .available = some },
		-EPERM, "capability SYS_TIME: not available to this process");
	assert_refused(
		&(struct spec_capabilities){ .ambient = &STRINGS("SYS_TIME"), .available = some },
		-EPERM, "capability SYS_TIME: not available to this process");
}

static void ambient_is_in_all_sets(void **state)
{
	AUTO(spec_done) struct oci_spec s = { 0 };
	struct hw_err e;

	(void)state;
	assert_ok(spec_set_capabilities(&s,
					&(struct spec_capabilities){
						.drop = &STRINGS("ALL"),
						.ambient = &STRINGS("net_bind_service"),
						.available = ALL,
					},
					&e),
		  &e);
	assert_spec(&s, "process.capabilities",
		    "{'bounding':['CAP_NET_BIND_SERVICE'],'effective':['CAP_NET_BIND_SERVICE'],"
		    "'inheritable':['CAP_NET_BIND_SERVICE'],'permitted':['CAP_NET_BIND_SERVICE'],"
		    "'ambient':['CAP_NET_BIND_SERVICE']}");
	assert_capabilities(&(struct spec_capabilities){ .drop = &STRINGS("ALL", "KILL"),
							 .ambient = &STRINGS("KILL"),
							 .available = ALL },
			    "[]");
}

static void unknown_names_are_refused(void **state)
{
	uint64_t set;
	struct hw_err e;

	(void)state;
	assert_refused(
		&(struct spec_capabilities){ .add = &STRINGS("CAP_CAP_KILL"), .available = ALL },
		-EINVAL, "unknown capability CAP_CAP_KILL");
	assert_refused(&(struct spec_capabilities){ .drop = &STRINGS(""), .available = ALL },
		       -EINVAL, "unknown capability ");
	assert_refused(&(struct spec_capabilities){ .ambient = &STRINGS("ALL"), .available = ALL },
		       -EINVAL, "unknown capability ALL");
	assert_int_equal(spec_parse_capabilities(&STRINGS("all"), &set, &e), -EINVAL);
	assert_int_equal(spec_parse_capabilities(&STRINGS("kill"), &set, &e), 0);
	assert_true(set == BIT(CAP_KILL));
}

/* The kernel's own view of this process, in hexadecimal. */
static void own_capabilities_are_the_kernels(void **state)
{
	unsigned long long permitted = 0, bounding = 0;
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (str_starts(line, "CapPrm:"))
			permitted = strtoull(line + strlen("CapPrm:"), NULL, 16);
		if (str_starts(line, "CapBnd:"))
			bounding = strtoull(line + strlen("CapBnd:"), NULL, 16);
	}
	fclose(f);
	assert_true(spec_own_capabilities() == (permitted & bounding));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "capabilities: the start is the default list", the_start_is_the_default_list },
		{ "capabilities: names are added and dropped, in any spelling",
		  names_are_added_and_dropped },
		{ "capabilities: all is what this process has, and no more can be added",
		  all_is_what_this_process_has },
		{ "capabilities: an ambient capability is in all sets", ambient_is_in_all_sets },
		{ "capabilities: unknown names are refused", unknown_names_are_refused },
		{ "capabilities: those of this process are permitted and in its bounding set",
		  own_capabilities_are_the_kernels },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
