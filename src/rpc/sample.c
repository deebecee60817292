/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/sample.c - a gRPC service for tests and benchmarks
 */
#include "rpc/sample.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "rpc/grpc/status.h"

#define COUNT_SIZE_MAX (32 << 20)

/* Parses the request "A" or "A B", two numbers; *ret_b is 0 if B is missing. */
static int receive_numbers(struct rpc_call *call, long long *ret_a, long long *ret_b,
			   struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings words = { 0 };
	AUTO(buf_done) struct buf request = { 0 };
	int r;

	r = rpc_receive(call, &request, e);
	if (r < 0)
		return r;
	strings_split(str_or(request.data, ""), ' ', &words);
	*ret_b = 0;
	if (words.n > 2 || !str_to_int64(words.v[0], 0, INT32_MAX, ret_a) ||
	    (words.n == 2 && !str_to_int64(words.v[1], 0, COUNT_SIZE_MAX, ret_b)))
		return status_set(e, STATUS_INVALID_ARGUMENT,
				  "malformed request: expected one or two numbers, got %s",
				  request.data);
	return 0;
}

static int send_text(struct rpc_call *call, const char *text, struct hw_err *e)
{
	struct buf b = { 0 };

	buf_puts(&b, text);
	return rpc_send(call, &b, e);
}

static int send_bytes(struct rpc_call *call, long long size, struct hw_err *e)
{
	struct buf b = { 0 };

	memset(buf_reserve(&b, (size_t)size), 'x', (size_t)size);
	buf_commit(&b, (size_t)size);
	return rpc_send(call, &b, e);
}

static int sample_echo(struct rpc_call *call, void *ctx, struct hw_err *e)
{
	AUTO(buf_done) struct buf message = { 0 };
	int r;

	r = rpc_receive(call, &message, e);
	(void)ctx;
	return r < 0 ? r : rpc_send(call, &message, e);
}

static int sample_fail(struct rpc_call *call, void *ctx, struct hw_err *e)
{
	AUTO(buf_done) struct buf request = { 0 };
	int r;
	long long code;
	char *space;

	r = rpc_receive(call, &request, e);
	(void)ctx;
	if (r < 0)
		return r;
	space = request.data ? strchr(request.data, ' ') : NULL;
	if (space)
		*space = '\0';
	if (!space || !str_to_int64(request.data, 1, STATUS_UNAUTHENTICATED, &code))
		return status_set(e, STATUS_INVALID_ARGUMENT,
				  "malformed request: expected a code and a text");
	return status_set(e, (enum status_code)code, "%s", space + 1);
}

static int sample_mute(struct rpc_call *call, void *ctx, struct hw_err *e)
{
	(void)call;
	(void)ctx;
	(void)e;
	return 0;
}

static void count_end(struct rpc_call *call, struct sample_counts *counts)
{
	if (rpc_is_cancelled(call))
		counts->cancelled++;
	counts->ended++;
}

static int sample_sleep(struct rpc_call *call, void *ctx, struct hw_err *e)
{
	struct pollfd cancel = { .fd = rpc_cancel_fd(call), .events = POLLIN };
	struct sample_counts *counts = ctx;
	long long ms = 0, unused;
	int r;

	counts->started++;
	r = receive_numbers(call, &ms, &unused, e);
	if (r == 0) {
		poll(&cancel, 1, (int)ms);
		r = send_text(call, "slept", e);
	}
	count_end(call, counts);
	return r;
}

static int sample_count(struct rpc_call *call, void *ctx, struct hw_err *e)
{
	struct sample_counts *counts = ctx;
	long long n = 0, size;
	int r;

	counts->started++;
	r = receive_numbers(call, &n, &size, e);
	for (long long i = 0; r == 0 && i < n; i++)
		r = send_bytes(call, size, e);
	count_end(call, counts);
	return r;
}

static int sample_watch(struct rpc_call *call, void *ctx, struct hw_err *e)
{
	struct pollfd cancel = { .fd = rpc_cancel_fd(call), .events = POLLIN };
	AUTO(buf_done) struct buf request = { 0 };
	struct sample_counts *counts = ctx;
	long long size;
	int r;

	counts->started++;
	r = rpc_receive(call, &request, e);
	if (r > 0 && str_to_int64(str_or(request.data, ""), 1, COUNT_SIZE_MAX, &size)) {
		do {
			r = send_bytes(call, size, e);
		} while (r == 0);
	} else if (r > 0) {
		r = send_text(call, "watching", e);
	}
	if (r == 0) {
		poll(&cancel, 1, -1);
		r = status_set(e, STATUS_ABORTED, "watched");
	}
	count_end(call, counts);
	return r;
}

static int sample_sum(struct rpc_call *call, void *ctx, struct hw_err *e)
{
	struct sample_counts *counts = ctx;
	size_t n = 0, bytes = 0;
	char text[64];
	int r;

	counts->started++;
	do {
		AUTO(buf_done) struct buf message = { 0 };

		r = rpc_receive(call, &message, e);
		n += r == 1;
		bytes += message.len;
	} while (r == 1);
	snprintf(text, sizeof(text), "%zu %zu", n, bytes);
	if (r == 0)
		r = send_text(call, text, e);
	count_end(call, counts);
	return r;
}

static int sample_chat(struct rpc_call *call, void *ctx, struct hw_err *e)
{
	struct sample_counts *counts = ctx;
	int r;

	counts->started++;
	do {
		AUTO(buf_done) struct buf message = { 0 };

		r = rpc_receive(call, &message, e);
		if (r == 1)
			r = rpc_send(call, &message, e) < 0 ? e->code : 1;
	} while (r == 1);
	count_end(call, counts);
	return r;
}

const struct rpc_method sample_methods[] = {
	{ "/sample.Sample/Now", sample_echo, RPC_INSTANT },
	{ "/sample.Sample/Echo", sample_echo, 0 },
	{ "/sample.Sample/Fail", sample_fail, 0 },
	{ "/sample.Sample/Mute", sample_mute, 0 },
	{ "/sample.Sample/Sleep", sample_sleep, RPC_LONG },
	{ "/sample.Sample/Count", sample_count, RPC_LONG | RPC_STREAM_OUT },
	{ "/sample.Sample/Watch", sample_watch, RPC_LONG | RPC_STREAM_OUT | RPC_ENDLESS },
	{ "/sample.Sample/Sum", sample_sum, RPC_LONG | RPC_STREAM_IN },
	{ "/sample.Sample/Chat", sample_chat, RPC_LONG | RPC_STREAM_IN | RPC_STREAM_OUT },
	{ 0 },
};
