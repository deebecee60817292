/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json/test-yaml.c - accepted YAML, shown as JSON, and rejected YAML
 */
#include "base/json/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/field.h"
#include "base/mem.h"

static void assert_means(const char *yaml, const char *json)
{
	AUTO(value_free) struct value *v = NULL;
	autofree char *text = NULL;
	struct hw_err e = { 0 };

	if (yml_parse(yaml, strlen(yaml), &v, &e) < 0)
		fail_msg("%s: %s", yaml, e.msg);
	text = value_format(v, 0);
	assert_string_equal(text, json);
}

static void assert_rejected(const char *yaml, int code, const char *message)
{
	struct value *v = NULL;
	struct hw_err e;

	assert_int_equal(yml_parse(yaml, strlen(yaml), &v, &e), code);
	assert_string_equal(e.msg, message);
	assert_null(v);
}

static void scalars(void **state)
{
	(void)state;
	assert_means(
		"a: 1\nb: -7\nc: true\nd: False\ne: text\nf: ~\ng:\n",
		"{\"a\":1,\"b\":-7,\"c\":true,\"d\":false,\"e\":\"text\",\"f\":null,\"g\":null}");
	assert_means("a: '1'\nb: \"true\"\nc: !!str 5\n",
		     "{\"a\":\"1\",\"b\":\"true\",\"c\":\"5\"}");
	assert_means("a: |\n  two\n  lines\n", "{\"a\":\"two\\nlines\\n\"}");
	assert_means("0", "0");
	assert_means("", "null");
	assert_means("# nothing\n", "null");
	assert_means("---\na: b\n...\n", "{\"a\":\"b\"}");
}

static void ambiguous_scalars(void **state)
{
	(void)state;
	assert_means("[yes, on, 0755, 1.10, 0x1f, 1e3, .inf, 9223372036854775808, -0]",
		     "[\"yes\",\"on\",\"0755\",\"1.10\",\"0x1f\",\"1e3\",\".inf\","
		     "\"9223372036854775808\",0]");
}

static void nesting(void **state)
{
	(void)state;
	assert_means("a:\n  b:\n  - c: 1\n    d: 2\n  - [x, {y: z}]\n",
		     "{\"a\":{\"b\":[{\"c\":1,\"d\":2},[\"x\",{\"y\":\"z\"}]]}}");
	assert_means("{\"json\": [1, \"\\u00e9\\n\"], \"empty\": {}}",
		     "{\"json\":[1,\"é\\n\"],\"empty\":{}}");
}

static void unsupported_yaml(void **state)
{
	(void)state;
	assert_rejected("a: 1\nb: 2\na: 3\n", -EINVAL, "line 3, column 1: duplicate key a");
	assert_rejected("a: &x 1\nb: *x\n", -EINVAL, "line 2, column 4: aliases are not supported");
	assert_rejected("a: !thing 1\n", -EINVAL, "line 1, column 4: tags are not supported");
	assert_rejected("a: !!int 1\n", -EINVAL, "line 1, column 4: tags are not supported");
	assert_rejected("a: !!set {b: 1}\n", -EINVAL, "line 1, column 4: tags are not supported");
	assert_rejected("a: 1\n---\nb: 2\n", -EINVAL, "line 3, column 1: more than one document");
	assert_rejected("? [a]\n: b\n", -EINVAL, "line 1, column 3: key must be a string");
	assert_rejected("a: \"b\\0c\"\n", -EINVAL, "line 1, column 4: NUL character in text");
	assert_rejected("a:\n\t- b\n", -EINVAL,
			"line 2, column 1: found character that cannot start any token");
	assert_rejected("a: [1, 2\n", -EINVAL,
			"line 2, column 1: did not find expected ',' or ']'");
	assert_rejected("a: \xff\n", -EINVAL, "line 1, column 1: invalid leading UTF-8 octet");
}

/* These characters are line breaks in YAML 1.1 only. */
static void old_line_breaks(void **state)
{
	(void)state;
	assert_means("\"\\N\\L\\P\"", "\"\xc2\x85\xe2\x80\xa8\xe2\x80\xa9\"");
	assert_rejected("a: b\r\nc: \"é\xc2\x85\"\n", -EINVAL,
			"line 2, column 6: U+0085 must be written as \\N");
	assert_rejected("# a\r\r# \xe2\x80\xa8 b: c\n", -EINVAL,
			"line 3, column 3: U+2028 must be written as \\L");
	assert_rejected("\xe2\x80\xa9", -EINVAL, "line 1, column 1: U+2029 must be written as \\P");
}

static void limits(void **state)
{
	AUTO(buf_done) struct buf deep = { 0 }, wide = { 0 }, large = { 0 };
	struct value *v;
	struct hw_err e;

	(void)state;
	for (int i = 0; i <= VALUE_DEPTH_MAX; i++)
		buf_putc(&deep, '[');
	assert_rejected(deep.data, -EFBIG, "line 1, column 65: nested too deeply");
	buf_putc(&wide, '[');
	for (int i = 0; i <= VALUE_COUNT_MAX; i++)
		buf_puts(&wide, "1,");
	assert_rejected(wide.data, -EFBIG, "line 1, column 524290: too many members");
	memset(buf_reserve(&large, YML_SIZE_MAX + 1), ' ', YML_SIZE_MAX + 1);
	assert_int_equal(yml_parse(large.data, YML_SIZE_MAX + 1, &v, &e), -EFBIG);
	assert_string_equal(e.msg, "YAML is larger than 1048576 bytes");
}

static void lines(void **state)
{
	static const char text[] = "# first\n"
				   "name: x\n"
				   "plugins:\n"
				   "- type: a\n"
				   "- type: b\n"
				   "  mtu: wrong\n"
				   "names: y\n";

	(void)state;
	assert_int_equal(yml_line(text, strlen(text), "name: unknown key"), 2);
	assert_int_equal(yml_line(text, strlen(text), "names: unknown key"), 7);
	assert_int_equal(yml_line(text, strlen(text), "plugins[1].mtu: expected"), 6);
	assert_int_equal(yml_line(text, strlen(text), "plugins[0].mtu: required key is missing"),
			 4);
	assert_int_equal(yml_line(text, strlen(text), "plugins[12]: expected"), 3);
	assert_int_equal(yml_line(text, strlen(text), "other: required key is missing"), 1);
}

struct point {
	char *name;
	int x;
};

struct shape {
	struct point centre;
	struct hw_list points;
};

static const struct hw_field point_fields[] = {
	{ "name", HW_STRING, HW_AT(struct point, name) },
	{ "x", HW_INT, HW_AT(struct point, x) },
	{ 0 },
};

static const struct hw_field shape_fields[] = {
	{ "centre", HW_OBJECT, HW_AT(struct shape, centre), .sub = point_fields },
	{ "points", HW_LIST, HW_AT(struct shape, points), .sub = point_fields,
	  .size = sizeof(struct point) },
	{ 0 },
};

/* @message is the expected error, "" if all keys are known. */
static void assert_unknown_key(const char *yaml, const char *message)
{
	AUTO(value_free) struct value *v = NULL;
	struct hw_err e = { 0 };

	assert_int_equal(yml_parse(yaml, strlen(yaml), &v, &e), 0);
	assert_int_equal(field_check_known(shape_fields, v, &e), *message ? -EINVAL : 0);
	assert_string_equal(e.msg, message);
}

static void unknown_keys(void **state)
{
	(void)state;
	assert_unknown_key("centre: {name: a, x: 1}\npoints: [{x: 2}, {name: b}]\n", "");
	assert_unknown_key("center: {}\n", "center: unknown key");
	assert_unknown_key("Centre: {}\n", "Centre: unknown key");
	assert_unknown_key("centre: {y: 1}\n", "centre.y: unknown key");
	assert_unknown_key("points: [{x: 2}, {z: 1}]\n", "points[1].z: unknown key");
	assert_unknown_key("points: 5\n", "");
}

static void decodes_by_table(void **state)
{
	static const char text[] = "centre: {name: a}\npoints: [{x: 2}, {x: 3}]\n";
	AUTO(value_free) struct value *v = NULL;
	struct shape shape;
	struct hw_err e;

	(void)state;
	assert_int_equal(yml_parse(text, strlen(text), &v, &e), 0);
	assert_int_equal(field_decode(shape_fields, v, &shape, &e), 0);
	assert_string_equal(shape.centre.name, "a");
	assert_int_equal(shape.points.n, 2);
	assert_int_equal(((struct point *)shape.points.v)[1].x, 3);
	hw_field_clear(shape_fields, &shape);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "yaml: numbers, booleans, null and text are parsed", scalars },
		{ "yaml: scalars that parsers interpret differently are read as strings",
		  ambiguous_scalars },
		{ "yaml: nested lists and objects are parsed, also in JSON syntax", nesting },
		{ "yaml: malformed and unsupported YAML is rejected with line and column",
		  unsupported_yaml },
		{ "yaml: a line break of YAML 1.1 is accepted only as an escape sequence",
		  old_line_breaks },
		{ "yaml: too deep nesting, too many members and too large texts are rejected",
		  limits },
		{ "yaml: yml_line() finds the line that an error message refers to", lines },
		{ "yaml: unknown keys are found at any depth", unknown_keys },
		{ "yaml: a field table decodes YAML in the same way as JSON", decodes_by_table },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
