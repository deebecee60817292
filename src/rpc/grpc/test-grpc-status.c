/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/test-grpc-status.c - status codes and the encoding of messages
 */
#include "rpc/grpc/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>

static void codes_and_errnos(void **state)
{
	struct hw_err e;

	(void)state;
	for (int code = STATUS_CANCELLED; code <= STATUS_UNAUTHENTICATED; code++) {
		assert_true(status_set(&e, code, "x") < 0);
		assert_int_equal(status_from_err(&e), code);
		e.domain = HW_DOMAIN_NONE; /* convert by errno only */
		assert_int_equal(status_from_err(&e),
				 code == STATUS_NOT_FOUND ? STATUS_INTERNAL : code);
		err_ctx(&e, "pull \"%s\"", "busybox");
		assert_string_equal(e.msg, "pull \"busybox\": x");
	}
}

static void unknown_codes(void **state)
{
	struct hw_err e;

	(void)state;
	status_set(&e, (enum status_code)99, "odd");
	assert_int_equal(status_from_err(&e), STATUS_UNKNOWN);
	assert_string_equal(status_name(99), "UNKNOWN");
	assert_string_equal(status_name(-1), "UNKNOWN");
	assert_string_equal(status_name(5), "NOT_FOUND");
}

static void other_domains(void **state)
{
	struct hw_err e;

	(void)state;
	err_cni(&e, HW_CNI_INVALID_CONFIG, "no such key");
	assert_int_equal(status_from_err(&e), STATUS_INVALID_ARGUMENT);
	err_set(&e, -ENOSPC, "write /x");
	assert_int_equal(status_from_err(&e), STATUS_RESOURCE_EXHAUSTED);
	err_set(&e, -EXDEV, "rename /x");
	assert_int_equal(status_from_err(&e), STATUS_INTERNAL);
	err_set(&e, -ENOENT, "open /x");
	assert_int_equal(status_from_err(&e), STATUS_INTERNAL);
	err_text(&e, -ENODATA, "x not found");
	assert_int_equal(status_from_err(&e), STATUS_NOT_FOUND);
}

static void http_errors(void **state)
{
	(void)state;
	assert_int_equal(status_from_http(404), STATUS_UNIMPLEMENTED);
	assert_int_equal(status_from_http(503), STATUS_UNAVAILABLE);
	assert_int_equal(status_from_http(418), STATUS_UNKNOWN);
	assert_int_equal(status_from_h2(8), STATUS_CANCELLED);
	assert_int_equal(status_from_h2(7), STATUS_UNAVAILABLE);
	assert_int_equal(status_from_h2(0xffff), STATUS_INTERNAL);
}

static void encodes(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };
	autofree char *back = NULL;
	const char *text = "100 % \"größer\"\n~\x7f";

	(void)state;
	status_text_encode(text, &b);
	assert_string_equal(b.data, "100 %25 \"gr%C3%B6%C3%9Fer\"%0A~%7F");
	back = status_text_decode(b.data);
	assert_string_equal(back, text);
}

static void decodes_invalid_text(void **state)
{
	static const char *const cases[][2] = {
		{ "", "" },
		{ "%", "%" },
		{ "%4", "%4" },
		{ "%4g", "%4g" },
		{ "%00", "%00" },
		{ "%41%4a", "AJ" },
		{ "%%41", "%A" },
		{ "a%c3%b6", "aö" },
		{ "%\x10"
		  "1",
		  "%\x10"
		  "1" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *text = status_text_decode(cases[i][0]);

		assert_string_equal(text, cases[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "status: every code converts to an errno and back", codes_and_errnos },
		{ "status: an unknown code is converted to UNKNOWN", unknown_codes },
		{ "status: errors of other domains are converted by their errno", other_domains },
		{ "status: HTTP and HTTP/2 errors are converted to the codes that gRPC defines",
		  http_errors },
		{ "status: a text is percent-encoded and decoded", encodes },
		{ "status: an invalid encoding is left unchanged", decodes_invalid_text },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
