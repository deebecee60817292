/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/environment.c - the environment of a program that must not get all variables of this one
 */
#include "base/os/environment.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

/* Sanitizers read their options there. */
static const char *const sanitizers[] = { "ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS",
					  "UBSAN_OPTIONS", NULL };

static size_t count(const char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

static bool is_wanted(const char *variable, const char *const *wanted)
{
	size_t len = strcspn(variable, "=");

	for (; wanted && *wanted; wanted++) {
		size_t want = strlen(*wanted);

		if (want > 0 && (*wanted)[want - 1] == '*' && want - 1 <= len &&
		    memcmp(variable, *wanted, want - 1) == 0)
			return true;
		if (want == len && memcmp(variable, *wanted, len) == 0)
			return true;
	}
	return false;
}

const char **environment_select(const char *const *all, const char *const *wanted)
{
	const char **list = mem_new((count(all) + count(wanted) + 1) * sizeof(*list));
	size_t n = 0;

	for (; all && *all; all++)
		if (is_wanted(*all, wanted) || (MEM_SANITIZED && is_wanted(*all, sanitizers)))
			list[n++] = *all;
	for (; wanted && *wanted; wanted++)
		if (strchr(*wanted, '='))
			list[n++] = *wanted;
	return list;
}
