/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/test-delegate.c - tests of delegation, with and without exec
 *
 * If this program is started as `inner`, it is the delegate. A symbolic link to
 * this program is the same binary, so the delegate is called without exec. A copy
 * of this program is another binary and is executed. The tests use both the link
 * and the copy, and expect the same reply.
 */
#include <hawser/plugin.h>

#include "cni/test.h"

#include <errno.h>
#include <libgen.h>

#include "base/os/proc.h"
#include "base/time.h"
#include "cni/plugin/program.h"
#include "cni/plugin/skel.h"
#include "cni/result.h"

/* ---- the delegate: "do" in its configuration tells what it does ---------------- */

struct inner_conf {
	char *what;
};

static const struct hw_field inner_fields[] = {
	{ "do", HW_STRING, HW_AT(struct inner_conf, what), .def = "\"nothing\"" },
	{ 0 },
};

static int inner_calls; /* number of calls in this process */

/* Fails with the path of standard error as the message. */
static int inner_stderr(struct hw_err *e)
{
	autofree char *path = realpath("/proc/self/fd/2", NULL);

	return hw_err_text(e, -EIO, "%s", str_or(path, "nowhere"));
}

static int inner_run(struct hw_call *call, struct hw_err *e)
{
	const char *what = ((const struct inner_conf *)call->conf)->what;

	inner_calls++;
	if (str_equal(what, "fail")) {
		hw_err_cni(e, 111, "no \"address\" left for %s %s", call->command,
			   call->container_id);
		return hw_err_details(e, "netns %s, args %s", call->netns, call->args);
	}
	if (str_equal(what, "fail-plainly"))
		return hw_err_text(e, -EIO, "failed");
	if (str_equal(what, "stderr"))
		return inner_stderr(e);
	if (str_equal(what, "print"))
		call->reply = str_copy("{ not JSON");
	if (str_equal(what, "print-nothing"))
		call->reply = str_copy("");
	if (str_equal(what, "exit"))
		call->exit_status = 3;
	if (call->result)
		return hw_prefix_parse("192.0.2.7/24", &hw_result_add_ip(call->result)->address, e);
	return 0;
}

static const struct hw_plugin inner = {
	.size = sizeof(inner),
	.name = "inner",
	.add = inner_run,
	.del = inner_run,
	.check = inner_run,
	.status = inner_run,
	.fields = inner_fields,
	.conf_size = sizeof(struct inner_conf),
};

static const struct hw_plugin *const siblings[] = { &inner, NULL };

/* ---- the caller ------------------------------------------------------------------ */

static struct {
	const char *plugin, *command, *input;
	char *answer; /* reply of the delegate: a result, or an error in one line */
} outer;

static int outer_run(struct hw_call *call, struct hw_err *e)
{
	AUTO(hw_result_free) struct hw_result *result = NULL;
	bool add = str_equal(outer.command, "ADD");
	struct hw_err why;

	int r = hw_delegate(call, outer.plugin, outer.command, outer.input, add ? &result : NULL,
			    &why);
	if (r < 0)
		outer.answer = str_printf("%d: %s; %s", hw_err_wire(&why), why.msg, why.details);
	else if (add)
		assert_int_equal(hw_result_format(result, "1.0.0", 0, &outer.answer, e), 0);
	else
		outer.answer = str_copy("done");
	return 0;
}

/* DEL of the plugin when it runs as a program: prints the reply of the delegate. */
static int outer_print(struct hw_call *call, struct hw_err *e)
{
	outer.plugin = "inner";
	outer.command = "DEL";
	int r = outer_run(call, e);
	call->reply = outer.answer;
	return r;
}

static const struct hw_plugin outer_plugin = {
	.size = sizeof(outer_plugin), .name = "outer", .add = outer_run, .del = outer_run
};

static const struct hw_plugin outer_program = { .size = sizeof(outer_program),
						.name = "outer",
						.del = outer_print };

static char *delegate(const char *path, const char *config)
{
	AUTO(skel_reply_done) struct skel_reply reply = { 0 };
	struct skel_request request = {
		.command = "DEL",
		.container_id = "c1",
		.netns = "/nowhere",
		.ifname = "eth0",
		.args = "A=b",
		.path = path,
		.netns_override = "yes",
		.input = config,
		.input_len = strlen(config),
		.siblings = siblings,
	};
	struct hw_err e;

	if (skel_call(&outer_plugin, &request, &reply, &e) < 0)
		fail_msg("%s", e.msg);
	return take_ptr(outer.answer);
}

/* Delegates with and without exec; the replies must be equal.
 * @calls: how often the delegate runs in this process */
static void assert_same(const struct place *p, const char *command, const char *config, int calls,
			const char *want)
{
	autofree char *link = str_printf("/missing:%s/link", p->dir);
	autofree char *copy = str_printf("%s/copy", p->dir);

	outer.plugin = "inner";
	outer.command = command;
	inner_calls = 0;
	autofree char *inside = delegate(link, config);
	assert_int_equal(inner_calls, calls);
	autofree char *outside = delegate(copy, config);
	assert_int_equal(inner_calls, calls);
	assert_string_equal(inside, outside);
	assert_string_equal(inside, want);
}

static void assert_both(const struct place *p, const char *command, const char *config,
			const char *want)
{
	assert_same(p, command, config, 1, want);
}

static void copy_self(const char *to)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err e;

	assert_ok(file_read(AT_FDCWD, "/proc/self/exe", 64 << 20, &b, &e), e);
	assert_ok(file_replace(AT_FDCWD, to, b.data, b.len, 0755, 0, &e), e);
}

static int setup(void **state)
{
	int r = place_setup(state);
	const struct place *p = *state;
	autofree char *link = str_printf("%s/link", p->dir);
	autofree char *copy = str_printf("%s/copy", p->dir);
	autofree char *link_inner = str_printf("%s/inner", link);
	autofree char *copy_inner = str_printf("%s/inner", copy);
	autofree char *self = realpath("/proc/self/exe", NULL);

	memset(&outer, 0, sizeof(outer));
	if (r < 0 || mkdir(link, 0700) < 0 || mkdir(copy, 0700) < 0 ||
	    symlink(self, link_inner) < 0)
		return -1;
	copy_self(copy_inner);
	return 0;
}

#define DO(what) "{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"do\":\"" what "\"}"

static void succeeds(void **state)
{
	assert_both(*state, "ADD", DO("nothing"),
		    "{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"192.0.2.7/24\"}]}");
	assert_both(*state, "DEL", DO("nothing"), "done");
	assert_both(*state, "CHECK", DO("nothing"), "done");
}

static void old_version(void **state)
{
	assert_both(*state, "ADD", "{\"name\":\"net\"}",
		    "{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"192.0.2.7/24\"}]}");
}

static void fails(void **state)
{
	/* The delegate's own undo calls the same function again, and fails too. */
	assert_same(*state, "ADD", DO("fail"), 2,
		    "111: no \"address\" left for ADD c1; netns /nowhere, args A=b; "
		    "undo also failed: no \"address\" left for ADD c1");
	assert_both(*state, "DEL", DO("fail"),
		    "111: no \"address\" left for DEL c1; netns /nowhere, args A=b");
	assert_both(*state, "DEL", DO("fail-plainly"), "999: failed; ");
}

static void is_refused(void **state)
{
	assert_same(*state, "STATUS", DO("nothing"), 0,
		    "1: config version does not allow STATUS; ");
	assert_same(*state, "PLAY", DO("nothing"), 0, "4: unknown CNI_COMMAND: PLAY; ");
}

static void prints_no_result(void **state)
{
	const struct place *p = *state;
	autofree char *link = str_printf("%s/link", p->dir);

	outer.plugin = "inner";
	outer.command = "ADD";
	autofree char *why = delegate(link, DO("print"));
	assert_starts(why, "999: failed to unmarshal raw result: ");
	assert_both(p, "ADD", DO("print"), why);
	assert_both(p, "ADD", DO("print-nothing"),
		    "999: failed to unmarshal raw result: unexpected end of JSON input; ");
	assert_both(p, "DEL", DO("print"), "done");
}

static void exits(void **state)
{
	assert_both(*state, "DEL", DO("exit"),
		    "0: netplugin failed with no error message: exit status 3; ");
}

static void other_input(void **state)
{
	outer.input = DO("fail-plainly");
	assert_both(*state, "DEL", DO("nothing"), "999: failed; ");
}

static void not_found(void **state)
{
	(void)state;
	outer.plugin = "inner";
	outer.command = "ADD";
	autofree char *why = delegate("/missing:/nowhere", DO("nothing"));
	assert_string_equal(why, "999: failed to find plugin \"inner\" in path "
				 "[/missing /nowhere]; ");
	outer.plugin = "in/ner";
	autofree char *slash = delegate("/missing", DO("nothing"));
	assert_string_equal(slash, "999: invalid plugin name: in/ner; ");
}

static void not_a_sibling(void **state)
{
	const struct place *p = *state;

	place_plugin(p, "shell", "cat >/dev/null; echo '{\"ips\":[{\"address\":\"10.0.0.1/8\"}]}'");
	outer.plugin = "shell";
	outer.command = "ADD";
	autofree char *answer = delegate(p->bin, DO("nothing"));
	assert_string_equal(answer, "{\"cniVersion\":\"1.0.0\",\"ips\":"
				    "[{\"address\":\"10.0.0.1/8\"}]}");
}

/* A runtime that times out kills the plugin's process group, which must include the delegate. */
static void stays_in_the_group(void **state)
{
	const struct place *p = *state;
	autofree char *want = str_printf("7: %d; ", (int)getpgrp());

	place_plugin(p, "shell",
		     "read -r _ _ _ _ group _ </proc/$$/stat\n"
		     "echo \"{\\\"code\\\":7,\\\"msg\\\":\\\"$group\\\"}\"; exit 1");
	outer.plugin = "shell";
	outer.command = "DEL";
	autofree char *answer = delegate(p->bin, DO("nothing"));
	assert_string_equal(answer, want);
}

/* If our standard error is closed, no other file may become the delegate's standard error. */
static void closed_descriptors(void **state)
{
	const struct place *p = *state;
	AUTO(proc_result_done) struct proc_result result = { 0 };
	autofree char *self = realpath("/proc/self/exe", NULL);
	autofree char *script = str_printf(
		"ln -s %s %s/outer; echo '%s' | CNI_COMMAND=DEL CNI_CONTAINERID=c1 CNI_IFNAME=eth0 "
		"CNI_PATH=%s/copy %s/outer 2>&-",
		self, p->dir, DO("stderr"), p->dir, p->dir);
	const char *const argv[] = { "sh", "-c", script, NULL };
	struct hw_err e;

	assert_ok(proc_run(&(struct proc){ .path = "/bin/sh",
					   .argv = argv,
					   .cancel_fd = -1,
					   .deadline = time_deadline(60000) },
			   &result, &e),
		  e);
	assert_int_equal(result.status, 0);
	assert_string_equal(result.output.data, "999: /dev/null; ");
}

static void environment(void **state)
{
	const struct place *p = *state;

	place_plugin(p, "shell",
		     "note $CNI_COMMAND $CNI_CONTAINERID $CNI_NETNS $CNI_IFNAME $CNI_ARGS "
		     "$CNI_NETNS_OVERRIDE");
	outer.plugin = "shell";
	outer.command = "CHECK";
	autofree char *answer = delegate(p->bin, DO("nothing"));
	assert_string_equal(answer, "done");
	assert_notes(p, "CHECK c1 /nowhere eth0 A=b yes\n");
}

#define TEST(sentence, f)                                                                          \
	{                                                                                          \
		sentence, f, setup, place_teardown, NULL                                           \
	}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST("delegate: a successful reply is the same with and without exec", succeeds),
		TEST("delegate: a result of an old version is accepted", old_version),
		TEST("delegate: an error keeps its code, text and details", fails),
		TEST("delegate: protocol errors are the same with and without exec", is_refused),
		TEST("delegate: an ADD that prints no valid result fails", prints_no_result),
		TEST("delegate: a nonzero exit status without output is an error", exits),
		TEST("delegate: the delegate gets the configuration that the caller passes",
		     other_input),
		TEST("delegate: a missing plugin is an error", not_found),
		TEST("delegate: a plugin that is not part of this binary is executed",
		     not_a_sibling),
		TEST("delegate: an executed plugin stays in our process group", stays_in_the_group),
		TEST("delegate: a closed standard error is replaced by /dev/null",
		     closed_descriptors),
		TEST("delegate: an executed plugin gets the environment of the call", environment),
	};

	if (str_equal(basename(argv[0]), "inner"))
		return program_main(argc, argv, &inner, siblings);
	if (str_equal(basename(argv[0]), "outer"))
		return program_main(argc, argv, &outer_program, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
