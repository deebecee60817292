/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/test-error.c - tests of CNI error objects
 */
#include "cni/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

static int parse(const char *json, struct hw_err *ret_err, struct hw_err *e)
{
	return error_parse(json, strlen(json), ret_err, e);
}

static void reads_all_three(void **state)
{
	struct hw_err err, e;

	(void)state;
	assert_int_equal(parse("{\"cniVersion\":\"1.0.0\",\"code\":7,\"msg\":\"bad\","
			       "\"details\":\"no type\"}",
			       &err, &e),
			 0);
	assert_int_equal(err.domain, HW_DOMAIN_CNI);
	assert_int_equal(err.wire, 7);
	assert_int_equal(err.code, -EINVAL);
	assert_string_equal(err.msg, "bad");
	assert_string_equal(err.details, "no type");
}

static void accepts_missing_keys(void **state)
{
	struct hw_err err, e;

	(void)state;
	memset(&err, 'x', sizeof(err));
	assert_int_equal(parse("{}", &err, &e), 0);
	assert_int_equal(err.domain, HW_DOMAIN_CNI);
	assert_int_equal(err.wire, HW_CNI_UNKNOWN);
	assert_true(err.code < 0);
	assert_string_equal(err.msg, "");
	assert_string_equal(err.details, "");

	assert_int_equal(parse("{\"code\":null,\"msg\":null,\"MSG\":\"folded\"}", &err, &e), 0);
	assert_int_equal(err.wire, 0);
	assert_string_equal(err.msg, "folded");
}

static void keeps_the_code_of_a_plugin(void **state)
{
	struct hw_err err, e;

	(void)state;
	assert_int_equal(parse("{\"code\":2147483647,\"msg\":\"m\"}", &err, &e), 0);
	assert_int_equal(err.wire, 2147483647);
}

static void refuses_other_json(void **state)
{
	static const char *const wrong[] = {
		"",
		" ",
		"null",
		"[]",
		"\"text\"",
		"7",
		"panic: runtime error",
		"{\"code\":7",
		"{\"code\":7} trailing",
		"{\"code\":\"7\"}",
		"{\"code\":7.0}",
		"{\"code\":7e0}",
		"{\"code\":-1}",
		"{\"code\":2147483648}",
		"{\"code\":7,\"msg\":7}",
		"{\"code\":7,\"details\":{}}",
	};
	struct hw_err err, e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		err.wire = -5;
		e.msg[0] = '\0';
		if (parse(wrong[i], &err, &e) != -EINVAL)
			fail_msg("\"%s\" was accepted", wrong[i]);
		assert_int_equal(err.wire, -5);
		assert_true(strlen(e.msg) > 0);
	}
}

/* Both texts are too long for struct hw_err and consist of characters of two bytes. */
static void truncates_between_characters(void **state)
{
	AUTO(buf_done) struct buf json = { 0 };
	struct hw_err err, e;
	size_t n;

	(void)state;
	buf_puts(&json, "{\"code\":100,\"msg\":\"");
	for (size_t i = 0; i < sizeof(err.msg); i++)
		buf_puts(&json, "\xc3\xa9");
	buf_puts(&json, "\",\"details\":\"a");
	for (size_t i = 0; i < sizeof(err.details); i++)
		buf_puts(&json, "\xc3\xa9");
	buf_puts(&json, "\"}");
	assert_int_equal(error_parse(json.data, json.len, &err, &e), 0);

	n = strlen(err.msg);
	assert_int_equal(n, (sizeof(err.msg) - 1) / 2 * 2);
	assert_string_equal(err.msg + n - 2, "\xc3\xa9");
	assert_int_equal(strlen(err.details), sizeof(err.details) - 1);
}

static void writes_as_skel_does(void **state)
{
	autofree char *with = NULL, *without = NULL;
	struct hw_err err;

	(void)state;
	err_cni(&err, 7, "say \"hi\"");
	without = error_format(&err);
	assert_string_equal(without, "{\n    \"code\": 7,\n    \"msg\": \"say \\\"hi\\\"\"\n}");

	err_cni(&err, 0, "%s", "");
	err_details(&err, "a\nb");
	with = error_format(&err);
	assert_string_equal(
		with, "{\n    \"code\": 0,\n    \"msg\": \"\",\n    \"details\": \"a\\nb\"\n}");
}

static void writes_999_for_a_plain_error(void **state)
{
	autofree char *text = NULL;
	struct hw_err err;

	(void)state;
	err_text(&err, -ENOENT, "no such bridge");
	text = error_format(&err);
	assert_string_equal(text, "{\n    \"code\": 999,\n    \"msg\": \"no such bridge\"\n}");
}

static void writes_json_for_any_bytes(void **state)
{
	autofree char *text = NULL;
	struct hw_err err, back, e;

	(void)state;
	err_cni(&err, 5, "open /tmp/\xff\x01");
	text = error_format(&err);
	assert_int_equal(parse(text, &back, &e), 0);
	assert_string_equal(back.msg, "open /tmp/\xef\xbf\xbd\x01");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "error: code, msg and details are parsed", reads_all_three },
		{ "error: missing keys and null become code 0 and empty texts",
		  accepts_missing_keys },
		{ "error: a code that the spec does not define is kept",
		  keeps_the_code_of_a_plugin },
		{ "error: text that is not an error object is refused and changes nothing",
		  refuses_other_json },
		{ "error: a text that is too long is truncated between two UTF-8 characters",
		  truncates_between_characters },
		{ "error: an error object is indented by four spaces and has no final newline",
		  writes_as_skel_does },
		{ "error: an error without CNI code is formatted with code 999",
		  writes_999_for_a_plain_error },
		{ "error: a message that is not UTF-8 is still formatted as JSON",
		  writes_json_for_any_bytes },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
