/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/test-exec.c - plugins of every kind, most of them bad
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

static void find_takes_the_first_file(void **state)
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

static void find_is_not_here(void **state)
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

/* Runs the script; change is NULL or adapts the call. */
static struct answer ask(const struct place *p, const char *body,
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

static void good_plugin(void **state)
{
	AUTO(answer_done) struct answer a = ask(*state, "cat >$D/in; echo '{\"a\":1}'", NULL);
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
	a = ask(*state,
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

static void only_the_command(struct exec_call *call)
{
	call->env = (struct exec_env){ .command = "DEL" };
}

static void environment_inherited(void **state)
{
	AUTO(answer_done) struct answer a = { 0 };

	setenv("CNI_ARGS", "B=2", 1);
	a = ask(*state, "note $CNI_COMMAND $CNI_ARGS ${CNI_NETNS-none}", only_the_command);
	unsetenv("CNI_ARGS");
	assert_int_equal(a.r, 0);
	assert_notes(*state, "DEL B=2 none\n");
}

static void own_error(void **state)
{
	AUTO(answer_done)
	struct answer a = ask(
		*state, "echo '{\"code\":7,\"msg\":\"bad\",\"details\":\"why\"}'; exit 1", NULL);

	assert_true(a.r < 0);
	assert_int_equal(hw_err_wire(&a.e), 7);
	assert_string_equal(a.e.msg, "bad");
	assert_string_equal(a.e.details, "why");
	assert_null(a.output);
}

static void fails_without_a_word(void **state)
{
	AUTO(answer_done) struct answer a = ask(*state, "exit 3", NULL);

	assert_true(a.r < 0);
	assert_string_equal(a.e.msg, "netplugin failed with no error message: exit status 3");
}

static void fails_on_stderr(void **state)
{
	AUTO(answer_done)
	struct answer a = ask(*state, "printf 'a \"b\"\\n\\001' >&2; exit 1", NULL);

	assert_true(a.r < 0);
	assert_string_equal(a.e.msg, "netplugin failed: \"a \\\"b\\\"\\n\\x01\": exit status 1");
}

static void fails_with_garbage(void **state)
{
	AUTO(answer_done) struct answer a = ask(*state, "echo oh no; exit 1", NULL);

	assert_true(a.r < 0);
	assert_string_equal(a.e.msg, "netplugin failed but error parsing its diagnostic message "
				     "\"oh no\\n\": exit status 1");
}

static void fails_with_much_garbage(void **state)
{
	AUTO(answer_done) struct answer a = ask(*state, "yes | head -c 100000; exit 1", NULL);

	assert_true(a.r < 0);
	assert_contains(a.e.msg, "...: exit status 1");
}

static void is_killed(void **state)
{
	AUTO(answer_done) struct answer a = ask(*state, "kill -9 $$", NULL);

	assert_true(a.r < 0);
	assert_string_equal(a.e.msg, "netplugin failed with no error message: signal: killed");
}

static void error_with_exit_0(void **state)
{
	AUTO(answer_done)
	struct answer a = ask(*state, "echo '{\"code\":11,\"msg\":\"later\"}'", NULL);

	assert_true(a.r < 0);
	assert_int_equal(hw_err_wire(&a.e), 11);
	assert_string_equal(a.e.msg, "later");
}

static void result_with_odd_keys(void **state)
{
	AUTO(answer_done)
	struct answer a = ask(*state, "echo '{\"code\":1,\"msg\":\"x\",\"ips\":[]}'", NULL);

	assert_int_equal(a.r, 0);
}

static void as_del(struct exec_call *call)
{
	call->env.command = "DEL";
}

static void del_with_exit_0(void **state)
{
	AUTO(answer_done)
	struct answer a = ask(*state, "echo '{\"code\":11,\"msg\":\"later\"}'", as_del);

	assert_int_equal(a.r, 0);
}

static void prints_100_mb(void **state)
{
	AUTO(answer_done) struct answer a = ask(*state, "head -c 100000000 /dev/zero", NULL);

	assert_int_equal(a.r, -EFBIG);
	assert_string_equal(a.e.msg, "netplugin failed: it printed more than 4 MiB and was killed");
}

static void soon(struct exec_call *call)
{
	call->deadline = time_deadline(200);
}

/* Neither the plugin nor what it started is there any more. */
static void assert_gone(const struct place *p)
{
	autofree char *text = place_notes(p);
	long long pid;

	text[strcspn(text, "\n")] = '\0';
	assert_true(str_to_int64(text, 1, INT32_MAX, &pid));
	for (int i = 0; i < 200 && kill((pid_t)pid, 0) == 0; i++)
		time_sleep(50);
	assert_int_equal(kill((pid_t)pid, 0), -1);
}

static void never_ends(void **state)
{
	AUTO(answer_done) struct answer a = ask(*state, "note $$; while :; do sleep 1; done", soon);

	assert_int_equal(a.r, -ETIMEDOUT);
	assert_starts(a.e.msg, "netplugin failed with no error message: timed out after 0.");
	assert_gone(*state);
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

static void cancellable(struct exec_call *call)
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
	/* the note is complete once the file is there under its name */
	a = ask(*state, "echo $$ >$D/n; mv $D/n $D/notes; while :; do sleep 1; done", cancellable);
	pthread_join(thread, NULL);
	close_cancel_pipe();
	assert_int_equal(a.r, -ECANCELED);
	assert_starts(a.e.msg, "netplugin failed with no error message: cancelled after ");
	assert_gone(*state);
}

static void grandchild_holds_stdout(void **state)
{
	AUTO(answer_done) struct answer a = ask(*state, "sleep 300 & note $!; echo '{}'", NULL);
	autofree char *text = place_notes(*state);
	long long pid;

	assert_int_equal(a.r, 0);
	assert_int_equal(a.len, 3);
	text[strcspn(text, "\n")] = '\0';
	assert_true(str_to_int64(text, 1, INT32_MAX, &pid));
	/* it was left alone: some plugins leave a daemon on purpose */
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

/* ---- a plugin that is being written --------------------------------------------- */

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

static void being_written(void **state)
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
	call.env.command = "DEL"; /* libcni's DEL succeeds here without having run anything */
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
	cancellable(&call);
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
	before = ask(p, "mv $D/new $0; echo '{\"old\":1}'", NULL);
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

/* What a successful plugin's standard error becomes on ours. */
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

static void no_result(void **state)
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

/* ---- the seam --------------------------------------------------------------------------- */

static int my_find(void *ctx, const char *plugin, const char *const *dirs, char **ret_path,
		   struct hw_err *e)
{
	(void)dirs, (void)e;
	*ret_path = str_printf("%s/%s", (const char *)ctx, plugin);
	return 0;
}

static int my_run(void *ctx, const struct hw_run *run, struct hw_ran *ret_ran, struct hw_err *e)
{
	(void)ctx, (void)e;
	ret_ran->output = str_printf("{\"ran\":\"%s\"}", run->plugin);
	ret_ran->output_len = strlen(ret_ran->output);
	return 0;
}

static void own_seam(void **state)
{
	char dir[] = "/nowhere";
	const struct hw_exec exec = { sizeof(exec), dir, my_find, my_run };
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

static const struct CMUnitTest tests[] = {
	PLACE_TEST("exec: what cannot be found is said in libcni's words", find_refuses),
	PLACE_TEST("exec: the first regular file is found, through a link, executable or not",
		   find_takes_the_first_file),
	PLACE_TEST("exec: an empty directory name is not the current directory", find_is_not_here),
	PLACE_TEST("exec: a plugin gets its input and its output comes back", good_plugin),
	PLACE_TEST("exec: the CNI variables replace ours, the rest is inherited, none is double",
		   environment),
	PLACE_TEST("exec: a variable that is not given is inherited", environment_inherited),
	PLACE_TEST("exec: a plugin's error object keeps its code and details", own_error),
	PLACE_TEST("exec: a failure without a word names the exit status", fails_without_a_word),
	PLACE_TEST("exec: a failure with text on standard error quotes it", fails_on_stderr),
	PLACE_TEST("exec: a failure with garbage quotes it", fails_with_garbage),
	PLACE_TEST("exec: a failure with much garbage still names the exit status",
		   fails_with_much_garbage),
	PLACE_TEST("exec: a killed plugin is reported as killed", is_killed),
	PLACE_TEST("exec: an ADD that prints an error object has failed, whatever its exit status",
		   error_with_exit_0),
	PLACE_TEST("exec: a result with keys code and msg is a result", result_with_odd_keys),
	PLACE_TEST("exec: what a DEL prints is ignored", del_with_exit_0),
	PLACE_TEST("exec: 100 MB of output end in an error, not in memory", prints_100_mb),
	PLACE_TEST("exec: a plugin that never ends is killed at the deadline", never_ends),
	PLACE_TEST("exec: a plugin is killed on cancel", is_cancelled),
	PLACE_TEST("exec: a grandchild that holds the output does not keep us",
		   grandchild_holds_stdout),
	PLACE_TEST("exec: a file that cannot be executed is named", not_executable),
	PLACE_TEST("exec: a plugin that is being written is waited for", being_written),
	PLACE_TEST("exec: a plugin that stays busy is an error, for DEL too", stays_busy),
	PLACE_TEST("exec: waiting for a busy plugin can be cancelled", busy_and_cancelled),
	PLACE_TEST("exec: a plugin that is replaced or removed while it runs ends as it began",
		   replaced_while_running),
	PLACE_TEST("exec: standard error is copied after success, passed through or dropped",
		   stderr_modes),
	PLACE_TEST("exec: a result without version has the configuration's, null is {}", results),
	PLACE_TEST("exec: half a result, and what is none, are refused", no_result),
	PLACE_TEST("exec: find and run of the caller are used", own_seam),
};

int main(void)
{
	return cmocka_run_group_tests_name("exec", tests, NULL, NULL);
}
