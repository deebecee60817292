/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/str.h - small questions about strings, and strings that are allocated
 *
 *	AUTO(hw_strings_free) struct hw_strings dirs = { 0 };
 *	strings_split(getenv("CNI_PATH"), ':', &dirs);
 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <hawser/field.h>

#include "base/mem.h"

char *str_copy(const char *s); /* NULL stays NULL */
char *str_ncopy(const char *s, size_t n);
char *str_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool str_equal(const char *a, const char *b);		  /* NULL equals NULL only */
bool str_empty(const char *s);				  /* NULL or "" */
const char *str_or(const char *s, const char *otherwise); /* NULL: otherwise */
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
/* The whole string, decimal digits with at most a minus before them, in range. */
bool str_to_int64(const char *s, long long min, long long max, long long *ret_n);

size_t str_utf8(const char *s); /* bytes of the UTF-8 character at s; 0: it is none */

/* struct hw_strings */
void strings_add(struct hw_strings *list, const char *s); /* copies */
bool strings_has(const struct hw_strings *list, const char *s);
void strings_split(const char *s, char separator,
		   struct hw_strings *ret_list); /* "" is one empty string */

AUTO_VALUE_DEFINE(hw_strings_free, struct hw_strings);

#endif
