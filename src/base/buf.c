/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/buf.c - growing byte buffer, always NUL-terminated
 */
#include "base/buf.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define BUF_FIRST_ROOM 64

void buf_done(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ 0 };
}

char *buf_reserve(struct buf *b, size_t len)
{
	size_t need, room = b->room ? b->room : BUF_FIRST_ROOM;

	if (__builtin_add_overflow(b->len, len, &need) || need >= SIZE_MAX / 2)
		mem_exhausted();
	if (need < b->room)
		return b->data + b->len;
	while (room < need + 1)
		room *= 2;
	b->data = mem_resize(b->data, room, 1);
	b->data[b->len] = '\0';
	b->room = room;
	return b->data + b->len;
}

void buf_commit(struct buf *b, size_t len)
{
	assert(b->len + len < b->room);
	b->len += len;
	b->data[b->len] = '\0';
}

void buf_add(struct buf *b, const void *data, size_t len)
{
	char *end = buf_reserve(b, len);

	if (len > 0)
		memcpy(end, data, len);
	buf_commit(b, len);
}

void buf_puts(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_putc(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(b, fmt, ap);
	va_end(ap);
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0)
		mem_exhausted();

	vsnprintf(buf_reserve(b, (size_t)n), (size_t)n + 1, fmt, ap);
	buf_commit(b, (size_t)n);
}

char *buf_take(struct buf *b)
{
	char *text = b->data ? b->data : str_copy("");

	*b = (struct buf){ 0 };
	return text;
}
