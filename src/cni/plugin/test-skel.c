/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/test-skel.c - tests of plugin calls, from the environment to the reply
 */
#include "cni/plugin/skel.h"

#include "cni/plugin/test-probe.h"

/* ---- the environment ------------------------------------------------------- */

static void no_command(void **state)
{
	struct fixture *f = *state;

	expect_success(f, "", "");
	assert_null(f->reply.output);
	assert_string_equal(f->reply.notice,
			    "CNI probe plugin hawser " HAWSER_VERSION "\n"
			    "CNI protocol versions supported: 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, "
			    "1.0.0, 1.1.0\n");
	assert_false(skel_wants_input(&f->request));
}

static void missing_variables(void **state)
{
	struct fixture *f = *state;

	f->request.container_id = f->request.netns = "";
	f->request.ifname = f->request.path = NULL;
	expect_error(
		f, "ADD", "", HW_CNI_INVALID_ENV,
		"required env variables [CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH] missing");
	expect_error(
		f, "CHECK", "", HW_CNI_INVALID_ENV,
		"required env variables [CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH] missing");
	expect_error(f, "DEL", "", HW_CNI_INVALID_ENV,
		     "required env variables [CNI_CONTAINERID,CNI_IFNAME,CNI_PATH] missing");
	expect_error(f, "GC", "", HW_CNI_INVALID_ENV, "required env variables [CNI_PATH] missing");
	expect_error(f, "STATUS", "", HW_CNI_INVALID_ENV,
		     "required env variables [CNI_PATH] missing");
	assert_false(skel_wants_input(&f->request));
	assert_calls("");
}

static void wrong_variables(void **state)
{
	struct fixture *f = *state;

	f->request.path = NULL;
	f->request.container_id = "-c1";
	expect_error(f, "ADD", CONF("1.0.0"), HW_CNI_INVALID_ENV,
		     "invalid characters in containerID");
	assert_string_equal(f->e.details, "-c1");
	f->request.container_id = "c1";
	f->request.ifname = "a/b";
	expect_error(f, "DEL", CONF("1.0.0"), HW_CNI_INVALID_ENV,
		     "interface name contains / or : or whitespace characters");
	f->request.ifname = "0123456789abcdef";
	expect_error(f, "CHECK", CONF("1.0.0"), HW_CNI_INVALID_ENV, "interface name is too long");
	f->request.path = "/x";
	expect_success(f, "GC", CONF("1.1.0"));
	assert_calls("GC c1 0123456789abcdef netns=/nowhere made=;");
}

static void unknown_verb(void **state)
{
	struct fixture *f = *state;

	expect_error(f, "add", CONF("1.0.0"), HW_CNI_INVALID_ENV, "unknown CNI_COMMAND: add");
	expect_error(f, "add", "{\"name\":\"\"}", HW_CNI_INVALID_CONFIG, "missing network name");
}

static void version_command(void **state)
{
	static const char *const two[] = { "0.3.1", "0.4.0", NULL };
	struct fixture *f = *state;

	f->request = (struct skel_request){ 0 };
	expect_success(f, "VERSION", "garbage");
	assert_string_equal(f->reply.output,
			    "{\"cniVersion\":\"1.1.0\",\"supportedVersions\":[\"0.1.0\",\"0.2.0\","
			    "\"0.3.0\",\"0.3.1\",\"0.4.0\",\"1.0.0\",\"1.1.0\"]}\n");
	plugin.versions = two;
	expect_success(f, "VERSION", "");
	assert_string_equal(f->reply.output, "{\"cniVersion\":\"1.1.0\",\"supportedVersions\":"
					     "[\"0.3.1\",\"0.4.0\"]}\n");
	assert_false(skel_wants_input(&f->request));
}

/* ---- the configuration -------------------------------------------------------- */

static void bad_json(void **state)
{
	static const char *const bad[] = { "", "{", "[]", "\"x\"", "{\"name\":3}" };
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(call(f, "ADD", bad[i]), -1);
		assert_int_equal(hw_err_wire(&f->e), HW_CNI_DECODE_FAILURE);
		assert_starts(f->e.msg, "error unmarshall network config: ");
	}
	assert_calls("");
}

static void bad_names(void **state)
{
	struct fixture *f = *state;

	expect_error(f, "DEL", "{}", HW_CNI_INVALID_CONFIG, "missing network name");
	expect_error(f, "DEL", "null", HW_CNI_INVALID_CONFIG, "missing network name");
	expect_error(f, "DEL", "{\"name\":null}", HW_CNI_INVALID_CONFIG, "missing network name");
	expect_error(f, "GC", "{\"name\":\"a b\"}", HW_CNI_INVALID_CONFIG,
		     "invalid characters found in network name");
	assert_string_equal(f->e.details, "a b");
}

static void bad_versions(void **state)
{
	static const char *const old[] = { "0.1.0", "0.2.0", NULL };
	struct fixture *f = *state;

	assert_int_equal(call(f, "ADD", "{\"name\":\"n\",\"cniVersion\":1}"), -1);
	assert_int_equal(hw_err_wire(&f->e), HW_CNI_DECODE_FAILURE);
	assert_starts(f->e.msg, "decoding version from network config: ");
	expect_error(f, "DEL", CONF("0.9.0"), HW_CNI_INCOMPATIBLE_VERSION,
		     "incompatible CNI versions");
	assert_string_equal(f->e.details,
			    "config is \"0.9.0\", plugin supports [\"0.1.0\" \"0.2.0\" \"0.3.0\" "
			    "\"0.3.1\" \"0.4.0\" \"1.0.0\" \"1.1.0\"]");
	expect_error(f, "CHECK", CONF("0.3.1"), HW_CNI_INCOMPATIBLE_VERSION,
		     "config version does not allow CHECK");
	expect_error(f, "GC", CONF("1.0.0"), HW_CNI_INCOMPATIBLE_VERSION,
		     "config version does not allow GC");
	expect_error(f, "STATUS", "{\"name\":\"n\"}", HW_CNI_INCOMPATIBLE_VERSION,
		     "config version does not allow STATUS");
	assert_int_equal(call(f, "CHECK", CONF("x")), -1);
	assert_int_equal(hw_err_wire(&f->e), HW_CNI_DECODE_FAILURE);
	plugin.versions = old;
	expect_error(f, "CHECK", CONF("0.4.0"), HW_CNI_INCOMPATIBLE_VERSION,
		     "plugin version does not allow CHECK");
	assert_calls("");
}

/* As in upstream, entries after the first one that is new enough are not parsed. */
static void unparsable_own_version(void **state)
{
	static const char *const first[] = { "0.-42.0", "0.x", "1.1.0", NULL }, *const last[] = {
		"1.1.0", "0.x", NULL
	};
	struct fixture *f = *state;

	plugin.versions = first;
	for (const char *const *verb = (const char *const[]){ "CHECK", "GC", "STATUS", NULL };
	     *verb; verb++)
		expect_error(f, *verb, CONF("1.1.0"), HW_CNI_DECODE_FAILURE,
			     "invalid version \"0.x\": \"x\" is not a number");
	assert_calls("");
	expect_success(f, "ADD", CONF("1.1.0"));
	plugin.versions = last;
	expect_success(f, "GC", CONF("1.1.0"));
}

static void no_version(void **state)
{
	struct fixture *f = *state;

	probe.address = true;
	expect_success(f, "ADD", "{\"name\":\"net\"}");
	assert_string_equal(f->reply.output, "{\n    \"cniVersion\": \"0.1.0\",\n    \"ip4\": {\n"
					     "        \"ip\": \"192.0.2.1/24\"\n    },\n"
					     "    \"dns\": {}\n}");
}

static void bad_field(void **state)
{
	struct fixture *f = *state;

	expect_success(f, "DEL", "{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"Number\":8}");
	assert_int_equal(probe.number, 8);
	assert_int_equal(call(f, "ADD",
			      "{\"cniVersion\":\"1.0.0\",\"name\":\"net\","
			      "\"number\":\"8\"}"),
			 -1);
	assert_int_equal(hw_err_wire(&f->e), HW_CNI_INVALID_CONFIG);
	assert_starts(f->e.msg, "failed to load netconf: ");
	assert_contains(f->e.msg, "number");
}

/* ---- verbs ---------------------------------------------------------------------- */

static void no_verb(void **state)
{
	struct fixture *f = *state;

	plugin.add = plugin.del = plugin.check = plugin.gc = plugin.status = NULL;
	for (const char *const *verb =
		     (const char *const[]){ "ADD", "DEL", "CHECK", "GC", "STATUS", NULL };
	     *verb; verb++) {
		expect_success(f, *verb, CONF("1.1.0"));
		assert_null(f->reply.output);
	}
}

static void prints_result(void **state)
{
	struct fixture *f = *state;

	probe.address = true;
	expect_success(f, "ADD", CONF("1.0.0"));
	assert_string_equal(f->reply.output,
			    "{\n    \"cniVersion\": \"1.0.0\",\n    \"ips\": [\n        {\n"
			    "            \"address\": \"192.0.2.1/24\"\n        }\n    ]\n}");
	expect_success(f, "DEL", CONF("1.0.0"));
	assert_null(f->reply.output);
}

#define WITH_PREV(version_command, prev)                                                           \
	"{\"cniVersion\":\"" version_command "\",\"name\":\"net\",\"prevResult\":" prev "}"

static void passes_prev_on(void **state)
{
	struct fixture *f = *state;

	expect_success(f, "ADD", WITH_PREV("0.4.0", "{\"interfaces\":[{\"name\":\"x\"}]}"));
	assert_true(probe.prev_given);
	assert_string_equal(f->reply.output,
			    "{\n    \"cniVersion\": \"0.4.0\",\n    \"interfaces\": [\n"
			    "        {\n            \"name\": \"x\"\n        }\n    ],\n"
			    "    \"dns\": {}\n}");
	expect_success(f, "ADD", WITH_PREV("0.4.0", "null"));
	assert_false(probe.prev_given);
}

static void bad_prev(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(call(f, "ADD", WITH_PREV("1.0.0", "{\"cniVersion\":\"0.2.0\"}")), -1);
	assert_contains(f->e.msg, "could not parse prevResult");
	assert_int_equal(hw_err_wire(&f->e), HW_CNI_INTERNAL);
	assert_calls("");
	expect_success(f, "DEL", WITH_PREV("1.0.0", "{\"ips\":7}"));
	assert_false(probe.prev_given);
	assert_calls("DEL c1 eth0 netns=/nowhere made=;");
}

static void callback_errors(void **state)
{
	struct fixture *f = *state;

	expect_error(f, "CHECK", CONF("1.0.0"), 123, "attachment changed");
	assert_string_equal(f->reply.output,
			    "{\n    \"code\": 123,\n    \"msg\": \"attachment changed\",\n"
			    "    \"details\": \"lo is down\"\n}");
	probe.del_fails = EIO;
	expect_error(f, "DEL", CONF("1.0.0"), HW_CNI_INTERNAL, "del failed");
}

static int set_own_reply(struct hw_call *call, struct hw_err *e)
{
	(void)e;
	call->reply = str_copy("as it is");
	call->exit_status = 7;
	return 0;
}

static void own_reply(void **state)
{
	struct fixture *f = *state;

	plugin.add = plugin.status = set_own_reply;
	assert_int_equal(call(f, "ADD", CONF("1.1.0")), 0);
	assert_string_equal(f->reply.output, "as it is");
	assert_int_equal(f->reply.status, 7);
	assert_int_equal(call(f, "STATUS", CONF("1.1.0")), 0);
	assert_string_equal(f->reply.output, "as it is");
}

static void failed_add_is_undone(void **state)
{
	struct fixture *f = *state;

	probe.add_fails = EBUSY;
	expect_error(f, "ADD", CONF("1.0.0"), HW_CNI_INTERNAL, "add failed");
	assert_string_equal(f->e.details, "");
	assert_calls("ADD c1 eth0 netns=/nowhere made=;undo c1 eth0 netns=/nowhere made=;");
	probe.del_fails = EIO;
	expect_error(f, "ADD", CONF("1.0.0"), HW_CNI_INTERNAL, "add failed");
	assert_string_equal(f->e.details, "undo also failed: del failed");
}

static void result_cannot_be_converted(void **state)
{
	struct fixture *f = *state;

	expect_error(f, "ADD", CONF("0.2.0"), HW_CNI_INTERNAL,
		     "cannot convert: no valid IP addresses");
	assert_calls("ADD c1 eth0 netns=/nowhere made=;undo c1 eth0 netns=/nowhere made=;");
}

static void own_netns(void **state)
{
	static const char msg[] = "plugin's netns and netns from CNI_NETNS should not be the same";
	struct fixture *f = *state;

	f->request.netns = OWN_NETNS;
	expect_error(f, "ADD", CONF("1.0.0"), HW_CNI_INVALID_NETNS, msg);
	expect_error(f, "DEL", CONF("1.0.0"), HW_CNI_INVALID_NETNS, msg);
	assert_calls("");
	f->request.netns_override = "0";
	expect_error(f, "ADD", CONF("1.0.0"), HW_CNI_INVALID_NETNS, msg);
	f->request.netns_override = "True";
	expect_success(f, "ADD", CONF("1.0.0"));
	f->request.netns_override = "1";
	expect_success(f, "DEL", CONF("1.0.0"));
	assert_calls("ADD c1 eth0 netns=" OWN_NETNS " made=;DEL c1 eth0 netns=" OWN_NETNS
		     " made=;");
}

static void valid_list(void **state)
{
	struct fixture *f = *state;

	expect_success(f, "GC", WITH_VALID("[{\"containerID\":\"a\",\"ifname\":\"b\"},{}]"));
	assert_int_equal(probe.n_valid, 2);
	expect_success(f, "GC", WITH_VALID("null"));
	assert_true(probe.valid_given);
	assert_int_equal(probe.n_valid, 0);
	expect_success(f, "GC", CONF("1.1.0"));
	assert_false(probe.valid_given);
	assert_int_equal(call(f, "GC", WITH_VALID("{}")), -1);
	assert_int_equal(hw_err_wire(&f->e), HW_CNI_INVALID_CONFIG);
}

static void no_record_kept(void **state)
{
	struct fixture *f = *state;

	probe.address = true;
	expect_success(f, "ADD", CONF("1.1.0"));
	expect_success(f, "DEL", CONF("1.1.0"));
	assert_false(place_has(f->place, "state"));
}

#define TEST(sentence, f)                                                                          \
	{                                                                                          \
		sentence, f, setup, teardown, NULL                                                 \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("skel: without CNI_COMMAND a plugin prints its name and versions", no_command),
		TEST("skel: an error lists all missing variables that the verb requires",
		     missing_variables),
		TEST("skel: an invalid variable is reported even if another one is missing",
		     wrong_variables),
		TEST("skel: an unknown verb is refused after the configuration is parsed",
		     unknown_verb),
		TEST("skel: VERSION requires no other variable and no input", version_command),
		TEST("skel: input that is not a JSON object fails with code 6", bad_json),
		TEST("skel: a missing or invalid network name is refused", bad_names),
		TEST("skel: a version that is unsupported or lacks the verb is refused",
		     bad_versions),
		TEST("skel: an unparsable entry in the plugin's own versions fails with code 6",
		     unparsable_own_version),
		TEST("skel: a missing version means 0.1.0", no_version),
		TEST("skel: a wrong type in the configuration fails with code 7 and names the key",
		     bad_field),
		TEST("skel: a verb that the plugin does not have succeeds and prints nothing",
		     no_verb),
		TEST("skel: ADD prints the result in the configuration's version, DEL nothing",
		     prints_result),
		TEST("skel: the result starts as a copy of prevResult", passes_prev_on),
		TEST("skel: with an invalid prevResult ADD fails and DEL succeeds", bad_prev),
		TEST("skel: CNI errors keep their code and details, other errors get code 999",
		     callback_errors),
		TEST("skel: a plugin's own reply is printed unchanged", own_reply),
		TEST("skel: a failed ADD is undone, and the error of the ADD is reported",
		     failed_add_is_undone),
		TEST("skel: an ADD is undone if the config's version cannot express its result",
		     result_cannot_be_converted),
		TEST("skel: the plugin's own netns is refused before the verb runs", own_netns),
		TEST("skel: GC gets the list of valid attachments, or NULL if it is missing",
		     valid_list),
		TEST("skel: a plugin without records writes no files", no_record_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
