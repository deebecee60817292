/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api/test-call.c - calls with messages over a real socket
 */
#include "api/call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "api/cri-v1.pb-c.h"
#include "base/str.h"
#include "base/time.h"
#include "rpc/server.h"
#include "rpc/socket.h"

#define LONG 60000 /* ms; reached only if a test fails */

/* ---- a server with three methods ---------------------------------------------------- */

static int handle_version(struct rpc_call *call, void *ctx, struct hw_err *e)
{
	AUTO(api_free) Runtime__V1__VersionRequest *request = NULL;
	Runtime__V1__VersionResponse response = RUNTIME__V1__VERSION_RESPONSE__INIT;
	int r = api_receive(call, &runtime__v1__version_request__descriptor,
			    (ProtobufCMessage **)&request, e);

	(void)ctx;
	if (r < 0)
		return r;
	response.version = request->version;
	response.runtime_name = (char *)"sample";
	return api_send(call, &response.base, e);
}

static int handle_status(struct rpc_call *call, void *ctx, struct hw_err *e)
{
	struct buf bytes = { 0 };

	(void)ctx;
	buf_puts(&bytes, "\x0a\x63 no such message");
	return rpc_send(call, &bytes, e);
}

static int handle_images(struct rpc_call *call, void *ctx, struct hw_err *e)
{
	Runtime__V1__Image image = RUNTIME__V1__IMAGE__INIT, *images[] = { &image };
	Runtime__V1__StreamImagesResponse response = RUNTIME__V1__STREAM_IMAGES_RESPONSE__INIT;
	int r = 0;

	(void)ctx;
	response.n_images = 1;
	response.images = images;
	for (image.size = 0; r == 0 && image.size < 5; image.size++)
		r = api_send(call, &response.base, e);
	return r;
}

static const struct rpc_method methods[] = {
	{ "/runtime.v1.RuntimeService/Version", handle_version, 0 },
	{ "/runtime.v1.RuntimeService/Status", handle_status, 0 },
	{ "/runtime.v1.ImageService/StreamImages", handle_images, RPC_LONG | RPC_STREAM_OUT },
	{ 0 },
};

struct fixture {
	char dir[64], path[80];
	uv_loop_t loop;
	uv_async_t stop;
	pthread_t thread;
	struct rpc_server *server;
	struct rpc_client *client;
};

static void on_stopped(void *ctx)
{
	struct fixture *f = ctx;

	uv_close((uv_handle_t *)&f->stop, NULL);
}

static void on_stop(uv_async_t *async)
{
	struct fixture *f = async->data;

	rpc_server_stop(f->server, 0, on_stopped, f);
}

static void *run_loop(void *arg)
{
	uv_run(arg, UV_RUN_DEFAULT);
	return NULL;
}

static int fixture_setup(void **state)
{
	const struct socket_owner owner = { .mode = 0600, .uid = (uid_t)-1, .gid = (gid_t)-1 };
	const struct rpc_config config = RPC_CONFIG;
	struct fixture *f = mem_new(sizeof(*f));
	struct hw_err e;
	int fd;

	snprintf(f->dir, sizeof(f->dir), "%.40s/api.XXXXXX", str_or(getenv("TMPDIR"), "/tmp"));
	if (!mkdtemp(f->dir) || uv_loop_init(&f->loop) < 0)
		return -1;
	snprintf(f->path, sizeof(f->path), "%s/sock", f->dir);
	uv_async_init(&f->loop, &f->stop, on_stop);
	f->stop.data = f;
	if (rpc_server_new(&f->loop, &config, &f->server, &e) < 0 ||
	    socket_listen(f->path, &owner, &fd, &e) < 0 ||
	    rpc_server_listen(f->server, fd, &e) < 0 ||
	    rpc_client_open(f->path, &f->client, &e) < 0)
		return -1;
	rpc_server_add(f->server, methods, NULL);
	*state = f;
	return pthread_create(&f->thread, NULL, run_loop, &f->loop);
}

static int fixture_teardown(void **state)
{
	struct fixture *f = *state;

	rpc_client_close(f->client);
	uv_async_send(&f->stop);
	pthread_join(f->thread, NULL);
	rpc_server_free(f->server);
	uv_loop_close(&f->loop);
	unlink(f->path);
	rmdir(f->dir);
	free(f);
	return 0;
}

/* ---- tests -------------------------------------------------------------------------- */

static int call_runtime(struct fixture *f, const char *method, const ProtobufCMessage *request,
			ProtobufCMessage **ret, struct hw_err *e)
{
	return api_call(f->client, &runtime__v1__runtime_service__descriptor, method, request,
			time_deadline(LONG), ret, e);
}

static void unary_call(void **state)
{
	AUTO(api_free) Runtime__V1__VersionResponse *response = NULL;
	Runtime__V1__VersionRequest request = RUNTIME__V1__VERSION_REQUEST__INIT;
	struct hw_err e;

	request.version = (char *)"0.1.0";
	assert_int_equal(
		call_runtime(*state, "Version", &request.base, (ProtobufCMessage **)&response, &e),
		0);
	assert_string_equal(response->version, "0.1.0");
	assert_string_equal(response->runtime_name, "sample");
	assert_string_equal(response->runtime_version, "");
}

static void invalid_string(void **state)
{
	ProtobufCMessage *response;
	Runtime__V1__VersionRequest request = RUNTIME__V1__VERSION_REQUEST__INIT;
	struct hw_err e;

	request.version = (char *)"\xff";
	assert_int_equal(call_runtime(*state, "Version", &request.base, &response, &e), -EINVAL);
	assert_string_equal(e.msg,
			    "runtime.v1.VersionRequest.version: string is not UTF-8 or contains "
			    "a NUL");
}

static void malformed_response(void **state)
{
	ProtobufCMessage *response;
	Runtime__V1__StatusRequest request = RUNTIME__V1__STATUS_REQUEST__INIT;
	struct hw_err e;

	assert_int_equal(call_runtime(*state, "Status", &request.base, &response, &e), -EINVAL);
	assert_string_equal(
		e.msg, "response of Status: runtime.v1.StatusResponse: malformed protobuf message");
}

static void unknown_method(void **state)
{
	ProtobufCMessage *response;
	Runtime__V1__RuntimeConfigRequest request = RUNTIME__V1__RUNTIME_CONFIG_REQUEST__INIT;
	struct hw_err e;

	assert_int_equal(call_runtime(*state, "RuntimeConfig", &request.base, &response, &e),
			 -ENOSYS);
	assert_int_equal(e.wire, STATUS_UNIMPLEMENTED);
}

static void stream_of_responses(void **state)
{
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	Runtime__V1__StreamImagesRequest request = RUNTIME__V1__STREAM_IMAGES_REQUEST__INIT;
	struct fixture *f = *state;
	struct hw_err e;
	uint64_t n = 0;
	int r;

	assert_int_equal(api_stream_open(f->client, &runtime__v1__image_service__descriptor,
					 "StreamImages", &request.base, time_deadline(LONG),
					 &stream, &e),
			 0);
	do {
		AUTO(api_free) Runtime__V1__StreamImagesResponse *response = NULL;

		r = api_stream_receive(stream, &runtime__v1__stream_images_response__descriptor,
				       (ProtobufCMessage **)&response, &e);
		if (r == 1)
			assert_true(response->images[0]->size == n++);
	} while (r == 1);
	assert_int_equal(r, 0);
	assert_int_equal(n, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "call: a unary call sends a request and returns the response", unary_call },
		{ "call: the server rejects an invalid string and names its field",
		  invalid_string },
		{ "call: a malformed response fails the call and names the method",
		  malformed_response },
		{ "call: a call of an unknown method fails with UNIMPLEMENTED", unknown_method },
		{ "call: a streaming call receives all messages of the response",
		  stream_of_responses },
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
