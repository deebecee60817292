/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/test-cni.c - structs of callers that are older or newer than the library
 */
#include "cni/runtime/cni.h"

#include "cni/test.h"

#include <errno.h>

#include "cni/runtime/conf.h"

/* Answers ADD, says what it was called for. */
#define GOOD "cat >/dev/null; note $CNI_COMMAND $CNI_ARGS; [ $CNI_COMMAND != ADD ] || echo '{}'"
#define ONE  "{\"name\":\"n\",\"cniVersion\":\"1.0.0\",\"plugins\":[{\"type\":\"a\"}]}"

/* Room behind the last member is never read from an older caller: a new member there would be. */
#define assert_ends_with(type, member)                                                             \
	assert_int_equal(sizeof(type),                                                             \
			 offsetof(type, member) + sizeof(((const type *)NULL)->member))

static void no_room_at_the_end(void **state)
{
	(void)state;
	assert_ends_with(struct hw_attach, timeout_ms);
	assert_ends_with(struct hw_cni_options, damaged_ctx);
	assert_ends_with(struct hw_exec, run);
	assert_ends_with(struct hw_run, deadline_ns);
	assert_ends_with(struct hw_ran, errors_len);
	assert_ends_with(struct hw_iface, reserved);
	assert_ends_with(struct hw_ipconf, reserved);
	assert_ends_with(struct hw_route, reserved);
	assert_ends_with(struct hw_cached, reserved);
}

static void attachments_of_all_ages(void **state)
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
	older.args = args; /* where an older caller has something else */
	older.n_args = 1;
	older.timeout_ms = 1;
	assert_ok(hw_add(cni, conf, &older, 0, NULL, &e), e);
	assert_notes(p, "ADD\n");
}

static void sizes_that_were_not_set(void **state)
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

static void options_of_all_ages(void **state)
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
	newer.options.exec = (const void *)1; /* not the caller's */
	assert_ok(hw_cni_new(&newer.options, &cni, &e), e);
	hw_cni_free(cni);

	newer.options.size = sizeof(newer.options);
	newer.options.exec = &exec;
	assert_int_equal(hw_cni_new(&newer.options, &cni, &e), -EINVAL);
	assert_string_equal(e.msg, "struct hw_exec.size is not set");
}

/* A program that wraps the default run() and fills in no more than it must. */
static void runs_of_all_ages(void **state)
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

/* Standard input is not what stops a run whose cancel_fd was left zero. */
static void zero_is_no_descriptor(void **state)
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

static void flags_of_later_versions(void **state)
{
	AUTO(hw_cni_free) struct hw_cni *cni = place_cni(*state);
	AUTO(hw_conf_free) struct hw_conf *conf = test_list(ONE);
	struct hw_attach at = TEST_ATTACH;
	struct hw_err e;

	place_plugin(*state, "a", GOOD);
	assert_int_equal(hw_add(cni, conf, &at, HW_ADD_UNDO | 1U << 31, NULL, &e), -EINVAL);
	assert_string_equal(e.msg, "hw_add: flags 0x80000000 are not known");
	assert_notes(*state, "");
}

static const struct CMUnitTest tests[] = {
	PLACE_TEST("cni: structs that grow end with their last member", no_room_at_the_end),
	PLACE_TEST("cni: attachments of older and newer callers are understood",
		   attachments_of_all_ages),
	PLACE_TEST("cni: a size that was not set is refused", sizes_that_were_not_set),
	PLACE_TEST("cni: options of older and newer callers are understood", options_of_all_ages),
	PLACE_TEST("cni: a run of an older caller is understood", runs_of_all_ages),
	PLACE_TEST("cni: a cancel descriptor that was left zero is none", zero_is_no_descriptor),
	PLACE_TEST("cni: a flag that is not known is refused", flags_of_later_versions),
};

int main(void)
{
	return cmocka_run_group_tests_name("cni", tests, NULL, NULL);
}
