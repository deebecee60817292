/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json/test-value.c - parsing JSON within limits, and formatting it like Go
 */
#include "base/json/value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"

static struct value *parse(const char *json)
{
	struct value *v = NULL;
	struct hw_err e;

	if (value_parse(json, strlen(json), &v, &e) < 0)
		fail_msg("%s: %s", json, e.msg);
	return v;
}

/* Parses a text and formats it compactly. */
static void assert_formats_as(const char *json, const char *expected)
{
	AUTO(value_free) struct value *v = parse(json);
	autofree char *text = value_format(v, 0);

	assert_string_equal(text, expected);
}

static void assert_unchanged(const char *json)
{
	assert_formats_as(json, json);
}

static void assert_rejected(const char *json, size_t len, int r, const char *text)
{
	struct value *v = (struct value *)8;
	struct hw_err e;
	int got = value_parse(json, len, &v, &e);

	if (got != r)
		fail_msg("%.60s: got %d, want %d", json, got, r);
	if (!strstr(e.msg, text))
		fail_msg("%.60s: \"%s\" does not contain \"%s\"", json, e.msg, text);
	assert_null(strchr(e.msg, '\n'));
	assert_true(v == (struct value *)8);
}

/* ---- limits ------------------------------------------------------------------ */

static char *nested(size_t depth, const char *open, const char *shut)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < depth; i++)
		buf_puts(&b, open);
	for (size_t i = 0; i < depth; i++)
		buf_puts(&b, shut);
	return buf_take(&b);
}

static void limits_depth(void **state)
{
	autofree char *deepest = nested(VALUE_DEPTH_MAX, "[", "]");
	autofree char *too_deep = nested(VALUE_DEPTH_MAX + 1, "[", "]");
	autofree char *bomb = nested(VALUE_SIZE_MAX / 2, "[", "]");
	autofree char *objects = nested(VALUE_DEPTH_MAX + 1, "{\"a\":", "}");

	(void)state;
	assert_unchanged(deepest);
	assert_rejected(too_deep, strlen(too_deep), -EFBIG, "deeper than 64");
	assert_rejected(bomb, strlen(bomb), -EFBIG, "deeper than 64");
	assert_rejected(objects, strlen(objects), -EFBIG, "deeper than 64");
	assert_rejected(bomb, VALUE_DEPTH_MAX + 1, -EFBIG, "deeper than 64");
}

static void strings_have_no_depth(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };

	(void)state;
	buf_puts(&b, "[\"\\\"");
	for (int i = 0; i < 1000; i++)
		buf_puts(&b, "[{");
	buf_puts(&b, "\\\\\",");
	for (int i = 0; i < 200; i++)
		buf_puts(&b, "[],{},");
	buf_puts(&b, "\"]]]\"]");
	assert_unchanged(b.data);
}

static void limits_size(void **state)
{
	autofree char *text = mem_new(VALUE_SIZE_MAX + 2);
	AUTO(value_free) struct value *v = NULL;
	struct hw_err e;

	(void)state;
	memset(text, ' ', VALUE_SIZE_MAX + 1);
	text[0] = '7';
	assert_int_equal(value_parse(text, VALUE_SIZE_MAX, &v, &e), 0);
	assert_rejected(text, VALUE_SIZE_MAX + 1, -EFBIG, "larger than 4194304");
}

/* An empty object is 2 bytes of text, but hundreds of bytes in memory. */
static void limits_count(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };
	AUTO(value_free) struct value *v = NULL;
	struct hw_err e;

	(void)state;
	buf_puts(&b, "[0");
	for (size_t i = 0; i < VALUE_COUNT_MAX - 1; i++)
		buf_puts(&b, ",0");
	buf_puts(&b, "]");
	assert_int_equal(value_parse(b.data, b.len, &v, &e), 0);
	b.len--;
	buf_puts(&b, ",0]");
	assert_rejected(b.data, b.len, -EFBIG, "more than 262144 values");
}

/* ---- rejected texts -------------------------------------------------------------- */

static void rejects_what_go_rejects(void **state)
{
	static const char *const wrong[] = {
		" ",
		"{",
		"[",
		"\"",
		"{\"a\"",
		"{\"a\":",
		"{\"a\":1",
		"{\"a\":1,}",
		"[1,]",
		"[,]",
		"{,}",
		"{a:1}",
		"{'a':1}",
		"'a'",
		"tru",
		"TRUE",
		"True",
		"nul",
		"NaN",
		"Infinity",
		"-Infinity",
		"+1",
		"01",
		"-",
		"-01",
		"1.",
		".5",
		"1e",
		"1e+",
		"0x10",
		"1 2",
		"{} {}",
		"{}x",
		"// c\n{}",
		"/* c */{}",
		"{}//",
		"\"\\x\"",
		"\"\\u12\"",
		"\"\\u12g4\"",
		"\"a\nb\"",
		"\"a\tb\"",
		"\"\x01\"",
		"[1 2]",
		"{\"a\" 1}",
		"{\"a\":1 \"b\":2}",
		"{1:2}",
		"{null:1}",
		"]",
		"}",
		"[}",
		"{]",
		"\xef\xbb\xbf{}",
		"\xc2\xa0{}",
		"\v{}",
		"1e999",
		"-1e999",
		"undefined",
		"[\"a\"",
		"\"\\",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_rejected(wrong[i], strlen(wrong[i]), -EINVAL, "malformed JSON");
	assert_rejected("", 0, -EINVAL, "empty");
}

/* The text may be a response with a token. */
static void errors_quote_nothing(void **state)
{
	static const char *const wrong[] = {
		"secret",
		"{\"a\": secret}",
		"{\"a\": \"secret",
		"{\"a\": \"secret\" x}",
		"{\"a\": \"secret\n\"}",
		"{\"a\": \"secret\\x\"}",
		"{secret: 1}",
		"{\"secret\" 1}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct value *v;
		struct hw_err e;

		assert_int_equal(value_parse(wrong[i], strlen(wrong[i]), &v, &e), -EINVAL);
		assert_null(strstr(e.msg, "secret"));
	}
}

static void rejects_nul(void **state)
{
	(void)state;
	assert_rejected("{}\0", 3, -EINVAL, "malformed JSON");
	assert_rejected("\0{}", 3, -EINVAL, "malformed JSON");
	assert_rejected("{\"a\":\"b\0c\"}", 11, -EINVAL, "malformed JSON");
	assert_rejected("{\"a\0b\":1}", 9, -EINVAL, "malformed JSON");
	assert_rejected("\"\\u0000\"", 8, -EINVAL, "malformed JSON");
	assert_rejected("{\"\\u0000\":1}", 12, -EINVAL, "malformed JSON");
}

static void rejects_invalid_utf8(void **state)
{
	static const char *const wrong[] = {
		"\"\xff\"",
		"\"\xc0\x80\"",
		"\"\xe0\x80\x80\"",
		"\"\xed\xa0\x80\"",
		"\"\xf5\x80\x80\x80\"",
		"\"\xf4\x90\x80\x80\"",
		"\"\xc3\"",
		"\"\x80\"",
		"{\"\xff\":1}",
		"\"\\ud800\"",
		"\"\\ud800\\u0041\"",
		"\"\\udc00\"",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_rejected(wrong[i], strlen(wrong[i]), -EINVAL, "malformed JSON");
}

static void names_line_and_column(void **state)
{
	static const char text[] = "{\n  \"a\": 1,\n  \"b\": nope\n}";

	(void)state;
	assert_rejected(text, strlen(text), -EINVAL, "line 3, column 11");
}

static void does_not_quote_strings(void **state)
{
	struct value *v;
	struct hw_err e;

	(void)state;
	assert_int_equal(value_parse("{\"password\" \"hunter2\"}", 22, &v, &e), -EINVAL);
	assert_null(strstr(e.msg, "hunter2"));
	assert_int_equal(value_parse("[\"hunter2\" \"hunter2\"]", 21, &v, &e), -EINVAL);
	assert_null(strstr(e.msg, "hunter2"));
	assert_int_equal(value_parse("{\"password\":\"hunter2\\x\"}", 24, &v, &e), -EINVAL);
	assert_null(strstr(e.msg, "hunter2"));
}

/* ---- accepted texts -------------------------------------------------------------- */

static void keeps_integers(void **state)
{
	(void)state;
	assert_unchanged("[9223372036854775807,-9223372036854775808,9007199254740993,0]");
	assert_formats_as("-0", "0");
	assert_rejected("9223372036854775808", 19, -EINVAL, "number out of range");
	assert_rejected("-9223372036854775809", 20, -EINVAL, "number out of range");
}

static void keeps_reals(void **state)
{
	(void)state;
	assert_unchanged(
		"[0.1,1.5,-2.25,3.141592653589793,1.7976931348623157e+308,2.2250738585072014e-"
		"308]");
	assert_formats_as("[1.0,1e3,-0.0,1E-7,100000000000000000000.0,0.30000000000000004]",
			  "[1.0,1000.0,-0.0,1e-07,1e+20,0.30000000000000004]");
}

static void real_is_not_an_integer(void **state)
{
	AUTO(value_free) struct value *v = parse("[1,1.0,1e3]");

	(void)state;
	assert_int_equal(value_kind(value_at(v, 0)), VALUE_INT);
	assert_int_equal(value_kind(value_at(v, 1)), VALUE_REAL);
	assert_int_equal(value_kind(value_at(v, 2)), VALUE_REAL);
	assert_int_equal(value_int(value_at(v, 2)), 0);
}

/* Creates and sets a locale with a decimal comma, in the file format of glibc. */
static void write_comma_locale(const char *dir)
{
	static const struct {
		uint32_t magic, count, at[6];
		/* decimal point, thousands separator, both again as wide characters, codeset */
		char data[20];
	} locale = { 0x20031115 ^ LC_NUMERIC,
		     6,
		     { 32, 34, 35, 36, 40, 44 },
		     ",\0\0\0,\0\0\0\0\0\0\0UTF-8" };
	autofree char *directory = str_printf("%s/comma", dir);
	autofree char *file = str_printf("%s/LC_NUMERIC", directory);
	FILE *f;

	assert_int_equal(mkdir(directory, 0700), 0);
	f = fopen(file, "we");
	assert_non_null(f);
	assert_int_equal(fwrite(&locale, sizeof(locale), 1, f), 1);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(setenv("LOCPATH", dir, 1), 0);
	if (!setlocale(LC_NUMERIC, "comma"))
		fail_msg("the C library does not accept the generated locale");
	remove(file);
	remove(directory);
}

/* The calling program may have set a locale in which 0.1 is printed as 0,1. */
static void ignores_the_locale(void **state)
{
	char dir[] = "/tmp/hawser-value-XXXXXX", text[8];

	(void)state;
	assert_non_null(mkdtemp(dir));
	write_comma_locale(dir);
	rmdir(dir);
	snprintf(text, sizeof(text), "%g", 0.5);
	assert_string_equal(text, "0,5");
	assert_unchanged("[0.1,1.0,1e+20,1.5e-07]");
	setlocale(LC_NUMERIC, "C");
}

static void keeps_key_order(void **state)
{
	(void)state;
	assert_unchanged("{\"z\":1,\"a\":{\"y\":2,\"b\":3},\"m\":[{\"d\":4,\"c\":5}]}");
}

static void last_duplicate_wins(void **state)
{
	(void)state;
	assert_formats_as("{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}");
}

static void unescapes(void **state)
{
	(void)state;
	assert_formats_as("\"\\u00e9\\ud83d\\ude00\\/\\u0041\"", "\"\xc3\xa9\xf0\x9f\x98\x80/A\"");
}

static void reads_any_kind(void **state)
{
	static const struct {
		const char *json;
		enum value_kind kind;
	} rows[] = {
		{ "null", VALUE_NULL },	    { "true", VALUE_BOOL },
		{ "false", VALUE_BOOL },    { "7", VALUE_INT },
		{ "7.5", VALUE_REAL },	    { "\"s\"", VALUE_STRING },
		{ " [ ] \n", VALUE_ARRAY }, { "\t{ }\r\n", VALUE_OBJECT },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO(value_free) struct value *v = parse(rows[i].json);

		assert_int_equal(value_kind(v), rows[i].kind);
	}
}

/* ---- formatting ------------------------------------------------------------------- */

static void escapes_as_go(void **state)
{
	(void)state;
	assert_formats_as("\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f\\u0020\\u007f/\"",
			  "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f \x7f/\"");
}

static void writes_pretty(void **state)
{
	AUTO(value_free)
	struct value *v = parse("{\"b\":[1,{\"d\":[],\"c\":{}}],\"a\":null,\"e\":[true,false]}");
	autofree char *text = value_format(v, HW_JSON_PRETTY);

	(void)state;
	assert_string_equal(text, "{\n"
				  "    \"b\": [\n"
				  "        1,\n"
				  "        {\n"
				  "            \"d\": [],\n"
				  "            \"c\": {}\n"
				  "        }\n"
				  "    ],\n"
				  "    \"a\": null,\n"
				  "    \"e\": [\n"
				  "        true,\n"
				  "        false\n"
				  "    ]\n"
				  "}");
}

static void writes_sorted(void **state)
{
	AUTO(value_free)
	struct value *v = parse(
		"{\"b\":{\"z\":1,\"Z\":2},\"\xc3\xa9\":3,\"aa\":[{\"y\":4,\"x\":5}],\"a\":6}");
	autofree char *text = value_format(v, HW_JSON_SORTED);

	(void)state;
	assert_string_equal(text, "{\"a\":6,\"aa\":[{\"x\":5,\"y\":4}],\"b\":{\"Z\":2,\"z\":1},"
				  "\"\xc3\xa9\":3}");
}

static void repairs_our_own_text(void **state)
{
	AUTO(value_free) struct value *v = value_new_object();
	AUTO(value_free) struct value *back = NULL;
	autofree char *text = NULL;

	(void)state;
	value_set(v, "/tmp/\xff", value_new_string("a\xc3(\xed\xa0\x80\xf0\x9f\x98\x80\xe2\x82"));
	text = value_format(v, 0);
	assert_string_equal(text, "{\"/tmp/\xef\xbf\xbd\":\"a\xef\xbf\xbd("
				  "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xf0\x9f\x98\x80"
				  "\xef\xbf\xbd\xef\xbf\xbd\"}");
	back = parse(text);
	assert_true(value_equal(v, back));
}

/* The first and the last character of each length, and those next to the surrogates. */
static void leaves_utf8_alone(void **state)
{
	static const char edges[] = "\x01 \x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80"
				    "\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf";
	AUTO(value_free) struct value *v = value_new_string(edges);
	AUTO(value_free) struct value *back = NULL;
	autofree char *text = value_format(v, 0);

	(void)state;
	assert_string_equal(value_string(v), edges);
	back = parse(text);
	assert_string_equal(value_string(back), edges);
}

/* ---- keys ------------------------------------------------------------------------- */

static void finds_as_go(void **state)
{
	AUTO(value_free)
	struct value *v =
		parse("{\"CNIVersion\":1,\"mtu\":2,\"MTU\":3,\"ma\xc5\xbfk\":4,\"\xe2\x84\xaa\":5,"
		      "\"\xc3\xa9\":6}");

	(void)state;
	assert_int_equal(value_int(value_find(v, "cniVersion")), 1);
	assert_int_equal(value_int(value_find(v, "mtu")), 3);
	assert_int_equal(value_int(value_find(v, "MASK")), 4);
	assert_int_equal(value_int(value_find(v, "k")), 5);
	assert_int_equal(value_int(value_find(v, "\xc3\xa9")), 6);
	assert_null(value_find(v, "\xc3\x89"));
	assert_null(value_find(v, "mt"));
	assert_null(value_find(v, "mtuu"));
	assert_null(value_find(v, ""));
	assert_null(value_get(v, "cniVersion"));
	assert_int_equal(value_int(value_get(v, "mtu")), 2);
}

static void folds_letters_only(void **state)
{
	(void)state;
	assert_true(value_keys_match("aZ", "Az"));
	assert_false(value_keys_match("a[", "a{"));
	assert_false(value_keys_match("@", "`"));
	assert_true(value_keys_match("S", "\xc5\xbf"));
	assert_true(value_keys_match("\xc5\xbf", "s"));
	assert_true(value_keys_match("\xe2\x84\xaa", "K"));
	assert_false(value_keys_match("\xc5\xbe", "s"));
	assert_false(value_keys_match("\xe2\x84\xab", "k"));
	assert_true(value_keys_match("", ""));
	assert_false(value_keys_match("", "a"));
}

/* ---- trees ------------------------------------------------------------------------- */

static void setters_take_over(void **state)
{
	AUTO(value_free) struct value *v = value_new_object();
	AUTO(value_free) struct value *shared = value_new_string("s");
	struct value *array = value_new_array();
	autofree char *text = NULL;

	(void)state;
	value_append(array, value_new_null());
	value_append(array, value_new_bool(false));
	value_append(array, value_ref(shared));
	value_set(v, "removed", value_new_int(1));
	value_set(v, "n", value_new_int(INT64_MIN));
	value_set(v, "list", array);
	value_set(v, "n", value_new_int(2));
	value_remove(v, "removed");
	value_remove(v, "missing");
	text = value_format(v, 0);
	assert_string_equal(text, "{\"n\":2,\"list\":[null,false,\"s\"]}");
	assert_string_equal(value_string(shared), "s");
}

static void copies_are_deep(void **state)
{
	AUTO(value_free) struct value *v = parse("{\"a\":[1,{\"b\":2}]}");
	AUTO(value_free) struct value *copy = value_copy(v);

	(void)state;
	assert_true(value_equal(v, copy));
	value_set(value_at(value_get(copy, "a"), 1), "b", value_new_int(3));
	assert_false(value_equal(v, copy));
	assert_int_equal(value_int(value_get(value_at(value_get(v, "a"), 1), "b")), 2);
}

static void equal_in_any_order(void **state)
{
	AUTO(value_free) struct value *a = parse("{\"a\":1,\"b\":[1,2]}");
	AUTO(value_free) struct value *b = parse("{\"b\":[1,2],\"a\":1}");
	AUTO(value_free) struct value *c = parse("{\"b\":[2,1],\"a\":1}");

	(void)state;
	assert_true(value_equal(a, b));
	assert_false(value_equal(a, c));
}

static void getters_of_the_wrong_kind(void **state)
{
	AUTO(value_free) struct value *v = parse("[\"1\",1,true,null,{\"a\":1}]");
	void *i = NULL;

	(void)state;
	assert_int_equal(value_int(value_at(v, 0)), 0);
	assert_false(value_bool(value_at(v, 0)));
	assert_false(value_bool(value_at(v, 1)));
	assert_true(value_bool(value_at(v, 2)));
	assert_null(value_string(value_at(v, 1)));
	assert_null(value_at(v, 5));
	assert_null(value_at(value_at(v, 4), 0));
	assert_null(value_get(v, "a"));
	assert_null(value_find(v, "a"));
	assert_false(value_next(v, &i, NULL, NULL));
	assert_int_equal(value_count(v), 5);
	assert_int_equal(value_count(value_at(v, 4)), 1);
	assert_int_equal(value_count(value_at(v, 3)), 0);
	value_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "value: 64 levels of nesting are parsed, 65 and more are rejected",
		  limits_depth },
		{ "value: brackets in strings are not counted as nesting", strings_have_no_depth },
		{ "value: 4 MiB are parsed, one byte more is rejected", limits_size },
		{ "value: a text with too many values is rejected", limits_count },
		{ "value: an error does not quote the text", errors_quote_nothing },
		{ "value: texts that Go rejects are rejected", rejects_what_go_rejects },
		{ "value: NUL is rejected, both as a byte and as an escape sequence", rejects_nul },
		{ "value: invalid UTF-8 is rejected", rejects_invalid_utf8 },
		{ "value: an error has line and column", names_line_and_column },
		{ "value: an error does not contain strings of the text", does_not_quote_strings },
		{ "value: 64-bit integers keep their exact value", keeps_integers },
		{ "value: reals are formatted with the fewest digits and parsed again as reals",
		  keeps_reals },
		{ "value: 1.0 and 1e3 are parsed as reals, not as integers",
		  real_is_not_an_integer },
		{ "value: the locale of the calling program has no effect", ignores_the_locale },
		{ "value: keys keep their order", keeps_key_order },
		{ "value: the last duplicate of a key is used", last_duplicate_wins },
		{ "value: escape sequences are decoded", unescapes },
		{ "value: a value of any kind can be parsed", reads_any_kind },
		{ "value: strings are escaped as in Go", escapes_as_go },
		{ "value: HW_JSON_PRETTY indents by four spaces, as in Go's MarshalIndent",
		  writes_pretty },
		{ "value: HW_JSON_SORTED sorts keys in byte order at every level", writes_sorted },
		{ "value: invalid bytes in new strings are replaced by U+FFFD",
		  repairs_our_own_text },
		{ "value: new strings keep valid UTF-8 unchanged", leaves_utf8_alone },
		{ "value: value_find() ignores case as in Go and returns the last match",
		  finds_as_go },
		{ "value: value_find() ignores case only in letters", folds_letters_only },
		{ "value: value_set() and value_append() take over the reference",
		  setters_take_over },
		{ "value: a change of a copy does not change the original", copies_are_deep },
		{ "value: comparisons ignore the order of keys, but not the order of arrays",
		  equal_in_any_order },
		{ "value: getters return 0, false or NULL for a value of the wrong kind",
		  getters_of_the_wrong_kind },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
