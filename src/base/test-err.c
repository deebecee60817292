/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/test-err.c - error structs on the caller's stack, and lists of errors joined into one
 */
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/str.h"

/* Return: an error struct with arbitrary old contents */
static struct hw_err used_error(void)
{
	struct hw_err e;

	memset(&e, 'x', sizeof(e));
	e.msg[sizeof(e.msg) - 1] = e.details[sizeof(e.details) - 1] = '\0';
	return e;
}

static void sets_errno_text(void **state)
{
	struct hw_err e = used_error();

	(void)state;
	assert_int_equal(err_set(&e, -ENOENT, "open %s", "/x"), -ENOENT);
	assert_int_equal(e.code, -ENOENT);
	assert_string_equal(e.msg, "open /x: No such file or directory");
}

static void clears_the_rest(void **state)
{
	struct hw_err e = used_error();

	(void)state;
	err_cni(&e, HW_CNI_INVALID_NETNS, "bad netns");
	err_details(&e, "%s is not a namespace", "/x");
	err_text(&e, -EINVAL, "own words");
	assert_string_equal(e.msg, "own words");
	assert_string_equal(e.details, "");
	assert_int_equal(e.domain, HW_DOMAIN_NONE);
	assert_int_equal(e.wire, 0);
}

static void names_unknown_errno(void **state)
{
	struct hw_err e;

	(void)state;
	assert_int_equal(err_set(&e, -12345, "x"), -12345);
	assert_string_equal(e.msg, "x: Unknown error 12345");
}

static void keeps_the_reason(void **state)
{
	static const char reason[] = "yyy: Permission denied";
	char name[4096];
	struct hw_err e;

	(void)state;
	memset(name, 'y', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	err_set(&e, -EACCES, "%s", name);
	assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
	assert_string_equal(e.msg + sizeof(e.msg) - sizeof(reason), reason);
}

static void puts_context_in_front(void **state)
{
	struct hw_err e;

	(void)state;
	err_cni(&e, HW_CNI_TRY_AGAIN, "busy");
	err_details(&e, "later");
	assert_int_equal(err_ctx(&e, "add %d", 1), -EAGAIN);
	assert_int_equal(err_ctx(&e, "network \"%s\"", "n"), -EAGAIN);
	assert_string_equal(e.msg, "network \"n\": add 1: busy");
	assert_string_equal(e.details, "later");
	assert_int_equal(err_wire(&e), HW_CNI_TRY_AGAIN);
}

static void replaces_one_errno(void **state)
{
	struct hw_err e;

	(void)state;
	err_text(&e, -EINVAL, "malformed");
	assert_int_equal(err_replace(&e, -EIO, -EBADMSG), -EINVAL);
	assert_int_equal(err_replace(&e, -EINVAL, -EBADMSG), -EBADMSG);
	assert_int_equal(e.code, -EBADMSG);
	assert_string_equal(e.msg, "malformed");
}

static void context_may_alias(void **state)
{
	struct hw_err e;

	(void)state;
	err_text(&e, -EIO, "first");
	err_ctx(&e, "before %s", e.msg);
	assert_string_equal(e.msg, "before first: first");
	err_text(&e, -EIO, "again %s", e.msg);
	assert_string_equal(e.msg, "again before first: first");
	err_details(&e, "d");
	err_details(&e, "%s%s", e.details, e.msg);
	assert_string_equal(e.details, "dagain before first: first");
}

static void context_is_cut(void **state)
{
	char word[3000];
	struct hw_err e;

	(void)state;
	memset(word, 'w', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	err_text(&e, -EIO, "%s", word);
	for (int i = 0; i < 3; i++)
		err_ctx(&e, "%s", word);
	assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
	err_ctx(&e, "front");
	assert_memory_equal(e.msg, "front: www", 10);
}

static void maps_cni_codes(void **state)
{
	static const int table[][2] = {
		{ 1, -EPROTONOSUPPORT }, { 2, -EOPNOTSUPP }, { 3, -ENOENT },
		{ 4, -EINVAL },		 { 5, -EIO },	     { 6, -EINVAL },
		{ 7, -EINVAL },		 { 8, -EINVAL },     { 11, -EAGAIN },
		{ 50, -EHOSTDOWN },	 { 51, -EHOSTDOWN }, { 100, -EIO },
		{ 999, -EIO },		 { 0, -EIO },
	};
	struct hw_err e;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(err_cni(&e, table[i][0], "x"), table[i][1]);
		assert_int_equal(err_wire(&e), table[i][0]);
	}
}

static void other_domains_have_no_cni_code(void **state)
{
	struct hw_err e;

	(void)state;
	err_set(&e, -EIO, "x");
	assert_int_equal(err_wire(&e), HW_CNI_INTERNAL);
	e.domain = HW_DOMAIN_GRPC;
	e.wire = 7;
	assert_int_equal(err_wire(&e), HW_CNI_INTERNAL);
}

static void recoding_keeps_the_texts(void **state)
{
	struct hw_err e;

	(void)state;
	err_set(&e, -ENOENT, "open x");
	err_details(&e, "create it");
	assert_int_equal(err_recode(&e, HW_CNI_NOT_AVAILABLE), -EHOSTDOWN);
	assert_int_equal(e.code, -EHOSTDOWN);
	assert_int_equal(err_wire(&e), HW_CNI_NOT_AVAILABLE);
	assert_string_equal(e.msg, "open x: No such file or directory");
	assert_string_equal(e.details, "create it");
}

static void formats_as_libcni(void **state)
{
	char buf[64];
	struct hw_err e;

	(void)state;
	err_text(&e, -EIO, "msg");
	assert_string_equal(err_format(&e, buf, sizeof(buf)), "msg");
	err_details(&e, "more");
	assert_string_equal(err_format(&e, buf, sizeof(buf)), "msg; more");
	assert_string_equal(err_format(&e, buf, 5), "msg;");
}

static void add(struct errors *errors, const char *msg, const char *details)
{
	struct hw_err e;

	err_cni(&e, errors->n ? 50 : 11, "%s", msg);
	err_details(&e, "%s", details);
	errors_add(errors, &e);
}

static void no_errors_is_success(void **state)
{
	struct errors errors = { 0 };
	struct hw_err e = { .code = 1 };

	(void)state;
	assert_int_equal(errors_result(&errors, &e), 0);
	assert_int_equal(e.code, 1);
}

static void joins_one_per_line(void **state)
{
	struct errors errors = { 0 };
	struct hw_err e;

	(void)state;
	add(&errors, "first", "why");
	assert_int_equal(errors_result(&errors, &e), -EAGAIN);
	assert_string_equal(e.msg, "first; why");
	add(&errors, "second", "");
	add(&errors, "third", "too");
	assert_int_equal(errors_result(&errors, &e), -EAGAIN);
	assert_string_equal(e.msg, "first; why\nsecond\nthird; too");
	assert_string_equal(e.details, "");
	assert_int_equal(err_wire(&e), 11);
}

static void counts_errors_that_do_not_fit(void **state)
{
	struct errors errors = { 0 };
	struct hw_err e;
	char wide[2040];

	(void)state;
	for (int i = 0; i < 1000; i++)
		add(&errors, "0123456789", "");
	assert_int_equal(errors_result(&errors, &e), -EAGAIN);
	assert_true(str_starts(e.msg, "0123456789\n0123456789\n"));
	assert_true(str_ends(e.msg, "\n0123456789\nand 817 more"));

	memset(wide, 'x', sizeof(wide));
	wide[sizeof(wide) - 1] = '\0';
	errors = (struct errors){ 0 };
	for (int i = 0; i < 3; i++)
		add(&errors, wide, wide);
	assert_int_equal(errors_result(&errors, &e), -EAGAIN);
	assert_true(str_ends(e.msg, "x\nand 2 more"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "err: a system error ends with the errno text", sets_errno_text },
		{ "err: a new error overwrites the previous one completely", clears_the_rest },
		{ "err: an errno without a text is printed as a number", names_unknown_errno },
		{ "err: if a text is too long, the errno text is not truncated", keeps_the_reason },
		{ "err: context is put before the message; code and details are kept",
		  puts_context_in_front },
		{ "err: an errno is replaced, and the message is kept", replaces_one_errno },
		{ "err: the error's own texts may be used as arguments", context_may_alias },
		{ "err: if the context does not fit, the end of the message is truncated",
		  context_is_cut },
		{ "err: each CNI code is mapped to an errno", maps_cni_codes },
		{ "err: an error keeps its message and details when it gets another code",
		  recoding_keeps_the_texts },
		{ "err: the code of another protocol is not used as a CNI code",
		  other_domains_have_no_cni_code },
		{ "err: message and details are joined as in libcni", formats_as_libcni },
		{ "errors: an empty list of errors is a success", no_errors_is_success },
		{ "errors: all errors are reported, one per line, with the code of the first",
		  joins_one_per_line },
		{ "errors: errors that do not fit into the message are counted",
		  counts_errors_that_do_not_fit },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
