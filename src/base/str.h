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

/* The caller frees what these return. */
char *str_copy(const char *s);		  /* NULL for NULL */
char *str_ncopy(const char *s, size_t n); /* at most n bytes */
char *str_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

bool str_equal(const char *a, const char *b);		  /* NULL equals NULL only */
bool str_empty(const char *s);				  /* NULL or "" */
const char *str_or(const char *s, const char *otherwise); /* otherwise if s is NULL */
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);

/* Parses a decimal number: digits with an optional minus sign, nothing before or after.
 * Return: false if s is NULL, not a number or out of range, with *ret_n unchanged */
bool str_to_int64(const char *s, long long min, long long max, long long *ret_n);

/* Length in bytes of the UTF-8 character at s, which must be NUL-terminated; 0 if it is not valid
 * UTF-8. A NUL is a character of one byte. */
size_t str_utf8_len(const char *s);

/* struct hw_strings */
void strings_add(struct hw_strings *list, const char *s); /* copies */
bool strings_has(const struct hw_strings *list, const char *s);
/* Overwrites *ret_list. n separators give n + 1 parts; "" gives one empty part. */
void strings_split(const char *s, char separator, struct hw_strings *ret_list);

AUTO_VALUE_DEFINE(hw_strings_free, struct hw_strings);

#endif
