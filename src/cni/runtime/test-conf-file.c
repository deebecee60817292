/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/test-conf-file.c - tests of network configuration files and directories
 */
#include "cni/runtime/conf.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "cni/test.h"

#define PLUGINS "\"plugins\":[{\"type\":\"noop\"}]"
#define NETWORK "{\"cniVersion\":\"1.0.0\",\"name\":\"n\"," PLUGINS "}"

static char *place_path(const struct place *p, const char *name)
{
	return str_printf("%s/%s", p->dir, name);
}

static void place_mkdir(const struct place *p, const char *name)
{
	autofree char *path = place_path(p, name);

	assert_int_equal(mkdir(path, 0755), 0);
}

static void place_network(const struct place *p, const char *file, const char *name)
{
	autofree char *json = str_printf("{\"name\":\"%s\"," PLUGINS "}", name);

	place_write(p, file, json, 0644);
}

static void place_single(const struct place *p, const char *file, const char *name)
{
	autofree char *json = str_printf("{\"type\":\"noop\",\"name\":\"%s\"}", name);

	place_write(p, file, json, 0644);
}

static void assert_open_refused(const struct place *p, const char *file, const char *part)
{
	autofree char *path = place_path(p, file);
	struct hw_conf *conf = NULL;
	struct hw_err e;

	assert_true(hw_conf_open(path, &conf, &e) < 0);
	assert_contains(e.msg, path);
	assert_contains(e.msg, part);
	assert_null(conf);
}

static void lists_files(void **state)
{
	static const char *const extensions[] = { ".conf", ".conflist", NULL };
	static const char *const want[] = { "10.conf", "9.conflist", "a.b.conf", "l.conf" };
	struct place *p = *state;
	AUTO(hw_strings_free) struct hw_strings files = { 0 };
	autofree char *link = place_path(p, "l.conf"), *fifo = place_path(p, "fifo.conf");
	struct hw_err e;

	place_write(p, "9.conflist", "", 0644);
	place_write(p, "10.conf", "", 0644);
	place_write(p, "a.b.conf", "", 0644);
	place_write(p, "x.json", "", 0644);
	place_write(p, "x.conf.bak", "", 0644);
	place_write(p, "conf", "", 0644);
	place_mkdir(p, "d.conf");
	assert_int_equal(symlink("nowhere", link), 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_ok(hw_conf_files(p->dir, extensions, &files, &e), e);
	assert_int_equal(files.n, ARRAY_SIZE(want));
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		autofree char *path = place_path(p, want[i]);

		assert_string_equal(files.v[i], path);
	}
}

static void missing_directory(void **state)
{
	struct place *p = *state;
	autofree char *dir = place_path(p, "none");
	autofree char *want = str_printf("no net configurations found in %s", dir);
	struct hw_conf *conf = NULL;
	struct hw_err e;

	assert_int_equal(hw_conf_load(dir, "n", &conf, &e), -ENOENT);
	assert_string_equal(e.msg, want);
	assert_int_equal(hw_conf_load_first(dir, NULL, NULL, &conf, &e), -ENOENT);
	assert_string_equal(e.msg, want);
}

/* Root can read everything, so the test changes its user ID for the call. */
static void unreadable_directory(void **state)
{
	struct place *p = *state;
	struct hw_conf *conf = NULL;
	bool root = geteuid() == 0;
	struct hw_err e;
	int r;

	place_network(p, "n.conflist", "n");
	assert_int_equal(chmod(p->dir, 0), 0);
	if (root)
		assert_int_equal(seteuid(65534), 0);
	r = hw_conf_load(p->dir, "n", &conf, &e);
	if (root)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod(p->dir, 0700), 0);
	assert_int_equal(r, -EACCES);
	assert_contains(e.msg, p->dir);
	assert_contains(e.msg, "Permission denied");
}

static void not_a_directory(void **state)
{
	struct place *p = *state;
	autofree char *path = place_path(p, "file");
	struct hw_conf *conf = NULL;
	struct hw_err e;

	place_write(p, "file", "", 0644);
	assert_int_equal(hw_conf_load(path, "n", &conf, &e), -ENOTDIR);
}

static void assert_loads(const struct place *p, const char *name, const char *file)
{
	AUTO(hw_conf_free) struct hw_conf *conf = NULL;
	autofree char *path = place_path(p, file);
	struct hw_err e;

	assert_ok(hw_conf_load(p->dir, name, &conf, &e), e);
	assert_string_equal(hw_conf_name(conf), name);
	assert_string_equal(hw_conf_file(conf), path);
	assert_true(hw_conf_is_list(conf));
}

static void load_order(void **state)
{
	struct place *p = *state;

	place_single(p, "10-a.conf", "a");
	place_network(p, "50-a.conflist", "a");
	place_network(p, "60-a.conflist", "a");
	place_single(p, "20-b.json", "b");
	place_single(p, "30-b.conf", "b");
	assert_loads(p, "a", "50-a.conflist");
	assert_loads(p, "b", "20-b.json");
}

static void load_not_found(void **state)
{
	struct place *p = *state;
	autofree char *want = str_printf("no net configuration with name \"x\" in %s", p->dir);
	struct hw_conf *conf = NULL;
	struct hw_err e;

	place_network(p, "10-a.conflist", "a");
	assert_int_equal(hw_conf_load(p->dir, "x", &conf, &e), -ENOENT);
	assert_string_equal(e.msg, want);
}

static void invalid_file_is_skipped(void **state)
{
	struct place *p = *state;
	struct hw_conf *conf = NULL;
	struct hw_err e;

	place_write(p, "00-broken.conflist", "{", 0644);
	place_write(p, "01-empty.conflist", "", 0644);
	place_network(p, "10-a.conflist", "a");
	place_write(p, "00-broken.conf", "?", 0644);
	place_single(p, "20-b.conf", "b");
	assert_loads(p, "a", "10-a.conflist");
	assert_loads(p, "b", "20-b.conf");
	assert_int_equal(hw_conf_load(p->dir, "x", &conf, &e), -EINVAL);
	assert_starts(e.msg, "no net configuration with name \"x\" in ");
	assert_contains(e.msg, "00-broken.conflist: error parsing configuration list: ");
}

static void invalid_file_of_that_name(void **state)
{
	struct place *p = *state;
	struct hw_conf *conf = NULL;
	struct hw_err e;

	place_write(p, "00-a.conflist", "{\"name\":\"a\",\"plugins\":[{}]}", 0644);
	place_network(p, "10-a.conflist", "a");
	place_write(p, "20-b.conf", "{\"name\":\"b\"}", 0644);
	place_single(p, "30-b.conf", "b");
	assert_int_equal(hw_conf_load(p->dir, "a", &conf, &e), -EINVAL);
	assert_contains(e.msg, "/00-a.conflist: failed to parse plugin config 0");
	assert_int_equal(hw_conf_load(p->dir, "b", &conf, &e), -EINVAL);
	assert_contains(e.msg, "/20-b.conf: error parsing configuration: missing 'type'");
	assert_null(conf);
}

static void count_skipped(void *ctx, const char *file, const struct hw_err *why)
{
	struct hw_strings *skipped = ctx;

	strings_add(skipped, file);
	assert_contains(why->msg, file);
}

static void load_first(void **state)
{
	AUTO(hw_strings_free) struct hw_strings skipped = { 0 };
	AUTO(hw_conf_free) struct hw_conf *conf = NULL;
	struct place *p = *state;
	struct hw_err e;

	place_write(p, "00-x.conflist", "{", 0644);
	place_write(p, "01-x.conf", NETWORK, 0644);
	place_single(p, "02-a.json", "a");
	place_network(p, "03-b.conflist", "b");
	assert_ok(hw_conf_load_first(p->dir, count_skipped, &skipped, &conf, &e), e);
	assert_string_equal(hw_conf_name(conf), "a");
	assert_int_equal(skipped.n, 2);
	assert_true(str_ends(skipped.v[0], "/00-x.conflist"));
}

static void load_first_none(void **state)
{
	struct place *p = *state;
	struct hw_conf *conf = NULL;
	struct hw_err e;

	place_write(p, "00-x.conflist", "{", 0644);
	assert_int_equal(hw_conf_load_first(p->dir, NULL, NULL, &conf, &e), -EINVAL);
	assert_starts(e.msg, "no valid networks found in ");
	assert_contains(e.msg, "00-x.conflist");
}

static void extension_decides(void **state)
{
	struct place *p = *state;

	place_write(p, "x.json", NETWORK, 0644);
	assert_open_refused(p, "x.json", "missing 'type' ('plugins' found: is it a .conflist?)");
	place_single(p, "x.conflist", "n");
	assert_open_refused(p, "x.conflist", "no plugin configs found");
	assert_open_refused(p, "none.conflist", "error reading ");
}

static void extra_plugins(void **state)
{
	AUTO(hw_conf_free) struct hw_conf *conf = NULL, *only = NULL;
	struct place *p = *state;
	autofree char *path = place_path(p, "n.conflist"), *other = place_path(p, "o.conflist");
	struct hw_err e;

	place_network(p, "n.conflist", "n");
	place_mkdir(p, "n");
	place_write(p, "n/20.conf", "{\"type\":\"second\"}", 0644);
	place_write(p, "n/10.conf", "{\"type\":\"first\"}", 0644);
	place_write(p, "n/30.json", "{\"type\":\"not\"}", 0644);
	assert_ok(hw_conf_open(path, &conf, &e), e);
	assert_int_equal(hw_conf_count(conf), 3);
	assert_string_equal(hw_conf_type(conf, 1), "first");
	assert_string_equal(hw_conf_type(conf, 2), "second");
	place_write(p, "o.conflist", "{\"name\":\"n\",\"loadOnlyInlinedPlugins\":true," PLUGINS "}",
		    0644);
	assert_ok(hw_conf_open(other, &only, &e), e);
	assert_int_equal(hw_conf_count(only), 1);
}

static void extra_plugins_only(void **state)
{
	AUTO(hw_conf_free) struct hw_conf *conf = NULL;
	struct place *p = *state;
	autofree char *path = place_path(p, "n.conflist");
	struct hw_err e;

	place_write(p, "n.conflist", "{\"name\":\"n\"}", 0644);
	assert_open_refused(p, "n.conflist", "no plugin configs found");
	place_mkdir(p, "n");
	place_write(p, "n/1.conf", "{}", 0644);
	assert_open_refused(p, "n.conflist", "n/1.conf: error parsing configuration: missing");
	place_write(p, "n/1.conf", "{", 0644);
	assert_open_refused(p, "n.conflist", "n/1.conf: malformed JSON");
	place_write(p, "n/1.conf", "{\"type\":\"a\"}", 0644);
	assert_ok(hw_conf_open(path, &conf, &e), e);
	assert_int_equal(hw_conf_count(conf), 1);
}

/* With these names, libcni would load every .conf file of the directory itself or of its parent. */
static void invalid_names_are_no_paths(void **state)
{
	struct place *p = *state;

	place_mkdir(p, "sub");
	place_single(p, "x.conf", "x");
	place_write(p, "none.conflist", "{\"name\":\"\"}", 0644);
	place_write(p, "dot.conflist", "{\"name\":\".\"}", 0644);
	place_write(p, "sub/up.conflist", "{\"name\":\"..\"}", 0644);
	assert_open_refused(p, "none.conflist", "no plugin configs found");
	assert_open_refused(p, "dot.conflist", "no plugin configs found");
	assert_open_refused(p, "sub/up.conflist", "no plugin configs found");
}

static void special_files(void **state)
{
	struct place *p = *state;
	autofree char *fifo = place_path(p, "fifo.conflist");
	autofree char *large = mem_new(CONF_SIZE_MAX + 2);

	place_write(p, "empty.conflist", "", 0644);
	place_write(p, "space.conflist", " \n", 0644);
	place_mkdir(p, "dir.conflist");
	assert_int_equal(mkfifo(fifo, 0600), 0);
	memset(large, ' ', CONF_SIZE_MAX + 1);
	place_write(p, "large.conflist", large, 0644);
	assert_open_refused(p, "empty.conflist", "the file is empty");
	assert_open_refused(p, "space.conflist", "malformed JSON");
	assert_open_refused(p, "dir.conflist", "Is a directory");
	assert_open_refused(p, "fifo.conflist", "not a regular file");
	assert_open_refused(p, "large.conflist", "more than 1048576 bytes");
}

static void relative_path(void **state)
{
	AUTO(hw_conf_free) struct hw_conf *conf = NULL;
	struct place *p = *state;
	char *before = getcwd(NULL, 0);
	struct hw_err e;
	int r;

	place_network(p, "n.conflist", "n");
	place_mkdir(p, "n");
	place_write(p, "n/1.conf", "{\"type\":\"side\"}", 0644);
	assert_int_equal(chdir(p->dir), 0);
	r = hw_conf_open("n.conflist", &conf, &e);
	assert_int_equal(chdir(before), 0);
	free(before);
	assert_int_equal(r, 0);
	assert_int_equal(hw_conf_count(conf), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLACE_TEST("conf: files whose last extension matches are listed in byte order",
			   lists_files),
		PLACE_TEST("conf: a missing directory counts as empty", missing_directory),
		PLACE_TEST("conf: an unreadable directory is an error", unreadable_directory),
		PLACE_TEST("conf: a file instead of the directory is an error", not_a_directory),
		PLACE_TEST("conf: a search reads lists, then single plugins, sorted by file name",
			   load_order),
		PLACE_TEST("conf: a network that no file defines is not found", load_not_found),
		PLACE_TEST("conf: an invalid file is skipped, and is named if nothing is found",
			   invalid_file_is_skipped),
		PLACE_TEST("conf: an invalid file that contains the wanted name is an error",
			   invalid_file_of_that_name),
		PLACE_TEST("conf: the first valid network is loaded, skipped files are reported",
			   load_first),
		PLACE_TEST("conf: if no network is valid, the error names the last file",
			   load_first_none),
		PLACE_TEST("conf: the file extension distinguishes a list from a single plugin",
			   extension_decides),
		PLACE_TEST("conf: plugins in the network's directory are appended by default",
			   extra_plugins),
		PLACE_TEST("conf: a list may have all its plugins in the network's directory",
			   extra_plugins_only),
		PLACE_TEST("conf: an invalid network name is not used as a directory",
			   invalid_names_are_no_paths),
		PLACE_TEST("conf: empty, huge and special files are refused", special_files),
		PLACE_TEST("conf: a path without a directory is relative to the current directory",
			   relative_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
