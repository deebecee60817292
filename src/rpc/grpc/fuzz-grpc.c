/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/fuzz-grpc.c - fuzz test: bytes received by a gRPC server or client
 *
 * How:   the first byte of the input selects the role and what the owner of the calls does with
 *        them. The rest is a sequence of pieces. Each piece starts with a byte that contains the
 *        length of the piece and whether time passes before it. The preface and SETTINGS of a real
 *        peer are fed first, so that the fuzzer need not find them.
 * Rules: each call that began is closed exactly once; buffered bytes stay below the
 *        limit.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "base/mem.h"
#include "base/time.h"
#include "rpc/grpc/grpc.h"

#define OWN_CALLS 3
#define SECOND	  1000000000LL

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { AS_CLIENT = 1, CONSUME = 2, RESPOND = 4, FINISH = 8, CANCEL = 16 };

struct fuzz_owner {
	uint8_t actions;
	size_t running;
};

static void maybe_respond(struct fuzz_owner *o, struct grpc_call *call)
{
	struct buf b = { 0 };
	struct hw_err e;

	if (!(o->actions & RESPOND) || o->actions & AS_CLIENT)
		return;
	buf_puts(&b, "response");
	grpc_send(call, &b, &e);
}

static void on_begin(void *ctx, struct grpc_call *call)
{
	struct fuzz_owner *o = ctx;

	o->running++;
	call->user = o;
	assert(call->path);
}

static void on_message(void *ctx, struct grpc_call *call, struct buf *message)
{
	struct fuzz_owner *o = ctx;

	assert(call->user == o && message->len <= 1 << 16);
	maybe_respond(o, call);
	if (o->actions & CONSUME)
		grpc_consumed(call);
	if (o->actions & CANCEL && message->len % 3 == 1) {
		o->running--;
		grpc_cancel(call);
	}
}

static void on_request_end(void *ctx, struct grpc_call *call)
{
	struct fuzz_owner *o = ctx;

	assert(call->user == o);
	if (!(o->actions & FINISH))
		return;
	o->running--;
	grpc_finish(call, STATUS_ABORTED, "enough\n");
}

static void on_closed(void *ctx, struct grpc_call *call, enum status_code code, const char *text)
{
	struct fuzz_owner *o = ctx;

	(void)code;
	assert(call->user == o && text);
	call->user = NULL;
	o->running--;
}

static const struct grpc_events events = {
	.begin = on_begin, .message = on_message, .request_end = on_request_end, .closed = on_closed
};

static void drain_output(struct grpc *g)
{
	const uint8_t *data;

	while (grpc_output(g, &data) > 0)
		;
}

static void start_connection(struct grpc *g, struct fuzz_owner *o)
{
	static const uint8_t settings[9] = { 0, 0, 0, NGHTTP2_SETTINGS };
	struct grpc_call *call;
	struct hw_err e;

	if (!(o->actions & AS_CLIENT)) {
		grpc_feed(g, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN, 0, &e);
		grpc_feed(g, settings, sizeof(settings), 0, &e);
		return;
	}
	for (int i = 0; i < OWN_CALLS; i++) {
		grpc_start(g, "/a.B/C", 20 * SECOND, 0, o, &call, &e);
		grpc_end_request(call);
		o->running++;
	}
	drain_output(g);
	grpc_feed(g, settings, sizeof(settings), 0, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct grpc_limits limits = {
		.streams = 8, .header = 1000, .message = 1 << 16, .buffered = 1 << 17
	};
	struct fuzz_owner o = { .actions = size > 0 ? data[0] : 0 };
	struct grpc *g = grpc_new(o.actions & AS_CLIENT ? GRPC_CLIENT : GRPC_SERVER, &limits,
				  &events, &o, 0);
	int64_t now = 0;
	struct hw_err e;

	start_connection(g, &o);
	for (size_t at = 1; at + 1 < size && !grpc_is_done(g);) {
		size_t n = data[at] & 0x7f, left = size - at - 1;

		now += data[at] & 0x80 ? 3 * SECOND : 0;
		grpc_tick(g, now);
		n = n < left ? n : left;
		grpc_feed(g, data + at + 1, n, now, &e);
		drain_output(g);
		assert(grpc_buffered(g) <= limits.buffered);
		at += n + 1;
	}
	grpc_free(g);
	assert(o.running == 0);
	return 0;
}
