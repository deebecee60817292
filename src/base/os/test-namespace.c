/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/test-namespace.c - tests of base/os/namespace.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/os/namespace.h"

static void namespaces_and_other_files(void **state)
{
	static const char *const others[] = { "/proc/self/ns/none", "/proc/self/status/x",
					      "/proc/self/status",  "/etc/passwd",
					      "/dev/null",	    "" };
	struct namespace_id net, ipc, again;
	struct hw_err e;

	(void)state;
	assert_int_equal(namespace_get("/proc/self/ns/net", &net, &e), 1);
	assert_int_equal(namespace_get("/proc/thread-self/ns/net", &again, &e), 1);
	assert_int_equal(namespace_get("/proc/self/ns/ipc", &ipc, &e), 1);
	assert_true(net.dev == again.dev && net.ino == again.ino);
	assert_false(net.dev == ipc.dev && net.ino == ipc.ino);
	assert_true(namespace_exists("/proc/self/ns/pid"));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_int_equal(namespace_get(others[i], &again, &e), 0);
		assert_false(namespace_exists(others[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "namespace: namespaces are distinguished from each other and from other files",
		  namespaces_and_other_files, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
