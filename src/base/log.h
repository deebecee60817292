/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/log.h - logging to standard error, one line per event
 *
 * What:  text for people, JSON lines for programs, or text with the journal's
 *        priority prefixes (<3>) when standard error is the journal.
 * Rules: library layers log nothing above debug; an error is returned or
 *        logged, never both. A line is one write(). Thread-safe; errno is kept.
 *        <syslog.h> defines some of the LOG_ names too and cannot be included
 *        with this header.
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

/* Call once, before threads start. program must stay valid: a string constant. The default is
 * LOG_INFO and LOG_TEXT. */
void log_setup(const char *program, enum log_level level, enum log_format format);
void log_set_level(enum log_level level); /* at any time */
/* "error", "warn", "info" or "debug". Return: false for any other text */
bool log_level_parse(const char *text, enum log_level *ret_level);
bool log_wants(enum log_level level);

/* The message is followed by "key", "value" pairs and a NULL: log_event(l, "msg", "pod", id, NULL).
 * A value of NULL is written as "". */
void log_event(enum log_level level, const char *msg, ...) __attribute__((sentinel));
void log_printf(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Adds a pair to every line that this thread writes from now on, such as the ID of the call it
 * serves. Both strings are borrowed until the next call; a NULL key removes the pair. */
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
