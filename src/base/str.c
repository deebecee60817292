/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/str.c - string helpers and struct hw_strings
 */
#include "base/str.h"

#include <stdio.h>
#include <string.h>

char *str_copy(const char *s)
{
	return s ? mem_copy(s, strlen(s) + 1) : NULL;
}

char *str_ncopy(const char *s, size_t n)
{
	size_t len = n ? strnlen(s, n) : 0;
	char *copy = mem_new(len + 1);

	if (len)
		memcpy(copy, s, len);
	return copy;
}

char *str_printf(const char *fmt, ...)
{
	char *s = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0)
		mem_exhausted();
	return s;
}

void str_wipe(char *secret)
{
	if (secret)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

bool str_equal(const char *a, const char *b)
{
	if (!a || !b)
		return a == b;
	return strcmp(a, b) == 0;
}

bool str_empty(const char *s)
{
	return !s || !*s;
}

const char *str_or(const char *s, const char *otherwise)
{
	return s ? s : otherwise;
}

bool str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
	size_t len = strlen(s), end = strlen(suffix);

	return len >= end && memcmp(s + len - end, suffix, end) == 0;
}

/* Not strtoll(), which also accepts leading blanks, a plus sign and trailing text. */
bool str_to_int64(const char *s, long long min, long long max, long long *ret_n)
{
	bool negative = s && *s == '-';
	long long n = 0;

	if (negative)
		s++;
	if (str_empty(s))
		return false;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return false;
		/* computed as a negative number, because -LLONG_MIN is out of range */
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_sub_overflow(n, *s - '0', &n))
			return false;
	}
	if (!negative && __builtin_sub_overflow(0, n, &n))
		return false;
	if (n < min || n > max)
		return false;
	*ret_n = n;
	return true;
}

/* RFC 3629, table of section 4 */
size_t str_utf8_len(const char *s)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t len = u[0] < 0x80 ? 1 : u[0] < 0xc2 ? 0 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;

	if (u[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((u[i] & 0xc0) != 0x80)
			return 0;
	if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f) ||
	    (u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] > 0x8f))
		return 0;
	return len;
}

static void append_owned(struct hw_strings *list, char *s)
{
	list->v = mem_resize(list->v, list->n + 1, sizeof(*list->v));
	list->v[list->n++] = s;
}

void strings_add(struct hw_strings *list, const char *s)
{
	append_owned(list, str_copy(s));
}

bool strings_has(const struct hw_strings *list, const char *s)
{
	for (size_t i = 0; i < list->n; i++)
		if (str_equal(list->v[i], s))
			return true;
	return false;
}

void strings_split(const char *s, char separator, struct hw_strings *ret_list)
{
	struct hw_strings list = { 0 };

	for (;;) {
		const char *end = strchrnul(s, separator);

		append_owned(&list, str_ncopy(s, (size_t)(end - s)));
		if (!*end)
			break;
		s = end + 1;
	}
	*ret_list = list;
}

void hw_strings_free(struct hw_strings *strings)
{
	if (!strings)
		return;
	for (size_t i = 0; i < strings->n; i++)
		free(strings->v[i]);
	free(strings->v);
	*strings = (struct hw_strings){ 0 };
}
