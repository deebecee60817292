/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/test-header.c - parsing header fields and refusing invalid requests
 */
#include "rpc/grpc/header.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <string.h>

#include "base/time.h"
#include "rpc/grpc/status.h"

#define HEADER_MAX 1000

static void add_field(struct grpc_header *h, const char *name, const char *value)
{
	grpc_header_add(h, name, strlen(name), value, strlen(value));
}

static void add_valid_request(struct grpc_header *h)
{
	grpc_header_init(h);
	add_field(h, ":method", "POST");
	add_field(h, ":path", "/a.B/C");
	add_field(h, "content-type", "application/grpc");
}

/* Checks a valid request with one field added or replaced. */
static void expect_status(const char *name, const char *value, int http, int code)
{
	AUTO(grpc_header_done) struct grpc_header h;
	struct hw_err e;
	int ret_http;
	int r;

	add_valid_request(&h);
	add_field(&h, name, value);
	r = grpc_header_check_request(&h, HEADER_MAX, &ret_http, &e);
	assert_int_equal(r < 0 ? (int)status_from_err(&e) : STATUS_OK, code);
	assert_int_equal(ret_http, http);
}

static void accepts(void **state)
{
	(void)state;
	expect_status("te", "trailers", 200, STATUS_OK);
	expect_status("content-type", "application/grpc+proto", 200, STATUS_OK);
	expect_status("content-type", "application/grpc;charset=utf-8", 200, STATUS_OK);
	expect_status("grpc-encoding", "identity", 200, STATUS_OK);
	expect_status("grpc-timeout", "5S", 200, STATUS_OK);
	expect_status("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", 200,
		      STATUS_OK);
}

static void refuses(void **state)
{
	char large[HEADER_MAX] = { 0 };

	(void)state;
	memset(large, 'x', sizeof(large) - 1);
	expect_status(":method", "GET", 405, STATUS_INTERNAL);
	expect_status("content-type", "application/json", 415, STATUS_INTERNAL);
	expect_status("content-type", "application/grpcx", 415, STATUS_INTERNAL);
	expect_status("grpc-encoding", "gzip", 200, STATUS_UNIMPLEMENTED);
	expect_status("grpc-timeout", "soon", 200, STATUS_INTERNAL);
	expect_status("x-large", large, 200, STATUS_RESOURCE_EXHAUSTED);
}

static void stores_fields(void **state)
{
	AUTO(grpc_header_done) struct grpc_header h;

	(void)state;
	add_valid_request(&h);
	assert_int_equal(h.status, -1);
	assert_true(h.timeout == TIME_NEVER);
	add_field(&h, ":status", "200");
	add_field(&h, "grpc-status", "5");
	add_field(&h, "grpc-message", "no %22such%22 image");
	add_field(&h, "grpc-timeout", "7S");
	assert_int_equal(h.http, 200);
	assert_int_equal(h.status, STATUS_NOT_FOUND);
	assert_string_equal(h.text, "no \"such\" image");
	assert_string_equal(h.path, "/a.B/C");
	assert_true(h.timeout == 7000000000);
}

static void invalid_values(void **state)
{
	AUTO(grpc_header_done) struct grpc_header h;

	(void)state;
	grpc_header_init(&h);
	add_field(&h, "grpc-status", "five");
	assert_int_equal(h.status, STATUS_UNKNOWN);
	add_field(&h, ":status", "1000");
	assert_int_equal(h.http, 0);
	grpc_header_add(&h, "grpc-message", 12, "a\0b", 3);
	assert_null(h.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "header: valid gRPC requests are accepted", accepts },
		{ "header: an invalid method, content type, encoding, timeout or size is refused "
		  "with its HTTP and gRPC status",
		  refuses },
		{ "header: path, timeout, status and text are stored", stores_fields },
		{ "header: an invalid grpc-status becomes UNKNOWN, other invalid values are "
		  "ignored",
		  invalid_values },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
