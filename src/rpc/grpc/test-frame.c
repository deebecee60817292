/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/test-frame.c - splitting bytes into messages
 */
#include "rpc/grpc/frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <string.h>

#include "rpc/grpc/status.h"

static const uint8_t three[] = "\0\0\0\0\3abc"
			       "\0\0\0\0\0"
			       "\0\0\0\0\5hello";

/* Feeds the bytes in pieces of @piece bytes. Return: the messages, each followed by "|" */
static char *feed_in_pieces(size_t piece)
{
	AUTO(buf_done) struct buf seen = { 0 };
	struct frame f = { .max = 5 };
	struct hw_err e;

	for (size_t at = 0; at < sizeof(three) - 1; at += piece) {
		size_t len = sizeof(three) - 1 - at < piece ? sizeof(three) - 1 - at : piece;
		const uint8_t *data = three + at;

		while (len > 0) {
			int r = frame_feed(&f, &data, &len, &e);

			assert_true(r >= 0);
			if (r != 1)
				continue;
			buf_add(&seen, f.message.data, f.message.len);
			buf_putc(&seen, '|');
			frame_next(&f);
		}
	}
	assert_true(frame_is_between(&f));
	frame_done(&f);
	return buf_take(&seen);
}

static void splits_messages(void **state)
{
	(void)state;
	for (size_t piece = 1; piece < sizeof(three); piece++) {
		autofree char *seen = feed_in_pieces(piece);

		assert_string_equal(seen, "abc||hello|");
	}
}

static void expect_refusal(const char *prefix, int max, enum status_code code)
{
	const uint8_t *data = (const uint8_t *)prefix;
	struct frame f = { .max = (uint32_t)max };
	size_t len = FRAME_PREFIX;
	struct hw_err e;

	assert_true(frame_feed(&f, &data, &len, &e) < 0);
	assert_int_equal(status_from_err(&e), code);
	assert_int_equal(f.message.room, 0);
	frame_done(&f);
}

static void refuses_large_messages(void **state)
{
	(void)state;
	expect_refusal("\0\0\0\0\6", 5, STATUS_RESOURCE_EXHAUSTED);
	expect_refusal("\0\377\377\377\377", 16 << 20, STATUS_RESOURCE_EXHAUSTED);
}

static void refuses_compressed_messages(void **state)
{
	(void)state;
	expect_refusal("\1\0\0\0\1", 5, STATUS_INTERNAL);
	expect_refusal("\2\0\0\0\1", 5, STATUS_INTERNAL);
}

static void allocates_for_received_bytes(void **state)
{
	static const uint8_t prefix[] = "\0\0\377\377\377x";
	const uint8_t *data = prefix;
	struct frame f = { .max = 16 << 20 };
	size_t len = FRAME_PREFIX + 1;
	struct hw_err e;

	(void)state;
	assert_int_equal(frame_feed(&f, &data, &len, &e), 0);
	assert_int_equal(len, 0);
	assert_int_equal(f.message.len, 1);
	assert_true(f.message.room < 4096);
	assert_false(frame_is_between(&f));
	frame_done(&f);
}

static void writes_prefixes(void **state)
{
	uint8_t prefix[FRAME_PREFIX];

	(void)state;
	frame_prefix(prefix, 0x01020304);
	assert_memory_equal(prefix, "\0\1\2\3\4", FRAME_PREFIX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "frame: the same messages are received in whatever pieces the bytes arrive",
		  splits_messages },
		{ "frame: a message over the limit is refused when its prefix is read",
		  refuses_large_messages },
		{ "frame: a compressed message is refused", refuses_compressed_messages },
		{ "frame: memory grows with the bytes received, not with the length in the prefix",
		  allocates_for_received_bytes },
		{ "frame: a prefix is written as a flag and four bytes in network order",
		  writes_prefixes },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
