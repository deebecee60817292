/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/test-signal.c - tests of cri/service/signal.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <signal.h>

#include "api/cri-v1.pb-c.h"
#include "cri/service/signal.h"

static void all_values(void **state)
{
	const ProtobufCEnumDescriptor *d = &runtime__v1__signal__descriptor;

	(void)state;
	for (unsigned i = 0; i < d->n_values; i++) {
		int number = signal_from_cri(d->values[i].value);

		if (d->values[i].value == 0) {
			assert_int_equal(number, 0);
			continue;
		}
		if (number < 1)
			fail_msg("%s", d->values[i].name);
		/* some signals have two names */
		assert_int_equal(signal_from_cri(signal_to_cri(number)), number);
	}
}

static void some_values(void **state)
{
	(void)state;
	assert_int_equal(signal_from_cri(RUNTIME__V1__SIGNAL__SIGNAL_SIGTERM), SIGTERM);
	assert_int_equal(signal_from_cri(RUNTIME__V1__SIGNAL__SIGNAL_SIGCLD), SIGCHLD);
	assert_int_equal(signal_from_cri(RUNTIME__V1__SIGNAL__SIGNAL_SIGRTMIN), SIGRTMIN);
	assert_int_equal(signal_from_cri(RUNTIME__V1__SIGNAL__SIGNAL_SIGRTMINPLUS3), SIGRTMIN + 3);
	assert_int_equal(signal_from_cri(RUNTIME__V1__SIGNAL__SIGNAL_SIGRTMAXMINUS14),
			 SIGRTMAX - 14);
	assert_int_equal(signal_from_cri(1000), -1);
	assert_int_equal(signal_to_cri(SIGKILL), RUNTIME__V1__SIGNAL__SIGNAL_SIGKILL);
	assert_int_equal(signal_to_cri(1000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "signal: every signal of CRI exists on this machine", all_values, NULL, NULL,
		  NULL },
		{ "signal: signals are converted by name", some_values, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
