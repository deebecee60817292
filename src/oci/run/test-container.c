/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/run/test-container.c - what a configuration of oci/spec does in a real container
 *
 * How:   each test runs a shell script with busybox in a container of crun, and compares its output.
 *
 * Sandbox: --shared
 */
#include "oci/run/test.h"
#include "oci/spec/limits.h"
#include "oci/spec/security.h"

/* Runs the container to its end. Return: what it printed, both streams; to be freed by the caller */
static char *run_spec(const struct oci_spec *s)
{
	struct hw_err e;

	write_spec(s);
	assert_ok(runtime_delete(&test_runtime, BOX, SOON, &e), &e);
	run_crun((const char *[]){ "create", "-b", RUN_BUNDLE, BOX, NULL });
	assert_ok(runtime_start(&test_runtime, BOX, SOON, &e), &e);
	for (;;) {
		struct runtime_state state = { 0 };
		int r;

		r = runtime_get_state(&test_runtime, BOX, SOON, &state, &e);
		assert_ok(r, &e);
		if (state.status == RUNTIME_STOPPED)
			break;
		time_sleep(1); /* the interval of polling */
	}
	return read_text(RUN_DIR "/out");
}

static void assert_prints(const struct oci_spec *s, const char *expected)
{
	autofree char *text = run_spec(s);

	assert_string_equal(text, expected);
}

static void assert_box_prints(const struct inputs *in, const char *expected)
{
	AUTO(spec_done) struct oci_spec s = { 0 };

	init_spec_from(&s, in);
	assert_prints(&s, expected);
}

/* ---- process ------------------------------------------------------------------------------------- */

static void the_process_is_as_configured(void **state)
{
	struct hw_list rlimits = { (struct oci_rlimit[]){ { (char *)"RLIMIT_NOFILE", 100, 200 },
							  { (char *)"RLIMIT_CPU", 1000, -1 } },
				   2 };
	const struct spec_process process = {
		.cmd = &STRINGS("/bin/sh", "-c",
				"pwd; id; echo $HOSTNAME; ulimit -n; ulimit -Hn; ulimit -t; "
				"ulimit -Ht; cat /proc/self/oom_score_adj; "
				"grep NoNewPrivs /proc/self/status"),
		.cwd = "/not/there/yet",
		.uid = 7,
		.gid = 8,
		.groups = (uint32_t[]){ 8, 9 },
		.n_groups = 2,
		.hostname = "web",
		.no_new_privileges = true,
		.oom_score_adj = 999,
		.rlimits = &rlimits,
	};

	(void)state;
	assert_box_prints(&(struct inputs){ .process = &process },
			  "/not/there/yet\nuid=7 gid=8 groups=8,9\nweb\n100\n200\n1000\n"
			  "unlimited\n999\nNoNewPrivs:\t1\n");
}

static void capabilities_are_as_configured(void **state)
{
	const struct {
		struct spec_capabilities c;
		uint32_t uid;
		const char *expected; /* of CapInh, CapPrm, CapEff, CapBnd, CapAmb */
	} v[] = {
		{ { .drop = &STRINGS("ALL") }, 0, "0 0 0 0 0" },
		{ { .drop = &STRINGS("ALL"), .add = &STRINGS("KILL") }, 0, "0 20 20 20 0" },
		{ { .drop = &STRINGS("ALL"), .add = &STRINGS("KILL") }, 5, "0 0 0 20 0" },
		{ { .drop = &STRINGS("ALL"), .ambient = &STRINGS("KILL") }, 5, "20 20 20 20 20" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		AUTO(spec_done) struct oci_spec s = { 0 };
		AUTO(buf_done) struct buf sets = { 0 };
		autofree char *text = NULL;

		init_spec_from(&s, &(struct inputs){ .script = "exec grep Cap /proc/self/status",
						     .capabilities = &v[i].c });
		s.process.user.uid = v[i].uid;
		text = run_spec(&s);
		for (char *line = text; line; line = strchr(line, '\n')) {
			line += strcspn(line, "0123456789");
			if (*line)
				buf_printf(&sets, "%s%llx", sets.len ? " " : "",
					   strtoull(line, NULL, 16));
		}
		assert_string_equal(sets.data, v[i].expected);
	}
}

static const struct spec_capabilities privileged = { .privileged = true };

/* crun fails if it is given more than this process has. */
static void privileged_has_all_capabilities(void **state)
{
	AUTO(spec_done) struct oci_spec s = { 0 };
	autofree char *text = NULL;

	(void)state;
	init_spec_from(&s, &(struct inputs){ .script = "exec grep CapEff /proc/self/status",
					     .capabilities = &privileged });
	text = run_spec(&s);
	assert_true(strtoull(text + strlen("CapEff:\t"), NULL, 16) == spec_own_capabilities());
}

/* ---- mounts -------------------------------------------------------------------------------------- */

#define SOURCE "/tmp/source"

/* A tmpfs at /tmp/source, and another one below it at sub. */
static int setup_mounts(void **state)
{
	if (run_setup(state) < 0)
		return -1;
	make_dir(SOURCE);
	assert_int_equal(mount("none", SOURCE, "tmpfs", 0, NULL), 0);
	make_dir(SOURCE "/sub");
	make_dir(SOURCE "/later");
	return mount("none", SOURCE "/sub", "tmpfs", 0, NULL);
}

static int teardown_mounts(void **state)
{
	int r = run_teardown(state);

	return umount2(SOURCE, MNT_DETACH) < 0 ? -1 : r;
}

/* One mount, with a handler that can do everything. */
#define MOUNTS(mount)                                                                              \
	(&(const struct spec_mounts){                                                              \
		.requested = mount, .n_requested = 1, .rro = true, .idmap = OCI_IDMAP_SAME })

static void assert_mount_prints(const struct spec_mount *m, const char *script,
				const char *expected)
{
	assert_box_prints(&(struct inputs){ .script = script, .mounts = MOUNTS(m) }, expected);
}

static void read_only_mounts(void **state)
{
	static const char script[] =
		"for d in /x /x/sub; do touch $d/f 2>/dev/null && echo $d; done";

	(void)state;
	assert_mount_prints(&(struct spec_mount){ .container_path = "/x", .host_path = SOURCE },
			    script, "/x\n/x/sub\n");
	assert_mount_prints(&(struct spec_mount){ .container_path = "/x",
						  .host_path = SOURCE,
						  .readonly = true },
			    script, "/x/sub\n");
	assert_mount_prints(&(struct spec_mount){ .container_path = "/x",
						  .host_path = SOURCE,
						  .readonly = true,
						  .recursive_readonly = true },
			    script, "");
}

static void options_of_mounts(void **state)
{
	(void)state;
	assert_mount_prints(
		&(struct spec_mount){ .container_path = "/x/y",
				      .host_path = SOURCE,
				      .options = &STRINGS("noexec", "nodev", "nosuid") },
		"grep ' /x/y ' /proc/self/mounts",
		"none /x/y tmpfs rw,nosuid,nodev,noexec,relatime 0 0\n");
}

/* The container waits for a mount of the host, and makes one itself. */
static void propagation(void **state)
{
	static const struct {
		enum spec_propagation mode;
		bool from_host, to_host;
	} v[] = {
		{ SPEC_PRIVATE, false, false },
		{ SPEC_FROM_HOST, true, false },
		{ SPEC_BOTH_WAYS, true, true },
	};
	struct hw_err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		AUTO(spec_done) struct oci_spec s = { 0 };
		struct spec_mount m = { .container_path = "/x",
					.host_path = SOURCE,
					.propagation = v[i].mode };
		autofree char *text = NULL;

		init_spec_from(&s,
			       &(struct inputs){
				       .script = "mkdir -p /x/mine; mount -t tmpfs none /x/mine; "
						 "touch /x/mine/inside /tmp/made; "
						 "while ! test -e /tmp/go; do sleep 0.01; done; "
						 "ls /x/later",
				       .mounts = MOUNTS(&m),
				       .capabilities = &privileged,
			       });
		write_spec(&s);
		run_crun((const char *[]){ "create", "-b", RUN_BUNDLE, BOX, NULL });
		assert_ok(runtime_start(&test_runtime, BOX, SOON, &e), &e);
		wait_until(file_exists(RUN_ROOTFS "/tmp/made"));
		assert_int_equal(file_exists(SOURCE "/mine/inside"), v[i].to_host);
		assert_int_equal(mount("none", SOURCE "/later", "tmpfs", 0, NULL), 0);
		assert_int_equal(mknod(SOURCE "/later/f", S_IFREG | 0600, 0), 0);
		assert_int_equal(mknod(RUN_ROOTFS "/tmp/go", S_IFREG | 0600, 0), 0);
		for (struct runtime_state state_ = { 0 }; state_.status != RUNTIME_STOPPED;)
			assert_int_equal(runtime_get_state(&test_runtime, BOX, SOON, &state_, &e),
					 1);
		text = read_text(RUN_DIR "/out");
		assert_string_equal(text, v[i].from_host ? "f\n" : "");
		assert_ok(runtime_delete(&test_runtime, BOX, SOON, &e), &e);
		umount2(SOURCE "/mine", MNT_DETACH);
		assert_int_equal(umount2(SOURCE "/later", MNT_DETACH), 0);
		unlink(RUN_ROOTFS "/tmp/go");
		unlink(RUN_ROOTFS "/tmp/made");
	}
}

/* Files that the mapped root creates in an idmapped volume belong to root on the host. */
static void an_idmapped_volume(void **state)
{
	struct oci_mapping mapping = { 0, 100000, 65536 };
	const struct hw_list list = { &mapping, 1 };
	const struct spec_mount m = { .container_path = "/x",
				      .host_path = SOURCE,
				      .uid_mappings = &list,
				      .gid_mappings = &list };
	const struct spec_namespaces namespaces = { .user = "",
						    .pid = "",
						    .network = "",
						    .ipc = "",
						    .uid_mappings = &list,
						    .gid_mappings = &list,
						    .cgroups_path = RUN_CGROUP };
	struct stat st;

	(void)state;
	make_dir(RUN_ROOTFS "/x");
	make_dir(RUN_ROOTFS "/proc");
	make_dir(RUN_ROOTFS "/sys");
	make_dir(RUN_ROOTFS "/dev");
	assert_box_prints(&(struct inputs){ .script = "touch /x/new; stat -c %u /x/new; "
						      "cat /proc/self/uid_map",
					    .namespaces = &namespaces,
					    .mounts = MOUNTS(&m) },
			  "0\n         0     100000      65536\n");
	assert_int_equal(stat(SOURCE "/new", &st), 0);
	assert_int_equal(st.st_uid, 0);
}

/* ---- the rest ------------------------------------------------------------------------------------ */

static void paths_are_protected(void **state)
{
	AUTO(spec_done) struct oci_spec s = { 0 };
	struct hw_err e;

	(void)state;
	init_spec(&s, "cat /proc/version; ls /bin/busybox; echo x 2>/dev/null "
		      ">/proc/sys/kernel/domainname "
		      "|| echo read-only; touch /f 2>/dev/null || echo read-only");
	assert_ok(spec_set_security(&s,
				    &(struct spec_security){
					    .readonly_root = true,
					    .masked_paths = &STRINGS("/proc/version", "/nowhere"),
					    .readonly_paths = &STRINGS("/proc/sys", "/nowhere") },
				    &e),
		  &e);
	assert_prints(&s, "/bin/busybox\nread-only\nread-only\n");
}

static void only_allowed_devices_can_be_used(void **state)
{
	const struct spec_device full = { "/dev/full", "/dev/mine", "r" };
	AUTO(spec_done) struct oci_spec s = { 0 };

	(void)state;
	init_spec_from(&s, &(struct inputs){
				   .script = "dd if=/dev/null 2>/dev/null && echo null; "
					     "dd if=/dev/mine bs=1 count=1 2>&1 >/dev/null | "
					     "grep -q '^1+0' && echo mine; "
					     "dd if=/dev/other bs=1 count=1 2>&1 | grep -o 'Op.*'",
				   .devices = &(struct spec_devices){ &full, 1, false } });
	/* a node without a rule: /dev/kmsg */
	*(struct oci_device *)spec_append(&s.devices, sizeof(struct oci_device)) =
		(struct oci_device){ .type = str_copy("c"),
				     .path = str_copy("/dev/other"),
				     .major = 1,
				     .minor = 11,
				     .mode = 0666 };
	assert_prints(&s, "null\nmine\nOperation not permitted\n");
}

static void privileged_has_the_hosts_devices(void **state)
{
	(void)state;
	if (!file_exists("/dev/kmsg"))
		skip();
	assert_box_prints(
		&(struct inputs){ .script = "ls /dev/kmsg; exec 3</dev/kmsg && echo open",
				  .capabilities = &privileged,
				  .devices = &(struct spec_devices){ .privileged = true } },
		"/dev/kmsg\nopen\n");
}

static void limits_are_those_of_the_cgroup(void **state)
{
	struct oci_resources r = { .memory_limit = 32 << 20,
				   .cpu_quota = 50000,
				   .cpu_period = 100000,
				   .cpu_shares = 512,
				   .pids_limit = 33 };
	struct run_fixture *f = *state;
	AUTO(spec_host_done) struct spec_host host = { 0 };
	AUTO(spec_done) struct oci_spec s = { 0 };
	AUTO(spec_limits_done) struct oci_limits limits = { 0 };
	autofree char *text = NULL;
	struct hw_err e;

	assert_ok(spec_host_init(&host, f->fs, "", &e), &e);
	assert_ok(spec_limits_init(&limits, &r, &host, &e), &e);
	init_spec(&s, "cat /sys/fs/cgroup/*/*limit_in_bytes /sys/fs/cgroup/*.max "
		      "/sys/fs/cgroup/*/*.max /sys/fs/cgroup/*/cpu.shares 2>/dev/null; :");
	s.limits.memory = limits.memory;
	s.limits.swap = limits.swap;
	s.limits.cpu_quota = limits.cpu_quota;
	s.limits.cpu_period = limits.cpu_period;
	s.limits.cpu_shares = limits.cpu_shares;
	s.limits.pids = limits.pids;
	text = run_spec(&s);
	assert_non_null(strstr(text, "33554432\n"));
	assert_non_null(strstr(text, "33\n"));
}

#define MOUNT_TEST(sentence, f)                                                                    \
	{                                                                                          \
		sentence, f, setup_mounts, teardown_mounts, NULL                                   \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RUN_TEST("container: the process is as configured", the_process_is_as_configured),
		RUN_TEST("container: capabilities are as configured",
			 capabilities_are_as_configured),
		RUN_TEST("container: a privileged one has all capabilities of this process",
			 privileged_has_all_capabilities),
		MOUNT_TEST("container: a mount is read-only, also recursively", read_only_mounts),
		MOUNT_TEST("container: a mount has its options", options_of_mounts),
		MOUNT_TEST("container: mounts propagate as configured", propagation),
		MOUNT_TEST("container: a volume is idmapped in a user namespace",
			   an_idmapped_volume),
		RUN_TEST("container: paths and the root are protected", paths_are_protected),
		RUN_TEST("container: only allowed devices can be used",
			 only_allowed_devices_can_be_used),
		RUN_TEST("container: a privileged one can use all devices of the host",
			 privileged_has_the_hosts_devices),
		RUN_TEST("container: limits are those of its cgroup",
			 limits_are_those_of_the_cgroup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
