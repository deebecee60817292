/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/buf.h - growing byte buffer, always NUL-terminated
 *
 *	AUTO(buf_done) struct buf b = { 0 };
 *	buf_printf(&b, "%s=%d", k, n);
 *	return buf_take(&b);
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>

#include "base/mem.h"

struct buf {
	char *data; /* NULL until the first write */
	size_t len;
	size_t room; /* allocated bytes */
};

void buf_done(struct buf *b);
void buf_add(struct buf *b, const void *data, size_t len);
void buf_puts(struct buf *b, const char *s);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* Allocates room for len more bytes and a NUL. After writing some of them, call buf_commit().
 * Return: the address to write to; valid until the buffer is next changed */
char *buf_reserve(struct buf *b, size_t len);
/* Appends the first len of the reserved bytes to the contents. */
void buf_commit(struct buf *b, size_t len);

/* Empties the buffer. Return: its former contents, "" if there were none; to be
 * freed by the caller */
char *buf_take(struct buf *b);

AUTO_VALUE_DEFINE(buf_done, struct buf);

#endif
