/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/test-proc.c - what goes into a program, what comes out, and when it is over
 */
#include "base/os/test-proc.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static int run_path(const char *path, struct proc_result *ret, struct hw_err *e)
{
	struct proc p = { .path = path, .cancel_fd = -1, .deadline = time_deadline(LONG) };

	return proc_run(&p, ret, e);
}

/* ---- what goes in and comes out -------------------------------------------------------- */

static void environment_is_just_what_was_given(void **state)
{
	static const char *const env[] = { "A=1", "B=x y", NULL };
	AUTO(proc_result_done) struct proc_result result = { 0 };
	struct proc p = {
		.path = "/usr/bin/env", .env = env, .cancel_fd = -1, .deadline = time_deadline(LONG)
	};
	struct hw_err e;

	assert_int_equal(proc_run(&p, &result, &e), 0);
	assert_string_equal(result.output.data, "A=1\nB=x y\n");
	setenv("PROC_TEST", "ours", 1);
	assert_script(state, &(struct script){ .text = "printf %s $PROC_TEST" }, "ours", "", 0);
}

static void make_file(void **state, const char *name, const char *text, mode_t mode, char **path)
{
	struct place *place = *state;
	struct hw_err e;

	assert_int_equal(file_replace(place->dir, name, text, strlen(text), mode, 0, &e), 0);
	*path = str_printf("%s/%s", place->path, name);
}

static void path_is_the_first_argument(void **state)
{
	AUTO(proc_result_done) struct proc_result result = { 0 };
	autofree char *path = NULL, *want = NULL;
	struct hw_err e;

	make_file(state, "p", "#!/bin/sh\necho \"$0 $#\"\n", 0700, &path);
	assert_int_equal(run_path(path, &result, &e), 0);
	want = str_printf("%s 0\n", path);
	assert_string_equal(result.output.data, want);
}

static void input_arrives_whole(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };

	while (b.len < 300000)
		buf_printf(&b, "line %zu\n", b.len);
	assert_script(state, &(struct script){ .text = "cat", .input = b.data }, b.data, "", 0);
	assert_script(state, &(struct script){ .text = "cat" }, "", "", 0);
}

static void input_need_not_be_read(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };

	while (b.len < 300000)
		buf_puts(&b, "not read\n");
	assert_script(state, &(struct script){ .text = "exit 0", .input = b.data }, "", "", 0);
	assert_script(state, &(struct script){ .text = "exec <&-; echo ok", .input = b.data },
		      "ok\n", "", 0);
}

static void both_outputs_are_kept_apart(void **state)
{
	assert_script(state, &(struct script){ .text = "echo out; echo err >&2; exit 3" }, "out\n",
		      "err\n", 3 << 8);
	assert_script(state, &(struct script){ .text = "exec >&- 2>&-; exit 4" }, "", "", 4 << 8);
}

static void errors_can_pass_through(void **state)
{
	char text[16] = "";
	int fds[2], saved = dup(STDERR_FILENO);

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	dup2(fds[1], STDERR_FILENO);
	assert_script(state,
		      &(struct script){ .text = "echo out; echo err >&2", .stderr_through = true },
		      "out\n", "", 0);
	dup2(saved, STDERR_FILENO);
	assert_int_equal(read(fds[0], text, sizeof(text) - 1), 4);
	assert_string_equal(text, "err\n");
	close(fds[0]);
	close(fds[1]);
	close(saved);
}

static void status_is_the_programs(void **state)
{
	assert_script(state, &(struct script){ .text = "exit 1" }, "", "", 1 << 8);
	assert_script(state, &(struct script){ .text = "kill -9 $$" }, "", "", SIGKILL);
	assert_script(state, &(struct script){ .text = "kill -TERM $$" }, "", "", SIGTERM);
}

/* ---- bounds ---------------------------------------------------------------------------- */

static void group_dies_at_the_deadline(void **state)
{
	assert_script_fails(state,
			    &(struct script){ .text = "exec 9>lock; flock 9; sleep 1000 & wait",
					      .timeout_ms = 300 },
			    -ETIMEDOUT, "/bin/sh was killed: it did not end in the time allowed");
	assert_false(is_lock_held(state, LONG));
}

static void output_does_not_stretch_the_deadline(void **state)
{
	assert_script_fails(state,
			    &(struct script){ .text = "while :; do echo x; sleep 0.01; done",
					      .timeout_ms = 200 },
			    -ETIMEDOUT, "/bin/sh was killed: it did not end in the time allowed");
}

static void group_dies_on_cancel(void **state)
{
	struct place *place = *state;
	autoclose int fd = -1;

	/* the script itself says that it is ready to be cancelled */
	assert_int_equal(mkfifoat(place->dir, "ready", 0600), 0);
	fd = openat(place->dir, "ready", O_RDWR | O_CLOEXEC);
	assert_script_fails(state,
			    &(struct script){ .text = "exec 9>lock; flock 9; sleep 1000 & "
						      "echo >ready; wait",
					      .cancel_fd = fd },
			    -ECANCELED, "/bin/sh was killed: cancelled");
	assert_false(is_lock_held(state, LONG));
}

static void nothing_starts_too_late(void **state)
{
	struct place *place = *state;
	const struct script script = { .text = "echo >started",
				       .cancel_fd = eventfd(1, EFD_CLOEXEC) };
	struct proc p = { .path = "/bin/true", .cancel_fd = -1, .deadline = time_now() };
	struct proc_result result;
	struct hw_err e;

	assert_script_fails(state, &script, -ECANCELED, "/bin/sh was not started: cancelled");
	assert_int_equal(faccessat(place->dir, "started", F_OK, 0), -1);
	close(script.cancel_fd);
	assert_int_equal(proc_run(&p, &result, &e), -ETIMEDOUT);
	assert_string_equal(e.msg, "/bin/true was not started: the time allowed is over");
}

static void output_is_bounded(void **state)
{
	assert_script(state, &(struct script){ .text = "printf 12345", .output_max = 5 }, "12345",
		      "", 0);
	assert_script_fails(state, &(struct script){ .text = "printf 123456", .output_max = 5 },
			    -EFBIG, "/bin/sh wrote more than 5 bytes to its standard output");
	assert_script_fails(state, &(struct script){ .text = "yes >&2", .output_max = 5 }, -EFBIG,
			    "/bin/sh wrote more than 5 bytes to its standard error");
}

static void endless_output_is_bounded_in_memory(void **state)
{
	struct rusage before, after;

	getrusage(RUSAGE_SELF, &before);
	assert_script_fails(
		state, &(struct script){ .text = "exec 9>lock; flock 9; head -c 100M /dev/zero" },
		-EFBIG, "/bin/sh wrote more than 4194304 bytes to its standard output");
	getrusage(RUSAGE_SELF, &after);
	assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, 50 << 10); /* KiB */
	assert_false(is_lock_held(state, LONG));
}

/* ---- what a program leaves behind -------------------------------------------------------- */

/* A background process keeps standard output and the lock; its pid is the output. */
static void background_process_survives(void **state)
{
	AUTO(proc_result_done) struct proc_result result = { 0 };
	const struct script script = { .text = "exec 9>lock; flock 9; sleep 1000 & echo $!" };
	long long pid;
	struct hw_err e;

	assert_int_equal(run_script(state, &script, &result, &e), 0);
	assert_int_equal(result.status, 0);
	result.output.data[strcspn(result.output.data, "\n")] = '\0';
	assert_true(str_to_int64(result.output.data, 2, INT32_MAX, &pid));
	assert_true(is_lock_held(state, 1));
	assert_int_equal(kill((pid_t)pid, SIGKILL), 0);
	assert_false(is_lock_held(state, LONG));
}

static void talkative_grandchild_does_not_hold_us(void **state)
{
	AUTO(proc_result_done) struct proc_result result = { 0 };
	const struct script script = { .text = "exec 9>lock; flock 9; yes 2>&- & echo $! >&2" };
	long long pid;
	struct hw_err e;
	int r = run_script(state, &script, &result, &e);

	/* it may have written too much before the shell ended, and is dead then */
	if (r == -EFBIG)
		return;
	assert_int_equal(r, 0);
	result.errors.data[strcspn(result.errors.data, "\n")] = '\0';
	assert_true(str_to_int64(result.errors.data, 2, INT32_MAX, &pid));
	kill((pid_t)pid, SIGKILL);
	assert_false(is_lock_held(state, LONG));
}

/* ---- what cannot be executed --------------------------------------------------------------- */

static void assert_cannot_run(const char *path, int code)
{
	struct proc_result result;
	struct hw_err e;

	assert_int_equal(run_path(path, &result, &e), code);
	assert_true(str_starts(e.msg, "execute "));
	assert_non_null(strstr(e.msg, path));
}

static void failure_to_execute_is_told_exactly(void **state)
{
	autofree char *busy = NULL, *plain = NULL, *garbage = NULL, *no_interpreter = NULL;
	autoclose int writer = -1;

	make_file(state, "busy", "#!/bin/sh\n", 0700, &busy);
	writer = open(busy, O_WRONLY | O_CLOEXEC);
	assert_cannot_run(busy, -ETXTBSY);
	make_file(state, "plain", "#!/bin/sh\n", 0600, &plain);
	assert_cannot_run(plain, -EACCES);
	make_file(state, "garbage", "garbage", 0700, &garbage);
	assert_cannot_run(garbage, -ENOEXEC);
	make_file(state, "no-interpreter", "#!/no/such/program\n", 0700, &no_interpreter);
	assert_cannot_run(no_interpreter, -ENOENT);
	assert_cannot_run("/no/such/program", -ENOENT);
	assert_cannot_run("/tmp", -EACCES);
}

/* ---- texts ---------------------------------------------------------------------------------- */

static void status_is_told_as_by_go(void **state)
{
	static const struct {
		int status;
		const char *text;
	} table[] = {
		{ 0, "exit status 0" },
		{ 1 << 8, "exit status 1" },
		{ 255 << 8, "exit status 255" },
		{ SIGKILL, "signal: killed" },
		{ SIGTERM, "signal: terminated" },
		{ SIGSEGV | 0x80, "signal: segmentation fault (core dumped)" },
		{ SIGPIPE, "signal: broken pipe" },
		{ 50, "signal: signal 50" },
	};
	char buf[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		assert_string_equal(proc_status_format(table[i].status, buf, sizeof(buf)),
				    table[i].text);
	assert_string_equal(proc_status_format(SIGSEGV | 0x80, buf, 12), "signal: seg");
}

/* Alone first: once there was a thread, glibc does not call the process single-threaded again. */
#define EACH_WAY(TEST, END)                                                                        \
	TEST("the environment is just what was given" END, environment_is_just_what_was_given),    \
		TEST("the path is the first argument" END, path_is_the_first_argument),            \
		TEST("a large input arrives whole, an empty one too" END, input_arrives_whole),    \
		TEST("input need not be read" END, input_need_not_be_read),                        \
		TEST("both outputs are kept apart" END, both_outputs_are_kept_apart),              \
		TEST("standard error can pass through" END, errors_can_pass_through),              \
		TEST("the status is the program's" END, status_is_the_programs),                   \
		TEST("the whole group dies at the deadline" END, group_dies_at_the_deadline),      \
		TEST("steady output does not stretch the deadline" END,                            \
		     output_does_not_stretch_the_deadline),                                        \
		TEST("the whole group dies on cancel" END, group_dies_on_cancel),                  \
		TEST("nothing starts after deadline or cancel" END, nothing_starts_too_late),      \
		TEST("more output than allowed is an error" END, output_is_bounded),               \
		TEST("100 MB of output are bounded in memory" END,                                 \
		     endless_output_is_bounded_in_memory),                                         \
		TEST("a background process survives and does not hold us" END,                     \
		     background_process_survives),                                                 \
		TEST("a grandchild that goes on writing does not hold us" END,                     \
		     talkative_grandchild_does_not_hold_us),                                       \
		TEST("why a program cannot be executed is told exactly" END,                       \
		     failure_to_execute_is_told_exactly)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ALONE("a status is told in Go's words", status_is_told_as_by_go),
		EACH_WAY(ALONE, ""),
		EACH_WAY(WITH_THREAD, ", beside a thread"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
