/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/buf.h - a growing byte buffer, always NUL terminated
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
	char *data; /* NULL while empty and never written */
	size_t len;
	size_t room;
};

void buf_done(struct buf *b);
void buf_add(struct buf *b, const void *data, size_t len);
void buf_puts(struct buf *b, const char *s);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
char *buf_reserve(struct buf *b, size_t len); /* room for len more; then buf_added() */
void buf_added(struct buf *b, size_t len);    /* so many of the reserved bytes were written */
char *buf_take(struct buf *b);		      /* the text, "" when empty; b is empty after */

AUTO_VALUE_DEFINE(buf_done, struct buf);

#endif
