/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/test-buf.c - growing byte buffer
 */
#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <string.h>

static void grows(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };

	(void)state;
	for (int i = 0; i < 10000; i++)
		buf_putc(&b, (char)('a' + i % 26));
	assert_int_equal(b.len, 10000);
	assert_int_equal(b.data[9999], 'a' + 9999 % 26);
	assert_int_equal(strlen(b.data), 10000);
}

static void holds_any_bytes(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };

	(void)state;
	buf_add(&b, "a\0b", 3);
	buf_add(&b, NULL, 0);
	buf_puts(&b, "c");
	buf_printf(&b, "%05d", 42);
	assert_int_equal(b.len, 9);
	assert_memory_equal(b.data, "a\0bc00042", 10);
}

static void prints_long_texts(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };

	(void)state;
	buf_printf(&b, "%5000s|", "x");
	assert_int_equal(b.len, 5001);
	assert_memory_equal(b.data + 4998, " x|", 4);
}

static void reserved_room_counts_when_added(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };
	char *end = buf_reserve(&b, 100);

	(void)state;
	memset(end, 'r', 100);
	buf_commit(&b, 3);
	assert_string_equal(b.data, "rrr");
	buf_commit(&b, 0);
	assert_int_equal(b.len, 3);
}

static void take_returns_the_text(void **state)
{
	struct buf b = { 0 };
	autofree char *empty = buf_take(&b);
	autofree char *text = NULL;

	(void)state;
	assert_string_equal(empty, "");
	buf_puts(&b, "abc");
	text = buf_take(&b);
	assert_string_equal(text, "abc");
	assert_null(b.data);
	assert_int_equal(b.len + b.room, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "buf: a buffer grows byte by byte and stays NUL-terminated", grows },
		{ "buf: a buffer can hold any bytes, including NUL", holds_any_bytes },
		{ "buf: buf_printf() enlarges the buffer for a long text", prints_long_texts },
		{ "buf: reserved bytes become contents only with buf_commit()",
		  reserved_room_counts_when_added },
		{ "buf: buf_take() returns the contents, \"\" if the buffer is empty",
		  take_returns_the_text },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
