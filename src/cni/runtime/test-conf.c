/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/test-conf.c - tests of network configurations and the input of plugins
 */
#include "cni/runtime/conf.h"

#include <errno.h>

#include "base/buf.h"
#include "cni/test-data.h"
#include "cni/test.h"

#define PLUGINS "\"plugins\":[{\"type\":\"noop\"}]"
#define NETWORK "{\"cniVersion\":\"1.0.0\",\"name\":\"n\"," PLUGINS "}"

/* ---- parsing ---------------------------------------------------------------------- */

static void assert_list_refused(const char *json, size_t len, const char *start)
{
	struct hw_conf *conf = NULL;
	struct hw_err e;

	if (hw_conf_parse(json, len, &conf, &e) >= 0)
		fail_msg("was accepted: %s", json);
	assert_starts(e.msg, start);
	assert_null(conf);
}

static void list_errors(void **state)
{
#define LIST "error parsing configuration list: "
	static const char *const cases[][2] = {
		{ "", LIST "malformed JSON" },
		{ "{", LIST "malformed JSON" },
		{ "[]", LIST "expected an object, got an array" },
		{ "null", LIST "expected an object, got null" },
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

static void invalid_bytes(void **state)
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

static void last_duplicate_wins(void **state)
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

static void list_accessors(void **state)
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

static void plugin_errors(void **state)
{
	static const char *const cases[][2] = {
		{ "", "error parsing configuration: malformed JSON" },
		{ "[]", "error parsing configuration: " },
		{ "{}", "error parsing configuration: missing 'type'" },
		{ NETWORK, "error parsing configuration: missing 'type' ('plugins' found" },
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

/* The files were written by libcni from the same input: test/data/libcni/generate.go */
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

static void request_errors(void **state)
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
	assert_starts(e.msg, "capability arguments: malformed JSON");
	assert_true(conf_request(conf, 0, &list, &json, &e) < 0);
	assert_starts(e.msg, "capability arguments: expected an object, got an array");
	assert_true(conf_request(conf, 0, &prev, &json, &e) < 0);
	assert_starts(e.msg, "previous result: malformed JSON");
	assert_null(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "conf: each error in a list has the same text as in upstream", list_errors },
		{ "conf: NUL bytes and invalid UTF-8 are refused", invalid_bytes },
		{ "conf: JSON that is nested too deeply is refused", depth_bomb },
		{ "conf: the last one of duplicate keys is used", last_duplicate_wins },
		{ "conf: the highest supported version is chosen", chooses_version },
		{ "conf: disableCheck and disableGC may be strings", flags_as_text },
		{ "conf: the public functions return the parts of a list", list_accessors },
		{ "conf: a single plugin is converted to a list with one plugin", single_plugin },
		{ "conf: each error in a single plugin has the same text as in upstream",
		  plugin_errors },
		{ "conf: requests are byte-for-byte identical to libcni's", request_as_libcni },
		{ "conf: a request sets name and version and keeps all other keys",
		  request_overwrites },
		{ "conf: runtimeConfig is replaced if a declared capability is given",
		  request_capabilities },
		{ "conf: a GC request lists the valid attachments under both keys", request_valid },
		{ "conf: arguments that are not valid JSON are refused", request_errors },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
