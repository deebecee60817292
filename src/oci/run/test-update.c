/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/run/test-update.c - change the limits of a container: all of them, or none
 *
 * How:   a crun whose update stops after the first files is simulated by a script that changes files
 *        and fails. Which files crun itself has changed before an error depends on its version.
 */
#include "oci/run/update.h"

#include "oci/run/test.h"

#define MB INT64_C(1048576)

/* The values of the files that limits change. */
static char *read_limits(const struct cgroup_fs *fs)
{
	static const char *const files[][3] = {
		{ "memory", "memory.limit_in_bytes", "memory.max" },
		{ "memory", "memory.memsw.limit_in_bytes", "memory.swap.max" },
		{ "cpu", "cpu.shares", "cpu.weight" },
		{ "cpu", "cpu.cfs_quota_us", "cpu.max" },
		{ "pids", "pids.max", "pids.max" },
		{ "cpuset", "cpuset.cpus", "cpuset.cpus" },
	};
	AUTO(buf_done) struct buf all = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		const struct cgroup_hierarchy *h = cgroup_find_hierarchy(fs, files[i][0]);
		autofree char *path =
			h ? str_printf("%s" RUN_CGROUP "/%s", h->dir, files[i][1 + h->v2]) : NULL;
		autofree char *text = path && file_exists(path) ? read_text(path) : NULL;

		buf_printf(&all, "%s=%s", files[i][1], str_or(text, "\n"));
	}
	return buf_take(&all);
}

/* The limits are stored, or not. */
static int store(void *ctx, struct hw_err *e)
{
	return ctx ? err_text(e, -ENOSPC, "%s", (const char *)ctx) : 0;
}

#define JOURNAL RUN_DIR "/journal"

static int change(const struct run_fixture *f, const struct runtime *rt,
		  const struct oci_limits *limits, const char *error, struct hw_err *e)
{
	return update_limits(&(struct limits_update){ .runtime = rt,
						      .fs = f->fs,
						      .cgroup = RUN_CGROUP,
						      .id = BOX,
						      .limits = limits,
						      .text = "next",
						      .journal = JOURNAL,
						      .commit = store,
						      .ctx = (void *)error },
			     SOON, e);
}

/* Starts nothing: limits can be changed once the container is created. */
static void create_container(void)
{
	AUTO(spec_done) struct oci_spec s = { 0 };

	init_spec(&s, "sleep 1000");
	s.limits.memory = 64 * MB;
	s.limits.cpu_shares = 256;
	write_spec(&s);
	run_crun((const char *[]){ "create", "-b", RUN_BUNDLE, BOX, NULL });
}

static void all_limits_are_changed(void **state)
{
	struct oci_limits limits = { .memory = 128 * MB,
				     .swap = 128 * MB,
				     .cpu_shares = 512,
				     .cpu_quota = 50000,
				     .cpu_period = 100000,
				     .pids = 77,
				     .cpus = (char *)"0" };
	struct run_fixture *f = *state;
	autofree char *values = NULL;
	struct hw_err e;

	create_container();
	assert_ok(change(f, &test_runtime, &limits, NULL, &e), &e);
	values = read_limits(f->fs);
	assert_non_null(strstr(values, "134217728"));
	assert_non_null(strstr(values, "50000"));
	assert_non_null(strstr(values, "pids.max=77\n"));
	assert_non_null(strstr(values, "cpuset.cpus=0\n"));
}

static void a_refused_limit_changes_nothing(void **state)
{
	const struct oci_limits good = { .memory = 32 * MB,
					 .swap = 32 * MB,
					 .cpu_shares = 512,
					 .cpu_quota = 50000,
					 .cpu_period = 100000,
					 .pids = 77 };
	static const int codes[] = { -EBUSY, -EINVAL, -EINVAL };
	struct oci_limits bad[] = { good, good, good };
	struct run_fixture *f = *state;
	autofree char *before = NULL;
	struct hw_err e;

	create_container();
	before = read_limits(f->fs);
	bad[0].memory = bad[0].swap = 1; /* less than is in use */
	bad[1].cpus = (char *)"4000";
	bad[2].cpu_quota = 1; /* less than 1 ms */
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		autofree char *after = NULL;

		assert_int_equal(change(f, &test_runtime, &bad[i], NULL, &e), codes[i]);
		assert_non_null(strstr(e.msg, "crun update: "));
		assert_null(strstr(e.msg, "and then"));
		after = read_limits(f->fs);
		assert_string_equal(after, before);
	}
}

static void limits_that_cannot_be_stored_change_back(void **state)
{
	const struct oci_limits limits = { .memory = 32 * MB, .swap = 32 * MB, .pids = 77 };
	autofree char *before = NULL, *after = NULL;
	struct run_fixture *f = *state;
	struct hw_err e;

	create_container();
	before = read_limits(f->fs);
	assert_int_equal(change(f, &test_runtime, &limits, "no room", &e), -ENOSPC);
	assert_string_equal(e.msg, "no room");
	after = read_limits(f->fs);
	assert_string_equal(after, before);
}

/* A kill is simulated by a copy of the journal. */
static int keep_journal(void *ctx, struct hw_err *e)
{
	autofree char *text = read_text(JOURNAL);

	(void)ctx;
	return file_replace(AT_FDCWD, JOURNAL ".kept", text, strlen(text), 0600, 0, e);
}

static void an_interrupted_update_is_undone_unless_it_was_stored(void **state)
{
	const struct oci_limits limits = { .memory = 32 * MB, .swap = 32 * MB, .pids = 77 };
	struct run_fixture *f = *state;
	const struct limits_update u = { .runtime = &test_runtime,
					 .fs = f->fs,
					 .cgroup = RUN_CGROUP,
					 .id = BOX,
					 .limits = &limits,
					 .text = "next",
					 .journal = JOURNAL,
					 .commit = keep_journal };
	autofree char *before = NULL;
	struct hw_err e;

	create_container();
	before = read_limits(f->fs);
	assert_int_equal(update_recover(JOURNAL, "first", &e), 0);
	for (int stored = 0; stored < 2; stored++) {
		autofree char *after = NULL;

		assert_ok(update_limits(&u, SOON, &e), &e);
		assert_false(file_exists(JOURNAL));
		assert_int_equal(rename(JOURNAL ".kept", JOURNAL), 0);
		assert_int_equal(update_recover(JOURNAL, stored ? "next" : "first", &e), 1);
		assert_false(file_exists(JOURNAL));
		after = read_limits(f->fs);
		assert_int_equal(str_equal(after, before), !stored);
	}
	assert_ok(file_replace(AT_FDCWD, JOURNAL, "{}", 2, 0600, 0, &e), &e);
	assert_true(update_recover(JOURNAL, "first", &e) < 0);
	assert_non_null(strstr(e.msg, JOURNAL));
}

/* So the next process can wait for a crun that outlives this one. */
static void crun_holds_a_lock_on_the_journal(void **state)
{
	static const char script[] = "#!/bin/sh\nreadlink /proc/$$/fd/3 >" RUN_DIR "/fd\n";
	const struct runtime rt = { .program = RUN_DIR "/fake", .root = RUN_DIR "/state" };
	const struct oci_limits limits = { .pids = 77 };
	autofree char *text = NULL;
	struct hw_err e;

	create_container();
	assert_ok(file_replace(AT_FDCWD, rt.program, script, strlen(script), 0755, 0, &e), &e);
	assert_ok(change(*state, &rt, &limits, NULL, &e), &e);
	text = read_text(RUN_DIR "/fd");
	assert_string_equal(text, JOURNAL "\n");
}

static void a_quota_is_removed(void **state)
{
	struct oci_limits limits = { .cpu_quota = 50000, .cpu_period = 100000 };
	struct run_fixture *f = *state;
	autofree char *before = NULL, *after = NULL, *failed = NULL;
	struct hw_err e;

	create_container();
	before = read_limits(f->fs);
	assert_ok(change(f, &test_runtime, &limits, NULL, &e), &e);
	limits.cpu_quota = -1;
	assert_int_equal(change(f, &test_runtime, &limits, "no room", &e), -ENOSPC);
	failed = read_limits(f->fs);
	assert_non_null(strstr(failed, "50000"));
	assert_ok(change(f, &test_runtime, &limits, NULL, &e), &e);
	after = read_limits(f->fs);
	assert_string_equal(after, before);
}

/* Memory must not exceed memory and swap, so the order of the two depends on the direction. */
static void dependent_limits_are_restored(void **state)
{
	static const char raise[] = "echo $((128<<20)) > memory.memsw.limit_in_bytes\n"
				    "echo $((128<<20)) > memory.limit_in_bytes\n",
			  lower[] = "echo $((32<<20)) > memory.limit_in_bytes\n"
				    "echo $((32<<20)) > memory.memsw.limit_in_bytes\n";
	static const char *const scripts[] = { raise, lower };
	struct oci_limits limits = { .memory = 64 * MB, .swap = 64 * MB };
	struct run_fixture *f = *state;
	autofree char *before = NULL;
	struct hw_err e;

	if (f->fs->mode == CGROUP_V2)
		skip();
	create_container();
	assert_ok(change(f, &test_runtime, &limits, NULL, &e), &e);
	before = read_limits(f->fs);
	for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
		struct runtime rt = { .program = RUN_DIR "/fake", .root = RUN_DIR "/state" };
		autofree char *after = NULL, *text = NULL;

		text = str_printf("#!/bin/sh\ncd %s" RUN_CGROUP "\n%sexit 1\n",
				  cgroup_find_hierarchy(f->fs, "memory")->dir, scripts[i]);
		assert_ok(file_replace(AT_FDCWD, rt.program, text, strlen(text), 0755, 0, &e), &e);
		assert_int_equal(change(f, &rt, &limits, NULL, &e), -EIO);
		assert_string_equal(e.msg, RUN_DIR "/fake update: exit status 1");
		after = read_limits(f->fs);
		assert_string_equal(after, before);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RUN_TEST("update: all limits are changed", all_limits_are_changed),
		RUN_TEST("update: a refused limit changes nothing",
			 a_refused_limit_changes_nothing),
		RUN_TEST("update: limits that cannot be stored change back",
			 limits_that_cannot_be_stored_change_back),
		RUN_TEST("update: an interrupted update is undone, unless it was stored",
			 an_interrupted_update_is_undone_unless_it_was_stored),
		RUN_TEST("update: crun holds a lock on the journal",
			 crun_holds_a_lock_on_the_journal),
		RUN_TEST("update: a CPU quota is removed", a_quota_is_removed),
		RUN_TEST("update: limits that depend on each other are restored in their order",
			 dependent_limits_are_restored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
