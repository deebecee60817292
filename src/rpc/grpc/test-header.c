/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/test-header.c - what is kept of headers, and which requests are refused
 */
#include "rpc/grpc/header.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the ones above */
#include <cmocka.h>

#include <string.h>

#include "base/time.h"
#include "rpc/grpc/status.h"

#define MOST 1000

static void add(struct header *h, const char *name, const char *value)
{
	header_add(h, name, strlen(name), value, strlen(value));
}

static void add_good(struct header *h)
{
	header_init(h);
	add(h, ":method", "POST");
	add(h, ":path", "/a.B/C");
	add(h, "content-type", "application/grpc");
}

/* A good request, one field added to it or replaced. */
static void expect(const char *name, const char *value, int http, int code)
{
	AUTO(header_done) struct header h;
	struct hw_err e;
	int ret_http;
	int r;

	add_good(&h);
	add(&h, name, value);
	r = header_check_request(&h, MOST, &ret_http, &e);
	assert_int_equal(r < 0 ? (int)status_of(&e) : STATUS_OK, code);
	assert_int_equal(ret_http, http);
}

static void accepts(void **state)
{
	(void)state;
	expect("te", "trailers", 200, STATUS_OK);
	expect("content-type", "application/grpc+proto", 200, STATUS_OK);
	expect("content-type", "application/grpc;charset=utf-8", 200, STATUS_OK);
	expect("grpc-encoding", "identity", 200, STATUS_OK);
	expect("grpc-timeout", "5S", 200, STATUS_OK);
	expect("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", 200,
	       STATUS_OK);
}

static void refuses(void **state)
{
	char large[MOST] = { 0 };

	(void)state;
	memset(large, 'x', sizeof(large) - 1);
	expect(":method", "GET", 405, STATUS_INTERNAL);
	expect("content-type", "application/json", 415, STATUS_INTERNAL);
	expect("content-type", "application/grpcx", 415, STATUS_INTERNAL);
	expect("grpc-encoding", "gzip", 200, STATUS_UNIMPLEMENTED);
	expect("grpc-timeout", "soon", 200, STATUS_INTERNAL);
	expect("x-large", large, 200, STATUS_RESOURCE_EXHAUSTED);
}

static void keeps_the_rest(void **state)
{
	AUTO(header_done) struct header h;

	(void)state;
	add_good(&h);
	assert_int_equal(h.status, -1);
	assert_true(h.timeout == TIME_NEVER);
	add(&h, ":status", "200");
	add(&h, "grpc-status", "5");
	add(&h, "grpc-message", "no %22such%22 image");
	add(&h, "grpc-timeout", "7S");
	assert_int_equal(h.http, 200);
	assert_int_equal(h.status, STATUS_NOT_FOUND);
	assert_string_equal(h.text, "no \"such\" image");
	assert_string_equal(h.path, "/a.B/C");
	assert_true(h.timeout == 7000000000);
}

static void odd_statuses(void **state)
{
	AUTO(header_done) struct header h;

	(void)state;
	header_init(&h);
	add(&h, "grpc-status", "five");
	assert_int_equal(h.status, STATUS_UNKNOWN);
	add(&h, ":status", "1000");
	assert_int_equal(h.http, 0);
	header_add(&h, "grpc-message", 12, "a\0b", 3);
	assert_null(h.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "header: requests as gRPC sends them are accepted", accepts },
		{ "header: other requests are refused, each with its status", refuses },
		{ "header: path, timeout, status and text are kept", keeps_the_rest },
		{ "header: values that make no sense are not believed", odd_statuses },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
