/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/test-program.c - tests of plugin programs built for older and newer libraries
 *
 * This program also contains the plugins: its first argument selects one.
 */
#include "cni/plugin/program.h"

#include "cni/test.h"

#include <sys/wait.h>

#include "base/os/proc.h"
#include "base/time.h"

/* struct hw_plugin of a later library, with one more member. */
struct newer {
	struct hw_plugin plugin;
	const char *later;
};

static int add(struct hw_call *call, struct hw_err *e)
{
	return hw_prefix_parse("192.0.2.1/24", &hw_result_add_ip(call->result)->address, e);
}

static const struct hw_plugin whole = {
	.size = sizeof(whole),
	.name = "whole",
	.add = add,
};

/* Members beyond .size must be ignored. */
static const struct hw_plugin older = {
	.size = offsetof(struct hw_plugin, version),
	.name = "older",
	.add = add,
	.version = add,
	.versions = (const void *)1,
	.record = true,
};

static const struct newer newer = { .plugin = { .size = sizeof(newer), .name = "n", .add = add } };

static const struct newer using_it = { .plugin = { .size = sizeof(using_it), .name = "n" },
				       .later = "set" };

static const struct hw_plugin unset = { .name = "unset", .add = add };

static const struct hw_plugin nameless = { .size = sizeof(nameless), .add = add };

static const struct {
	const char *name;
	const struct hw_plugin *plugin;
} plugins[] = {
	{ "whole", &whole },	    { "older", &older },
	{ "newer", &newer.plugin }, { "using-it", &using_it.plugin },
	{ "unset", &unset },	    { "nameless", &nameless },
};

static struct proc_result run_plugin(const struct place *p, const char *plugin, const char *command)
{
	static const char config[] = "{\"cniVersion\":\"1.0.0\",\"name\":\"net\"}";
	autofree char *state_env = str_printf("HAWSER_STATE=%s", p->state);
	autofree char *command_env = str_printf("CNI_COMMAND=%s", command);
	const char *const argv[] = { "test-program", plugin, NULL };
	const char *const env[] = { command_env,
				    state_env,
				    "CNI_CONTAINERID=c1",
				    "CNI_IFNAME=eth0",
				    "CNI_NETNS=/nowhere",
				    "CNI_PATH=/nowhere",
				    NULL };
	struct proc_result result = { 0 };
	struct hw_err e;

	assert_ok(proc_run(&(struct proc){ .path = "/proc/self/exe",
					   .argv = argv,
					   .env = env,
					   .input = config,
					   .input_len = strlen(config),
					   .cancel_fd = -1,
					   .deadline = time_deadline(60000) },
			   &result, &e),
		  e);
	return result;
}

static void assert_adds(const struct place *p, const char *plugin)
{
	AUTO(proc_result_done) struct proc_result result = run_plugin(p, plugin, "ADD");

	assert_int_equal(result.status, 0);
	assert_contains(result.output.data, "\"192.0.2.1/24\"");
	assert_false(place_has(p, "state"));
}

static void struct_sizes(void **state)
{
	assert_adds(*state, "whole");
	assert_adds(*state, "older");
	assert_adds(*state, "newer");

	AUTO(proc_result_done) struct proc_result version = run_plugin(*state, "older", "VERSION");
	assert_int_equal(version.status, 0);
	assert_contains(version.output.data, "\"1.1.0\"]");
}

static void assert_refuses(const struct place *p, const char *plugin, const char *msg)
{
	AUTO(proc_result_done) struct proc_result answer = run_plugin(p, plugin, "ADD");
	AUTO(proc_result_done) struct proc_result by_hand = run_plugin(p, plugin, "");
	autofree char *json = str_printf("{\n    \"code\": 999,\n    \"msg\": \"%s\"\n}", msg);
	autofree char *line = str_printf("%s\n", msg);

	assert_true(WIFEXITED(answer.status) && WEXITSTATUS(answer.status) == 1);
	assert_string_equal(answer.output.data, json);
	assert_true(WIFEXITED(by_hand.status) && WEXITSTATUS(by_hand.status) == 1);
	assert_int_equal(by_hand.output.len, 0);
	assert_string_equal(by_hand.errors.data, line);
}

static void invalid_structs(void **state)
{
	assert_refuses(*state, "unset", "struct hw_plugin.size is not set");
	assert_refuses(*state, "using-it",
		       "struct hw_plugin has unsupported members set: the caller was built for a "
		       "newer library");
	assert_refuses(*state, "nameless", "struct hw_plugin.name is not set");
}

static void no_padding_at_end(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct hw_plugin),
			 offsetof(struct hw_plugin, repair) + sizeof(whole.repair));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		PLACE_TEST("program: plugins built for older and newer libraries work",
			   struct_sizes),
		PLACE_TEST("program: unsupported members and a missing size or name are refused",
			   invalid_structs),
		PLACE_TEST("program: struct hw_plugin has no padding at its end",
			   no_padding_at_end),
	};

	for (size_t i = 0; i < ARRAY_SIZE(plugins) && argc > 1; i++)
		if (str_equal(plugins[i].name, argv[1]))
			return hw_plugin_main(argc, argv, plugins[i].plugin);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
