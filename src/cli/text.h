/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/text.h - human-readable sizes, ages and IDs, safe text, misspellings
 *
 * What:  every string from a runtime must pass text_clean() before it is printed:
 *        escape sequences could move the cursor, change colours or hide text.
 * Rules: returned strings are freed by the caller. Widths are in characters.
 */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Newlines and tabs become spaces; other control characters, bidirectional formatting characters and
 * invalid UTF-8 become "?". NULL: "" */
char *text_clean(const char *s);
/* Escapes the control characters that JSON allows in a string, such as U+009B. */
char *text_json_safe(const char *s);
char *text_short_id(const char *id);	     /* first 12 digits of "sha256:0123...", cleaned */
char *text_size(uint64_t bytes);	     /* "12.3 MB": powers of 1000 */
char *text_age(int64_t seconds);	     /* "45s", "3m", "5h", "12d", "3y"; negative: "0s" */
size_t text_width(const char *s);	     /* characters in cleaned text */
char *text_cut(const char *s, size_t width); /* ends with "..." if shortened */
/* Parse RFC 3339, as in "2026-11-15T12:00:00.5+01:00", into seconds since 1970; fractions are dropped.
 * Return: false if malformed */
bool text_time(const char *rfc3339, int64_t *ret_seconds);
/* True if @word looks like a misspelling of @name: at most one wrong, missing, extra or swapped character
 * for each three of @name. */
bool text_is_typo(const char *word, const char *name);

#endif
