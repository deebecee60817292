/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/test-errors.c - several errors that become one
 */
#include "base/errors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the ones above */
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/str.h"

static void add(struct errors *errors, const char *msg, const char *details)
{
	struct hw_err e;

	err_cni(&e, errors->n ? 50 : 11, "%s", msg);
	err_details(&e, "%s", details);
	errors_add(errors, &e);
}

static void none(void **state)
{
	struct errors errors = { 0 };
	struct hw_err e = { .code = 1 };

	(void)state;
	assert_int_equal(errors_end(&errors, &e), 0);
	assert_int_equal(e.code, 1);
}

static void one_per_line(void **state)
{
	struct errors errors = { 0 };
	struct hw_err e;

	(void)state;
	add(&errors, "first", "why");
	assert_int_equal(errors_end(&errors, &e), -EAGAIN);
	assert_string_equal(e.msg, "first; why");
	add(&errors, "second", "");
	add(&errors, "third", "too");
	assert_int_equal(errors_end(&errors, &e), -EAGAIN);
	assert_string_equal(e.msg, "first; why\nsecond\nthird; too");
	assert_string_equal(e.details, "");
	assert_int_equal(err_wire(&e), 11);
}

static void too_many(void **state)
{
	struct errors errors = { 0 };
	struct hw_err e;
	char wide[2040];

	(void)state;
	for (int i = 0; i < 1000; i++)
		add(&errors, "0123456789", "");
	assert_int_equal(errors_end(&errors, &e), -EAGAIN);
	assert_true(str_starts(e.msg, "0123456789\n0123456789\n"));
	assert_true(str_ends(e.msg, "\n0123456789\nand 817 more"));

	memset(wide, 'x', sizeof(wide));
	wide[sizeof(wide) - 1] = '\0';
	errors = (struct errors){ 0 };
	for (int i = 0; i < 3; i++)
		add(&errors, wide, wide);
	assert_int_equal(errors_end(&errors, &e), -EAGAIN);
	assert_true(str_ends(e.msg, "x\nand 2 more"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "errors: none is a success", none, NULL, NULL, NULL },
		{ "errors: all are told, one per line, with the first one's code", one_per_line,
		  NULL, NULL, NULL },
		{ "errors: those that do not fit are counted", too_many, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
