/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/test-secrets.c - secrets that no error may contain
 */
#include "fetch/http/secrets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

static void secrets_are_replaced(void **state)
{
	static const struct {
		const char *text, *shown;
	} table[] = {
		{ "", "" },
		{ "no such tag", "no such tag" },
		{ "Sesam42", "[...]" },
		{ "password Sesam42 is wrong, Sesam42!", "password [...] is wrong, [...]!" },
		{ "Sesam42Sesam42", "[...]" },
		{ "Sesam4", "Sesam4" },
		/* one contains another one, and two overlap */
		{ "<abcdefgh>", "<[...]>" },
		{ "<abcdef> <cdef> <efgh>", "<[...]> <[...]> <efgh>" },
		{ "<abcdexyz>", "<[...]>" },
		{ "<aaaaaaa> <aaa>", "<[...]> <aaa>" },
		{ "one two", "one two" },
	};
	AUTO(secrets_done) struct secrets s = { 0 };

	(void)state;
	secrets_add(&s, "Sesam42");
	secrets_add(&s, "cdef");
	secrets_add(&s, "abcdefgh");
	secrets_add(&s, "abcdef");
	secrets_add(&s, "abcde");
	secrets_add(&s, "dexyz");
	secrets_add(&s, "aaaa");
	secrets_add(&s, "two");
	secrets_add(&s, NULL);
	secrets_add(&s, "");
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		autofree char *shown = secrets_hide(&s, table[i].text);

		assert_string_equal(shown ? shown : "", table[i].shown);
	}
}

static void errors_have_no_secrets(void **state)
{
	AUTO(secrets_done) struct secrets s = { 0 };
	struct hw_err e;

	(void)state;
	secrets_add(&s, "four");
	err_text(&e, -5, "HTTP status 401 (four)");
	secrets_hide_in(&s, &e);
	assert_string_equal(e.msg, "HTTP status 401 ([...])");
	assert_int_equal(e.code, -5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "secrets: all copies in a text are replaced, also of secrets that overlap",
		  secrets_are_replaced, NULL, NULL, NULL },
		{ "secrets: the text of an error has none", errors_have_no_secrets, NULL, NULL,
		  NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
