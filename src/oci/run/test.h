/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/run/test.h - helpers for unit tests that run containers with the crun of this host
 *
 * What:  RUN_TEST() gives a test a bundle below /tmp/run with a root file system that has busybox, and
 *        removes the container "box", its cgroup and the directory afterwards. The tests run in
 *        test/sandbox.
 */
#ifndef OCI_RUN_TEST_H
#define OCI_RUN_TEST_H

#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/json/value.h"
#include "base/os/child.h"
#include "base/os/file.h"
#include "base/os/remove-tree.h"
#include "base/str.h"
#include "oci/cgroup.h"
#include "oci/run/runtime.h"
#include "oci/spec/capabilities.h"
#include "oci/spec/devices.h"
#include "oci/spec/mounts.h"
#include "oci/spec/namespaces.h"
#include "oci/spec/process.h"
#include "oci/spec/test.h"

#define BOX	   "box"
#define RUN_DIR	   "/tmp/run"
#define RUN_BUNDLE RUN_DIR "/bundle"
#define RUN_ROOTFS RUN_DIR "/rootfs"
#define RUN_CGROUP "/hawser-run/" BOX
#define SOON	   time_deadline(TEST_MS)

static const struct runtime test_runtime = { .program = "/usr/bin/crun", .root = RUN_DIR "/state" };

struct run_fixture {
	struct cgroup_fs *fs;
	size_t n_fds; /* descriptors that were open before the test */
};

static inline int count_entry(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	(void)entry;
	(void)e;
	++*(size_t *)ctx;
	return 0;
}

static inline size_t count_fds(void)
{
	size_t n = 0;
	struct hw_err e;

	assert_ok(file_walk(AT_FDCWD, "/proc/self/fd", count_entry, &n, &e), &e);
	return n;
}

#define RUN_TEST(sentence, f)                                                                      \
	{                                                                                          \
		sentence, f, run_setup, run_teardown, NULL                                         \
	}

static inline void make_dir(const char *path)
{
	struct hw_err e;

	assert_ok(file_mkdirs(AT_FDCWD, path, 0755, &e), &e);
}

/* busybox finds its applet by the name that it is called with. */
static inline void make_rootfs(void)
{
	static const char *const applets[] = { "sh",   "sleep", "cat",	  "echo",  "true", "dd",
					       "tty",  "stty",	"setsid", "env",   "id",   "ls",
					       "kill", "touch", "grep",	  "mount", "stat", "test" };
	AUTO(buf_done) struct buf busybox = { 0 };
	struct hw_err e;

	make_dir(RUN_ROOTFS "/bin");
	make_dir(RUN_ROOTFS "/tmp");
	assert_ok(file_read(AT_FDCWD, "/bin/busybox", 16 << 20, &busybox, &e), &e);
	assert_ok(file_replace(AT_FDCWD, RUN_ROOTFS "/bin/busybox", busybox.data, busybox.len, 0755,
			       0, &e),
		  &e);
	for (size_t i = 0; i < ARRAY_SIZE(applets); i++) {
		autofree char *path = str_printf(RUN_ROOTFS "/bin/%s", applets[i]);

		assert_int_equal(link(RUN_ROOTFS "/bin/busybox", path), 0);
	}
}

static inline int run_setup(void **state)
{
	struct run_fixture *f = mem_new(sizeof(*f));
	struct hw_err e;

	f->n_fds = count_fds();
	/* crun refuses cgroup v1 with a cgroup2 that has controllers */
	umount("/sys/fs/cgroup/unified");
	assert_ok(cgroup_fs_new("", &f->fs, &e), &e);
	make_dir(RUN_BUNDLE);
	make_rootfs();
	*state = f;
	return 0;
}

static inline int run_teardown(void **state)
{
	struct run_fixture *f = *state;
	struct hw_err e;
	int r, dir;

	r = runtime_delete(&test_runtime, BOX, SOON, &e);
	if (r == 0)
		r = cgroup_kill(f->fs, RUN_CGROUP, SOON, &e);
	if (r == 0)
		r = cgroup_remove(f->fs, "/hawser-run", SOON, &e);
	dir = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r == 0)
		r = remove_tree(dir, "run", &e);
	if (r < 0)
		print_message("%s\n", e.msg);
	close(dir);
	if (count_fds() != f->n_fds) {
		print_message("a descriptor was leaked\n");
		r = -1;
	}
	cgroup_fs_free(f->fs);
	free(f);
	return r;
}

/* Parts of a configuration. NULL: a default that needs no rights. */
struct inputs {
	const char *script;
	const struct spec_process *process; /* instead of the script */
	const struct spec_capabilities *capabilities;
	const struct spec_namespaces *namespaces;
	const struct spec_mounts *mounts;
	const struct spec_devices *devices;
};

static inline void init_spec_from(struct oci_spec *s, const struct inputs *in)
{
	const struct spec_process process = {
		.cmd = &STRINGS("/bin/sh", "-c", in->script),
	};
	const struct spec_namespaces namespaces = { .pid = "", .cgroups_path = RUN_CGROUP };
	struct spec_capabilities capabilities = { 0 };
	struct hw_err e;

	if (in->capabilities)
		capabilities = *in->capabilities;
	capabilities.available = spec_own_capabilities();
	*s = (struct oci_spec){ .root = str_copy(RUN_ROOTFS) };
	assert_ok(spec_set_process(s, in->process ? in->process : &process, &e), &e);
	assert_ok(spec_set_capabilities(s, &capabilities, &e), &e);
	assert_ok(spec_set_namespaces(s, in->namespaces ? in->namespaces : &namespaces, &e), &e);
	assert_ok(spec_set_mounts(s, in->mounts ? in->mounts : &(struct spec_mounts){ 0 }, &e), &e);
	assert_ok(spec_set_devices(s, in->devices ? in->devices : &(struct spec_devices){ 0 }, &e),
		  &e);
}

/* The configuration of a container that runs a shell script. The caller may change it, and frees it. */
static inline void init_spec(struct oci_spec *s, const char *script)
{
	init_spec_from(s, &(struct inputs){ .script = script });
}

static inline void write_spec(const struct oci_spec *s)
{
	autofree char *text = encode_spec(s);
	struct hw_err e;

	assert_ok(
		file_replace(AT_FDCWD, RUN_BUNDLE "/config.json", text, strlen(text), 0600, 0, &e),
		&e);
}

static inline char *read_text(const char *path)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct hw_err e;

	assert_ok(file_read(AT_FDCWD, path, 16 << 20, &text, &e), &e);
	return buf_take(&text);
}

/* Runs crun with these words, without a monitor. Its output is a file, because the container keeps it
 * open. */
static inline void run_crun(const char *const *words)
{
	AUTO(hw_strings_free) struct hw_strings argv = { 0 };
	int out = open(RUN_DIR "/out", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct child_start start = {
		.path = test_runtime.program, .env = runtime_env, .in = out, .out = out, .err = out
	};
	struct child *child;
	struct hw_err e;
	int status;

	strings_add(&argv, test_runtime.program);
	runtime_add_options(&test_runtime, &argv);
	for (; *words; words++)
		strings_add(&argv, *words);
	argv.v = mem_resize(argv.v, argv.n + 1, sizeof(*argv.v));
	argv.v[argv.n] = NULL;
	start.argv = (const char *const *)argv.v;
	assert_ok(child_start(&start, &child, &e), &e);
	assert_ok(child_wait(child, &status, &e), &e);
	close(out);
	if (status != 0) {
		autofree char *text = read_text(RUN_DIR "/out");

		fail_msg("%s", text);
	}
}

/* Polls @condition; in a test, nothing may take longer than TEST_MS. */
#define wait_until(condition)                                                                      \
	do {                                                                                       \
		int64_t until_ = SOON;                                                             \
		while (!(condition)) {                                                             \
			if (time_has_passed(until_))                                               \
				fail_msg("timed out: %s", #condition);                             \
			time_sleep(2); /* the interval of polling */                               \
		}                                                                                  \
	} while (0)

static inline bool file_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

#endif
