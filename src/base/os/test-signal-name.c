/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/test-signal-name.c - tests of base/os/signal-name.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <signal.h>

#include "base/mem.h"
#include "base/os/signal-name.h"

static void names_and_numbers(void **state)
{
	const struct {
		const char *text;
		int number;
	} cases[] = {
		{ "SIGTERM", SIGTERM },
		{ "TERM", SIGTERM },
		{ "term", SIGTERM },
		{ "sigquit", SIGQUIT },
		{ "15", 15 },
		{ "37", 37 },
		{ "SIGCLD", SIGCHLD },
		{ "IOT", SIGABRT },
		{ "SIGRTMIN", SIGRTMIN },
		{ "SIGRTMIN+3", SIGRTMIN + 3 },
		{ "rtmin+15", SIGRTMIN + 15 },
		{ "RTMAX", SIGRTMAX },
		{ "SIGRTMAX-14", SIGRTMAX - 14 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (signal_parse(cases[i].text) != cases[i].number)
			fail_msg("%s: %d", cases[i].text, signal_parse(cases[i].text));
}

static void no_signals(void **state)
{
	static const char *const cases[] = {
		"",	    "SIG",	"0",	      "-1",	   "65",
		"TERMS",    " TERM",	"SIGSIGTERM", "SIGRTMIN+", "SIGRTMIN-1",
		"RTMIN+31", "RTMIN+-1", "SIGRTMAX+1", "RTMAX-31",  "SIGRTMIN+99999999999999999999",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (signal_parse(cases[i]) != -1)
			fail_msg("%s: %d", cases[i], signal_parse(cases[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "signal: names and numbers are parsed", names_and_numbers, NULL, NULL, NULL },
		{ "signal: a text that names no signal is refused", no_signals, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
