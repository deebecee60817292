/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/test-proc.c - input, output, exit status and limits of a program
 */
#include "base/os/test-proc.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/os/child.h"

static int run_path(const char *path, struct proc_result *ret, struct hw_err *e)
{
	struct proc p = { .path = path, .cancel_fd = -1, .deadline = time_deadline(LONG) };

	return proc_run(&p, ret, e);
}

/* ---- environment, input and output ------------------------------------------------------ */

static void environment_is_exactly_as_given(void **state)
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

static void create_file(void **state, const char *name, const char *text, mode_t mode, char **path)
{
	struct proc_fixture *f = *state;
	struct hw_err e;

	assert_int_equal(file_replace(f->dir, name, text, strlen(text), mode, 0, &e), 0);
	*path = str_printf("%s/%s", f->path, name);
}

static void path_is_the_first_argument(void **state)
{
	AUTO(proc_result_done) struct proc_result result = { 0 };
	autofree char *path = NULL, *want = NULL;
	struct hw_err e;

	create_file(state, "p", "#!/bin/sh\necho \"$0 $#\"\n", 0700, &path);
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
			    -ETIMEDOUT, "/bin/sh: timed out, killed");
	assert_false(is_lock_held(state, LONG));
}

static void output_does_not_extend_the_deadline(void **state)
{
	assert_script_fails(state,
			    &(struct script){ .text = "while :; do echo x; sleep 0.01; done",
					      .timeout_ms = 200 },
			    -ETIMEDOUT, "/bin/sh: timed out, killed");
}

static void group_dies_on_cancel(void **state)
{
	struct proc_fixture *f = *state;
	autoclose int fd = -1;

	/* the script writes to "ready" when it runs, which makes the cancel descriptor readable */
	assert_int_equal(mkfifoat(f->dir, "ready", 0600), 0);
	fd = openat(f->dir, "ready", O_RDWR | O_CLOEXEC);
	assert_script_fails(state,
			    &(struct script){ .text = "exec 9>lock; flock 9; sleep 1000 & "
						      "echo >ready; wait",
					      .cancel_fd = fd },
			    -ECANCELED, "/bin/sh: cancelled, killed");
	assert_false(is_lock_held(state, LONG));
}

static void send_term(void *ctx, const struct child *program)
{
	++*(int *)ctx;
	assert_int_equal(kill(child_pid(program), SIGTERM), 0);
}

static void send_nothing(void *ctx, const struct child *program)
{
	(void)program;
	++*(int *)ctx;
}

static void program_is_stopped_as_the_caller_wants(void **state)
{
	struct proc_fixture *f = *state;
	int calls = 0;

	assert_script_fails(state,
			    &(struct script){ .text = "exec 9>lock; flock 9; "
						      "trap 'echo >stopped; exit 0' TERM; "
						      "while :; do sleep 0.01; done",
					      .timeout_ms = 300,
					      .stop = send_term,
					      .stop_ctx = &calls },
			    -ETIMEDOUT, "/bin/sh: timed out, killed");
	assert_int_equal(faccessat(f->dir, "stopped", F_OK, 0), 0);
	assert_script_fails(state,
			    &(struct script){ .text = "exec 9>lock; flock 9; sleep 1000 & wait",
					      .timeout_ms = 300,
					      .stop = send_nothing,
					      .stop_ctx = &calls },
			    -ETIMEDOUT, "/bin/sh: timed out, killed");
	assert_int_equal(calls, 2);
	assert_false(is_lock_held(state, LONG));
}

static void nothing_starts_too_late(void **state)
{
	struct proc_fixture *f = *state;
	const struct script script = { .text = "echo >started",
				       .cancel_fd = eventfd(1, EFD_CLOEXEC) };
	struct proc p = { .path = "/bin/true", .cancel_fd = -1, .deadline = time_now() };
	struct proc_result result;
	struct hw_err e;

	assert_script_fails(state, &script, -ECANCELED, "/bin/sh: cancelled, not started");
	assert_int_equal(faccessat(f->dir, "started", F_OK, 0), -1);
	close(script.cancel_fd);
	assert_int_equal(proc_run(&p, &result, &e), -ETIMEDOUT);
	assert_string_equal(e.msg, "/bin/true: timed out, not started");
}

static void output_is_bounded(void **state)
{
	assert_script(state, &(struct script){ .text = "printf 12345", .output_max = 5 }, "12345",
		      "", 0);
	assert_script_fails(state, &(struct script){ .text = "printf 123456", .output_max = 5 },
			    -EFBIG, "/bin/sh: more than 5 bytes on standard output");
	assert_script_fails(state, &(struct script){ .text = "yes >&2", .output_max = 5 }, -EFBIG,
			    "/bin/sh: more than 5 bytes on standard error");
}

static void endless_output_is_bounded_in_memory(void **state)
{
	struct rusage before, after;

	getrusage(RUSAGE_SELF, &before);
	assert_script_fails(
		state, &(struct script){ .text = "exec 9>lock; flock 9; head -c 100M /dev/zero" },
		-EFBIG, "/bin/sh: more than 4194304 bytes on standard output");
	getrusage(RUSAGE_SELF, &after);
	assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, 50 << 10); /* KiB */
	assert_false(is_lock_held(state, LONG));
}

static void excess_output_is_dropped(void **state)
{
	struct rusage before, after;

	getrusage(RUSAGE_SELF, &before);
	assert_script(state,
		      &(struct script){
			      .text = "printf 123456; printf 789; yes x | head -c 100M >&2; exit 3",
			      .output_max = 5,
			      .drop_excess = true },
		      "12345", "x\nx\nx", 3 << 8);
	getrusage(RUSAGE_SELF, &after);
	assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, 50 << 10); /* KiB */
}

/* ---- background processes of a program --------------------------------------------------- */

/* The background process keeps standard output and the lock open. The script prints the ID of that
 * process. */
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

static void writing_grandchild_does_not_delay_us(void **state)
{
	AUTO(proc_result_done) struct proc_result result = { 0 };
	const struct script script = { .text = "exec 9>lock; flock 9; yes 2>&- & echo $! >&2" };
	long long pid;
	struct hw_err e;
	int r = run_script(state, &script, &result, &e);

	/* The program "yes" may exceed the output limit before the shell exits. Then both are
	 * killed, and the call fails with -EFBIG. */
	if (r == -EFBIG)
		return;
	assert_int_equal(r, 0);
	result.errors.data[strcspn(result.errors.data, "\n")] = '\0';
	assert_true(str_to_int64(result.errors.data, 2, INT32_MAX, &pid));
	kill((pid_t)pid, SIGKILL);
	assert_false(is_lock_held(state, LONG));
}

/* ---- when memory runs out ------------------------------------------------------------------ */

/* Lower values need CAP_SYS_RESOURCE: test/uml/pods.py. */
static void oom_score_is_as_given(void **state)
{
	AUTO(buf_done) struct buf own = { 0 }, still = { 0 };
	const char *const argv[] = { "/bin/cat", "/proc/self/oom_score_adj", NULL };
	struct proc p = {
		.path = argv[0], .argv = argv, .cancel_fd = -1, .deadline = time_deadline(LONG)
	};
	struct hw_err e;

	(void)state;
	assert_int_equal(file_read(AT_FDCWD, argv[1], 64, &own, &e), 0);
	for (int score = 999; score <= 1000; score++) {
		AUTO(proc_result_done) struct proc_result result = { 0 };
		autofree char *want = str_printf("%d\n", score);

		p.oom_score = &score;
		assert_int_equal(proc_run(&p, &result, &e), 0);
		assert_string_equal(result.output.data, want);
	}
	assert_int_equal(file_read(AT_FDCWD, argv[1], 64, &still, &e), 0);
	assert_string_equal(still.data, own.data);
}

static void oom_score_that_cannot_be_set_is_an_error(void **state)
{
	struct proc_result result;
	int score = 1001;
	struct proc p = { .path = "/bin/true",
			  .oom_score = &score,
			  .cancel_fd = -1,
			  .deadline = time_deadline(LONG) };
	struct hw_err e;

	(void)state;
	assert_int_equal(proc_run(&p, &result, &e), -EINVAL);
	assert_string_equal(e.msg, "set the oom_score_adj of /bin/true: Invalid argument");
}

/* ---- programs that cannot be executed ------------------------------------------------------ */

static void assert_cannot_execute(const char *path, int code)
{
	struct proc_result result;
	struct hw_err e;

	assert_int_equal(run_path(path, &result, &e), code);
	assert_true(str_starts(e.msg, "execute "));
	assert_non_null(strstr(e.msg, path));
}

static void failure_to_execute_has_its_errno(void **state)
{
	autofree char *busy = NULL, *plain = NULL, *garbage = NULL, *no_interpreter = NULL;
	autoclose int writer = -1;

	create_file(state, "busy", "#!/bin/sh\n", 0700, &busy);
	writer = open(busy, O_WRONLY | O_CLOEXEC);
	assert_cannot_execute(busy, -ETXTBSY);
	create_file(state, "plain", "#!/bin/sh\n", 0600, &plain);
	assert_cannot_execute(plain, -EACCES);
	create_file(state, "garbage", "garbage", 0700, &garbage);
	assert_cannot_execute(garbage, -ENOEXEC);
	create_file(state, "no-interpreter", "#!/no/such/program\n", 0700, &no_interpreter);
	assert_cannot_execute(no_interpreter, -ENOENT);
	assert_cannot_execute("/no/such/program", -ENOENT);
	assert_cannot_execute("/tmp", -EACCES);
}

/* ---- texts ---------------------------------------------------------------------------------- */

static void status_is_formatted_as_by_go(void **state)
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

/* The mode without threads runs first: once a process has created a thread, glibc never treats it
 * as single-threaded again. */
#define IN_EACH_MODE(TEST, END)                                                                    \
	TEST("the program gets exactly the given environment" END,                                 \
	     environment_is_exactly_as_given),                                                     \
		TEST("without argv, the path is the only argument" END,                            \
		     path_is_the_first_argument),                                                  \
		TEST("the program gets its complete input, whether large or empty" END,            \
		     input_arrives_whole),                                                         \
		TEST("the call succeeds if the program does not read its input" END,               \
		     input_need_not_be_read),                                                      \
		TEST("standard output and standard error are collected separately" END,            \
		     both_outputs_are_kept_apart),                                                 \
		TEST("the program can inherit standard error" END, errors_can_pass_through),       \
		TEST("the exit status is returned" END, status_is_the_programs),                   \
		TEST("the whole process group is killed at the deadline" END,                      \
		     group_dies_at_the_deadline),                                                  \
		TEST("continuous output does not extend the deadline" END,                         \
		     output_does_not_extend_the_deadline),                                         \
		TEST("the whole process group is killed on cancel" END, group_dies_on_cancel),     \
		TEST("the program is stopped as the caller wants, and killed if that fails" END,   \
		     program_is_stopped_as_the_caller_wants),                                      \
		TEST("nothing is started after the deadline or a cancel" END,                      \
		     nothing_starts_too_late),                                                     \
		TEST("the call fails if the output exceeds the limit" END, output_is_bounded),     \
		TEST("output beyond the limit is dropped if the caller wants that" END,            \
		     excess_output_is_dropped),                                                    \
		TEST("100 MB of output do not use 100 MB of memory" END,                           \
		     endless_output_is_bounded_in_memory),                                         \
		TEST("a background process survives and does not delay the call" END,              \
		     background_process_survives),                                                 \
		TEST("a grandchild that keeps writing does not delay the call" END,                \
		     writing_grandchild_does_not_delay_us),                                        \
		TEST("if the program cannot be executed, the call fails with that errno" END,      \
		     failure_to_execute_has_its_errno)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITHOUT_THREAD("a status is formatted as in Go", status_is_formatted_as_by_go),
		IN_EACH_MODE(WITHOUT_THREAD, ""),
		IN_EACH_MODE(WITH_THREAD, ", with another thread"),
		/* these start a thread */
		WITHOUT_THREAD("a program has the given oom_score_adj, and this process keeps its "
			       "own",
			       oom_score_is_as_given),
		WITHOUT_THREAD("if the oom_score_adj cannot be set, the call fails with that errno",
			       oom_score_that_cannot_be_set_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
