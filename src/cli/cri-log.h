/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/cri-log.h - the log format of CRI
 *
 * What:  each line is "TIME STREAM TAGS TEXT", as in
 *        "2026-11-15T12:00:00.123456789Z stdout F text". STREAM is stdout or stderr. The
 *        first of the tags, which are separated by ":", is F for a full line, or P for a
 *        part: the runtime splits long lines. The next line of the same stream continues
 *        a part.
 */
#ifndef CLI_CRI_LOG_H
#define CLI_CRI_LOG_H

#include <stdbool.h>
#include <stddef.h>

struct log_entry {
	const char *time; /* not terminated */
	size_t time_len;
	bool is_stderr;
	bool is_part;
	const char *text; /* not terminated */
	size_t len;
};

/* @line: without the newline; *ret points into it. Return: false if malformed */
bool log_parse(const char *line, size_t len, struct log_entry *ret);

#endif
