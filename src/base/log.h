/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/log.h - logging to standard error, one line per event
 *
 * What:  text for people, JSON lines for programs, or text with the journal's
 *        priority prefixes (<3>) when standard error is the journal.
 * Rules: library layers log at level debug only; an error is returned or
 *        logged, never both. Each line is written with one write(). All
 *        functions except log_setup() are thread-safe and preserve errno.
 *        <syslog.h> defines some of the LOG_ names too: do not include both
 *        headers in one file.
 *
 *	2026-03-01T12:00:00.123456Z error hawser-cri: cannot start pod=a1 reason="no space"
 *	{"time":"2026-...","level":"error","program":"hawser-cri","msg":"cannot start","pod":"a1"}
 *	<3>cannot start pod=a1
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_TEXT, LOG_JSON, LOG_JOURNAL };

/* Call once, before other threads start. @program must stay valid, such as a string constant. The
 * defaults are LOG_INFO and LOG_TEXT. */
void log_setup(const char *program, enum log_level level, enum log_format format);
void log_set_level(enum log_level level); /* may be called at any time */
/* Parses "error", "warn", "info" or "debug". Return: false for any other text */
bool log_level_parse(const char *text, enum log_level *ret_level);
bool log_wants(enum log_level level);

/* The arguments after the message are pairs of key and value, and a NULL at the end:
 * log_event(l, "msg", "pod", id, NULL). A value of NULL is written as "". */
void log_event(enum log_level level, const char *msg, ...) __attribute__((sentinel));
void log_printf(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Adds a pair of key and value to every line that this thread writes from now on, such as the ID of
 * the RPC that it serves. Both strings must stay valid until the next log_context() of this thread.
 * A NULL key removes the pair. */
void log_context(const char *key, const char *value);

#define log_error(...) log_printf(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_printf(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_printf(LOG_INFO, __VA_ARGS__)
#define log_debug(...)                                                                             \
	do {                                                                                       \
		if (log_wants(LOG_DEBUG))                                                          \
			log_printf(LOG_DEBUG, __VA_ARGS__);                                        \
	} while (0)

#endif
