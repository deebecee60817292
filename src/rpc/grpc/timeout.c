/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/timeout.c - the grpc-timeout header: at most eight digits and a unit, such as "100m"
 */
#include "rpc/grpc/timeout.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/time.h"

#define DIGITS_MAX 8
#define NUMBER_MAX 99999999

static const struct {
	char letter;
	int64_t ns;
} units[] = {
	{ 'n', 1 },	     { 'u', 1000 },	   { 'm', 1000000 },
	{ 'S', 1000000000 }, { 'M', 60000000000 }, { 'H', 3600000000000 },
};

bool timeout_parse(const char *text, int64_t *ret_ns)
{
	size_t digits = strspn(text, "0123456789");
	int64_t n = 0;

	if (digits < 1 || digits > DIGITS_MAX || !text[digits] || text[digits + 1])
		return false;
	for (size_t i = 0; i < digits; i++)
		n = n * 10 + (text[i] - '0');
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (units[i].letter != text[digits])
			continue;
		*ret_ns = n > TIME_NEVER / units[i].ns ? TIME_NEVER : n * units[i].ns;
		return true;
	}
	return false;
}

const char *timeout_format(int64_t ns, char buf[TIMEOUT_TEXT])
{
	size_t i = 0;
	int64_t n;

	if (ns < 1)
		ns = 1;
	while (i + 1 < ARRAY_SIZE(units) && (ns - 1) / units[i].ns + 1 > NUMBER_MAX)
		i++;
	n = (ns - 1) / units[i].ns + 1;
	snprintf(buf, TIMEOUT_TEXT, "%" PRId64 "%c", n, units[i].letter);
	return buf;
}
