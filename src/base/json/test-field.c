/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json/test-field.c - field tables: decoding like Go's encoding/json, encoding, documentation
 */
#include "base/json/field.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/str.h"

struct test_port {
	int number;
	char *protocol;
	struct hw_ip host;
};

struct test_lease {
	char *type;
	int seconds;
	struct test_port port;
};

struct test_conf {
	bool enabled, text_bool, has_wide;
	int mtu, at_least;
	int64_t wide;
	uint32_t mark;
	char *type, *secret, *json, *rest;
	struct hw_ip gateway;
	struct hw_prefix subnet;
	struct hw_strings servers, capabilities;
	struct hw_map labels;
	struct test_lease lease;
	struct hw_list ports;
	int pin; /* secret */
	struct hw_list groups;
};

static const struct hw_field port_fields[] = {
	{ "number", HW_INT, HW_AT(struct test_port, number), .flags = HW_REQUIRED, .min = 1,
	  .max = 65535, .help = "Port." },
	{ "protocol", HW_STRING, HW_AT(struct test_port, protocol), .def = "\"tcp\"" },
	{ "host", HW_IP, HW_AT(struct test_port, host) },
	{ 0 },
};

static const struct hw_field lease_fields[] = {
	{ "type", HW_STRING, HW_AT(struct test_lease, type), .flags = HW_REQUIRED },
	{ "seconds", HW_INT, HW_AT(struct test_lease, seconds), .def = "60" },
	{ "port", HW_OBJECT, HW_AT(struct test_lease, port), .sub = port_fields },
	{ 0 },
};

static const struct hw_field fields[] = {
	{ "type", HW_STRING, HW_AT(struct test_conf, type), .help = "Name of the plugin." },
	{ "enabled", HW_BOOL, HW_AT(struct test_conf, enabled), .def = "true" },
	{ "textBool", HW_BOOL_TEXT, HW_AT(struct test_conf, text_bool) },
	{ "mtu", HW_INT, HW_AT(struct test_conf, mtu), .min = 0, .max = 65535, .def = "0",
	  .help = "MTU of the pod's interface." },
	{ "atLeast", HW_INT, HW_AT(struct test_conf, at_least), .min = 5, .def = "5" },
	{ "wide", HW_INT64, HW_AT(struct test_conf, wide),
	  .has = HW_HAS(struct test_conf, has_wide) },
	{ "mark", HW_UINT32, HW_AT(struct test_conf, mark) },
	{ "*", HW_REST, HW_AT(struct test_conf, rest) },
	{ "secret", HW_STRING, HW_AT(struct test_conf, secret), .flags = HW_SECRET },
	{ "pin", HW_INT, HW_AT(struct test_conf, pin), .flags = HW_SECRET, .max = 9 },
	{ "gateway", HW_IP, HW_AT(struct test_conf, gateway) },
	{ "subnet", HW_PREFIX, HW_AT(struct test_conf, subnet) },
	{ "servers", HW_STRINGS, HW_AT(struct test_conf, servers) },
	{ "labels", HW_MAP, HW_AT(struct test_conf, labels) },
	{ "capabilities", HW_FLAGS, HW_AT(struct test_conf, capabilities) },
	{ "lease", HW_OBJECT, HW_AT(struct test_conf, lease), .sub = lease_fields },
	{ "ports", HW_LIST, HW_AT(struct test_conf, ports), .sub = port_fields,
	  .size = sizeof(struct test_port), .help = "Ports to open." },
	{ "json", HW_JSON, HW_AT(struct test_conf, json) },
	{ "groups", HW_UINT32S, HW_AT(struct test_conf, groups) },
	{ 0 },
};

static void clear(struct test_conf *c)
{
	hw_field_clear(fields, c);
}
AUTO_VALUE_DEFINE(clear, struct test_conf);

static void decode(const char *json, struct test_conf *ret)
{
	struct hw_err e;

	memset(ret, 0xaa, sizeof(*ret));
	if (hw_field_decode(fields, json, strlen(json), ret, &e) < 0)
		fail_msg("%s: %s", json, e.msg);
}

static bool is_cleared(const struct test_conf *c)
{
	static const struct hw_ip no_ip;

	return !c->type && !c->secret && !c->json && !c->rest && !c->servers.v && !c->servers.n &&
	       !c->labels.keys && !c->labels.values && !c->labels.n && !c->capabilities.v &&
	       !c->ports.v && !c->ports.n && !c->groups.v && !c->groups.n && !c->lease.type &&
	       !c->lease.port.protocol && !c->mtu && !c->has_wide &&
	       hw_ip_equal(&c->gateway, &no_ip);
}

static void assert_rejected(const char *json, const char *message)
{
	struct hw_err e;
	struct test_conf c;
	int r;

	memset(&c, 0xaa, sizeof(c));
	r = hw_field_decode(fields, json, strlen(json), &c, &e);
	if (r != -EINVAL)
		fail_msg("%s: got %d", json, r);
	assert_string_equal(e.msg, message);
	assert_true(is_cleared(&c));
}

/* ---- decoding ------------------------------------------------------------------ */

static void decodes_every_type(void **state)
{
	AUTO(clear) struct test_conf c;
	struct test_port *ports;
	char buf[HW_PREFIX_TEXT];

	(void)state;
	decode("{\"type\":\"t\",\"enabled\":false,\"mtu\":1500,\"wide\":-9223372036854775808,"
	       "\"mark\":4294967295,\"gateway\":\"::ffff:10.0.0.1\",\"subnet\":\"10.2.3.1/24\","
	       "\"servers\":[\"a\",\"b\"],\"labels\":{\"k\":\"v\",\"a\":\"b\"},"
	       "\"capabilities\":{\"x\":true,\"off\":false,\"a\":true},"
	       "\"lease\":{\"type\":\"l\",\"port\":{\"number\":1}},"
	       "\"ports\":[{\"number\":80},{\"number\":53,\"protocol\":\"udp\"}],"
	       "\"json\":[1, {\"b\":null} ],\"groups\":[0,4294967295]}",
	       &c);
	assert_string_equal(c.type, "t");
	assert_false(c.enabled);
	assert_int_equal(c.mtu, 1500);
	assert_true(c.has_wide);
	assert_true(c.wide == INT64_MIN);
	assert_int_equal(c.mark, UINT32_MAX);
	assert_int_equal(c.gateway.family, AF_INET);
	assert_string_equal(hw_prefix_format(&c.subnet, buf), "10.2.3.1/24");
	assert_int_equal(c.servers.n, 2);
	assert_string_equal(c.servers.v[1], "b");
	assert_int_equal(c.labels.n, 2);
	assert_string_equal(c.labels.keys[0], "k");
	assert_string_equal(c.labels.values[1], "b");
	assert_int_equal(c.capabilities.n, 2);
	assert_string_equal(c.capabilities.v[0], "x");
	assert_string_equal(c.capabilities.v[1], "a");
	assert_string_equal(c.lease.type, "l");
	assert_int_equal(c.lease.port.number, 1);
	assert_int_equal(c.ports.n, 2);
	ports = c.ports.v;
	assert_string_equal(ports[0].protocol, "tcp");
	assert_string_equal(ports[1].protocol, "udp");
	assert_string_equal(c.json, "[1,{\"b\":null}]");
	assert_int_equal(c.groups.n, 2);
	assert_int_equal(((uint32_t *)c.groups.v)[0], 0);
	assert_int_equal(((uint32_t *)c.groups.v)[1], UINT32_MAX);
	assert_null(c.rest);
}

static void absent_gets_the_default(void **state)
{
	AUTO(clear) struct test_conf c;

	(void)state;
	decode("{}", &c);
	assert_true(c.enabled);
	assert_int_equal(c.at_least, 5);
	assert_false(c.has_wide);
	assert_int_equal(c.wide, 0);
	assert_null(c.type);
	assert_int_equal(c.gateway.family, 0);
	assert_int_equal(c.servers.n, 0);
	assert_int_equal(c.ports.n, 0);
	assert_null(c.json);
	assert_null(c.rest);
}

static void null_is_absent(void **state)
{
	AUTO(clear) struct test_conf c;

	(void)state;
	decode("{\"type\":null,\"enabled\":null,\"atLeast\":null,\"wide\":null,\"gateway\":null,"
	       "\"subnet\":null,\"servers\":null,\"labels\":null,\"capabilities\":null,"
	       "\"lease\":null,\"ports\":null,\"json\":null,\"textBool\":null,\"mark\":null}",
	       &c);
	assert_true(c.enabled);
	assert_int_equal(c.at_least, 5);
	assert_false(c.has_wide);
	assert_null(c.type);
	assert_int_equal(c.lease.seconds, 60);
	assert_null(c.json);
	assert_null(c.rest);
}

static void absent_object_needs_no_required_keys(void **state)
{
	AUTO(clear) struct test_conf c;

	(void)state;
	decode("{}", &c);
	assert_null(c.lease.type);
	assert_int_equal(c.lease.seconds, 60);
	assert_string_equal(c.lease.port.protocol, "tcp");
}

static void null_inside(void **state)
{
	AUTO(clear) struct test_conf c;

	(void)state;
	decode("{\"ports\":[null,{\"number\":1},null,{\"number\":2}],\"servers\":[null,\"a\",null],"
	       "\"labels\":{\"k\":null},\"capabilities\":{\"x\":null,\"y\":true},"
	       "\"groups\":[null,7]}",
	       &c);
	assert_int_equal(c.ports.n, 2);
	assert_int_equal(((struct test_port *)c.ports.v)[1].number, 2);
	assert_int_equal(c.servers.n, 1);
	assert_string_equal(c.servers.v[0], "a");
	assert_int_equal(c.labels.n, 1);
	assert_string_equal(c.labels.values[0], "");
	assert_int_equal(c.capabilities.n, 1);
	assert_int_equal(c.groups.n, 1);
	assert_int_equal(*(uint32_t *)c.groups.v, 7);
}

static void keys_fold(void **state)
{
	AUTO(clear) struct test_conf c;

	(void)state;
	decode("{\"MTU\":1,\"Type\":\"x\",\"atleast\":7,\"mtu\":2,\"Mtu\":3}", &c);
	assert_int_equal(c.mtu, 3);
	assert_string_equal(c.type, "x");
	assert_int_equal(c.at_least, 7);
	assert_null(c.rest);
}

static void rest_keeps_order(void **state)
{
	AUTO(clear) struct test_conf c;

	(void)state;
	decode("{\"z\":1,\"type\":\"x\",\"a\":{\"y\":[null,1.5],\"b\":2},\"MTU\":3,\"m\":null,"
	       "\"*\":4}",
	       &c);
	assert_string_equal(c.rest,
			    "{\"z\":1,\"a\":{\"y\":[null,1.5],\"b\":2},\"m\":null,\"*\":4}");
}

static void bool_as_text(void **state)
{
	static const struct {
		const char *json;
		bool is;
	} rows[] = {
		{ "{\"textBool\":true}", true },       { "{\"textBool\":false}", false },
		{ "{\"textBool\":\"true\"}", true },   { "{\"textBool\":\"TRUE\"}", true },
		{ "{\"textBool\":\"False\"}", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO(clear) struct test_conf c;

		decode(rows[i].json, &c);
		assert_int_equal(c.text_bool, rows[i].is);
	}
	assert_rejected("{\"textBool\":\"yes\"}", "textBool: expected a boolean, got a string");
	assert_rejected("{\"textBool\":\"\"}", "textBool: expected a boolean, got a string");
	assert_rejected("{\"enabled\":\"true\"}", "enabled: expected a boolean, got a string");
}

static void empty_ip_is_no_address(void **state)
{
	AUTO(clear) struct test_conf c;

	(void)state;
	decode("{\"gateway\":\"\"}", &c);
	assert_int_equal(c.gateway.family, 0);
	assert_rejected("{\"subnet\":\"\"}", "subnet: invalid CIDR address: ");
}

/* ---- errors ------------------------------------------------------------------------ */

static void wrong_types(void **state)
{
	static const char *const rows[][2] = {
		{ "[]", "expected an object, got an array" },
		{ "null", "expected an object, got null" },
		{ "{\"type\":1}", "type: expected a string, got a number" },
		{ "{\"enabled\":1}", "enabled: expected a boolean, got a number" },
		{ "{\"mtu\":\"1\"}", "mtu: expected a number, got a string" },
		{ "{\"mtu\":true}", "mtu: expected a number, got a boolean" },
		{ "{\"wide\":{}}", "wide: expected a number, got an object" },
		{ "{\"mark\":[]}", "mark: expected a number, got an array" },
		{ "{\"gateway\":1}", "gateway: expected a string, got a number" },
		{ "{\"subnet\":[]}", "subnet: expected a string, got an array" },
		{ "{\"servers\":\"a\"}", "servers: expected an array, got a string" },
		{ "{\"servers\":[\"a\",1]}", "servers[1]: expected a string, got a number" },
		{ "{\"labels\":[]}", "labels: expected an object, got an array" },
		{ "{\"labels\":{\"a\":\"b\",\"k\":1}}",
		  "labels.k: expected a string, got a number" },
		{ "{\"capabilities\":[]}", "capabilities: expected an object, got an array" },
		{ "{\"capabilities\":{\"a\":true,\"x\":\"y\"}}",
		  "capabilities.x: expected a boolean, got a string" },
		{ "{\"lease\":[]}", "lease: expected an object, got an array" },
		{ "{\"ports\":{}}", "ports: expected an array, got an object" },
		{ "{\"ports\":[1]}", "ports[0]: expected an object, got a number" },
		{ "{\"groups\":1}", "groups: expected an array, got a number" },
		{ "{\"groups\":[1,\"2\"]}", "groups[1]: expected a number, got a string" },
		{ "{\"groups\":[4294967296]}",
		  "groups[0]: 4294967296 is out of range 0..4294967295" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_rejected(rows[i][0], rows[i][1]);
}

static void no_fraction_or_exponent(void **state)
{
	static const char message[] =
		"mtu: expected a whole number, got a number with fraction or exponent";

	(void)state;
	assert_rejected("{\"mtu\":1.5}", message);
	assert_rejected("{\"mtu\":1.0}", message);
	assert_rejected("{\"mtu\":1e3}", message);
}

static void limits(void **state)
{
	static const char *const rows[][2] = {
		{ "{\"mtu\":-1}", "mtu: -1 is out of range 0..65535" },
		{ "{\"mtu\":65536}", "mtu: 65536 is out of range 0..65535" },
		{ "{\"mark\":-1}", "mark: -1 is out of range 0..4294967295" },
		{ "{\"mark\":4294967296}", "mark: 4294967296 is out of range 0..4294967295" },
		{ "{\"atLeast\":4}", "atLeast: 4 is out of range 5..2147483647" },
		{ "{\"atLeast\":2147483648}", "atLeast: 2147483648 is out of range 5..2147483647" },
		{ "{\"lease\":{\"type\":\"x\",\"seconds\":-2147483649}}",
		  "lease.seconds: -2147483649 is out of range -2147483648..2147483647" },
	};
	AUTO(clear) struct test_conf c;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_rejected(rows[i][0], rows[i][1]);
	decode("{\"mtu\":65535,\"atLeast\":2147483647,\"mark\":0,"
	       "\"lease\":{\"type\":\"x\",\"seconds\":-2147483648}}",
	       &c);
	assert_int_equal(c.mtu, 65535);
	assert_int_equal(c.at_least, 2147483647);
}

static void required(void **state)
{
	static const char *const rows[][2] = {
		{ "{\"lease\":{}}", "lease.type: required key is missing" },
		{ "{\"lease\":{\"type\":null}}", "lease.type: required key is missing" },
		{ "{\"lease\":{\"type\":\"\"}}", "lease.type: must not be empty" },
		{ "{\"lease\":{\"type\":\"x\",\"port\":{}}}",
		  "lease.port.number: required key is missing" },
		{ "{\"ports\":[{\"number\":1},{}]}", "ports[1].number: required key is missing" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_rejected(rows[i][0], rows[i][1]);
}

/* The index in the path is that of the entry in the text: dropped null entries are counted, too. */
static void names_the_whole_path(void **state)
{
	(void)state;
	assert_rejected("{\"ports\":[{\"number\":1},null,{\"number\":\"x\"}]}",
			"ports[2].number: expected a number, got a string");
	assert_rejected("{\"lease\":{\"type\":\"x\",\"port\":{\"number\":1,\"host\":\"1.2.3\"}}}",
			"lease.port.host: invalid IP address: 1.2.3");
	assert_rejected("{\"subnet\":\"10.0.0.1\"}", "subnet: invalid CIDR address: 10.0.0.1");
}

static void secrets_are_not_quoted(void **state)
{
	(void)state;
	assert_rejected("{\"pin\":1234}", "pin: invalid value");
	assert_rejected("{\"secret\":1234}", "secret: expected a string, got a number");
}

/* Values of all types that allocate memory are decoded before the last key fails. The sanitizer
 * detects leaks. */
static void failure_frees_everything(void **state)
{
	(void)state;
	assert_rejected("{\"type\":\"t\",\"secret\":\"s\",\"more\":1,\"servers\":[\"a\"],"
			"\"labels\":{\"k\":\"v\"},\"capabilities\":{\"x\":true},"
			"\"lease\":{\"type\":\"l\",\"port\":{\"number\":1,\"protocol\":\"p\"}},"
			"\"ports\":[{\"number\":1,\"protocol\":\"tcp\"},"
			"{\"number\":2,\"protocol\":\"udp\",\"host\":7}]}",
			"ports[1].host: expected a string, got a number");
}

static void rejects_malformed_json(void **state)
{
	struct hw_err e;
	struct test_conf c;

	(void)state;
	memset(&c, 0xaa, sizeof(c));
	assert_int_equal(hw_field_decode(fields, "{\"type\":", 8, &c, &e), -EINVAL);
	assert_true(is_cleared(&c));
	assert_int_equal(hw_field_decode(fields, NULL, 0, &c, &e), -EINVAL);
}

/* ---- encoding ----------------------------------------------------------------------- */

static void assert_encodes(const char *json, const char *expected)
{
	AUTO(clear) struct test_conf c;
	autofree char *text = NULL;

	decode(json, &c);
	text = hw_field_encode(fields, &c, 0);
	assert_string_equal(text, expected);
}

#define DEFAULTS "\"lease\":{\"seconds\":60,\"port\":{\"protocol\":\"tcp\"}}"

static void encodes_in_table_order(void **state)
{
	(void)state;
	assert_encodes(
		"{\"zz\":1,\"json\":{\"b\":1.5,\"a\":[]},\"ports\":[{\"number\":1}],"
		"\"capabilities\":{\"x\":true,\"y\":false},\"labels\":{\"z\":\"1\",\"a\":\"\"},"
		"\"servers\":[\"s\",\"\"],\"subnet\":\"fd00::1/64\",\"gateway\":\"FD00::0:9\","
		"\"secret\":\"s\",\"mark\":4294967295,\"wide\":0,\"mtu\":1,\"aa\":null,"
		"\"textBool\":\"true\",\"type\":\"t\",\"groups\":[3,0]}",
		"{\"type\":\"t\",\"enabled\":true,\"textBool\":true,\"mtu\":1,\"atLeast\":5,"
		"\"wide\":0,\"mark\":4294967295,\"secret\":\"s\",\"gateway\":\"fd00::9\","
		"\"subnet\":\"fd00::1/64\",\"servers\":[\"s\",\"\"],"
		"\"labels\":{\"z\":\"1\",\"a\":\"\"},\"capabilities\":{\"x\":true}," DEFAULTS
		",\"ports\":[{\"number\":1,\"protocol\":\"tcp\"}],"
		"\"json\":{\"b\":1.5,\"a\":[]},\"groups\":[3,0],\"zz\":1,\"aa\":null}");
}

static void omits_empty_values(void **state)
{
	(void)state;
	assert_encodes("{\"type\":\"\",\"mtu\":0,\"mark\":0,\"gateway\":\"\",\"servers\":[],"
		       "\"labels\":{},\"capabilities\":{\"x\":false},\"ports\":[]}",
		       "{\"enabled\":true,\"atLeast\":5," DEFAULTS "}");
}

/* If the key was omitted, the member would be decoded as its default. */
static void keeps_empty_values_that_differ_from_the_default(void **state)
{
	(void)state;
	assert_encodes("{\"enabled\":false,\"lease\":{\"type\":\"x\",\"seconds\":0}}",
		       "{\"enabled\":false,\"atLeast\":5,"
		       "\"lease\":{\"type\":\"x\",\"seconds\":0,\"port\":{\"protocol\":\"tcp\"}}}");
}

static void has_member_decides(void **state)
{
	struct test_conf c = { .has_wide = false, .wide = 7, .enabled = true, .at_least = 5 };
	autofree char *without = hw_field_encode(fields, &c, 0), *with = NULL;

	(void)state;
	assert_null(strstr(without, "wide"));
	c.has_wide = true;
	c.wide = 0;
	with = hw_field_encode(fields, &c, 0);
	assert_non_null(strstr(with, "\"wide\":0"));
}

struct test_all {
	bool b;
	int n;
	char *s, *json;
	struct hw_ip ip;
	struct hw_prefix prefix;
	struct hw_strings strings, flags;
	struct hw_map map;
	struct test_port object;
	struct hw_list list, numbers;
};

static const struct hw_field plain_fields[] = {
	{ "number", HW_INT, HW_AT(struct test_port, number) },
	{ 0 },
};

static const struct hw_field always_fields[] = {
	{ "b", HW_BOOL, HW_AT(struct test_all, b), .flags = HW_ALWAYS },
	{ "n", HW_INT, HW_AT(struct test_all, n), .flags = HW_ALWAYS },
	{ "s", HW_STRING, HW_AT(struct test_all, s), .flags = HW_ALWAYS },
	{ "ip", HW_IP, HW_AT(struct test_all, ip), .flags = HW_ALWAYS },
	{ "prefix", HW_PREFIX, HW_AT(struct test_all, prefix), .flags = HW_ALWAYS },
	{ "strings", HW_STRINGS, HW_AT(struct test_all, strings), .flags = HW_ALWAYS },
	{ "map", HW_MAP, HW_AT(struct test_all, map), .flags = HW_ALWAYS },
	{ "flags", HW_FLAGS, HW_AT(struct test_all, flags), .flags = HW_ALWAYS },
	{ "object", HW_OBJECT, HW_AT(struct test_all, object), .flags = HW_ALWAYS,
	  .sub = plain_fields },
	{ "list", HW_LIST, HW_AT(struct test_all, list), .flags = HW_ALWAYS, .sub = plain_fields,
	  .size = sizeof(struct test_port) },
	{ "json", HW_JSON, HW_AT(struct test_all, json), .flags = HW_ALWAYS },
	{ "numbers", HW_UINT32S, HW_AT(struct test_all, numbers), .flags = HW_ALWAYS },
	{ 0 },
};

static void always_encodes_empty_values(void **state)
{
	struct test_all a = { 0 };
	autofree char *text = hw_field_encode(always_fields, &a, 0);

	(void)state;
	assert_string_equal(text, "{\"b\":false,\"n\":0,\"s\":\"\",\"ip\":\"\",\"prefix\":\"\","
				  "\"strings\":[],\"map\":{},\"flags\":{},\"object\":{},"
				  "\"list\":[],\"json\":null,\"numbers\":[]}");
}

/* The same table without HW_ALWAYS. */
static void object_without_members_is_empty(void **state)
{
	struct hw_field table[ARRAY_SIZE(always_fields)];
	struct test_all a = { 0 };
	autofree char *text = NULL;

	(void)state;
	memcpy(table, always_fields, sizeof(table));
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		table[i].flags = 0;
	text = hw_field_encode(table, &a, 0);
	assert_string_equal(text, "{}");
}

static void rest_does_not_override(void **state)
{
	char rest[] = "{\"TYPE\":\"other\",\"x\":1}", type[] = "mine";
	struct test_conf c = { .type = type, .rest = rest, .enabled = true, .at_least = 5 };
	autofree char *text = hw_field_encode(fields, &c, 0);

	(void)state;
	assert_non_null(strstr(text, "\"type\":\"mine\""));
	assert_non_null(strstr(text, "\"x\":1"));
	assert_null(strstr(text, "other"));
}

static void encodes_pretty_and_sorted(void **state)
{
	struct test_all a = { .n = 1, .b = true };
	autofree char *text = NULL;

	(void)state;
	text = hw_field_encode(
		&(const struct hw_field[]){
			{ "n", HW_INT, HW_AT(struct test_all, n) },
			{ "b", HW_BOOL, HW_AT(struct test_all, b) },
			{ 0 },
		}[0],
		&a, HW_JSON_PRETTY | HW_JSON_SORTED);
	assert_string_equal(text, "{\n    \"b\": true,\n    \"n\": 1\n}");
}

static void clears_twice(void **state)
{
	struct test_conf c;

	(void)state;
	decode("{\"type\":\"t\",\"servers\":[\"a\"],\"ports\":[{\"number\":1}],\"x\":1}", &c);
	clear(&c);
	assert_true(is_cleared(&c));
	clear(&c);
	assert_true(is_cleared(&c));
}

/* ---- documentation -------------------------------------------------------------------- */

static void documents(void **state)
{
	autofree char *text = hw_field_document(fields);

	(void)state;
	assert_string_equal(text,
			    "`type` (string): Name of the plugin.\n"
			    "`enabled` (boolean, default true)\n"
			    "`textBool` (boolean)\n"
			    "`mtu` (number 0..65535, default 0): MTU of the pod's interface.\n"
			    "`atLeast` (number from 5, default 5)\n"
			    "`wide` (number)\n"
			    "`mark` (number)\n"
			    "`secret` (string)\n"
			    "`pin` (number 0..9)\n"
			    "`gateway` (IP address)\n"
			    "`subnet` (address/length)\n"
			    "`servers` (list of strings)\n"
			    "`labels` (object of strings)\n"
			    "`capabilities` (object of booleans)\n"
			    "`lease` (object)\n"
			    "    `type` (string, required)\n"
			    "    `seconds` (number, default 60)\n"
			    "    `port` (object)\n"
			    "        `number` (number 1..65535, required): Port.\n"
			    "        `protocol` (string, default \"tcp\")\n"
			    "        `host` (IP address)\n"
			    "`ports` (list of objects): Ports to open.\n"
			    "    `number` (number 1..65535, required): Port.\n"
			    "    `protocol` (string, default \"tcp\")\n"
			    "    `host` (IP address)\n"
			    "`json` (any JSON)\n"
			    "`groups` (list of numbers)\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "field: every type is decoded", decodes_every_type },
		{ "field: an absent key gets its default", absent_gets_the_default },
		{ "field: a key with the value null is treated as absent", null_is_absent },
		{ "field: an absent object gets its defaults, without an error for required keys",
		  absent_object_needs_no_required_keys },
		{ "field: null entries of lists are dropped, null in maps is an empty string",
		  null_inside },
		{ "field: keys match in any case, and the last duplicate is used", keys_fold },
		{ "field: unknown keys are kept in order", rest_keeps_order },
		{ "field: a boolean may be a string only with HW_BOOL_TEXT", bool_as_text },
		{ "field: an empty address is decoded as unset, an empty prefix is rejected",
		  empty_ip_is_no_address },
		{ "field: a value of the wrong type is rejected, and the error has its path",
		  wrong_types },
		{ "field: 1.0 and 1e3 are rejected where a whole number is expected",
		  no_fraction_or_exponent },
		{ "field: limits are inclusive, and default to the limits of the type", limits },
		{ "field: a required key must not be absent, null or empty", required },
		{ "field: an error has the complete path of the key", names_the_whole_path },
		{ "field: a secret is not quoted in an error", secrets_are_not_quoted },
		{ "field: a failure frees all values that were decoded before it",
		  failure_frees_everything },
		{ "field: malformed JSON leaves nothing to clear", rejects_malformed_json },
		{ "field: keys are encoded in the order of the table, unknown keys last",
		  encodes_in_table_order },
		{ "field: zero and empty values are left out", omits_empty_values },
		{ "field: an empty value that differs from its default is encoded",
		  keeps_empty_values_that_differ_from_the_default },
		{ "field: a key with .has is encoded only if its has member is true",
		  has_member_decides },
		{ "field: with HW_ALWAYS, empty values of every type are encoded",
		  always_encodes_empty_values },
		{ "field: without HW_ALWAYS, empty values and empty objects are left out",
		  object_without_members_is_empty },
		{ "field: unknown keys in HW_REST never override known keys",
		  rest_does_not_override },
		{ "field: output can be indented and sorted", encodes_pretty_and_sorted },
		{ "field: a struct can be cleared twice", clears_twice },
		{ "field: a table is formatted as documentation", documents },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
