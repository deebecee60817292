/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/fuzz-grpc.c - any bytes, as a server or as a client gets them
 *
 * How:   the first byte chooses the side and what the owner of the calls does
 *        with them; of the rest, each piece begins with a byte that says how long
 *        it is and whether time passes. The preface and SETTINGS that a real
 *        peer begins with are given, so that the bytes get somewhere.
 * Rules: a call that began is over once, and only after that gone; what is held
 *        stays below the limit.
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

enum { AS_CLIENT = 1, TAKE = 2, ANSWER = 4, FINISH = 8, CANCEL = 16 };

struct owner {
	uint8_t does;
	size_t running;
};

static void maybe_answer(struct owner *o, struct grpc_call *call)
{
	struct buf b = { 0 };
	struct hw_err e;

	if (!(o->does & ANSWER) || o->does & AS_CLIENT)
		return;
	buf_puts(&b, "answer");
	grpc_send(call, &b, &e);
}

static void on_begin(void *ctx, struct grpc_call *call)
{
	struct owner *o = ctx;

	o->running++;
	call->user = o;
	assert(call->path);
}

static void on_message(void *ctx, struct grpc_call *call, struct buf *message)
{
	struct owner *o = ctx;

	assert(call->user == o && message->len <= 1 << 16);
	maybe_answer(o, call);
	if (o->does & TAKE)
		grpc_taken(call);
	if (o->does & CANCEL && message->len % 3 == 1) {
		o->running--;
		grpc_cancel(call);
	}
}

static void on_end(void *ctx, struct grpc_call *call)
{
	struct owner *o = ctx;

	assert(call->user == o);
	if (!(o->does & FINISH))
		return;
	o->running--;
	grpc_finish(call, STATUS_ABORTED, "enough\n");
}

static void on_over(void *ctx, struct grpc_call *call, enum status_code code, const char *text)
{
	struct owner *o = ctx;

	(void)code;
	assert(call->user == o && text);
	call->user = NULL;
	o->running--;
}

static const struct grpc_events events = {
	.begin = on_begin, .message = on_message, .end = on_end, .over = on_over
};

static void drain_output(struct grpc *g)
{
	const uint8_t *data;

	while (grpc_output(g, &data) > 0)
		;
}

static void begin(struct grpc *g, struct owner *o)
{
	static const uint8_t settings[9] = { 0, 0, 0, NGHTTP2_SETTINGS };
	struct grpc_call *call;
	struct hw_err e;

	if (!(o->does & AS_CLIENT)) {
		grpc_feed(g, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN, 0, &e);
		grpc_feed(g, settings, sizeof(settings), 0, &e);
		return;
	}
	for (int i = 0; i < OWN_CALLS; i++) {
		grpc_start(g, "/a.B/C", 20 * SECOND, 0, o, &call, &e);
		grpc_end(call);
		o->running++;
	}
	drain_output(g);
	grpc_feed(g, settings, sizeof(settings), 0, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct grpc_limits limits = {
		.streams = 8, .header = 1000, .message = 1 << 16, .held = 1 << 17
	};
	struct owner o = { .does = size > 0 ? data[0] : 0 };
	struct grpc *g =
		grpc_new(o.does & AS_CLIENT ? GRPC_CLIENT : GRPC_SERVER, &limits, &events, &o, 0);
	int64_t now = 0;
	struct hw_err e;

	begin(g, &o);
	for (size_t at = 1; at + 1 < size && !grpc_is_done(g);) {
		size_t n = data[at] & 0x7f, left = size - at - 1;

		now += data[at] & 0x80 ? 3 * SECOND : 0;
		grpc_tick(g, now);
		n = n < left ? n : left;
		grpc_feed(g, data + at + 1, n, now, &e);
		drain_output(g);
		assert(grpc_held(g) <= limits.held);
		at += n + 1;
	}
	grpc_free(g);
	assert(o.running == 0);
	return 0;
}
