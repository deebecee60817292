/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/number.c - numbers and times in tar archives
 *
 * What:  a header field contains octal digits, with spaces or NULs around them. If the first bit of
 *        the field is set, it contains a number in base 256 instead (GNU), which may be negative.
 *        PAX records contain decimal numbers, and times with a fraction.
 */
#include "fetch/tar/number.h"

#include <string.h>

#define BINARY 0x80 /* first bit of a field */
#define SIGN   0x40 /* the next bit */

/* Parses a big endian number in two's complement. The first bit is not part of the number. */
static bool parse_base256(const uint8_t *field, size_t width, int64_t *ret_n)
{
	uint8_t fill = field[0] & SIGN ? 0xff : 0;
	uint64_t n = fill ? UINT64_MAX : 0;

	for (size_t i = 0; i < width; i++) {
		uint8_t byte =
			i == 0 ? (uint8_t)((field[0] & ~BINARY) | (fill & BINARY)) : field[i];

		if (n >> 55 != (fill ? 0x1ff : 0)) /* the shift would lose a significant bit */
			return false;
		n = n << 8 | byte;
	}
	*ret_n = (int64_t)n;
	return true;
}

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\0';
}

bool tar_number(const uint8_t *field, size_t width, int64_t *ret_n)
{
	size_t i = 0;
	int64_t n = 0;

	if (width > 0 && field[0] & BINARY)
		return parse_base256(field, width, ret_n);
	while (i < width && is_blank(field[i]))
		i++;
	for (; i < width && field[i] >= '0' && field[i] <= '7'; i++) {
		if (n > INT64_MAX >> 3)
			return false;
		n = n << 3 | (field[i] - '0');
	}
	if (i < width && !is_blank(field[i]))
		return false;
	*ret_n = n;
	return true;
}

bool tar_decimal(const char *s, size_t len, int64_t *ret_n)
{
	int64_t n = 0;

	for (size_t i = 0; i < len; i++)
		if (s[i] < '0' || s[i] > '9' || __builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, s[i] - '0', &n))
			return false;
	*ret_n = n;
	return len > 0;
}

bool tar_time(const char *s, size_t len, struct timespec *ret_time)
{
	bool negative = len > 0 && s[0] == '-';
	const char *dot;
	int64_t seconds;
	size_t whole;
	long ns = 0, unit = 100000000;

	s += negative;
	len -= negative;
	dot = memchr(s, '.', len);
	whole = dot ? (size_t)(dot - s) : len;
	if (!tar_decimal(s, whole, &seconds))
		return false;
	for (size_t i = whole + 1; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		ns += (s[i] - '0') * unit;
		unit /= 10; /* digits beyond nanoseconds are ignored */
	}
	if (negative) { /* -1.25 is -2 seconds plus 0.75 */
		seconds = -seconds - (ns > 0);
		ns = ns > 0 ? 1000000000 - ns : 0;
	}
	*ret_time = (struct timespec){ .tv_sec = seconds, .tv_nsec = ns };
	return true;
}
