/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json/test-yaml.c - YAML that is taken, with what it means, and YAML that is not
 */
#include "base/json/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the ones above */
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/field.h"
#include "base/mem.h"

/* YAML on the left is the JSON on the right. */
static void means(const char *yaml, const char *json)
{
	AUTO(value_free) struct value *v = NULL;
	autofree char *text = NULL;
	struct hw_err e = { 0 };

	if (yml_parse(yaml, strlen(yaml), &v, &e) < 0)
		fail_msg("%s: %s", yaml, e.msg);
	text = value_format(v, 0);
	assert_string_equal(text, json);
}

static void refused(const char *yaml, int code, const char *message)
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
	means("a: 1\nb: -7\nc: true\nd: False\ne: text\nf: ~\ng:\n",
	      "{\"a\":1,\"b\":-7,\"c\":true,\"d\":false,\"e\":\"text\",\"f\":null,\"g\":null}");
	means("a: '1'\nb: \"true\"\nc: !!str 5\n", "{\"a\":\"1\",\"b\":\"true\",\"c\":\"5\"}");
	means("a: |\n  two\n  lines\n", "{\"a\":\"two\\nlines\\n\"}");
	means("0", "0");
	means("", "null");
	means("# nothing\n", "null");
	means("---\na: b\n...\n", "{\"a\":\"b\"}");
}

static void doubtful_words(void **state)
{
	(void)state;
	means("[yes, on, 0755, 1.10, 0x1f, 1e3, .inf, 9223372036854775808, -0]",
	      "[\"yes\",\"on\",\"0755\",\"1.10\",\"0x1f\",\"1e3\",\".inf\","
	      "\"9223372036854775808\",0]");
}

static void nesting(void **state)
{
	(void)state;
	means("a:\n  b:\n  - c: 1\n    d: 2\n  - [x, {y: z}]\n",
	      "{\"a\":{\"b\":[{\"c\":1,\"d\":2},[\"x\",{\"y\":\"z\"}]]}}");
	means("{\"json\": [1, \"\\u00e9\\n\"], \"empty\": {}}",
	      "{\"json\":[1,\"é\\n\"],\"empty\":{}}");
}

static void not_taken(void **state)
{
	(void)state;
	refused("a: 1\nb: 2\na: 3\n", -EINVAL, "line 3, column 1: a: this key is there twice");
	refused("a: &x 1\nb: *x\n", -EINVAL, "line 2, column 4: aliases are not taken");
	refused("a: !thing 1\n", -EINVAL, "line 1, column 4: tags are not taken");
	refused("a: !!int 1\n", -EINVAL, "line 1, column 4: tags are not taken");
	refused("a: !!set {b: 1}\n", -EINVAL, "line 1, column 4: tags are not taken");
	refused("a: 1\n---\nb: 2\n", -EINVAL, "line 3, column 1: a second document");
	refused("? [a]\n: b\n", -EINVAL, "line 1, column 3: a key must be text");
	refused("a: \"b\\0c\"\n", -EINVAL, "line 1, column 4: a NUL in the text");
	refused("a:\n\t- b\n", -EINVAL,
		"line 2, column 1: found character that cannot start any token");
	refused("a: [1, 2\n", -EINVAL, "line 2, column 1: did not find expected ',' or ']'");
	refused("a: \xff\n", -EINVAL, "line 1, column 1: invalid leading UTF-8 octet");
}

static void bounded(void **state)
{
	AUTO(buf_done) struct buf deep = { 0 }, wide = { 0 }, large = { 0 };
	struct value *v;
	struct hw_err e;

	(void)state;
	for (int i = 0; i <= VALUE_DEPTH_MAX; i++)
		buf_putc(&deep, '[');
	refused(deep.data, -EFBIG, "line 1, column 65: too deep");
	buf_putc(&wide, '[');
	for (int i = 0; i <= VALUE_COUNT_MAX; i++)
		buf_puts(&wide, "1,");
	refused(wide.data, -EFBIG, "line 1, column 524290: too many members");
	memset(buf_reserve(&large, YML_SIZE_MAX + 1), ' ', YML_SIZE_MAX + 1);
	assert_int_equal(yml_parse(large.data, YML_SIZE_MAX + 1, &v, &e), -EFBIG);
	assert_string_equal(e.msg, "more than 1048576 bytes");
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
	assert_int_equal(yml_line(text, strlen(text), "plugins[0].mtu: is required"), 4);
	assert_int_equal(yml_line(text, strlen(text), "plugins[12]: expected"), 3);
	assert_int_equal(yml_line(text, strlen(text), "other: is required"), 1);
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

/* The first unknown key; "" if all are known. */
static void unknown_is(const char *yaml, const char *message)
{
	AUTO(value_free) struct value *v = NULL;
	struct hw_err e = { 0 };

	assert_int_equal(yml_parse(yaml, strlen(yaml), &v, &e), 0);
	assert_int_equal(field_known(shape_fields, v, &e), *message ? -EINVAL : 0);
	assert_string_equal(e.msg, message);
}

static void unknown_keys(void **state)
{
	(void)state;
	unknown_is("centre: {name: a, x: 1}\npoints: [{x: 2}, {name: b}]\n", "");
	unknown_is("center: {}\n", "center: unknown key");
	unknown_is("Centre: {}\n", "Centre: unknown key");
	unknown_is("centre: {y: 1}\n", "centre.y: unknown key");
	unknown_is("points: [{x: 2}, {z: 1}]\n", "points[1].z: unknown key");
	unknown_is("points: 5\n", "");
}

static void by_table(void **state)
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
		{ "yaml: numbers, truths, nothing and text", scalars },
		{ "yaml: what readers do not agree on is text", doubtful_words },
		{ "yaml: lists and objects in each other, also as JSON", nesting },
		{ "yaml: what is not taken is refused with line and column", not_taken },
		{ "yaml: depth, members and size are bounded", bounded },
		{ "yaml: a message finds its line", lines },
		{ "yaml: a key that no table names is found, at any depth", unknown_keys },
		{ "yaml: a table decodes it as it does JSON", by_table },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
