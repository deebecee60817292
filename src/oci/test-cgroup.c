/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/test-cgroup.c - hierarchies, creation and removal of cgroups
 *
 * How:   the detection with plain directories, the rest with the cgroups of this host;
 *        test/uml/oci.bats runs it with cgroup v2.
 */
#include "oci/test.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/os/file.h"

/* ---- detection ------------------------------------------------------------------------------- */

/* A directory with /proc/self/cgroup and /sys/fs/cgroup of another host */
struct host {
	char root[64];
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static int host_teardown(void **state)
{
	struct host *host = *state;
	int r = nftw(host->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);

	free(host);
	return r;
}

static int host_setup(void **state)
{
	struct host *host = mem_new(sizeof(*host));

	snprintf(host->root, sizeof(host->root), "%.40s/host.XXXXXX",
		 str_or(getenv("TMPDIR"), "/tmp"));
	*state = host;
	return mkdtemp(host->root) ? 0 : -1;
}

/* Writes a file below /sys/fs/cgroup or /proc/self, with its directory. */
static void host_write(const struct host *host, const char *dir, const char *name, const char *text)
{
	autofree char *path = str_printf("%s%s", host->root, dir);
	autofree char *file = str_printf("%s/%s", path, name);
	struct hw_err e;

	assert_ok(file_mkdirs(AT_FDCWD, path, 0755, &e), &e);
	assert_ok(file_replace(AT_FDCWD, file, text, strlen(text), 0644, 0, &e), &e);
}

static void assert_hierarchy(const struct host *host, const struct cgroup_hierarchy *h, bool v2,
			     const char *dir, const char *controllers)
{
	AUTO(buf_done) struct buf list = { 0 };
	autofree char *path = str_printf("%s/sys/fs/cgroup%s", host->root, dir);

	for (size_t i = 0; i < h->controllers.n; i++)
		buf_printf(&list, "%s ", h->controllers.v[i]);
	assert_string_equal(h->dir, path);
	assert_int_equal(h->v2, v2);
	assert_string_equal(list.len ? list.data : "", controllers);
}

static void v1_is_found(void **state)
{
	AUTO(cgroup_fs_free) struct cgroup_fs *fs = NULL;
	struct host *host = *state;
	struct hw_err e;

	host_write(
		host, "/proc/self", "cgroup",
		"12:hugetlb:/\n4:memory:/a:b\n3:cpuacct,cpu:/\n2:name=systemd:/user.slice\n0::/\n");
	host_write(host, "/sys/fs/cgroup/cpu,cpuacct", "cgroup.procs", "");
	host_write(host, "/sys/fs/cgroup/memory", "cgroup.procs", "");
	host_write(host, "/sys/fs/cgroup/systemd", "cgroup.procs", "");
	host_write(host, "/sys/fs/cgroup/unified", "empty", ""); /* not mounted */
	assert_ok(cgroup_fs_new(host->root, &fs, &e), &e);
	assert_int_equal(fs->mode, CGROUP_V1);
	assert_int_equal(fs->n, 3);
	assert_hierarchy(host, &fs->v[0], false, "/memory", "memory ");
	assert_hierarchy(host, &fs->v[1], false, "/cpu,cpuacct", "cpuacct cpu ");
	assert_hierarchy(host, &fs->v[2], false, "/systemd", "name=systemd ");
	assert_ptr_equal(cgroup_find_hierarchy(fs, "cpu"), &fs->v[1]);
	assert_null(cgroup_find_hierarchy(fs, "hugetlb"));
}

static void v2_is_found(void **state)
{
	AUTO(cgroup_fs_free) struct cgroup_fs *fs = NULL;
	struct host *host = *state;
	struct hw_err e;

	host_write(host, "/proc/self", "cgroup", "0::/user.slice\n");
	host_write(host, "/sys/fs/cgroup", "cgroup.controllers", "cpu io memory\n");
	assert_ok(cgroup_fs_new(host->root, &fs, &e), &e);
	assert_int_equal(fs->mode, CGROUP_V2);
	assert_int_equal(fs->n, 1);
	assert_hierarchy(host, &fs->v[0], true, "", "cpu io memory ");
}

static void hybrid_is_found(void **state)
{
	AUTO(cgroup_fs_free) struct cgroup_fs *fs = NULL;
	struct host *host = *state;
	struct hw_err e;

	host_write(host, "/proc/self", "cgroup", "1:cpu:/\n0::/\n");
	host_write(host, "/sys/fs/cgroup/cpu", "cgroup.procs", "");
	host_write(host, "/sys/fs/cgroup/unified", "cgroup.controllers", "");
	assert_ok(cgroup_fs_new(host->root, &fs, &e), &e);
	assert_int_equal(fs->mode, CGROUP_HYBRID);
	assert_int_equal(fs->n, 2);
	assert_hierarchy(host, &fs->v[0], false, "/cpu", "cpu ");
	assert_hierarchy(host, &fs->v[1], true, "/unified", "");
}

static void host_without_cgroups(void **state)
{
	struct cgroup_fs *fs = NULL;
	struct host *host = *state;
	struct hw_err e;

	assert_int_equal(cgroup_fs_new(host->root, &fs, &e), -ENOENT);
	host_write(host, "/proc/self", "cgroup", "1:cpu:/\nnonsense\n");
	assert_int_equal(cgroup_fs_new(host->root, &fs, &e), -ENOENT);
	assert_true(str_starts(e.msg, "no cgroup hierarchy is mounted in "));
	assert_null(fs);
}

static void valid_paths(void **state)
{
	static const char *const bad[] = { "",	    "/",  "a",	   "/a/",  "//a",
					   "/a//b", "/.", "/a/..", "/../a" };
	autofree char *name = mem_new(300);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (cgroup_path_is_valid(bad[i]))
			fail_msg("%s is valid", bad[i]);
	assert_true(cgroup_path_is_valid("/a"));
	assert_true(cgroup_path_is_valid("/a.slice/...b/..c"));
	name[0] = '/';
	memset(name + 1, 'x', 255);
	assert_true(cgroup_path_is_valid(name));
	name[256] = 'x';
	assert_false(cgroup_path_is_valid(name));
}

/* ---- creation -------------------------------------------------------------------------------- */

static char *read_file(const char *dir, const char *path, const char *name)
{
	autofree char *file = str_printf("%s%s/%s", dir, path, name);
	AUTO(buf_done) struct buf text = { 0 };
	struct hw_err e;

	assert_ok(file_read(AT_FDCWD, file, 1 << 16, &text, &e), &e);
	return buf_take(&text);
}

/* Whether /proc/PID/cgroup has this path in all hierarchies of fs */
static bool is_in(pid_t pid, const struct cgroup_fs *fs, const char *path)
{
	autofree char *dir = str_printf("/proc/%d", (int)pid);
	autofree char *text = read_file(dir, "", "cgroup");
	autofree char *end = str_printf(":%s", path);
	AUTO(hw_strings_free) struct hw_strings lines = { 0 };
	size_t n = 0;

	strings_split(text, '\n', &lines);
	for (size_t i = 0; i < lines.n; i++)
		n += str_ends(lines.v[i], end);
	return n == fs->n;
}

static void created_in_every_hierarchy(void **state)
{
	struct cgroup_fs *fs = *state;
	pid_t pid;

	create_cgroup(fs, TEST_CGROUP "/a/b");
	create_cgroup(fs, TEST_CGROUP "/a/b");
	pid = start_in(fs, TEST_CGROUP "/a/b", run_forever);
	assert_true(is_in(pid, fs, TEST_CGROUP "/a/b"));
}

/* After a crash between the two steps */
static void empty_cpuset_is_completed(void **state)
{
	struct cgroup_fs *fs = *state;
	const struct cgroup_hierarchy *h = cgroup_find_hierarchy(fs, "cpuset");
	autofree char *dir = NULL;

	if (!h || h->v2) {
		print_message("there is no v1 hierarchy with cpuset\n");
		skip();
		return;
	}
	dir = str_printf("%s" TEST_CGROUP, h->dir);
	assert_int_equal(mkdir(dir, 0755), 0);
	create_cgroup(fs, TEST_CGROUP);
	start_in(fs, TEST_CGROUP, run_forever);
}

/* The root of a namespace has a type. It has processes, too, and so cannot enable controllers. */
static bool is_namespace_root(const struct cgroup_hierarchy *h)
{
	autofree char *type = str_printf("%s/cgroup.type", h->dir);

	return access(type, F_OK) == 0;
}

static void v2_controllers_are_enabled(void **state)
{
	struct cgroup_fs *fs = *state;
	const struct cgroup_hierarchy *h = &fs->v[fs->n - 1];
	autofree char *root = NULL, *leaf = NULL;

	if (!h->v2 || h->controllers.n == 0 || is_namespace_root(h)) {
		print_message("there is no cgroup2 hierarchy whose root has controllers\n");
		skip();
	}
	create_cgroup(fs, TEST_CGROUP "/a/b");
	root = read_file(h->dir, "", "cgroup.controllers");
	leaf = read_file(h->dir, TEST_CGROUP "/a/b", "cgroup.controllers");
	assert_string_equal(root, leaf);
}

static void parent_is_missing(void **state)
{
	struct cgroup_fs *fs = *state;
	char *dir = fs->v[0].dir;
	struct hw_err e;

	fs->v[0].dir = str_copy("/proc/self/none");
	assert_int_equal(cgroup_create(fs, TEST_CGROUP, &e), -ENOENT);
	free(fs->v[0].dir);
	fs->v[0].dir = dir;
}

/* ---- removal --------------------------------------------------------------------------------- */

static size_t count_dirs(const struct cgroup_fs *fs, const char *path)
{
	size_t n = 0;

	for (size_t i = 0; i < fs->n; i++) {
		autofree char *dir = str_printf("%s%s", fs->v[i].dir, path);

		n += access(dir, F_OK) == 0;
	}
	return n;
}

static void removed_with_children(void **state)
{
	struct cgroup_fs *fs = *state;
	struct hw_err e;

	create_cgroup(fs, TEST_CGROUP "/a/b/c");
	create_cgroup(fs, TEST_CGROUP "/a/d");
	assert_ok(cgroup_remove(fs, TEST_CGROUP "/a", time_deadline(TEST_MS), &e), &e);
	assert_int_equal(count_dirs(fs, TEST_CGROUP "/a"), 0);
	assert_int_equal(count_dirs(fs, TEST_CGROUP), fs->n);
	assert_ok(cgroup_remove(fs, TEST_CGROUP "/a", 0, &e), &e);
}

static void with_processes_it_is_busy(void **state)
{
	struct cgroup_fs *fs = *state;
	struct hw_err e;

	create_cgroup(fs, TEST_CGROUP "/a/b");
	start_in(fs, TEST_CGROUP "/a/b", run_forever);
	assert_int_equal(cgroup_remove(fs, TEST_CGROUP, time_deadline(20), &e), -EBUSY);
	assert_string_equal(e.msg, "remove cgroup " TEST_CGROUP ": it still has processes");
}

static void run_shortly(void)
{
	time_sleep(50);
}

static void removal_waits_for_processes(void **state)
{
	struct cgroup_fs *fs = *state;
	struct hw_err e;

	create_cgroup(fs, TEST_CGROUP "/a");
	start_in(fs, TEST_CGROUP "/a", run_shortly);
	assert_ok(cgroup_remove(fs, TEST_CGROUP, time_deadline(TEST_MS), &e), &e);
	assert_int_equal(count_dirs(fs, TEST_CGROUP), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "cgroup: v1 hierarchies that are mounted under their names are found",
		  v1_is_found, host_setup, host_teardown, NULL },
		{ "cgroup: a cgroup2 mount at /sys/fs/cgroup is v2", v2_is_found, host_setup,
		  host_teardown, NULL },
		{ "cgroup: a cgroup2 mount beside v1 is hybrid", hybrid_is_found, host_setup,
		  host_teardown, NULL },
		{ "cgroup: a host without mounted hierarchies is an error", host_without_cgroups,
		  host_setup, host_teardown, NULL },
		{ "cgroup: paths without empty parts, dots and long names are valid", valid_paths,
		  NULL, NULL, NULL },
		CGROUP_TEST("cgroup: a created cgroup can be entered in every hierarchy",
			    created_in_every_hierarchy),
		CGROUP_TEST("cgroup: a cgroup without processors is completed",
			    empty_cpuset_is_completed),
		CGROUP_TEST("cgroup: on v2 all controllers are enabled",
			    v2_controllers_are_enabled),
		CGROUP_TEST("cgroup: creation in a missing hierarchy fails", parent_is_missing),
		CGROUP_TEST("cgroup: a cgroup is removed with the cgroups below it, twice",
			    removed_with_children),
		CGROUP_TEST("cgroup: a cgroup with processes is not removed",
			    with_processes_it_is_busy),
		CGROUP_TEST("cgroup: the removal waits until processes have ended",
			    removal_waits_for_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
