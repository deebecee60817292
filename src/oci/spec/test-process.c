/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/test-process.c - the process of a container
 */
#include "oci/spec/process.h"

#include <errno.h>

#include "oci/spec/test.h"

#define PATH "'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'"

static void set(struct oci_spec *s, const struct spec_process *p)
{
	struct hw_err e;

	assert_ok(spec_set_process(s, p, &e), &e);
}

static void command_and_args_replace_the_images(void **state)
{
	const struct {
		const struct hw_strings *entrypoint, *cmd, *command, *args;
		const char *expected;
	} v[] = {
		{ &STRINGS("/e", "e1"), &STRINGS("c1"), NULL, NULL, "['/e','e1','c1']" },
		{ &STRINGS("/e"), &STRINGS("c1"), NULL, &STRINGS("a1"), "['/e','a1']" },
		{ &STRINGS("/e"), &STRINGS("c1"), &STRINGS("/x"), NULL, "['/x']" },
		{ &STRINGS("/e"), &STRINGS("c1"), &STRINGS("/x"), &STRINGS("a1", ""),
		  "['/x','a1','']" },
		{ NULL, &STRINGS("/c"), NULL, NULL, "['/c']" },
		{ NULL, &STRINGS("/c"), NULL, &STRINGS("/a"), "['/a']" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		AUTO(spec_done) struct oci_spec s = { 0 };

		set(&s, &(struct spec_process){ .entrypoint = v[i].entrypoint,
						.cmd = v[i].cmd,
						.command = v[i].command,
						.args = v[i].args });
		assert_spec(&s, "process.args", v[i].expected);
	}
}

static void no_command_is_an_error(void **state)
{
	const struct hw_strings *none[] = { NULL, &(struct hw_strings){ 0 }, &STRINGS("") };
	struct hw_err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		AUTO(spec_done) struct oci_spec s = { 0 };

		assert_int_equal(
			spec_set_process(&s, &(struct spec_process){ .entrypoint = none[i] }, &e),
			-EINVAL);
		assert_string_equal(e.msg, "no command: neither the request nor the image has one");
	}
}

static void the_last_variable_of_a_name_is_used(void **state)
{
	AUTO(spec_done) struct oci_spec s = { 0 }, t = { 0 };
	struct hw_map env = MAP(3, NAMES("B", "Ä", "B"), NAMES("2=3", "ö", ""));

	(void)state;
	set(&s, &(struct spec_process){ .cmd = &STRINGS("x"),
					.image_env = &STRINGS("B=1", "BB=1", "TERM=dumb"),
					.env = &env,
					.hostname = "web-0",
					.home = "/root",
					.terminal = true });
	assert_spec(&s, "process.env",
		    "[" PATH ",'HOSTNAME=web-0','HOME=/root','TERM=dumb','B=','BB=1','Ä=ö']");
	assert_spec(&s, "process.terminal", "true");
	set(&t, &(struct spec_process){ .cmd = &STRINGS("x"), .image_env = &STRINGS("PATH=/bin") });
	assert_spec(&t, "process.env", "['PATH=/bin']");
}

static void an_invalid_variable_is_rejected_by_name(void **state)
{
	static const char *const v[][3] = {
		{ "", "x", "invalid name of an environment variable: \"\"" },
		{ "A=B", "x", "invalid name of an environment variable: \"A=B\"" },
		{ "SECRET",
		  "a\xff"
		  "b",
		  "environment variable SECRET: not UTF-8" },
		{ "SECRET", "\xc3", "environment variable SECRET: not UTF-8" },
	};
	struct hw_err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		struct hw_map env = MAP(1, NAMES(v[i][0]), NAMES(v[i][1]));
		AUTO(spec_done) struct oci_spec s = { 0 };

		assert_int_equal(spec_set_process(&s,
						  &(struct spec_process){ .cmd = &STRINGS("x"),
									  .env = &env },
						  &e),
				 -EINVAL);
		assert_string_equal(e.msg, v[i][2]);
	}
	assert_int_equal(spec_check_env("A", "a\0b", 3, &e), -EINVAL);
	assert_string_equal(e.msg, "environment variable A: contains a NUL");
	assert_int_equal(spec_check_env("A", NULL, 0, &e), 0);
	assert_int_equal(spec_check_env("A", "\xc3\xa4", 1, &e), -EINVAL);
}

static void the_directory_is_the_requests_or_the_images(void **state)
{
	static const char *const v[][3] = {
		{ NULL, NULL, "'/'" },
		{ "", "", "'/'" },
		{ "", "/i", "'/i'" },
		{ "/r", "/i", "'/r'" },
	};
	AUTO(spec_done) struct oci_spec bad = { 0 };
	struct hw_err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		AUTO(spec_done) struct oci_spec s = { 0 };

		set(&s, &(struct spec_process){
				.cmd = &STRINGS("x"), .cwd = v[i][0], .image_cwd = v[i][1] });
		assert_spec(&s, "process.cwd", v[i][2]);
	}
	assert_int_equal(
		spec_set_process(&bad, &(struct spec_process){ .cmd = &STRINGS("x"), .cwd = "r" },
				 &e),
		-EINVAL);
	assert_string_equal(e.msg, "working directory r: not an absolute path");
}

static void user_and_limits_are_written(void **state)
{
	struct hw_list rlimits = { &(struct oci_rlimit){ (char *)"RLIMIT_NOFILE", 10, -1 }, 1 };
	AUTO(spec_done) struct oci_spec s = { 0 };

	(void)state;
	set(&s, &(struct spec_process){ .cmd = &STRINGS("x"),
					.uid = 4294967294,
					.gid = 5,
					.groups = (uint32_t[]){ 5, 0 },
					.n_groups = 2,
					.no_new_privileges = true,
					.oom_score_adj = 1000,
					.rlimits = &rlimits });
	assert_spec(&s, "process.user", "{'uid':4294967294,'gid':5,'additionalGids':[5,0]}");
	assert_spec(&s, "process.noNewPrivileges", "true");
	assert_spec(&s, "process.oomScoreAdj", "1000");
	assert_spec(&s, "process.rlimits", "[{'type':'RLIMIT_NOFILE','soft':10,'hard':-1}]");
	assert_spec(&s, "process.terminal", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "process: command replaces entrypoint and cmd, args replaces cmd",
		  command_and_args_replace_the_images },
		{ "process: a container without a command is rejected", no_command_is_an_error },
		{ "process: of several variables of one name the last is used",
		  the_last_variable_of_a_name_is_used },
		{ "process: an invalid variable is rejected by name, without its value",
		  an_invalid_variable_is_rejected_by_name },
		{ "process: the working directory is the request's, the image's or /",
		  the_directory_is_the_requests_or_the_images },
		{ "process: user, groups and limits are written", user_and_limits_are_written },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
