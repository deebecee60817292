/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/test-exec.c - tests of running plugins, most of them faulty
 */
#include "cni/runtime/exec.h"

#include "cni/test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "base/time.h"
#include "cni/result.h"

/* ---- find ------------------------------------------------------------------- */

static void find_refuses(void **state)
{
	const struct place *p = *state;
	const char *const none[] = { NULL };
	const char *const three[] = { "/a", p->bin, "/c", NULL };
	autofree char *want = str_printf("failed to find plugin \"x\" in path [/a %s /c]", p->bin);
	char *path = NULL;
	struct hw_err e;

	assert_int_equal(exec_find(NULL, "", three, &path, &e), -EINVAL);
	assert_string_equal(e.msg, "no plugin name provided");
	assert_int_equal(exec_find(NULL, "../x", three, &path, &e), -EINVAL);
	assert_string_equal(e.msg, "invalid plugin name: ../x");
	assert_int_equal(exec_find(NULL, "x", none, &path, &e), -EINVAL);
	assert_string_equal(e.msg, "no paths provided");
	assert_int_equal(exec_find(NULL, "x", three, &path, &e), -ENOENT);
	assert_string_equal(e.msg, want);
	assert_null(path);
}

static void find_first_file(void **state)
{
	const struct place *p = *state;
	autofree char *other = str_printf("%s/other", p->dir);
	autofree char *directory = str_printf("%s/bin/x", p->dir);
	autofree char *want = str_printf("%s/x", other);
	const char *const dirs[] = { p->bin, other, NULL };
	autofree char *path = NULL;
	struct hw_err e;

	assert_int_equal(mkdir(other, 0700), 0);
	assert_int_equal(mkdir(directory, 0700), 0);
	place_write(p, "file", "", 0600);
	assert_int_equal(symlink("../file", want), 0);
	assert_ok(exec_find(NULL, "x", dirs, &path, &e), e);
	assert_string_equal(path, want);
}

static void find_empty_directory(void **state)
{
	const struct place *p = *state;
	const char *const dirs[] = { "", NULL };
	char *path = NULL;
	struct hw_err e;

	place_plugin(p, "x", "");
	assert_int_equal(chdir(p->bin), 0);
	assert_int_equal(exec_find(NULL, "x", dirs, &path, &e), -ENOENT);
	assert_int_equal(chdir("/"), 0);
}

/* ---- one plugin, called "x" ----------------------------------------------------- */

struct answer {
	int r;
	struct hw_err e;
	char *output;
	size_t len;
};

static struct exec_call call_of(const char *path)
{
	return (struct exec_call){
		.plugin = path,
		.env = { .command = "ADD",
			 .container_id = "c1",
			 .netns = "/ns",
			 .ifname = "eth0",
			 .args = "A=1",
			 .path = "/p" },
		.input = "{}",
		.input_len = 2,
		.stderr_mode = HW_STDERR_DROP,
		.cancel_fd = -1,
		.deadline = time_deadline(20000),
	};
}

static void answer_done(struct answer *a)
{
	free(a->output);
}

AUTO_VALUE_DEFINE(answer_done, struct answer);

/* Runs the script as plugin "x". @change: NULL, or changes the call before it runs */
static struct answer run_script(const struct place *p, const char *body,
				void (*change)(struct exec_call *call))
{
	autofree char *path = str_printf("%s/x", p->bin);
	struct exec_call call = call_of(path);
	struct answer a = { 0 };

	place_plugin(p, "x", body);
	if (change)
		change(&call);
	a.r = exec_call(&call, &a.output, &a.len, &a.e);
	return a;
}

static void input_and_output(void **state)
{
	AUTO(answer_done)
	struct answer a = run_script(*state, "cat >$D/in; echo '{\"a\":1}'", NULL);
	autofree char *in = place_read(*state, "in");

	assert_int_equal(a.r, 0);
	assert_int_equal(a.len, 8);
	assert_memory_equal(a.output, "{\"a\":1}\n", 8);
	assert_string_equal(in, "{}");
}

static void environment(void **state)
{
	AUTO(answer_done) struct answer a = { 0 };

	setenv("CNI_COMMAND", "wrong", 1);
	setenv("CNI_ARGS", "wrong", 1);
	setenv("HAWSER_TEST_INHERITED", "yes", 1);
	a = run_script(*state,
		       "env | grep '^CNI_' | sort | tr '\\n' ' ' >$D/env\n"
		       "note $HAWSER_TEST_INHERITED $(tr '\\0' '\\n' </proc/$$/environ | "
		       "cut -d= -f1 | sort | uniq -d | wc -l)",
		       NULL);
	unsetenv("CNI_COMMAND");
	unsetenv("CNI_ARGS");
	unsetenv("HAWSER_TEST_INHERITED");
	assert_int_equal(a.r, 0);
	autofree char *env = place_read(*state, "env");
	assert_string_equal(env, "CNI_ARGS=A=1 CNI_COMMAND=ADD CNI_CONTAINERID=c1 CNI_IFNAME=eth0 "
				 "CNI_NETNS=/ns CNI_PATH=/p ");
	assert_notes(*state, "yes 0\n");
}

static void set_only_command(struct exec_call *call)
{
	call->env = (struct exec_env){ .command = "DEL" };
}

static void environment_inherited(void **state)
{
	AUTO(answer_done) struct answer a = { 0 };

	setenv("CNI_ARGS", "B=2", 1);
	a = run_script(*state, "note $CNI_COMMAND $CNI_ARGS ${CNI_NETNS-none}", set_only_command);
	unsetenv("CNI_ARGS");
	assert_int_equal(a.r, 0);
	assert_notes(*state, "DEL B=2 none\n");
}

static void own_error(void **state)
{
	AUTO(answer_done)
	struct answer a = run_script(
		*state, "echo '{\"code\":7,\"msg\":\"bad\",\"details\":\"why\"}'; exit 1", NULL);

	assert_true(a.r < 0);
	assert_int_equal(hw_err_wire(&a.e), 7);
	assert_string_equal(a.e.msg, "bad");
	assert_string_equal(a.e.details, "why");
	assert_null(a.output);
}

static void fails_silently(void **state)
{
	AUTO(answer_done) struct answer a = run_script(*state, "exit 3", NULL);

	assert_true(a.r < 0);
	assert_string_equal(a.e.msg, "netplugin failed with no error message: exit status 3");
}

static void fails_on_stderr(void **state)
{
	AUTO(answer_done)
	struct answer a = run_script(*state, "printf 'a \"b\"\\n\\001' >&2; exit 1", NULL);

	assert_true(a.r < 0);
	assert_string_equal(a.e.msg, "netplugin failed: \"a \\\"b\\\"\\n\\x01\": exit status 1");
}

static void fails_with_garbage(void **state)
{
	AUTO(answer_done) struct answer a = run_script(*state, "echo oh no; exit 1", NULL);

	assert_true(a.r < 0);
	assert_string_equal(a.e.msg, "netplugin failed but error parsing its diagnostic message "
				     "\"oh no\\n\": exit status 1");
}

static void fails_with_long_garbage(void **state)
{
	AUTO(answer_done)
	struct answer a = run_script(*state, "yes | head -c 100000; exit 1", NULL);

	assert_true(a.r < 0);
	assert_contains(a.e.msg, "...: exit status 1");
}

static void killed_by_signal(void **state)
{
	AUTO(answer_done) struct answer a = run_script(*state, "kill -9 $$", NULL);

	assert_true(a.r < 0);
	assert_string_equal(a.e.msg, "netplugin failed with no error message: signal: killed");
}

static void error_with_exit_0(void **state)
{
	AUTO(answer_done)
	struct answer a = run_script(*state, "echo '{\"code\":11,\"msg\":\"later\"}'", NULL);

	assert_true(a.r < 0);
	assert_int_equal(hw_err_wire(&a.e), 11);
	assert_string_equal(a.e.msg, "later");
}

static void result_with_odd_keys(void **state)
{
	AUTO(answer_done)
	struct answer a = run_script(*state, "echo '{\"code\":1,\"msg\":\"x\",\"ips\":[]}'", NULL);

	assert_int_equal(a.r, 0);
}

static void set_del(struct exec_call *call)
{
	call->env.command = "DEL";
}

static void del_with_exit_0(void **state)
{
	AUTO(answer_done)
	struct answer a = run_script(*state, "echo '{\"code\":11,\"msg\":\"later\"}'", set_del);

	assert_int_equal(a.r, 0);
}

static void prints_100_mb(void **state)
{
	AUTO(answer_done) struct answer a = run_script(*state, "head -c 100000000 /dev/zero", NULL);

	assert_int_equal(a.r, -EFBIG);
	assert_string_equal(a.e.msg, "netplugin failed: output exceeds 4 MiB, killed");
}

static void set_short_deadline(struct exec_call *call)
{
	call->deadline = time_deadline(200);
}

/* The process whose ID the plugin wrote to its notes must have exited. */
static void assert_exited(const struct place *p)
{
	autofree char *text = place_notes(p);
	long long pid;

	text[strcspn(text, "\n")] = '\0';
	assert_true(str_to_int64(text, 1, INT32_MAX, &pid));
	for (int i = 0; i < 200 && kill((pid_t)pid, 0) == 0; i++)
		time_sleep(50);
	assert_int_equal(kill((pid_t)pid, 0), -1);
}

static void times_out(void **state)
{
	AUTO(answer_done)
	struct answer a =
		run_script(*state, "note $$; while :; do sleep 1; done", set_short_deadline);

	assert_int_equal(a.r, -ETIMEDOUT);
	assert_starts(a.e.msg, "netplugin failed with no error message: timed out after 0.");
	assert_exited(*state);
}

static int cancel_pipe[2];

static void open_cancel_pipe(void)
{
	assert_int_equal(pipe2(cancel_pipe, O_CLOEXEC), 0);
}

static void close_cancel_pipe(void)
{
	close(cancel_pipe[0]);
	close(cancel_pipe[1]);
}

static void set_cancel_fd(struct exec_call *call)
{
	call->cancel_fd = cancel_pipe[0];
}

static void *cancel_when_noted(void *arg)
{
	const struct place *p = arg;

	while (!place_has(p, "notes"))
		time_sleep(10);
	return write(cancel_pipe[1], "x", 1) == 1 ? arg : NULL;
}

static void is_cancelled(void **state)
{
	AUTO(answer_done) struct answer a = { 0 };
	pthread_t thread;

	open_cancel_pipe();
	assert_int_equal(pthread_create(&thread, NULL, cancel_when_noted, *state), 0);
	/* renamed, so that the note is complete when the file appears */
	a = run_script(*state, "echo $$ >$D/n; mv $D/n $D/notes; while :; do sleep 1; done",
		       set_cancel_fd);
	pthread_join(thread, NULL);
	close_cancel_pipe();
	assert_int_equal(a.r, -ECANCELED);
	assert_starts(a.e.msg, "netplugin failed with no error message: cancelled after ");
	assert_exited(*state);
}

static void grandchild_holds_stdout(void **state)
{
	AUTO(answer_done)
	struct answer a = run_script(*state, "sleep 300 & note $!; echo '{}'", NULL);
	autofree char *text = place_notes(*state);
	long long pid;

	assert_int_equal(a.r, 0);
	assert_int_equal(a.len, 3);
	text[strcspn(text, "\n")] = '\0';
	assert_true(str_to_int64(text, 1, INT32_MAX, &pid));
	/* the grandchild still runs: some plugins start a daemon on purpose */
	assert_int_equal(kill((pid_t)pid, SIGKILL), 0);
}

static void not_executable(void **state)
{
	const struct place *p = *state;
	autofree char *path = str_printf("%s/y", p->bin);
	struct exec_call call = call_of(path);
	struct answer a = { 0 };

	place_write(p, "bin/y", "#!/bin/sh\n", 0644);
	a.r = exec_call(&call, &a.output, &a.len, &a.e);
	assert_int_equal(a.r, -EACCES);
	assert_starts(a.e.msg, "netplugin failed with no error message: ");
	assert_contains(a.e.msg, path);
	assert_contains(a.e.msg, "Permission denied");
}

/* ---- a plugin file open for writing ---------------------------------------------- */

static int open_for_writing(const struct place *p)
{
	autofree char *path = str_printf("%s/x", p->bin);

	place_plugin(p, "x", "echo '{}'");
	return open(path, O_WRONLY | O_CLOEXEC);
}

static void *close_later(void *arg)
{
	time_sleep(100);
	close(*(int *)arg);
	return NULL;
}

static void busy_then_closed(void **state)
{
	const struct place *p = *state;
	autofree char *path = str_printf("%s/x", p->bin);
	struct exec_call call = call_of(path);
	AUTO(answer_done) struct answer a = { 0 };
	int fd = open_for_writing(p);
	pthread_t thread;

	assert_true(fd >= 0);
	assert_int_equal(pthread_create(&thread, NULL, close_later, &fd), 0);
	a.r = exec_call(&call, &a.output, &a.len, &a.e);
	pthread_join(thread, NULL);
	assert_ok(a.r, a.e);
	assert_int_equal(a.len, 3);
}

static void stays_busy(void **state)
{
	const struct place *p = *state;
	autofree char *path = str_printf("%s/x", p->bin);
	struct exec_call call = call_of(path);
	struct answer a = { 0 };
	autoclose int fd = open_for_writing(p);

	assert_true(fd >= 0);
	call.env.command = "DEL"; /* with libcni, this DEL succeeds without running the plugin */
	a.r = exec_call(&call, &a.output, &a.len, &a.e);
	assert_int_equal(a.r, -ETXTBSY);
	assert_contains(a.e.msg, "Text file busy");
}

static void busy_and_cancelled(void **state)
{
	const struct place *p = *state;
	autofree char *path = str_printf("%s/x", p->bin);
	struct exec_call call = call_of(path);
	struct answer a = { 0 };
	autoclose int fd = open_for_writing(p);

	assert_true(fd >= 0);
	open_cancel_pipe();
	set_cancel_fd(&call);
	assert_int_equal(write(cancel_pipe[1], "x", 1), 1);
	a.r = exec_call(&call, &a.output, &a.len, &a.e);
	close_cancel_pipe();
	assert_int_equal(a.r, -ECANCELED);
}

/* ---- a plugin that is replaced -------------------------------------------------------- */

static void replaced_while_running(void **state)
{
	const struct place *p = *state;
	autofree char *path = str_printf("%s/x", p->bin);
	struct exec_call call = call_of(path);
	AUTO(answer_done) struct answer before = { 0 }, after = { 0 }, gone = { 0 };

	place_write(p, "new", "#!/bin/sh\nrm $0\necho '{\"new\":1}'\n", 0755);
	before = run_script(p, "mv $D/new $0; echo '{\"old\":1}'", NULL);
	assert_ok(before.r, before.e);
	assert_string_equal(before.output, "{\"old\":1}\n");
	after.r = exec_call(&call, &after.output, &after.len, &after.e);
	assert_ok(after.r, after.e);
	assert_string_equal(after.output, "{\"new\":1}\n");
	gone.r = exec_call(&call, &gone.output, &gone.len, &gone.e);
	assert_int_equal(gone.r, -ENOENT);
	assert_contains(gone.e.msg, path);
}

/* ---- standard error ----------------------------------------------------------------- */

/* Return: the text on our standard error after a successful plugin wrote "hint" to its own */
static char *stderr_with(const struct place *p, enum hw_stderr mode)
{
	autofree char *path = str_printf("%s/x", p->bin);
	autofree char *file = str_printf("%s/stderr", p->dir);
	struct exec_call call = call_of(path);
	autoclose int ours = dup(STDERR_FILENO);
	autoclose int fd = open(file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct answer a = { 0 };

	place_plugin(p, "x", "echo hint >&2; readlink /proc/self/fd/2 >$D/target");
	assert_true(ours >= 0 && fd >= 0);
	call.stderr_mode = mode;
	fflush(stderr);
	dup2(fd, STDERR_FILENO);
	a.r = exec_call(&call, &a.output, &a.len, &a.e);
	dup2(ours, STDERR_FILENO);
	assert_ok(a.r, a.e);
	free(a.output);
	return place_read(p, "stderr");
}

static void stderr_modes(void **state)
{
	const struct place *p = *state;
	autofree char *after = stderr_with(p, HW_STDERR_AFTER);
	autofree char *collected = place_read(p, "target");
	autofree char *through = stderr_with(p, HW_STDERR_THROUGH);
	autofree char *direct = place_read(p, "target");
	autofree char *dropped = stderr_with(p, HW_STDERR_DROP);

	assert_string_equal(after, "hint\n");
	assert_starts(collected, "pipe:");
	assert_string_equal(through, "hint\n");
	assert_contains(direct, "/stderr");
	assert_string_equal(dropped, "");
}

/* ---- results -------------------------------------------------------------------------- */

static struct hw_result *result_of(const char *text)
{
	struct hw_result *result = NULL;
	struct hw_err e;

	assert_ok(exec_result(text, strlen(text), "1.0.0", &result, &e), e);
	return result;
}

static void results(void **state)
{
	AUTO(hw_result_free) struct hw_result *none = result_of("null");
	AUTO(hw_result_free) struct hw_result *unversioned = result_of("{}");
	AUTO(hw_result_free) struct hw_result *old = result_of("{\"cniVersion\":\"0.3.1\"}");

	(void)state;
	assert_string_equal(none->version, "1.0.0");
	assert_string_equal(unversioned->version, "1.0.0");
	assert_string_equal(old->version, "0.3.1");
}

static void invalid_results(void **state)
{
	static const char *const bad[] = { "{\"cniVersion\":", "[]", "7", "{} {}" };
	struct hw_result *result = NULL;
	struct hw_err e;

	(void)state;
	assert_int_equal(exec_result("", 0, "1.0.0", &result, &e), -EINVAL);
	assert_string_equal(e.msg, "failed to unmarshal raw result: unexpected end of JSON input");
	assert_true(exec_result(bad[0], strlen(bad[0]), "1.0.0", &result, &e) < 0);
	assert_starts(e.msg, "failed to unmarshal raw result: ");
	for (size_t i = 1; i < ARRAY_SIZE(bad); i++)
		assert_true(exec_result(bad[i], strlen(bad[i]), "1.0.0", &result, &e) < 0);
	assert_null(result);
}

/* ---- struct hw_exec ---------------------------------------------------------------------- */

static int custom_find(void *ctx, const char *plugin, const char *const *dirs, char **ret_path,
		       struct hw_err *e)
{
	(void)dirs, (void)e;
	*ret_path = str_printf("%s/%s", (const char *)ctx, plugin);
	return 0;
}

static int custom_run(void *ctx, const struct hw_run *run, struct hw_ran *ret_ran, struct hw_err *e)
{
	(void)ctx, (void)e;
	ret_ran->output = str_printf("{\"ran\":\"%s\"}", run->plugin);
	ret_ran->output_len = strlen(ret_ran->output);
	return 0;
}

static void custom_exec(void **state)
{
	char dir[] = "/nowhere";
	const struct hw_exec exec = { sizeof(exec), dir, custom_find, custom_run };
	autofree char *path = NULL;
	struct answer a = { 0 };
	struct exec_call call;
	struct hw_err e;

	(void)state;
	assert_ok(exec_find(&exec, "x", NULL, &path, &e), e);
	call = call_of(path);
	call.exec = &exec;
	assert_ok(exec_call(&call, &a.output, &a.len, &a.e), a.e);
	assert_string_equal(a.output, "{\"ran\":\"/nowhere/x\"}");
	free(a.output);
}

static int failing_run(void *ctx, const struct hw_run *run, struct hw_ran *ret_ran,
		       struct hw_err *e)
{
	(void)run, (void)ret_ran;
	hw_err_cni(e, 123, "refused by the caller");
	hw_err_details(e, "d");
	return e->code = *(const int *)ctx;
}

static void custom_run_fails(void **state)
{
	int code;
	const struct hw_exec exec = { sizeof(exec), &code, NULL, failing_run };
	struct exec_call call = call_of("/nowhere");
	struct answer a = { 0 };

	(void)state;
	call.exec = &exec;
	for (const int *c = (const int[]){ -EACCES, -ETIMEDOUT, -ECANCELED, -EFBIG, 0 }; *c; c++) {
		code = *c;
		assert_int_equal(exec_call(&call, &a.output, &a.len, &a.e), code);
		assert_string_equal(a.e.msg, "refused by the caller");
		assert_string_equal(a.e.details, "d");
		assert_int_equal(hw_err_wire(&a.e), 123);
	}
}

static const struct CMUnitTest tests[] = {
	PLACE_TEST("exec: if a plugin is not found, libcni's error is returned", find_refuses),
	PLACE_TEST("exec: the first regular file is found, even through a symbolic link and if not "
		   "executable",
		   find_first_file),
	PLACE_TEST("exec: an empty directory name does not mean the current directory",
		   find_empty_directory),
	PLACE_TEST("exec: a plugin gets its input and its output is returned", input_and_output),
	PLACE_TEST("exec: CNI variables are replaced, others are inherited, none is set twice",
		   environment),
	PLACE_TEST("exec: a CNI variable that the caller does not set is inherited",
		   environment_inherited),
	PLACE_TEST("exec: a plugin's error object keeps its code and details", own_error),
	PLACE_TEST("exec: a failure without output reports the exit status", fails_silently),
	PLACE_TEST("exec: the error of a failed plugin quotes its standard error", fails_on_stderr),
	PLACE_TEST("exec: the error of a failed plugin quotes output that is not an error object",
		   fails_with_garbage),
	PLACE_TEST("exec: after long quoted output, the error still contains the exit status",
		   fails_with_long_garbage),
	PLACE_TEST("exec: a killed plugin is reported as killed", killed_by_signal),
	PLACE_TEST("exec: an ADD that prints an error object fails, even with exit status 0",
		   error_with_exit_0),
	PLACE_TEST("exec: a result that also has the keys code and msg is accepted as a result",
		   result_with_odd_keys),
	PLACE_TEST("exec: the output of DEL is ignored", del_with_exit_0),
	PLACE_TEST("exec: 100 MB of output is an error", prints_100_mb),
	PLACE_TEST("exec: a plugin that hangs is killed at the deadline", times_out),
	PLACE_TEST("exec: a plugin is killed on cancel", is_cancelled),
	PLACE_TEST("exec: a grandchild that holds the output open does not block the call",
		   grandchild_holds_stdout),
	PLACE_TEST("exec: an error names the file that cannot be executed", not_executable),
	PLACE_TEST("exec: a plugin whose file is being written is retried", busy_then_closed),
	PLACE_TEST("exec: a plugin whose file stays busy is an error, even for DEL", stays_busy),
	PLACE_TEST("exec: waiting for a busy plugin can be cancelled", busy_and_cancelled),
	PLACE_TEST("exec: a plugin file may be replaced or removed while it runs",
		   replaced_while_running),
	PLACE_TEST("exec: standard error is copied after success, passed through or dropped, as "
		   "the caller chooses",
		   stderr_modes),
	PLACE_TEST(
		"exec: a result without version gets the configuration's; null is an empty result",
		results),
	PLACE_TEST("exec: truncated and malformed results are refused", invalid_results),
	PLACE_TEST("exec: find() and run() that the caller provides are used", custom_exec),
	PLACE_TEST("exec: an error of the caller's run() is passed on unchanged", custom_run_fails),
};

int main(void)
{
	return cmocka_run_group_tests_name("exec", tests, NULL, NULL);
}
