/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/test-challenge.c - WWW-Authenticate headers, valid and malformed
 */
#include "fetch/registry/challenge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/str.h"

static void assert_text(const char *got, const char *want)
{
	if (want)
		assert_string_equal(str_or(got, "(none)"), want);
	else
		assert_null(got);
}

static void test_headers(void **state)
{
	static const struct {
		const char *header;
		enum challenge_kind kind;
		const char *realm, *service, *scope;
	} cases[] = {
		{ "Bearer realm=\"https://a/t\",service=\"s\",scope=\"repository:a/b:pull\"",
		  CHALLENGE_BEARER, "https://a/t", "s", "repository:a/b:pull" },
		{ "bearer REALM=\"x\" , Service=y", CHALLENGE_BEARER, "x", "y", NULL },
		{ "Bearer realm = \"x\"", CHALLENGE_BEARER, "x", NULL, NULL },
		{ "Bearer realm=\"a\\\"b\\\\c\"", CHALLENGE_BEARER, "a\"b\\c", NULL, NULL },
		{ "Bearer realm=\"x\",error=\"e\",other=1", CHALLENGE_BEARER, "x", NULL, NULL },
		{ "Bearer realm=\"x\",realm=\"y\"", CHALLENGE_BEARER, "y", NULL, NULL },
		{ "Bearer realm=\"open", CHALLENGE_BEARER, "open", NULL, NULL },
		{ "Basic realm=\"x\"", CHALLENGE_BASIC, "x", NULL, NULL },
		{ "Basic", CHALLENGE_BASIC, NULL, NULL, NULL },
		{ "Basic realm=\"b\", Bearer realm=\"t\"", CHALLENGE_BEARER, "t", NULL, NULL },
		{ "Bearer realm=\"t\", Basic realm=\"b\"", CHALLENGE_BEARER, "t", NULL, NULL },
		{ "Bearer service=\"s\", Basic realm=\"b\"", CHALLENGE_BASIC, "b", NULL, NULL },
		{ "Bearer", CHALLENGE_NONE, NULL, NULL, NULL },
		{ "Bearer realm=\"\"", CHALLENGE_NONE, NULL, NULL, NULL },
		{ "Negotiate", CHALLENGE_NONE, NULL, NULL, NULL },
		{ "", CHALLENGE_NONE, NULL, NULL, NULL },
		{ ",,, ,", CHALLENGE_NONE, NULL, NULL, NULL },
		{ "=\"x\"", CHALLENGE_NONE, NULL, NULL, NULL },
		{ "Bearer \"realm\"", CHALLENGE_NONE, NULL, NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(challenge_done) struct challenge c = { 0 };
		AUTO(hw_strings_free) struct hw_strings list = { 0 };

		strings_add(&list, cases[i].header);
		challenge_choose(&list, &c);
		assert_int_equal(c.kind, cases[i].kind);
		assert_text(c.realm, cases[i].realm);
		assert_text(c.service, cases[i].service);
		assert_text(c.scope, cases[i].scope);
	}
}

static void test_several(void **state)
{
	AUTO(challenge_done) struct challenge c = { 0 };
	AUTO(hw_strings_free) struct hw_strings list = { 0 };

	(void)state;
	strings_add(&list, "Basic realm=\"b\"");
	strings_add(&list, "Bearer realm=\"t\"");
	strings_add(&list, "Basic realm=\"c\"");
	challenge_choose(&list, &c);
	assert_int_equal(c.kind, CHALLENGE_BEARER);
	assert_string_equal(c.realm, "t");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "challenge: valid headers are parsed, malformed and unknown ones are ignored",
		  test_headers, NULL, NULL, NULL },
		{ "challenge: Bearer is chosen from several headers", test_several, NULL, NULL,
		  NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
