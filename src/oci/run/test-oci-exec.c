/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/run/test-oci-exec.c - commands in a running container
 */
#include "oci/run/exec.h"

#include <poll.h>
#include <sys/eventfd.h>

#include "oci/run/test.h"

/* ---- helpers ------------------------------------------------------------------------------------- */

static struct oci_spec container;

/* Starts the container in @bundle. It has one process. */
static void start_container_in(const char *bundle)
{
	autofree char *text = NULL;
	autofree char *path = str_printf("%s/config.json", bundle);
	struct hw_err e;

	init_spec(&container, "exec sleep 1000");
	strings_add(&container.process.env, "OWN=variable");
	container.process.user.uid = 1234;
	free(container.process.cwd);
	container.process.cwd = str_copy("/tmp");
	text = encode_spec(&container);
	assert_ok(file_replace(AT_FDCWD, path, text, strlen(text), 0600, 0, &e), &e);
	chmod(RUN_ROOTFS "/tmp", 0777);
	run_crun((const char *[]){ "run", "--detach", "-b", bundle, BOX, NULL });
}

static int setup(void **state)
{
	if (run_setup(state) < 0)
		return -1;
	start_container_in(RUN_BUNDLE);
	return 0;
}

static int is_left(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	(void)e;
	*(bool *)ctx |= str_starts(entry->name, "exec.");
	return 0;
}

/* No temporary file may be left. */
static int teardown(void **state)
{
	bool left = false;
	struct hw_err e;

	spec_done(&container);
	file_walk(AT_FDCWD, RUN_BUNDLE, is_left, &left, &e);
	if (left)
		print_message("temporary files are left\n");
	return run_teardown(state) < 0 || left ? -1 : 0;
}

#define EXEC_TEST(sentence, f)                                                                     \
	{                                                                                          \
		sentence, f, setup, teardown, NULL                                                 \
	}

static size_t count_processes(void **state)
{
	struct run_fixture *f = *state;
	struct cgroup_pids pids = { 0 };
	struct hw_err e;

	assert_ok(cgroup_list(f->fs, RUN_CGROUP, &pids, &e), &e);
	free(pids.v);
	return pids.n;
}

#define COMMAND(list)                                                                              \
	(&(const struct exec_command){                                                             \
		.runtime = &test_runtime,                                                          \
		.id = BOX,                                                                         \
		.bundle = RUN_BUNDLE,                                                              \
		.process = &container.process,                                                     \
		.args = list,                                                                      \
	})
#define SCRIPT(text) COMMAND((&STRINGS("/bin/sh", "-c", text)))

static void run(const struct exec_command *x, struct exec_result *ret)
{
	struct hw_err e;

	assert_ok(exec_sync(x, -1, SOON, ret, &e), &e);
}

static void assert_run(const struct exec_command *x, int code, const char *output,
		       const char *errors)
{
	AUTO(exec_result_done) struct exec_result result = { 0 };

	run(x, &result);
	assert_string_equal(str_or(result.output.data, ""), output);
	assert_string_equal(str_or(result.errors.data, ""), errors);
	assert_int_equal(result.code, code);
}

/* ---- collected output ---------------------------------------------------------------------------- */

static void a_command_runs_like_the_containers_process(void **state)
{
	(void)state;
	assert_run(SCRIPT("echo out; echo error >&2; exit 5"), 5, "out\n", "error\n");
	assert_run(SCRIPT("pwd; id -u; echo $OWN; cat"), 0, "/tmp\n1234\nvariable\n", "");
	assert_run(COMMAND((&STRINGS("/bin/echo", "a b", ""))), 0, "a b \n", "");
	assert_run(SCRIPT("kill -9 $$"), 137, "", "");
	assert_run(SCRIPT("kill -15 $$"), 143, "", "");
}

static void only_the_first_output_is_kept(void **state)
{
	AUTO(exec_result_done) struct exec_result result = { 0 };

	(void)state;
	run(SCRIPT("dd if=/dev/zero bs=1M count=20 2>/dev/null; dd if=/dev/zero bs=1M count=17 "
		   ">&2 2>/dev/null; touch /tmp/end"),
	    &result);
	assert_int_equal(result.code, 0);
	assert_int_equal(result.output.len, EXEC_OUTPUT_MAX);
	assert_int_equal(result.errors.len, EXEC_OUTPUT_MAX);
	assert_true(file_exists(RUN_ROOTFS "/tmp/end"));
}

static void at_the_deadline_the_whole_group_dies(void **state)
{
	struct exec_result result;
	struct hw_err e;

	assert_int_equal(exec_sync(SCRIPT("sleep 1000 & sleep 1000 & touch /tmp/on; wait"), -1,
				   time_deadline(500), &result, &e),
			 -ETIMEDOUT);
	assert_true(file_exists(RUN_ROOTFS "/tmp/on"));
	wait_until(count_processes(state) == 1);
}

/* The deadline passes while crun starts the command. */
static void a_short_deadline_leaves_no_command(void **state)
{
	struct exec_result result;
	struct hw_err e;

	for (int ms = 1; ms <= 16; ms++)
		assert_int_equal(
			exec_sync(SCRIPT("sleep 1000"), -1, time_deadline(ms), &result, &e),
			-ETIMEDOUT);
	wait_until(count_processes(state) == 1);
}

static void a_command_can_be_cancelled(void **state)
{
	autoclose int cancel = -1;
	struct exec_result result;
	struct hw_err e;

	/* the command writes to a FIFO when it runs */
	assert_int_equal(mkfifo(RUN_ROOTFS "/tmp/ready", 0666), 0);
	chmod(RUN_ROOTFS "/tmp/ready", 0666);
	cancel = open(RUN_ROOTFS "/tmp/ready", O_RDWR | O_CLOEXEC);
	assert_int_equal(
		exec_sync(SCRIPT("echo > /tmp/ready; sleep 1000"), cancel, SOON, &result, &e),
		-ECANCELED);
	wait_until(count_processes(state) == 1);
}

static void a_background_process_does_not_delay(void **state)
{
	assert_run(SCRIPT("sleep 1000 & echo started"), 0, "started\n", "");
	assert_int_equal(count_processes(state), 2);
}

static void a_command_that_cannot_be_started(void **state)
{
	struct exec_result result;
	struct hw_err e;

	(void)state;
	assert_int_equal(exec_sync(COMMAND((&STRINGS("/missing"))), -1, SOON, &result, &e),
			 -EINVAL);
	assert_non_null(strstr(e.msg, "/usr/bin/crun exec: "));
	assert_non_null(strstr(e.msg, "/missing"));
	assert_int_equal(exec_sync(COMMAND((&(struct hw_strings){ 0 })), -1, SOON, &result, &e),
			 -EINVAL);
	assert_int_equal(runtime_kill(&test_runtime, BOX, SIGKILL, true, SOON, &e), 0);
	wait_until(count_processes(state) == 0);
	assert_int_equal(exec_sync(SCRIPT("true"), -1, SOON, &result, &e), -EIO);
	assert_non_null(strstr(e.msg, "not running"));
}

/* ---- streams ------------------------------------------------------------------------------------- */

static void start(const struct exec_command *x, const struct exec_streams *streams,
		  struct exec **ret)
{
	struct hw_err e;

	assert_ok(exec_open(x, streams, SOON, ret, &e), &e);
}

static void assert_end(struct exec *x, int code)
{
	struct pollfd fd = { .fd = exec_fd(x), .events = POLLIN };
	struct hw_err e;
	int got = -1;

	assert_int_equal(poll(&fd, 1, TEST_MS), 1);
	assert_ok(exec_close(x, &got, &e), &e);
	assert_int_equal(got, code);
}

/* Reads until @wanted was read; NULL: until EOF. */
static void read_until(int fd, const char *wanted)
{
	AUTO(buf_done) struct buf text = { 0 };

	for (;;) {
		struct pollfd poller = { .fd = fd, .events = POLLIN };
		ssize_t n;

		assert_int_equal(poll(&poller, 1, TEST_MS), 1);
		n = read(fd, buf_reserve(&text, 256), 256);
		if (n == 0 && !wanted)
			return;
		if (n <= 0)
			fail_msg("got \"%s\", want \"%s\"", str_or(text.data, ""), wanted);
		buf_commit(&text, (size_t)n);
		if (wanted && strstr(text.data, wanted))
			return;
	}
}

static void a_command_reads_and_writes_descriptors(void **state)
{
	int in[2], out[2], err[2];
	struct exec *x = NULL;

	(void)state;
	assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC) | pipe2(err, O_CLOEXEC), 0);
	start(SCRIPT("cat; echo end >&2; exit 6"), &(struct exec_streams){ in[0], out[1], err[1] },
	      &x);
	close(in[0]);
	close(out[1]);
	close(err[1]);
	assert_int_equal(write(in[1], "text\n", 5), 5);
	read_until(out[0], "text\n");
	close(in[1]);
	read_until(err[0], "end\n");
	assert_end(x, 6);
	read_until(out[0], NULL);
	read_until(err[0], NULL);
	close(out[0]);
	close(err[0]);
}

/* crun changes the owner of the command's streams. */
static void streams_may_be_missing(void **state)
{
	struct exec *x = NULL;
	struct stat st;

	(void)state;
	start(SCRIPT("cat && echo x && echo y >&2 && exit 2"), &(struct exec_streams){ -1, -1, -1 },
	      &x);
	assert_end(x, 2);
	assert_run(SCRIPT("cat && exit 3"), 3, "", "");
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_int_equal(st.st_uid, 0);
}

static void a_command_with_streams_is_killed(void **state)
{
	struct exec *x = NULL;

	start(SCRIPT("sleep 1000 & sleep 1000"), &(struct exec_streams){ -1, -1, -1 }, &x);
	exec_kill(x);
	assert_end(x, 137);
	wait_until(count_processes(state) == 1);
}

static void a_command_has_a_terminal(void **state)
{
	struct exec *x = NULL;
	struct hw_err e;

	(void)state;
	start(SCRIPT("tty; echo $TERM; read line; while ! stty size | grep -q '30 90'; do sleep "
		     "0.01; "
		     "done; echo got $line; exit 8"),
	      &(struct exec_streams){ -1, -1, -1, true, 24, 81 }, &x);
	read_until(exec_terminal(x), "xterm");
	assert_ok(exec_resize(x, 30, 90, &e), &e);
	assert_int_equal(write(exec_terminal(x), "hello\n", 6), 6);
	read_until(exec_terminal(x), "got hello");
	assert_end(x, 8);
}

/* crun sets the size while it starts the command. */
static void the_size_of_a_terminal_is_set(void **state)
{
	struct exec *x = NULL;

	(void)state;
	start(SCRIPT("while ! stty size | grep '24 81'; do sleep 0.01; done"),
	      &(struct exec_streams){ -1, -1, -1, true, 24, 81 }, &x);
	read_until(exec_terminal(x), "24 81");
	assert_end(x, 0);
}

static void errors_with_streams_are_reported(void **state)
{
	struct exec *x = NULL;
	struct hw_err e;
	int code, r;

	(void)state;
	start(COMMAND((&STRINGS("/missing"))), &(struct exec_streams){ -1, -1, -1 }, &x);
	assert_int_equal(exec_close(x, &code, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "/missing"));
	r = exec_open(COMMAND((&STRINGS("/missing"))), &(struct exec_streams){ .terminal = true },
		      SOON, &x, &e);
	if (r == 0)
		r = exec_close(x, &code, &e);
	assert_int_equal(r, -EINVAL);
	assert_non_null(strstr(e.msg, "/missing"));
}

/* ---- without the common container ---------------------------------------------------------------- */

/* The path of a socket is limited to 107 bytes. */
static void a_bundle_may_have_a_long_path(void **state)
{
	char bundle[] =
		RUN_DIR "/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
			"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
	struct exec_command x = *SCRIPT("echo long");
	struct exec *running = NULL;

	(void)state;
	make_dir(bundle);
	start_container_in(bundle);
	x.bundle = bundle;
	start(&x, &(struct exec_streams){ .terminal = true }, &running);
	read_until(exec_terminal(running), "long");
	assert_end(running, 0);
}

/* A crun that does not send a terminal. */
static void a_terminal_must_come_before_the_deadline(void **state)
{
	static const char text[] = "#!/bin/sh\nexec sleep 1000\n";
	struct runtime rt = { .program = RUN_DIR "/fake", .root = RUN_DIR "/state" };
	struct exec_command x = *SCRIPT("true");
	struct exec *running = NULL;
	struct hw_err e;

	(void)state;
	assert_ok(file_replace(AT_FDCWD, rt.program, text, strlen(text), 0755, 0, &e), &e);
	x.runtime = &rt;
	assert_int_equal(exec_open(&x, &(struct exec_streams){ .terminal = true },
				   time_deadline(50), &running, &e),
			 -ETIMEDOUT);
	assert_string_equal(e.msg, RUN_DIR "/fake exec: timed out, killed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EXEC_TEST("exec: a command runs like the container's process",
			  a_command_runs_like_the_containers_process),
		EXEC_TEST("exec: only the first 16 MiB of output are kept",
			  only_the_first_output_is_kept),
		EXEC_TEST("exec: at the deadline the whole process group is killed",
			  at_the_deadline_the_whole_group_dies),
		EXEC_TEST("exec: a deadline during the start leaves no command",
			  a_short_deadline_leaves_no_command),
		EXEC_TEST("exec: a command can be cancelled", a_command_can_be_cancelled),
		EXEC_TEST("exec: a background process that holds the output does not delay",
			  a_background_process_does_not_delay),
		EXEC_TEST("exec: if a command cannot be started, crun's text is returned",
			  a_command_that_cannot_be_started),
		EXEC_TEST("exec: a command reads and writes descriptors",
			  a_command_reads_and_writes_descriptors),
		EXEC_TEST("exec: descriptors may be missing, and /dev/null keeps its owner",
			  streams_may_be_missing),
		EXEC_TEST("exec: a command with descriptors is killed with its group",
			  a_command_with_streams_is_killed),
		EXEC_TEST("exec: a command has a terminal that can be resized",
			  a_command_has_a_terminal),
		EXEC_TEST("exec: a terminal has the size that was asked for",
			  the_size_of_a_terminal_is_set),
		EXEC_TEST("exec: errors of commands with descriptors are reported",
			  errors_with_streams_are_reported),
		{ "exec: a bundle may have a long path", a_bundle_may_have_a_long_path, run_setup,
		  teardown, NULL },
		{ "exec: a terminal must arrive before the deadline",
		  a_terminal_must_come_before_the_deadline, run_setup, teardown, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
