/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/text.h - values as people read them: sizes, ages, short ids, clean text
 *
 * What:  every string of a runtime passes text_clean() before it reaches a
 *        terminal: it might move the cursor, change colours or hide what follows.
 * Rules: strings that come out are allocated. A width counts characters, not bytes.
 */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

char *text_clean(const char *s);     /* NULL: ""; each byte that cannot be shown is a "?" */
char *text_json_safe(const char *s); /* JSON text without raw control characters */
char *text_short_id(const char *id); /* "sha256:0123..." to 12 digits */
char *text_size(uint64_t bytes);     /* "12.3 MB": powers of 1000 */
char *text_age(int64_t seconds);     /* "45s", "3m", "5h", "12d", "3y"; the future is "0s" */
size_t text_width(const char *s);    /* of clean text */
char *text_cut(const char *s, size_t width); /* "..." where something is missing */
/* RFC 3339, as in an image's configuration: seconds since 1970 */
bool text_time(const char *rfc3339, int64_t *ret_seconds);

#endif
