/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/log.c - logging to standard error, one line per event
 *
 * How:   a line is built in memory and written with one write(), so lines of
 *        different threads or processes do not mix. Texts may contain untrusted
 *        input: control characters are escaped in every format, so that a text
 *        can neither forge a line nor move the cursor of a terminal. In JSON, invalid
 *        UTF-8 is replaced by U+FFFD.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"

static const struct {
	const char *name;
	int priority; /* priority in syslog(3), for the journal */
} levels[] = {
	[LOG_ERROR] = { "error", 3 },
	[LOG_WARN] = { "warn", 4 },
	[LOG_INFO] = { "info", 6 },
	[LOG_DEBUG] = { "debug", 7 },
};

static struct {
	const char *program;
	_Atomic(enum log_level) level;
	enum log_format format;
} setup = { "hawser", LOG_INFO, LOG_TEXT };

static _Thread_local struct {
	const char *key, *value;
} context;

void log_setup(const char *program, enum log_level level, enum log_format format)
{
	setup.program = program;
	setup.level = level;
	setup.format = format;
}

void log_set_level(enum log_level level)
{
	setup.level = level;
}

bool log_level_parse(const char *text, enum log_level *ret_level)
{
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		if (!str_equal(text, levels[i].name))
			continue;
		*ret_level = (enum log_level)i;
		return true;
	}
	return false;
}

bool log_wants(enum log_level level)
{
	return level <= setup.level;
}

static void put_json_string(struct buf *b, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	buf_putc(b, '"');
	while (*s) {
		size_t len = str_utf8_len((const char *)s);

		if (len == 0)
			buf_puts(b, "\\ufffd");
		else if (*s < 0x20 || *s == 0x7f)
			buf_printf(b, "\\u%04x", *s);
		else if (*s == '"' || *s == '\\')
			buf_printf(b, "\\%c", *s);
		else
			buf_add(b, s, len);
		s += len ? len : 1;
	}
	buf_putc(b, '"');
}

static void put_json_pair(struct buf *b, const char *key, const char *value)
{
	buf_putc(b, b->len > 0 ? ',' : '{');
	put_json_string(b, key);
	buf_putc(b, ':');
	put_json_string(b, value);
}

/* Writes control characters as \n, \t or \x1b, and puts a backslash before the characters in
 * @also_escaped. */
static void put_text(struct buf *b, const char *text, const char *also_escaped)
{
	for (const char *s = text; *s; s++) {
		if (*s == '\n')
			buf_puts(b, "\\n");
		else if (*s == '\t')
			buf_puts(b, "\\t");
		else if ((unsigned char)*s < 0x20 || *s == 0x7f)
			buf_printf(b, "\\x%02x", (unsigned char)*s);
		else if (strchr(also_escaped, *s))
			buf_printf(b, "\\%c", *s);
		else
			buf_putc(b, *s);
	}
}

/* The current time in UTC with microseconds (RFC 3339). */
static const char *format_now(char *text, size_t size)
{
	struct timespec now;
	struct tm tm;
	size_t len;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	len = strftime(text, size, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + len, size - len, ".%06ldZ", now.tv_nsec / 1000);
	return text;
}

static void put_pair(struct buf *b, const char *key, const char *value)
{
	bool quoted = !*value || strpbrk(value, " \"=\\");

	if (setup.format == LOG_JSON) {
		put_json_pair(b, key, value);
		return;
	}
	buf_putc(b, ' ');
	put_text(b, key, "");
	buf_puts(b, quoted ? "=\"" : "=");
	put_text(b, value, quoted ? "\"\\" : "");
	if (quoted)
		buf_putc(b, '"');
}

void log_context(const char *key, const char *value)
{
	context.key = key;
	context.value = value;
}

static void put_head(struct buf *b, enum log_level level, const char *msg)
{
	char now[40];

	if (setup.format == LOG_JSON) {
		put_json_pair(b, "time", format_now(now, sizeof(now)));
		put_json_pair(b, "level", levels[level].name);
		put_json_pair(b, "program", setup.program);
		put_json_pair(b, "msg", msg);
		return;
	}
	if (setup.format == LOG_JOURNAL)
		buf_printf(b, "<%d>", levels[level].priority);
	else
		buf_printf(b, "%s %s %s: ", format_now(now, sizeof(now)), levels[level].name,
			   setup.program);
	put_text(b, msg, "");
}

/* Write errors are ignored: there is no other place to report them. */
static void write_line(struct buf *b)
{
	int saved = errno;
	ssize_t n;

	if (context.key)
		put_pair(b, context.key, str_or(context.value, ""));
	buf_puts(b, setup.format == LOG_JSON ? "}\n" : "\n");
	do
		n = write(STDERR_FILENO, b->data, b->len);
	while (n < 0 && errno == EINTR);
	errno = saved;
}

void log_event(enum log_level level, const char *msg, ...)
{
	AUTO(buf_done) struct buf b = { 0 };
	const char *key;
	va_list ap;

	if (!log_wants(level))
		return;
	put_head(&b, level, msg);
	va_start(ap, msg);
	while ((key = va_arg(ap, const char *)))
		put_pair(&b, key, str_or(va_arg(ap, const char *), ""));
	va_end(ap);
	write_line(&b);
}

void log_printf(enum log_level level, const char *fmt, ...)
{
	AUTO(buf_done) struct buf b = { 0 }, msg = { 0 };
	va_list ap;

	if (!log_wants(level))
		return;
	va_start(ap, fmt);
	buf_vprintf(&msg, fmt, ap);
	va_end(ap);
	put_head(&b, level, msg.data);
	write_line(&b);
}
