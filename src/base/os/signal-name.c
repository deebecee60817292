/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/signal-name.c - names of signals
 */
#include "base/os/signal-name.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* Names that are not those of glibc. */
static const struct {
	const char *name, *glibc;
} aliases[] = { { "CLD", "CHLD" }, { "IOT", "ABRT" }, { "IO", "POLL" } };

/* The rest of a name of a real-time signal: "", or @sign and a number. Return: -1 if it is neither */
static int parse_offset(const char *text, char sign)
{
	long long n = 0;

	if (*text && (*text != sign || !str_to_int64(text + 1, 1, SIGRTMAX, &n)))
		return -1;
	return (int)n;
}

static int parse_realtime(const char *name)
{
	int n = -1, offset = -1;

	if (strncasecmp(name, "RTMIN", strlen("RTMIN")) == 0) {
		offset = parse_offset(name + strlen("RTMIN"), '+');
		n = SIGRTMIN + offset;
	} else if (strncasecmp(name, "RTMAX", strlen("RTMAX")) == 0) {
		offset = parse_offset(name + strlen("RTMAX"), '-');
		n = SIGRTMAX - offset;
	}
	return offset >= 0 && n >= SIGRTMIN && n <= SIGRTMAX ? n : -1;
}

int signal_parse(const char *text)
{
	const char *name = text;
	long long number;

	if (str_to_int64(text, 1, SIGRTMAX, &number))
		return (int)number;
	if (strncasecmp(name, "SIG", strlen("SIG")) == 0)
		name += strlen("SIG");
	for (size_t i = 0; i < ARRAY_SIZE(aliases); i++)
		if (strcasecmp(aliases[i].name, name) == 0)
			name = aliases[i].glibc;
	for (int n = 1; n < SIGRTMIN; n++) {
		const char *known = sigabbrev_np(n);

		if (known && strcasecmp(known, name) == 0)
			return n;
	}
	return parse_realtime(name);
}
