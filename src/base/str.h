/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/str.h - string helpers and struct hw_strings
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

/* The caller frees the strings that these functions return. */
char *str_copy(const char *s);		  /* returns NULL for NULL */
char *str_ncopy(const char *s, size_t n); /* copies at most n bytes; if n is 0, s may be NULL */
char *str_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void str_wipe(char *secret); /* overwrites and frees the string; accepts NULL */

bool str_equal(const char *a, const char *b);		  /* NULL is equal to NULL only */
bool str_empty(const char *s);				  /* true for NULL and "" */
const char *str_or(const char *s, const char *otherwise); /* returns @otherwise if s is NULL */
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);

/* Parses a decimal number: digits with an optional minus sign, with nothing before or after it.
 * Return: false if s is NULL, not a number or out of range, with *ret_n unchanged */
bool str_to_int64(const char *s, long long min, long long max, long long *ret_n);

/* Return: the length in bytes of the UTF-8 character at the start of s; 0 if it is not valid UTF-8.
 * s must be NUL-terminated. A NUL is a character of one byte. */
size_t str_utf8_len(const char *s);

/* struct hw_strings */
void strings_add(struct hw_strings *list, const char *s); /* adds a copy of s */
bool strings_has(const struct hw_strings *list, const char *s);
/* Overwrites *ret_list without freeing it. A text with n separators has n + 1 parts; "" has one
 * empty part. */
void strings_split(const char *s, char separator, struct hw_strings *ret_list);

AUTO_DEFINE(str_wipe, char);
AUTO_VALUE_DEFINE(hw_strings_free, struct hw_strings);

#endif
