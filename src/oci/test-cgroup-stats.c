/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/test-cgroup-stats.c - what a cgroup uses
 *
 * How:   texts of the kernel for both versions, and a cgroup of this host; test/uml/oci.bats runs it with
 *        cgroup v2.
 */
#include "oci/cgroup-stats.h"
#include "oci/test.h"

#include "base/buf.h"

#define MIB (1 << 20)

static void unknown_values(void **state)
{
	struct cgroup_stats s;

	(void)state;
	cgroup_stats_init(&s);
	for (size_t i = 0; i < CGROUP_VALUES; i++)
		assert_true(s.v[i] == CGROUP_UNKNOWN);
	for (size_t i = 0; i < CGROUP_RESOURCES; i++)
		assert_false(s.pressure[i].some.known || s.pressure[i].full.known);
	assert_true(cgroup_stats_working_set(&s) == CGROUP_UNKNOWN);
	assert_true(cgroup_stats_left(CGROUP_UNKNOWN, 1) == CGROUP_UNKNOWN);
	assert_true(cgroup_stats_left(1, CGROUP_UNKNOWN) == CGROUP_UNKNOWN);
	assert_true(cgroup_stats_left(7, 5) == 2);
	assert_true(cgroup_stats_left(5, 7) == 0);
}

static void files_of_v1(void **state)
{
	AUTO(cgroup_stats_done) struct cgroup_stats s;

	(void)state;
	cgroup_stats_init(&s);
	cgroup_stats_parse(false, "cpuacct.usage", "12345\n", &s);
	cgroup_stats_parse(false, "cpu.stat", "nr_periods 7\nnr_throttled 3\nthrottled_time 99\n",
			   &s);
	cgroup_stats_parse(false, "memory.usage_in_bytes", "1000\n", &s);
	cgroup_stats_parse(false, "memory.stat",
			   "rss 1\ncache 2\nhierarchical_memory_limit 5000\n"
			   "hierarchical_memsw_limit 9000\ntotal_rss 300\ntotal_cache 400\n"
			   "total_inactive_file 250\ntotal_pgfault 11\ntotal_pgmajfault 2\n"
			   "total_swap 50\n",
			   &s);
	cgroup_stats_parse(false, "memory.oom_control",
			   "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n", &s);
	assert_int_equal(s.v[CGROUP_CPU_USAGE], 12345);
	assert_int_equal(s.v[CGROUP_CPU_PERIODS], 7);
	assert_int_equal(s.v[CGROUP_CPU_THROTTLED_PERIODS], 3);
	assert_int_equal(s.v[CGROUP_CPU_THROTTLED_TIME], 99);
	assert_int_equal(s.v[CGROUP_MEMORY_ANONYMOUS], 300);
	assert_int_equal(s.v[CGROUP_MEMORY_CACHE], 400);
	assert_int_equal(s.v[CGROUP_MEMORY_LIMIT], 5000);
	assert_int_equal(s.v[CGROUP_SWAP_LIMIT], 4000);
	assert_int_equal(s.v[CGROUP_SWAP_USAGE], 50);
	assert_int_equal(s.v[CGROUP_PAGE_FAULTS], 11);
	assert_int_equal(s.v[CGROUP_MAJOR_PAGE_FAULTS], 2);
	assert_int_equal(s.v[CGROUP_OOM_KILLS], 4);
	assert_int_equal(cgroup_stats_working_set(&s), 750);
	assert_true(s.v[CGROUP_MEMORY_MAPPED] == CGROUP_UNKNOWN);
}

static void unlimited_v1(void **state)
{
	AUTO(cgroup_stats_done) struct cgroup_stats s;

	(void)state;
	cgroup_stats_init(&s);
	cgroup_stats_parse(false, "memory.stat",
			   "hierarchical_memory_limit 9223372036854771712\n"
			   "hierarchical_memsw_limit 9223372036854771712\n",
			   &s);
	cgroup_stats_parse(false, "memory.soft_limit_in_bytes", "9223372036854771712\n", &s);
	cgroup_stats_parse(false, "pids.max", "max\n", &s);
	assert_true(s.v[CGROUP_MEMORY_LIMIT] == CGROUP_UNKNOWN);
	assert_true(s.v[CGROUP_SWAP_LIMIT] == CGROUP_UNKNOWN);
	assert_true(s.v[CGROUP_MEMORY_RESERVATION] == CGROUP_UNKNOWN);
	assert_true(s.v[CGROUP_TASKS_LIMIT] == CGROUP_UNKNOWN);
	/* a limit for memory, but not for memory and swap together */
	cgroup_stats_parse(false, "memory.stat",
			   "hierarchical_memory_limit 4096\n"
			   "hierarchical_memsw_limit 9223372036854771712\n",
			   &s);
	assert_int_equal(s.v[CGROUP_MEMORY_LIMIT], 4096);
	assert_true(s.v[CGROUP_SWAP_LIMIT] == CGROUP_UNKNOWN);
}

static void files_of_v2(void **state)
{
	AUTO(cgroup_stats_done) struct cgroup_stats s;

	(void)state;
	cgroup_stats_init(&s);
	cgroup_stats_parse(
		true, "cpu.stat",
		"usage_usec 12\nuser_usec 8\nsystem_usec 4\nnr_periods 5\nnr_throttled 1\n"
		"throttled_usec 6\n",
		&s);
	cgroup_stats_parse(true, "memory.current", "1000\n", &s);
	cgroup_stats_parse(true, "memory.max", "max\n", &s);
	cgroup_stats_parse(true, "memory.stat",
			   "anon 300\nfile 400\nkernel 77\nfile_mapped 5\ninactive_file 1200\n"
			   "pgfault 11\npgmajfault 2\n",
			   &s);
	cgroup_stats_parse(true, "memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 4\n", &s);
	cgroup_stats_parse(true, "memory.swap.max", "4096\n", &s);
	cgroup_stats_parse(true, "memory.swap.current", "0\n", &s);
	assert_int_equal(s.v[CGROUP_CPU_USAGE], 12000);
	assert_int_equal(s.v[CGROUP_CPU_USER], 8000);
	assert_int_equal(s.v[CGROUP_CPU_SYSTEM], 4000);
	assert_int_equal(s.v[CGROUP_CPU_THROTTLED_TIME], 6000);
	assert_int_equal(s.v[CGROUP_MEMORY_KERNEL], 77);
	assert_int_equal(s.v[CGROUP_MEMORY_LIMIT_HITS], 9);
	assert_int_equal(s.v[CGROUP_OOM_KILLS], 4);
	assert_int_equal(s.v[CGROUP_SWAP_LIMIT], 4096);
	assert_int_equal(s.v[CGROUP_SWAP_USAGE], 0);
	assert_true(s.v[CGROUP_MEMORY_LIMIT] == CGROUP_UNKNOWN);
	assert_int_equal(cgroup_stats_working_set(&s), 0);
}

static void pressure(void **state)
{
	struct cgroup_stats s;

	(void)state;
	cgroup_stats_init(&s);
	cgroup_stats_parse(true, "io.pressure",
			   "some avg10=1.50 avg60=0.25 avg300=0.01 total=12\n"
			   "full avg10=0.50 avg60=0.00 avg300=0.00 total=3\n",
			   &s);
	cgroup_stats_parse(true, "cpu.pressure",
			   "some avg10=99.00 avg60=1.00 avg300=2.00 total=5\n", &s);
	assert_true(s.pressure[CGROUP_IO].some.known && s.pressure[CGROUP_IO].full.known);
	assert_true(s.pressure[CGROUP_IO].some.avg10 == 1.5);
	assert_true(s.pressure[CGROUP_IO].some.avg60 == 0.25);
	assert_true(s.pressure[CGROUP_IO].some.avg300 == 0.01);
	assert_int_equal(s.pressure[CGROUP_IO].some.total, 12000);
	assert_int_equal(s.pressure[CGROUP_IO].full.total, 3000);
	/* older kernels have no line "full" for the processor */
	assert_true(s.pressure[CGROUP_CPU].some.known);
	assert_false(s.pressure[CGROUP_CPU].full.known);
	assert_false(s.pressure[CGROUP_MEMORY].some.known);
}

static void devices(void **state)
{
	AUTO(cgroup_stats_done) struct cgroup_stats v1, v2;
	const struct cgroup_device *d;

	(void)state;
	cgroup_stats_init(&v1);
	cgroup_stats_parse(false, "blkio.throttle.io_service_bytes_recursive",
			   "8:0 Read 10\n8:0 Write 20\n8:0 Sync 30\n8:0 Total 30\n"
			   "259:1 Read 5\nTotal 35\n",
			   &v1);
	cgroup_stats_parse(false, "blkio.throttle.io_serviced_recursive",
			   "8:0 Read 1\n8:0 Write 2\n", &v1);
	d = v1.devices.v;
	assert_int_equal(v1.devices.n, 2);
	assert_true(d[0].major == 8 && d[0].minor == 0 && d[0].read_bytes == 10);
	assert_true(d[0].written_bytes == 20 && d[0].reads == 1 && d[0].writes == 2);
	assert_true(d[1].major == 259 && d[1].minor == 1 && d[1].read_bytes == 5);
	assert_true(d[1].reads == CGROUP_UNKNOWN);
	cgroup_stats_init(&v2);
	cgroup_stats_parse(true, "io.stat",
			   "8:16 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n8:32 \n8:48\n",
			   &v2);
	d = v2.devices.v;
	assert_int_equal(v2.devices.n, 1);
	assert_true(d[0].minor == 16 && d[0].read_bytes == 1 && d[0].written_bytes == 2);
	assert_true(d[0].reads == 3 && d[0].writes == 4);
}

static void malformed_files(void **state)
{
	static const char *const texts[] = {
		"",
		"\n",
		"-1",
		"12x",
		"1 2",
		" 1",
		"18446744073709551615",
		"18446744073709551616",
		"0x10",
		"anon 1",
		"99999999999999999999999999999",
	};
	AUTO(cgroup_stats_done) struct cgroup_stats s;

	(void)state;
	cgroup_stats_init(&s);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		cgroup_stats_parse(true, "memory.current", texts[i], &s);
		assert_true(s.v[CGROUP_MEMORY_USAGE] == CGROUP_UNKNOWN);
	}
	cgroup_stats_parse(true, "cpu.stat",
			   "usage_usec\nusage_usec \nusage_usec 1 2\nusage_usecs 3\n"
			   "usage_usec 18446744073709551614\n\n\nuser_usec 5",
			   &s);
	assert_true(s.v[CGROUP_CPU_USAGE] == CGROUP_UNKNOWN);
	assert_int_equal(s.v[CGROUP_CPU_USER], 5000);
	cgroup_stats_parse(true, "cpu.pressure", "some avg10=1\nfull\n\nsome total=1\n", &s);
	assert_false(s.pressure[CGROUP_CPU].some.known);
	cgroup_stats_parse(true, "io.stat", "8:0\n:\n8\n8:99999999999 rbytes=1\n8:0 rbytes=x\n",
			   &s);
	assert_int_equal(s.devices.n, 0);
}

static void many_devices(void **state)
{
	AUTO(cgroup_stats_done) struct cgroup_stats s;
	AUTO(buf_done) struct buf text = { 0 };

	(void)state;
	for (unsigned i = 0; i < 2000; i++)
		buf_printf(&text, "8:%u rbytes=1 wbytes=2 rios=3 wios=4\n", i);
	cgroup_stats_init(&s);
	cgroup_stats_parse(true, "io.stat", text.data, &s);
	assert_int_equal(s.devices.n, 256);
}

/* ---- cgroups of this host ------------------------------------------------------------------ */

static char *volatile memory;

static void use_memory(void)
{
	memory = mem_new(4 * MIB);
	memset(memory, 1, 4 * MIB);
	run_forever();
}

static bool has(const struct cgroup_fs *fs, const char *controller)
{
	return cgroup_find_hierarchy(fs, controller) != NULL;
}

/* The usage is read before the counters, so one of them alone may be complete. An unknown value is large. */
static bool is_in_use(const struct cgroup_stats *s)
{
	return s->v[CGROUP_MEMORY_USAGE] >= 4 * MIB && s->v[CGROUP_MEMORY_ANONYMOUS] >= 4 * MIB &&
	       s->v[CGROUP_PAGE_FAULTS] >= 1024;
}

static void a_cgroup_of_this_host(void **state)
{
	const struct cgroup_fs *fs = *state;
	AUTO(cgroup_stats_done) struct cgroup_stats s = { 0 }, few = { 0 };
	int64_t deadline = time_deadline(TEST_MS);
	struct hw_err e;

	create_cgroup(fs, TEST_CGROUP);
	start_in(fs, TEST_CGROUP, use_memory);
	do {
		assert_false(time_has_passed(deadline));
		cgroup_stats_done(&s);
		assert_ok(cgroup_stats_read(fs, TEST_CGROUP,
					    CGROUP_READ_CPU | CGROUP_READ_USAGE | CGROUP_READ_ALL,
					    &s, &e),
			  &e);
	} while (has(fs, "memory") && !is_in_use(&s));
	if (fs->mode == CGROUP_V2 || has(fs, "cpuacct"))
		assert_true(s.v[CGROUP_CPU_USAGE] > 0 && s.v[CGROUP_CPU_USAGE] != CGROUP_UNKNOWN);
	if (has(fs, "memory")) {
		assert_true(s.v[CGROUP_MEMORY_USAGE] != CGROUP_UNKNOWN);
		assert_true(s.v[CGROUP_MEMORY_ANONYMOUS] != CGROUP_UNKNOWN);
		assert_true(s.v[CGROUP_PAGE_FAULTS] != CGROUP_UNKNOWN);
		assert_true(cgroup_stats_working_set(&s) <= s.v[CGROUP_MEMORY_USAGE]);
		assert_true(s.v[CGROUP_MEMORY_LIMIT] == CGROUP_UNKNOWN);
		assert_int_equal(s.v[CGROUP_OOM_KILLS], 0);
	}
	if (has(fs, "pids"))
		assert_int_equal(s.v[CGROUP_TASKS], 1);
	cgroup_stats_read(fs, TEST_CGROUP, CGROUP_READ_CPU, &few, &e);
	assert_true(few.v[CGROUP_MEMORY_USAGE] == CGROUP_UNKNOWN);
	assert_true(few.v[CGROUP_TASKS] == CGROUP_UNKNOWN);
}

static void a_missing_cgroup(void **state)
{
	const struct cgroup_fs *fs = *state;
	struct cgroup_stats s;
	struct hw_err e;

	assert_int_equal(cgroup_stats_read(fs, TEST_CGROUP "/none", CGROUP_READ_USAGE, &s, &e),
			 -ENOENT);
	assert_string_equal(e.msg, "cgroup " TEST_CGROUP "/none does not exist");
	assert_true(s.v[CGROUP_MEMORY_USAGE] == CGROUP_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "cgroup: values that were not read are unknown", unknown_values, NULL, NULL,
		  NULL },
		{ "cgroup: the files of v1 are parsed", files_of_v1, NULL, NULL, NULL },
		{ "cgroup: limits of v1 that are not set are unknown", unlimited_v1, NULL, NULL,
		  NULL },
		{ "cgroup: the files of v2 are parsed", files_of_v2, NULL, NULL, NULL },
		{ "cgroup: pressure is parsed, also without a line for all tasks", pressure, NULL,
		  NULL, NULL },
		{ "cgroup: the devices of both versions are parsed", devices, NULL, NULL, NULL },
		{ "cgroup: malformed lines are ignored", malformed_files, NULL, NULL, NULL },
		{ "cgroup: the number of devices is limited", many_devices, NULL, NULL, NULL },
		CGROUP_TEST("cgroup: what a cgroup of this host uses is read",
			    a_cgroup_of_this_host),
		CGROUP_TEST("cgroup: a cgroup that does not exist cannot be read",
			    a_missing_cgroup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
