/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/test-cni.c - tests of structs from callers built with an older or newer library
 */
#include "cni/runtime/cni.h"

#include "cni/test.h"

#include <errno.h>

#include "cni/runtime/conf.h"

/* A plugin that replies to ADD and writes the command and CNI_ARGS to its notes. */
#define GOOD "cat >/dev/null; note $CNI_COMMAND $CNI_ARGS; [ $CNI_COMMAND != ADD ] || echo '{}'"
#define ONE  "{\"name\":\"n\",\"cniVersion\":\"1.0.0\",\"plugins\":[{\"type\":\"a\"}]}"

/* A new member could take the place of padding at the end of a struct. The size of an older
 * caller's struct would then include the new member, although the caller does not set it. */
#define assert_ends_with(type, member)                                                             \
	assert_int_equal(sizeof(type),                                                             \
			 offsetof(type, member) + sizeof(((const type *)NULL)->member))

static void no_padding_at_end(void **state)
{
	(void)state;
	assert_ends_with(struct hw_attach, prev_result);
	assert_ends_with(struct hw_cni_options, damaged_ctx);
	assert_ends_with(struct hw_exec, run);
	assert_ends_with(struct hw_run, deadline_ns);
	assert_ends_with(struct hw_ran, errors_len);
	assert_ends_with(struct hw_iface, reserved);
	assert_ends_with(struct hw_ipconf, reserved);
	assert_ends_with(struct hw_route, reserved);
	assert_ends_with(struct hw_cached, reserved);
}

static void attach_struct_sizes(void **state)
{
	static const char *const args[][2] = { { "K", "v" } };
	const struct place *p = *state;
	AUTO(hw_cni_free) struct hw_cni *cni = place_cni(p);
	AUTO(hw_conf_free) struct hw_conf *conf = test_list(ONE);
	struct {
		struct hw_attach at;
		long later;
	} newer = { .at = TEST_ATTACH };
	struct hw_attach older = TEST_ATTACH;
	struct hw_err e;

	place_plugin(p, "a", GOOD);
	newer.at.args = args;
	newer.at.n_args = 1;
	newer.at.size = sizeof(newer);
	assert_ok(hw_add(cni, conf, &newer.at, 0, NULL, &e), e);
	assert_notes(p, "ADD K=v\n");
	newer.later = 1;
	assert_int_equal(hw_add(cni, conf, &newer.at, 0, NULL, &e), -E2BIG);
	older.size = offsetof(struct hw_attach, args);
	older.args = args; /* beyond .size: must be ignored */
	older.n_args = 1;
	older.timeout_ms = 1;
	assert_ok(hw_add(cni, conf, &older, 0, NULL, &e), e);
	assert_notes(p, "ADD\n");
}

static void unset_sizes(void **state)
{
	static const size_t sizes[] = { 0, sizeof(size_t) - 1, 1 << 20, SIZE_MAX };
	AUTO(hw_cni_free) struct hw_cni *cni = place_cni(*state);
	AUTO(hw_conf_free) struct hw_conf *conf = test_list(ONE);
	struct hw_cni_options options = place_options(*state);
	struct hw_attach at = TEST_ATTACH;
	struct hw_cni *none = NULL;
	struct hw_err e;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		at.size = options.size = sizes[i];
		assert_int_equal(hw_add(cni, conf, &at, 0, NULL, &e), -EINVAL);
		assert_string_equal(e.msg, "struct hw_attach.size is not set");
		assert_int_equal(hw_cni_new(&options, &none, &e), -EINVAL);
		assert_string_equal(e.msg, "struct hw_cni_options.size is not set");
		assert_null(none);
	}
}

static void options_struct_sizes(void **state)
{
	struct hw_exec exec = { .size = 0 };
	struct {
		struct hw_cni_options options;
		long later;
	} newer = { .options = place_options(*state) };
	struct hw_cni *cni = NULL;
	struct hw_err e;

	newer.options.size = sizeof(newer);
	assert_ok(hw_cni_new(&newer.options, &cni, &e), e);
	assert_int_equal(cni->lock_timeout_ms, newer.options.lock_timeout_ms);
	hw_cni_free(cni);
	newer.later = 1;
	assert_int_equal(hw_cni_new(&newer.options, &cni, &e), -E2BIG);

	newer.options.size = offsetof(struct hw_cni_options, exec);
	newer.options.exec = (const void *)1; /* beyond .size: must be ignored */
	assert_ok(hw_cni_new(&newer.options, &cni, &e), e);
	hw_cni_free(cni);

	newer.options.size = sizeof(newer.options);
	newer.options.exec = &exec;
	assert_int_equal(hw_cni_new(&newer.options, &cni, &e), -EINVAL);
	assert_string_equal(e.msg, "struct hw_exec.size is not set");
}

/* A program that wraps the default run() and was built for an older library. */
static void run_struct_sizes(void **state)
{
	const char *const env[] = { NULL };
	struct hw_run run = { .size = offsetof(struct hw_run, cancel_fd),
			      .plugin = "/bin/true",
			      .env = env,
			      .cancel_fd = 12345 };
	struct hw_ran ran = { .status = -1 };
	struct hw_err e;

	(void)state;
	assert_int_equal(hw_exec_run(NULL, &run, &ran, &e), -EINVAL);
	assert_string_equal(e.msg, "struct hw_ran.size is not set");
	ran.size = sizeof(ran);
	assert_ok(hw_exec_run(NULL, &run, &ran, &e), e);
	assert_int_equal(ran.status, 0);
	free(ran.output);
	free(ran.errors);
}

/* cancel_fd 0 means no descriptor, not standard input. */
static void cancel_fd_zero(void **state)
{
	const char *const env[] = { NULL };
	struct hw_run run = { .size = sizeof(run), .plugin = "/bin/true", .env = env };
	struct hw_ran ran = { .size = sizeof(ran) };
	autoclose int ours = dup(STDIN_FILENO);
	struct hw_err e;
	int ends[2], r;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
	r = hw_exec_run(NULL, &run, &ran, &e);
	if (ours >= 0)
		dup2(ours, STDIN_FILENO);
	else
		close(STDIN_FILENO);
	close(ends[0]);
	close(ends[1]);
	assert_ok(r, e);
	free(ran.output);
	free(ran.errors);
}

static void unsupported_flags(void **state)
{
	AUTO(hw_cni_free) struct hw_cni *cni = place_cni(*state);
	AUTO(hw_conf_free) struct hw_conf *conf = test_list(ONE);
	struct hw_attach at = TEST_ATTACH;
	struct hw_err e;

	place_plugin(*state, "a", GOOD);
	assert_int_equal(hw_add(cni, conf, &at, HW_ADD_UNDO | 1U << 31, NULL, &e), -EINVAL);
	assert_string_equal(e.msg, "hw_add: unsupported flags 0x80000000");
	assert_notes(*state, "");
}

static const struct CMUnitTest tests[] = {
	PLACE_TEST("cni: structs that can grow have no padding at their end", no_padding_at_end),
	PLACE_TEST("cni: struct hw_attach of older and newer callers is accepted",
		   attach_struct_sizes),
	PLACE_TEST("cni: a struct whose size is not set is refused", unset_sizes),
	PLACE_TEST("cni: struct hw_cni_options of older and newer callers is accepted",
		   options_struct_sizes),
	PLACE_TEST("cni: struct hw_run of an older caller is accepted", run_struct_sizes),
	PLACE_TEST("cni: cancel_fd 0 means no cancel descriptor", cancel_fd_zero),
	PLACE_TEST("cni: an unsupported flag is refused", unsupported_flags),
};

int main(void)
{
	return cmocka_run_group_tests_name("cni", tests, NULL, NULL);
}
