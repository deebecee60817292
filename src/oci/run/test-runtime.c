/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/run/test-runtime.c - calls of crun, and of programs that fail in its place
 */
#include "oci/run/runtime.h"

#include "oci/run/test.h"

static void create(const char *script)
{
	AUTO(spec_done) struct oci_spec s = { 0 };

	init_spec(&s, script);
	write_spec(&s);
	run_crun((const char *[]){ "create", "-b", RUN_BUNDLE, BOX, NULL });
}

static enum runtime_status get_status(void)
{
	struct runtime_state state = { 0 };
	struct hw_err e;
	int r;

	r = runtime_get_state(&test_runtime, BOX, SOON, &state, &e);
	assert_ok(r, &e);
	assert_int_equal(r, 1);
	assert_int_equal(state.pid > 0, state.status != RUNTIME_STOPPED);
	return state.status;
}

static void a_container_starts_and_ends(void **state)
{
	struct hw_err e;

	(void)state;
	create("trap 'exit 0' TERM; touch /tmp/ready; while :; do sleep 0.01; done");
	assert_int_equal(get_status(), RUNTIME_CREATED);
	assert_ok(runtime_start(&test_runtime, BOX, SOON, &e), &e);
	wait_until(file_exists(RUN_ROOTFS "/tmp/ready"));
	assert_int_equal(get_status(), RUNTIME_RUNNING);
	assert_ok(runtime_pause(&test_runtime, BOX, SOON, &e), &e);
	assert_int_equal(get_status(), RUNTIME_PAUSED);
	assert_ok(runtime_resume(&test_runtime, BOX, SOON, &e), &e);
	assert_int_equal(runtime_kill(&test_runtime, BOX, SIGTERM, false, SOON, &e), 0);
	wait_until(get_status() == RUNTIME_STOPPED);
	assert_int_equal(runtime_kill(&test_runtime, BOX, SIGTERM, false, SOON, &e), 1);
	assert_int_equal(runtime_delete(&test_runtime, BOX, SOON, &e), 0);
	assert_int_equal(runtime_delete(&test_runtime, BOX, SOON, &e), 0);
}

/* crun removes the fifo, and is killed before it writes to it */
static void an_interrupted_start_leaves_the_container_created(void **state)
{
	(void)state;
	create("touch /tmp/ready");
	assert_int_equal(unlink(RUN_DIR "/state/" BOX "/exec.fifo"), 0);
	assert_int_equal(get_status(), RUNTIME_CREATED);
}

static void kill_all_reaches_every_process(void **state)
{
	struct run_fixture *f = *state;
	struct cgroup_pids pids = { 0 };
	struct hw_err e;

	create("sleep 1000 & sleep 1000 & touch /tmp/ready; wait");
	assert_ok(runtime_start(&test_runtime, BOX, SOON, &e), &e);
	wait_until(file_exists(RUN_ROOTFS "/tmp/ready"));
	assert_int_equal(runtime_kill(&test_runtime, BOX, SIGKILL, true, SOON, &e), 0);
	wait_until(get_status() == RUNTIME_STOPPED);
	assert_ok(cgroup_list(f->fs, RUN_CGROUP, &pids, &e), &e);
	assert_int_equal(pids.n, 0);
	free(pids.v);
}

static void a_container_that_does_not_exist(void **state)
{
	struct runtime_state s;
	struct hw_err e;

	(void)state;
	assert_int_equal(runtime_get_state(&test_runtime, BOX, SOON, &s, &e), 0);
	assert_int_equal(runtime_kill(&test_runtime, BOX, SIGKILL, false, SOON, &e), 1);
	assert_int_equal(runtime_kill(&test_runtime, BOX, SIGKILL, true, SOON, &e), 1);
	assert_int_equal(runtime_delete(&test_runtime, BOX, SOON, &e), 0);
	assert_int_equal(runtime_start(&test_runtime, BOX, SOON, &e), -EIO);
	assert_non_null(strstr(e.msg, "/usr/bin/crun start: "));
	assert_non_null(strstr(e.msg, "No such file or directory"));
}

static void limits_are_changed(void **state)
{
	struct oci_limits limits = { .cpu_shares = 512, .memory = 64 << 20 };
	struct run_fixture *f = *state;
	autofree char *memory = NULL, *text = NULL;
	struct hw_err e;

	create("sleep 1000");
	assert_ok(runtime_update(&test_runtime, BOX, &limits, 0, SOON, &e), &e);
	memory = str_printf("%s" RUN_CGROUP "/%s", cgroup_find_hierarchy(f->fs, "memory")->dir,
			    f->fs->mode == CGROUP_V2 ? "memory.max" : "memory.limit_in_bytes");
	text = read_text(memory);
	assert_string_equal(text, "67108864\n");
	limits.memory = 1; /* less than is in use */
	assert_int_equal(runtime_update(&test_runtime, BOX, &limits, 0, SOON, &e), -EBUSY);
	assert_non_null(strstr(e.msg, "crun update: "));
}

/* ---- programs in its place --------------------------------------------------------------------- */

static struct runtime fake(const char *script)
{
	autofree char *text = str_printf("#!/bin/sh\n%s\n", script);
	struct hw_err e;

	assert_ok(file_replace(AT_FDCWD, RUN_DIR "/fake", text, strlen(text), 0755, 0, &e), &e);
	return (struct runtime){ .program = RUN_DIR "/fake",
				 .root = RUN_DIR "/state",
				 .systemd_cgroup = true };
}

static void errors_have_the_programs_text(void **state)
{
	struct runtime rt = fake("echo 'first line' >&2; echo second >&2; exit 3");
	struct runtime_state s;
	struct hw_err e;

	(void)state;
	assert_int_equal(runtime_start(&rt, "x", SOON, &e), -EIO);
	assert_string_equal(e.msg, RUN_DIR "/fake start: first line; second");
	rt = fake("kill -9 $$");
	assert_int_equal(runtime_start(&rt, "x", SOON, &e), -EIO);
	assert_string_equal(e.msg, RUN_DIR "/fake start: signal: killed");
	make_dir(RUN_DIR "/state/x");
	assert_int_equal(runtime_delete(&rt, "x", SOON, &e), -EIO);
	assert_int_equal(runtime_kill(&rt, "x", 9, true, SOON, &e), -EIO);
	rt = fake("echo '{\"status\":\"new\"}'");
	assert_int_equal(runtime_get_state(&rt, "x", SOON, &s, &e), -EBADMSG);
	assert_string_equal(e.msg, RUN_DIR "/fake state: unknown status new");
	rt = fake("echo nonsense");
	assert_int_equal(runtime_get_state(&rt, "x", SOON, &s, &e), -EBADMSG);
	rt = fake("yes");
	assert_int_equal(runtime_get_state(&rt, "x", SOON, &s, &e), -EFBIG);
	rt.program = RUN_DIR "/none";
	assert_int_equal(runtime_start(&rt, "x", SOON, &e), -ENOENT);
	assert_string_equal(e.msg, "start: execute " RUN_DIR "/none: No such file or directory");
}

static void a_call_ends_at_its_deadline(void **state)
{
	struct runtime rt = fake("exec sleep 1000");
	struct hw_err e;

	(void)state;
	assert_int_equal(runtime_start(&rt, "x", time_deadline(50), &e), -ETIMEDOUT);
	assert_string_equal(e.msg, "start: " RUN_DIR "/fake: timed out, killed");
}

static void the_program_gets_arguments_and_a_small_environment(void **state)
{
	struct runtime rt = fake("{ echo \"$*\"; env | grep -v -e '^PWD=' -e '^_='; } >" RUN_DIR
				 "/seen; exec ls /proc/self/fd >>" RUN_DIR "/seen");
	autofree char *text = NULL;
	struct hw_err e;

	(void)state;
	assert_ok(runtime_kill(&rt, "x", 15, true, SOON, &e), &e);
	text = read_text(RUN_DIR "/seen");
	assert_string_equal(text,
			    "--root " RUN_DIR "/state --systemd-cgroup kill --all x 15\n"
			    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
			    /* 3 is the directory that ls reads */
			    "0\n1\n2\n3\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RUN_TEST("runtime: a container starts, is paused, ends and is deleted",
			 a_container_starts_and_ends),
		RUN_TEST("runtime: a container whose start is interrupted stays created",
			 an_interrupted_start_leaves_the_container_created),
		RUN_TEST("runtime: a signal to all reaches every process of the container",
			 kill_all_reaches_every_process),
		RUN_TEST("runtime: ending a container that does not exist succeeds",
			 a_container_that_does_not_exist),
		RUN_TEST("runtime: limits are changed", limits_are_changed),
		RUN_TEST("runtime: an error has the text of the program",
			 errors_have_the_programs_text),
		RUN_TEST("runtime: a call ends at its deadline", a_call_ends_at_its_deadline),
		RUN_TEST("runtime: the program gets its arguments and a small environment",
			 the_program_gets_arguments_and_a_small_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
