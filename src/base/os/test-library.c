/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/test-library.c - loading of shared libraries, with the C library as an example
 */
#include "base/os/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define LIBC "libc.so.6"

struct functions {
	int before;
	int (*abs)(int number);
	size_t (*length)(const char *text);
};

static void functions_are_found(void **state)
{
	static const struct library_symbol symbols[] = {
		{ "abs", offsetof(struct functions, abs) },
		{ "strlen", offsetof(struct functions, length) },
		{ 0 },
	};
	struct functions f = { .before = 7 };
	void *handle = NULL;
	struct hw_err e;

	(void)state;
	assert_int_equal(library_open(LIBC, symbols, &f, &handle, &e), 0);
	assert_non_null(handle);
	assert_int_equal(f.before, 7);
	assert_int_equal(f.abs(-3), 3);
	assert_int_equal(f.length("four"), 4);
	dlclose(handle);
}

static void missing_symbol_fails(void **state)
{
	static const struct library_symbol none[] = { { 0 } };
	static const struct library_symbol unknown[] = { { "no_such_function", 0 }, { 0 } };
	void *handle = NULL, *function = NULL;
	struct hw_err e;

	(void)state;
	assert_int_equal(library_open("libnone.so.7", none, NULL, &handle, &e), -ELIBACC);
	assert_non_null(strstr(e.msg, "libnone.so.7"));
	assert_int_equal(library_open(LIBC, unknown, &function, &handle, &e), -ELIBACC);
	assert_non_null(strstr(e.msg, "no_such_function"));
	assert_null(handle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "library: functions are found and stored in the struct", functions_are_found,
		  NULL, NULL, NULL },
		{ "library: a missing library or function is named in the error",
		  missing_symbol_fails, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
