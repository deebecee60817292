/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/test-conf.c - network configurations: names, text, files, requests
 */
#include "cni/conf.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "cni/test-data.h"
#include "cni/test.h"

#define PLUGINS "\"plugins\":[{\"type\":\"noop\"}]"
#define NETWORK "{\"cniVersion\":\"1.0.0\",\"name\":\"n\"," PLUGINS "}"

/* ---- names ----------------------------------------------------------------------- */

struct name_case {
	const char *name;
	int wire;
	const char *msg, *details;
};

static void assert_names(int (*check)(const char *, struct hw_err *), const struct name_case *cases,
			 size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct hw_err e = { 0 };
		int r = check(cases[i].name, &e);

		if ((r == 0) != (cases[i].wire == 0))
			fail_msg("\"%s\": %d, %s", cases[i].name, r, e.msg);
		if (r == 0)
			continue;
		assert_int_equal(err_wire(&e), cases[i].wire);
		assert_string_equal(e.msg, cases[i].msg);
		assert_string_equal(e.details, cases[i].details);
	}
}

static void network_names(void **state)
{
	static const char msg[] = "invalid characters found in network name";
	static const struct name_case cases[] = {
		{ "k8s-pod_network.1", 0 },
		{ "0", 0 },
		{ NULL, HW_CNI_INVALID_CONFIG, "missing network name:", "" },
		{ "", HW_CNI_INVALID_CONFIG, "missing network name:", "" },
		{ "-a", HW_CNI_INVALID_CONFIG, msg, "-a" },
		{ "a/b", HW_CNI_INVALID_CONFIG, msg, "a/b" },
		{ "a\n", HW_CNI_INVALID_CONFIG, msg, "a\n" },
		{ "b\xc3\xa4r", HW_CNI_INVALID_CONFIG, msg, "b\xc3\xa4r" },
	};

	(void)state;
	assert_names(conf_check_network_name, cases, ARRAY_SIZE(cases));
}

static void container_ids(void **state)
{
	static const char msg[] = "invalid characters in containerID";
	static const struct name_case cases[] = {
		{ "cnitool-77383ca0a0715733ca6f", 0 },
		{ "", HW_CNI_UNKNOWN_CONTAINER, "missing containerID", "" },
		{ "_x", HW_CNI_INVALID_ENV, msg, "_x" },
		{ "a b", HW_CNI_INVALID_ENV, msg, "a b" },
		{ "../x", HW_CNI_INVALID_ENV, msg, "../x" },
	};
	char longest[1000];
	struct hw_err e;

	(void)state;
	assert_names(conf_check_container_id, cases, ARRAY_SIZE(cases));
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_ok(conf_check_container_id(longest, &e), e);
}

static void ifnames(void **state)
{
	static const char breaker[] = "interface name contains / or : or whitespace characters";
	static const struct name_case cases[] = {
		{ "eth0", 0 },
		{ "123456789012345", 0 },
		{ "\xc3\xa4\xe2\x82\xac", 0 },
		{ "\xff\xfe", 0 },
		{ "...", 0 },
		{ "", HW_CNI_INVALID_ENV, "interface name is empty", "" },
		{ "1234567890123456", HW_CNI_INVALID_ENV, "interface name is too long",
		  "interface name should be less than 16 characters" },
		{ ".", HW_CNI_INVALID_ENV, "interface name is . or ..", "" },
		{ "..", HW_CNI_INVALID_ENV, "interface name is . or ..", "" },
		{ "a/b", HW_CNI_INVALID_ENV, breaker, "" },
		{ "a:b", HW_CNI_INVALID_ENV, breaker, "" },
		{ "a b", HW_CNI_INVALID_ENV, breaker, "" },
		{ "a\v", HW_CNI_INVALID_ENV, breaker, "" },
		{ "a\xc2\xa0", HW_CNI_INVALID_ENV, breaker, "" },
		{ "\xc2\x85", HW_CNI_INVALID_ENV, breaker, "" },
		{ "a\xe2\x80\x83z", HW_CNI_INVALID_ENV, breaker, "" },
		{ "\xe2\x80\xaf", HW_CNI_INVALID_ENV, breaker, "" },
		{ "\xe3\x80\x80", HW_CNI_INVALID_ENV, breaker, "" },
	};

	(void)state;
	assert_names(conf_check_ifname, cases, ARRAY_SIZE(cases));
}

/* ---- text ------------------------------------------------------------------------- */

static void assert_list_refused(const char *json, size_t len, const char *start)
{
	struct hw_conf *conf = NULL;
	struct hw_err e;

	if (hw_conf_parse(json, len, &conf, &e) >= 0)
		fail_msg("was taken: %s", json);
	assert_starts(e.msg, start);
	assert_null(conf);
}

static void list_faults(void **state)
{
#define LIST "error parsing configuration list: "
	static const char *const cases[][2] = {
		{ "", LIST "not JSON" },
		{ "{", LIST "not JSON" },
		{ "[]", LIST "an array" },
		{ "null", LIST "null" },
		{ "{" PLUGINS "}", LIST "no name" },
		{ "{\"Name\":\"n\"," PLUGINS "}", LIST "no name" },
		{ "{\"name\":1," PLUGINS "}", LIST "invalid name type" },
		{ "{\"name\":null," PLUGINS "}", LIST "invalid name type" },
		{ "{\"name\":\"n\",\"cniVersion\":1," PLUGINS "}", LIST "invalid cniVersion type" },
		{ "{\"name\":\"n\",\"cniVersions\":\"1.0.0\"," PLUGINS "}",
		  LIST "invalid type for cniVersions" },
		{ "{\"name\":\"n\",\"cniVersions\":[\"1.0.0\",2]," PLUGINS "}",
		  LIST "invalid type for cniVersions index 1" },
		{ "{\"name\":\"n\",\"cniVersions\":[\"1.0.0.0\"]," PLUGINS "}",
		  LIST "invalid cniVersions entry 1.0.0.0 at index 0" },
		{ "{\"name\":\"n\",\"cniVersion\":\"x\",\"cniVersions\":[]," PLUGINS "}",
		  LIST "invalid cniVersion x" },
		{ "{\"name\":\"n\",\"disableCheck\":1," PLUGINS "}",
		  LIST "invalid type a number for disableCheck" },
		{ "{\"name\":\"n\",\"disableGC\":\"yes\"," PLUGINS "}",
		  LIST "invalid value \"yes\" for disableGC" },
		{ "{\"name\":\"n\",\"loadOnlyInlinedPlugins\":true}",
		  LIST "`loadOnlyInlinedPlugins` is true, and no 'plugins' key" },
		{ "{\"name\":\"n\",\"plugins\":{}}", LIST "invalid 'plugins' type" },
		{ "{\"name\":\"n\",\"plugins\":[]}", LIST "no plugins in list" },
		{ "{\"name\":\"n\"}", "no plugin configs found" },
		{ "{\"name\":\"n\",\"plugins\":[{\"type\":\"a\"},{}]}",
		  "failed to parse plugin config 1: error parsing configuration: missing 'type'" },
		{ "{\"name\":\"n\",\"plugins\":[{\"type\":\"\"}]}",
		  "failed to parse plugin config 0: error parsing configuration: missing 'type'" },
		{ "{\"name\":\"n\",\"plugins\":[{\"type\":7}]}",
		  "failed to parse plugin config 0: error parsing configuration: type" },
		{ "{\"name\":\"n\",\"plugins\":[\"bridge\"]}",
		  "failed to parse plugin config 0: error parsing configuration: " },
		{ "{\"name\":\"n\",\"plugins\":[{\"type\":\"a\",\"capabilities\":{\"x\":1}}]}",
		  "failed to parse plugin config 0: error parsing configuration: capabilities.x" },
	};
#undef LIST

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_list_refused(cases[i][0], strlen(cases[i][0]), cases[i][1]);
}

static void bad_bytes(void **state)
{
	static const char nul[] = "{\"name\":\"n\0x\"," PLUGINS "}";
	static const char between[] = NETWORK "\0";
	static const char utf8[] = "{\"name\":\"n\xff\"," PLUGINS "}";
	static const char escaped[] = "{\"name\":\"n\\u0000\"," PLUGINS "}";

	(void)state;
	assert_list_refused(nul, sizeof(nul) - 1, "error parsing configuration list: ");
	assert_list_refused(between, sizeof(between) - 1, "error parsing configuration list: ");
	assert_list_refused(utf8, sizeof(utf8) - 1, "error parsing configuration list: ");
	assert_list_refused(escaped, sizeof(escaped) - 1, "error parsing configuration list: ");
}

static void depth_bomb(void **state)
{
	size_t len = 900 * 1000;
	autofree char *bomb = mem_new(len + 1);

	(void)state;
	memset(bomb, '[', len);
	assert_list_refused(bomb, len, "error parsing configuration list: JSON is nested deeper");
}

static void last_duplicate(void **state)
{
	AUTO(hw_conf_free)
	struct hw_conf *conf = test_list("{\"name\":\"a\",\"name\":\"b\",\"plugins\":"
					 "[{\"type\":\"x\",\"type\":\"y\"}]}");

	(void)state;
	assert_string_equal(hw_conf_name(conf), "b");
	assert_string_equal(hw_conf_type(conf, 0), "y");
}

static void chooses_version(void **state)
{
	static const struct {
		const char *keys, *version;
	} cases[] = {
		{ "", "" },
		{ "\"cniVersion\":\"0.4.0\",", "0.4.0" },
		{ "\"cniVersion\":\"9.9.9\",", "9.9.9" },
		{ "\"cniVersion\":\"junk\",", "junk" },
		{ "\"cniVersions\":[\"0.3.1\",\"1.1.0\",\"1.0.0\"],", "1.1.0" },
		{ "\"cniVersion\":\"1.0.0\",\"cniVersions\":[\"0.4.0\"],", "1.0.0" },
		{ "\"cniVersion\":\"0.3.0\",\"cniVersions\":[\"0.4.0\",\"2.0.0\"],", "0.4.0" },
		{ "\"cniVersion\":\"3.0.0\",\"cniVersions\":[\"2.0.0\"],", "3.0.0" },
		{ "\"cniVersion\":\"0.4.0\",\"cniVersions\":[\"0.9.0\",\"0.3.1\"],", "0.4.0" },
		{ "\"cniVersion\":\"0.4.0\",\"cniVersions\":[],", "0.4.0" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *json = str_printf("{\"name\":\"n\",%s" PLUGINS "}", cases[i].keys);
		AUTO(hw_conf_free) struct hw_conf *conf = test_list(json);

		assert_string_equal(hw_conf_version(conf), cases[i].version);
	}
}

static void flags_as_text(void **state)
{
	AUTO(hw_conf_free)
	struct hw_conf *text = test_list("{\"name\":\"n\",\"disableCheck\":\"TRUE\","
					 "\"disableGC\":\"False\"," PLUGINS "}");
	AUTO(hw_conf_free)
	struct hw_conf *plain = test_list("{\"name\":\"n\",\"disableGC\":true," PLUGINS "}");

	(void)state;
	assert_true(hw_conf_check_disabled(text));
	assert_false(hw_conf_gc_disabled(text));
	assert_false(hw_conf_check_disabled(plain));
	assert_true(hw_conf_gc_disabled(plain));
}

static void says_what_it_has(void **state)
{
	static const char json[] = "{ \"name\":\"n\", \"plugins\":[{\"type\":\"a\", \"n\":1},"
				   "{\"type\":\"b\"}]}";
	AUTO(hw_conf_free) struct hw_conf *conf = test_list(json);

	(void)state;
	assert_true(hw_conf_is_list(conf));
	assert_null(hw_conf_file(conf));
	assert_string_equal(hw_conf_bytes(conf), json);
	assert_int_equal(hw_conf_count(conf), 2);
	assert_string_equal(hw_conf_plugin(conf, 0), "{\"type\":\"a\",\"n\":1}");
	assert_string_equal(hw_conf_type(conf, 1), "b");
	assert_null(hw_conf_type(conf, 2));
	assert_null(hw_conf_plugin(conf, 2));
	hw_conf_free(NULL);
}

static void single_plugin(void **state)
{
	AUTO(hw_conf_free)
	struct hw_conf *plugin = test_plugin(
		"{\"Type\":\"bridge\",\"name\":\"n\",\"cniVersion\":\"0.4.0\",\"mtu\":1}");
	AUTO(hw_conf_free) struct hw_conf *list = NULL;
	struct hw_conf *again = NULL;
	struct hw_err e;

	(void)state;
	assert_false(hw_conf_is_list(plugin));
	assert_string_equal(hw_conf_name(plugin), "n");
	assert_string_equal(hw_conf_version(plugin), "0.4.0");
	assert_ok(hw_conf_to_list(plugin, &list, &e), e);
	assert_true(hw_conf_is_list(list));
	assert_string_equal(hw_conf_version(list), "0.4.0");
	assert_string_equal(hw_conf_bytes(list),
			    "{\"cniVersion\":\"0.4.0\",\"name\":\"n\",\"plugins\":[{\"Type\":"
			    "\"bridge\",\"name\":\"n\",\"cniVersion\":\"0.4.0\",\"mtu\":1}]}");
	assert_int_equal(hw_conf_to_list(list, &again, &e), -EINVAL);
}

static void plugin_faults(void **state)
{
	static const char *const cases[][2] = {
		{ "", "error parsing configuration: not JSON" },
		{ "[]", "error parsing configuration: " },
		{ "{}", "error parsing configuration: missing 'type'" },
		{ NETWORK, "error parsing configuration: missing 'type' (it has 'plugins'" },
		{ "{\"type\":\"a\",\"name\":1}", "error parsing configuration: name" },
	};
	struct hw_conf *conf = NULL;
	struct hw_err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_true(hw_conf_parse_plugin(cases[i][0], strlen(cases[i][0]), &conf, &e) < 0);
		assert_starts(e.msg, cases[i][1]);
	}
}

/* ---- files ------------------------------------------------------------------------- */

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

/* Root may read everything, so another takes its place for a moment. */
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

static void broken_hides_nothing(void **state)
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

static void broken_of_that_name(void **state)
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

static void opens_by_extension(void **state)
{
	struct place *p = *state;

	place_write(p, "x.json", NETWORK, 0644);
	assert_open_refused(p, "x.json", "missing 'type' (it has 'plugins': is it a .conflist?)");
	place_single(p, "x.conflist", "n");
	assert_open_refused(p, "x.conflist", "no plugin configs found");
	assert_open_refused(p, "none.conflist", "error reading ");
}

static void side_plugins(void **state)
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

static void side_plugins_only(void **state)
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
	assert_open_refused(p, "n.conflist", "n/1.conf: not JSON");
	place_write(p, "n/1.conf", "{\"type\":\"a\"}", 0644);
	assert_ok(hw_conf_open(path, &conf, &e), e);
	assert_int_equal(hw_conf_count(conf), 1);
}

/* libcni would take every .conf of the directory itself, or of one elsewhere. */
static void odd_names_lead_nowhere(void **state)
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

static void odd_files(void **state)
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
	assert_open_refused(p, "space.conflist", "not JSON");
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

/* ---- requests ------------------------------------------------------------------------ */

static char *request(const struct hw_conf *conf, size_t i, const struct conf_request *r)
{
	char *json = NULL;
	struct hw_err e;

	assert_ok(conf_request(conf, i, r, &json, &e), e);
	return json;
}

static void assert_request(const char *list, const struct conf_request *r, const char *want)
{
	AUTO(hw_conf_free) struct hw_conf *conf = test_list(list);
	autofree char *json = request(conf, 0, r);

	assert_string_equal(json, want);
}

/* libcni had the same list, arguments and result: test/data/libcni/generate.go */
static void request_as_libcni(void **state)
{
	static const char *const files[] = { "libcni/request/bridge.json",
					     "libcni/request/portmap.json" };
	AUTO(buf_done) struct buf list = { 0 }, result = { 0 }, args = { 0 };
	AUTO(hw_conf_free) struct hw_conf *conf = NULL;
	struct conf_request r = { 0 };
	struct hw_err e;

	(void)state;
	test_data("libcni/list.json", &list);
	test_data("libcni/result.json", &result);
	test_data("libcni/capabilities.json", &args);
	assert_ok(hw_conf_parse(list.data, list.len, &conf, &e), e);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		AUTO(buf_done) struct buf want = { 0 };
		autofree char *json = NULL;

		r.prev_result = i > 0 ? result.data : NULL;
		r.capability_args = args.data;
		json = request(conf, i, &r);
		test_data(files[i], &want);
		assert_string_equal(json, want.data);
	}
}

static void request_overwrites(void **state)
{
	const struct conf_request none = { 0 };

	(void)state;
	assert_request(
		"{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"plugins\":[{\"type\":\"a\","
		"\"name\":\"own\",\"cniVersion\":\"0.1.0\",\"CNIVersion\":\"0.2.0\","
		"\"prevResult\":{\"x\":1},\"runtimeConfig\":{\"y\":2},\"n\":9007199254740993}]}",
		&none,
		"{\"CNIVersion\":\"0.2.0\",\"cniVersion\":\"1.0.0\",\"n\":9007199254740993,"
		"\"name\":\"n\",\"prevResult\":{\"x\":1},\"runtimeConfig\":{\"y\":2},"
		"\"type\":\"a\"}");
	assert_request("{\"name\":\"n\"," PLUGINS "}", &none,
		       "{\"cniVersion\":\"\",\"name\":\"n\",\"type\":\"noop\"}");
}

static void request_capabilities(void **state)
{
	static const char list[] =
		"{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"plugins\":[{\"type\":"
		"\"a\",\"capabilities\":{\"mac\":true,\"ips\":false},"
		"\"runtimeConfig\":{\"y\":2}}]}";
	const struct conf_request other = { .capability_args = "{\"ips\":[],\"aliases\":[]}" };
	const struct conf_request given = { .capability_args = "{\"mac\":\"x\",\"ips\":[]}" };

	(void)state;
	assert_request(list, &other,
		       "{\"capabilities\":{\"ips\":false,\"mac\":true},\"cniVersion\":\"1.0.0\","
		       "\"name\":\"n\",\"runtimeConfig\":{\"y\":2},\"type\":\"a\"}");
	assert_request(list, &given,
		       "{\"capabilities\":{\"ips\":false,\"mac\":true},\"cniVersion\":\"1.0.0\","
		       "\"name\":\"n\",\"runtimeConfig\":{\"mac\":\"x\"},\"type\":\"a\"}");
}

static void request_valid(void **state)
{
	const struct hw_valid valid[] = { { "c1", "eth0" }, { "c2", "eth1" } };
	const struct conf_request some = { .with_valid = true, .valid = valid, .n_valid = 2 };
	const struct conf_request none = { .with_valid = true };
#define VALID                                                                                      \
	"[{\"containerID\":\"c1\",\"ifname\":\"eth0\"},{\"containerID\":\"c2\",\"ifname\":"        \
	"\"eth1\"}]"

	(void)state;
	assert_request(NETWORK, &some,
		       "{\"cni.dev/attachments\":" VALID ",\"cni.dev/valid-attachments\":" VALID
		       ",\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"type\":\"noop\"}");
#undef VALID
	assert_request(NETWORK, &none,
		       "{\"cni.dev/attachments\":[],\"cni.dev/valid-attachments\":[],"
		       "\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"type\":\"noop\"}");
}

static void request_faults(void **state)
{
	AUTO(hw_conf_free)
	struct hw_conf *conf = test_list("{\"name\":\"n\",\"plugins\":[{\"type\":\"a\","
					 "\"capabilities\":{\"mac\":true}}]}");
	const struct conf_request not_json = { .capability_args = "{" };
	const struct conf_request list = { .capability_args = "[]" };
	const struct conf_request prev = { .prev_result = "x" };
	char *json = NULL;
	struct hw_err e;

	(void)state;
	assert_true(conf_request(conf, 0, &not_json, &json, &e) < 0);
	assert_starts(e.msg, "capability arguments: not JSON");
	assert_true(conf_request(conf, 0, &list, &json, &e) < 0);
	assert_starts(e.msg, "capability arguments: an array");
	assert_true(conf_request(conf, 0, &prev, &json, &e) < 0);
	assert_starts(e.msg, "previous result: not JSON");
	assert_null(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "conf: network names as upstream checks them", network_names },
		{ "conf: container ids as upstream checks them, of any length", container_ids },
		{ "conf: interface names as upstream checks them, Unicode white space too",
		  ifnames },
		{ "conf: each fault of a list has upstream's text", list_faults },
		{ "conf: NUL bytes and invalid UTF-8 are refused", bad_bytes },
		{ "conf: a depth bomb is refused", depth_bomb },
		{ "conf: the last of duplicate keys wins", last_duplicate },
		{ "conf: the highest version that we implement is chosen", chooses_version },
		{ "conf: disableCheck and disableGC may be text", flags_as_text },
		{ "conf: a list says what it has", says_what_it_has },
		{ "conf: a single plugin becomes a list of one", single_plugin },
		{ "conf: each fault of a single plugin has upstream's text", plugin_faults },
		PLACE_TEST("conf: files are listed by last extension, in byte order", lists_files),
		PLACE_TEST("conf: a missing directory counts as empty", missing_directory),
		PLACE_TEST("conf: an unreadable directory is an error", unreadable_directory),
		PLACE_TEST("conf: a file in place of the directory is an error", not_a_directory),
		PLACE_TEST("conf: lists come before single plugins, each in name order",
			   load_order),
		PLACE_TEST("conf: a name that no file has is not found", load_not_found),
		PLACE_TEST("conf: a broken file hides no other, and is named when nothing is found",
			   broken_hides_nothing),
		PLACE_TEST("conf: a broken file of the wanted name is an error",
			   broken_of_that_name),
		PLACE_TEST("conf: the first valid network is loaded, what is skipped is reported",
			   load_first),
		PLACE_TEST("conf: no valid network is an error that names the last file",
			   load_first_none),
		PLACE_TEST("conf: the extension tells a list from a single plugin",
			   opens_by_extension),
		PLACE_TEST("conf: plugins of the network's folder are appended unless inlined only",
			   side_plugins),
		PLACE_TEST("conf: a list may have all its plugins in the network's folder",
			   side_plugins_only),
		PLACE_TEST("conf: a name that is none leads to no folder", odd_names_lead_nowhere),
		PLACE_TEST("conf: empty, huge and special files are refused", odd_files),
		PLACE_TEST("conf: a path without a directory works", relative_path),
		{ "conf: requests are the same to the byte as libcni's", request_as_libcni },
		{ "conf: a request has the network's name and version, all else stays",
		  request_overwrites },
		{ "conf: runtimeConfig is replaced when a declared capability is given",
		  request_capabilities },
		{ "conf: a GC request names the valid attachments under both keys", request_valid },
		{ "conf: arguments that are not JSON are refused", request_faults },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
