/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/test-result.c - tests of CNI results
 *
 * test/data/libcni/results.json contains some results that libcni converted
 * between all pairs of versions; our conversions must give the same bytes.
 */
#include "cni/result.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/json/value.h"
#include "cni/test-data.h"
#include "cni/test.h"
#include "cni/version.h"

#define PAIRS_MIN 196 /* 4 results in 7 versions, each converted to all 7 versions */

static struct hw_result *parse(const char *json, const char *version)
{
	struct hw_result *result = NULL;
	struct hw_err e;

	assert_ok(hw_result_parse(json, strlen(json), version, &result, &e), e);
	return result;
}

static char *format(const struct hw_result *result, const char *version, unsigned flags)
{
	char *json = NULL;
	struct hw_err e;

	assert_ok(hw_result_format(result, version, flags, &json, &e), e);
	return json;
}

/* Parses a result, formats it in the target version and compares the text. */
static void assert_becomes(const char *json, const char *version, const char *target,
			   const char *want)
{
	AUTO(hw_result_free) struct hw_result *result = parse(json, version);
	autofree char *text = format(result, target, 0);

	assert_string_equal(text, want);
}

static void assert_refused(const char *json, const char *version, const char *part)
{
	struct hw_result *result = NULL;
	struct hw_err e;

	if (hw_result_parse(json, strlen(json), version, &result, &e) >= 0)
		fail_msg("was accepted: %s", json);
	assert_contains(e.msg, part);
	assert_null(result);
}

/* ---- comparison with libcni ---------------------------------------------------- */

static const char *member(const struct value *object, const char *key)
{
	const char *text = value_string(value_get(object, key));

	return text ? text : "";
}

static void assert_pair(const struct value *texts, const struct value *pair)
{
	const char *in = value_string(value_at(texts, value_int(value_get(pair, "in"))));
	const char *want = value_string(value_at(texts, value_int(value_get(pair, "out"))));
	AUTO(hw_result_free) struct hw_result *result = parse(in, NULL);
	autofree char *text = NULL;
	struct hw_err e;

	assert_string_equal(result->version, member(pair, "from"));
	if (hw_result_format(result, member(pair, "to"), HW_JSON_PRETTY, &text, &e) < 0) {
		assert_string_equal(e.msg, member(pair, "error"));
		return;
	}
	assert_string_equal(member(pair, "error"), "");
	if (!str_equal(text, want))
		fail_msg("%s from %s to %s:\n%s\nlibcni has\n%s", member(pair, "what"),
			 member(pair, "from"), member(pair, "to"), text, want);
}

static void as_libcni(void **state)
{
	AUTO(buf_done) struct buf text = { 0 };
	AUTO(value_free) struct value *data = NULL;
	const struct value *pairs;
	struct hw_err e;

	(void)state;
	test_data("libcni/results.json", &text);
	assert_ok(value_parse(text.data, text.len, &data, &e), e);
	pairs = value_get(data, "pairs");
	assert_true(value_count(pairs) >= PAIRS_MIN);
	for (size_t i = 0; i < value_count(pairs); i++)
		assert_pair(value_get(data, "texts"), value_at(pairs, i));
}

/* ---- parsing ------------------------------------------------------------------- */

static void assumes_version(void **state)
{
	AUTO(hw_result_free) struct hw_result *one = parse("{\"ips\":[]}", "1.0.0");
	AUTO(hw_result_free) struct hw_result *none = parse("{\"cniVersion\":\"\"}", NULL);
	AUTO(hw_result_free) struct hw_result *null = parse("{\"cniVersion\":null}", "0.4.0");

	(void)state;
	assert_string_equal(one->version, "1.0.0");
	assert_string_equal(none->version, "0.1.0");
	assert_string_equal(null->version, "0.4.0");
}

static void null_is_empty(void **state)
{
	(void)state;
	assert_becomes("null", "1.0.0", "1.0.0", "{\"cniVersion\":\"1.0.0\"}");
	assert_becomes(" null\n", "0.4.0", "0.4.0", "{\"cniVersion\":\"0.4.0\",\"dns\":{}}");
}

static void null_entries(void **state)
{
	(void)state;
	assert_becomes(
		"{\"interfaces\":[null,{\"name\":\"a\"}],"
		"\"ips\":[null,{\"interface\":1,\"address\":\"10.0.0.1/8\"}],"
		"\"routes\":[{\"dst\":\"0.0.0.0/0\"},null],\"dns\":null}",
		"1.0.0", "1.0.0",
		"{\"cniVersion\":\"1.0.0\",\"interfaces\":[{\"name\":\"\"},{\"name\":\"a\"}],"
		"\"ips\":[{\"address\":\"10.0.0.1/8\",\"interface\":1}],"
		"\"routes\":[{\"dst\":\"0.0.0.0/0\"}]}");
	assert_becomes("{\"interfaces\":[null],\"ips\":[null],\"routes\":[null]}", "0.4.0", "0.3.1",
		       "{\"cniVersion\":\"0.3.1\",\"interfaces\":[{\"name\":\"\"}],\"dns\":{}}");
	assert_becomes("{\"ip4\":{\"ip\":\"10.0.0.1/8\",\"routes\":[null]},\"ip6\":null}", "0.2.0",
		       "0.1.0",
		       "{\"cniVersion\":\"0.1.0\",\"ip4\":{\"ip\":\"10.0.0.1/8\"},\"dns\":{}}");
}

static void unknown_keys(void **state)
{
	(void)state;
	assert_becomes("{\"CNIVersion\":\"1.1.0\",\"x\":1,\"ips\":[{\"Address\":\"10.0.0.1/8\"}]}",
		       NULL, "1.1.0",
		       "{\"cniVersion\":\"1.1.0\",\"ips\":[{\"address\":\"10.0.0.1/8\"}]}");
}

/* ip4 is not a key of version 1.0.0, and mtu not one of 0.4.0. */
static void keys_of_other_family(void **state)
{
	(void)state;
	assert_becomes("{\"cniVersion\":\"1.0.0\",\"ip4\":{\"ip\":\"10.0.0.1/8\"}}", NULL, "1.0.0",
		       "{\"cniVersion\":\"1.0.0\"}");
	assert_becomes("{\"cniVersion\":\"0.4.0\",\"interfaces\":[{\"name\":\"a\",\"mtu\":9}]}",
		       NULL, "1.1.0",
		       "{\"cniVersion\":\"1.1.0\",\"interfaces\":[{\"name\":\"a\"}]}");
}

static void refuses_malformed(void **state)
{
	(void)state;
	assert_refused("{\"cniVersion\":\"0.5.0\"}", NULL,
		       "unsupported CNI result version \"0.5.0\"");
	assert_refused("{}", "9.9.9", "unsupported CNI result version \"9.9.9\"");
	assert_refused("{\"cniVersion\":1}", NULL, "expected a string, got a number");
	assert_refused("", "1.0.0", "failed to unmarshal raw result: ");
	assert_refused("{\"ips\":", "1.0.0", "failed to unmarshal raw result: ");
	assert_refused("[]", "1.0.0", "expected an object, got an array");
	assert_refused("{\"ips\":{}}", "1.0.0", "ips");
	assert_refused("{\"ips\":[{\"address\":\"10.0.0.1\"}]}", "1.0.0", "ips[0].address");
	assert_refused("{\"ips\":[{\"address\":\"10.0.0.1/8\",\"interface\":\"0\"}]}", "0.4.0",
		       "ips[0].interface");
	assert_refused("{\"ip4\":{\"ip\":\"10.0.0.1/33\"}}", "0.2.0", "ip4.ip");
	assert_refused("{\"routes\":[{\"dst\":\"0.0.0.0/0\",\"gw\":\"x\"}]}", "1.1.0",
		       "routes[0].gw");
	assert_refused("{\"dns\":{\"search\":\"x\"}}", "1.1.0", "dns.search");
}

/* ---- formatting ----------------------------------------------------------------- */

static void unknown_target(void **state)
{
	AUTO(hw_result_free) struct hw_result *result = parse("{\"cniVersion\":\"1.0.0\"}", NULL);
	char *json = NULL;
	struct hw_err e;

	(void)state;
	assert_int_equal(hw_result_format(result, "3.0.0", 0, &json, &e), -EINVAL);
	assert_string_equal(e.msg, "no converter for CNI result version 1.0.0 to 3.0.0");
	assert_null(json);
}

static void missing_target_version(void **state)
{
	(void)state;
	assert_becomes("{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"10.0.0.1/8\"}]}", NULL,
		       NULL,
		       "{\"cniVersion\":\"0.1.0\",\"ip4\":{\"ip\":\"10.0.0.1/8\"},\"dns\":{}}");
}

/* Upstream writes "<nil>", which cannot be parsed. */
static void omits_missing_address(void **state)
{
	(void)state;
	assert_becomes("{\"ips\":[{\"gateway\":\"10.0.0.1\"}],\"routes\":[{\"gw\":\"10.0.0.1\"}]}",
		       "1.0.0", "1.0.0",
		       "{\"cniVersion\":\"1.0.0\",\"ips\":[{\"gateway\":\"10.0.0.1\"}],"
		       "\"routes\":[{\"gw\":\"10.0.0.1\"}]}");
}

static void old_without_address(void **state)
{
	AUTO(hw_result_free) struct hw_result *result = parse("{}", "0.4.0");
	char *json = NULL;
	struct hw_err e;

	(void)state;
	assert_becomes("{}", "0.1.0", "0.2.0", "{\"cniVersion\":\"0.2.0\",\"dns\":{}}");
	assert_int_equal(hw_result_format(result, "0.2.0", 0, &json, &e), -EINVAL);
	assert_string_equal(e.msg, "cannot convert: no valid IP addresses");
}

static void mapped_is_ip4(void **state)
{
	(void)state;
	assert_becomes("{\"ips\":[{\"address\":\"::ffff:10.0.0.1/104\"}]}", "1.0.0", "0.4.0",
		       "{\"cniVersion\":\"0.4.0\",\"ips\":[{\"version\":\"4\",\"address\":"
		       "\"10.0.0.1/8\"}],\"dns\":{}}");
}

/* ---- construction and copies -------------------------------------------------------- */

static struct hw_result *build_result(void)
{
	struct hw_result *result = hw_result_new();
	struct hw_iface *iface;
	struct hw_ipconf *ip;
	struct hw_route *route;
	struct hw_err e;

	iface = hw_result_add_iface(result);
	iface->name = str_copy("eth0");
	iface->mtu = 1500;
	for (int i = 0; i < 3; i++) {
		ip = hw_result_add_ip(result);
		ip->has_iface = true;
		assert_ok(hw_prefix_parse("10.0.0.1/8", &ip->address, &e), e);
	}
	route = hw_result_add_route(result);
	assert_ok(hw_prefix_parse("0.0.0.0/0", &route->dst, &e), e);
	route->has_table = true;
	strings_add(&result->dns.search, "a.test");
	return result;
}

static void copy_is_independent(void **state)
{
	AUTO(hw_result_free) struct hw_result *result = build_result();
	AUTO(hw_result_free) struct hw_result *copy = NULL;
	autofree char *before = format(result, "1.1.0", 0), *after = NULL;

	(void)state;
	result->version = str_copy("0.3.0");
	copy = hw_result_copy(result);
	assert_string_equal(copy->version, "0.3.0");
	assert_true(copy->ifaces != result->ifaces);
	result->ifaces[0].name[0] = 'x';
	after = format(copy, "1.1.0", 0);
	assert_string_equal(before, after);
	assert_string_equal(after, "{\"cniVersion\":\"1.1.0\",\"dns\":{\"search\":[\"a.test\"]},"
				   "\"interfaces\":[{\"mtu\":1500,\"name\":\"eth0\"}],"
				   "\"ips\":[{\"address\":\"10.0.0.1/8\",\"interface\":0},"
				   "{\"address\":\"10.0.0.1/8\",\"interface\":0},"
				   "{\"address\":\"10.0.0.1/8\",\"interface\":0}],"
				   "\"routes\":[{\"dst\":\"0.0.0.0/0\",\"table\":0}]}");
}

static void copies_empty_entries(void **state)
{
	AUTO(hw_result_free) struct hw_result *result = hw_result_new();
	AUTO(hw_result_free) struct hw_result *copy = NULL;

	(void)state;
	(void)hw_result_add_ip(result);
	(void)hw_result_add_route(result);
	copy = hw_result_copy(result);
	assert_int_equal(copy->n_ips, 1);
	assert_int_equal(copy->n_routes, 1);
	hw_result_free(NULL);
}

/* A netns path may contain any byte, but JSON must be UTF-8. */
static void invalid_utf8(void **state)
{
	AUTO(hw_result_free) struct hw_result *result = hw_result_new();
	AUTO(hw_result_free) struct hw_result *copy = NULL;
	autofree char *text = NULL;

	(void)state;
	hw_result_add_iface(result)->sandbox = str_copy("/run/\xff");
	copy = hw_result_copy(result);
	text = format(copy, "1.0.0", 0);
	assert_contains(text, "/run/\xef\xbf\xbd");
}

/* ---- prevResult -------------------------------------------------------------------- */

static void prev_of_same_family(void **state)
{
	static const struct {
		const char *conf, *json, *version;
	} cases[] = {
		{ "1.0.0", "{}", "1.0.0" },
		{ "1.0.0", "{\"cniVersion\":\"1.1.0\"}", "1.1.0" },
		{ "0.4.0", "{\"cniVersion\":\"0.3.0\"}", "0.3.0" },
		{ "", "{\"cniVersion\":\"0.2.0\"}", "0.2.0" },
		{ "0.2.0", "{}", "0.2.0" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(hw_result_free) struct hw_result *result = NULL;
		struct hw_err e;

		assert_ok(result_parse_prev(cases[i].json, strlen(cases[i].json), cases[i].conf,
					    &result, &e),
			  e);
		assert_string_equal(result->version, cases[i].version);
	}
}

static void prev_of_other_family(void **state)
{
	static const struct {
		const char *conf, *json, *text;
	} cases[] = {
		{ "1.0.0", "{\"cniVersion\":\"0.4.0\"}",
		  "could not parse prevResult: result type supports [1.0.0 1.1.0] but unmarshalled "
		  "CNIVersion is \"0.4.0\"" },
		{ "0.4.0", "{\"cniVersion\":\"1.0.0\"}",
		  "could not parse prevResult: result type supports [0.3.0 0.3.1 0.4.0] but "
		  "unmarshalled CNIVersion is \"1.0.0\"" },
		{ "7.0.0", "{}",
		  "could not parse prevResult: unsupported CNI result version \"7.0.0\"" },
	};
	struct hw_result *result = NULL;
	struct hw_err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_true(result_parse_prev(cases[i].json, strlen(cases[i].json), cases[i].conf,
					      &result, &e) < 0);
		assert_string_equal(e.msg, cases[i].text);
		assert_null(result);
	}
	assert_true(result_parse_prev("[", 1, "1.0.0", &result, &e) < 0);
	assert_starts(e.msg, "could not parse prevResult: ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "result: conversions between all versions give the same bytes as libcni",
		  as_libcni },
		{ "result: without cniVersion the result has the caller's version, or else 0.1.0",
		  assumes_version },
		{ "result: a top-level null is parsed as an empty result", null_is_empty },
		{ "result: null entries are dropped, but a null interface becomes an empty one",
		  null_entries },
		{ "result: unknown keys are ignored, and keys match in upper and lower case",
		  unknown_keys },
		{ "result: keys of another version family are ignored", keys_of_other_family },
		{ "result: unknown versions and wrong types are refused; errors name the key",
		  refuses_malformed },
		{ "result: an unknown target version is refused", unknown_target },
		{ "result: a missing target version means 0.1.0", missing_target_version },
		{ "result: an unset address or destination is omitted", omits_missing_address },
		{ "result: a newer result without addresses cannot be converted to 0.2.0",
		  old_without_address },
		{ "result: an IPv4-mapped address is converted to IPv4", mapped_is_ip4 },
		{ "result: a copy shares no memory with the original", copy_is_independent },
		{ "result: a result with empty entries can be copied", copies_empty_entries },
		{ "result: bytes that are not UTF-8 are replaced when a result is formatted",
		  invalid_utf8 },
		{ "result: a prevResult in any version of the configuration's family is accepted",
		  prev_of_same_family },
		{ "result: a prevResult of another family is refused", prev_of_other_family },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
