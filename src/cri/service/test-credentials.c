/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/test-credentials.c - selection of the credentials in a request
 */
#include "cri/service/credentials.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>

#include "base/str.h"

/* @expected: "user/password/identity/registry" */
static void expect_chosen(const struct credentials_given *given, const char *image,
			  const char *expected)
{
	AUTO(credentials_done) struct credentials c = { 0 };
	AUTO(reference_done) struct reference ref = { 0 };
	autofree char *text = NULL;
	struct hw_err e;

	assert_int_equal(reference_parse(image, &ref, &e), 0);
	assert_int_equal(credentials_choose(given, &ref, &c, &e), 0);
	text = str_printf("%s/%s/%s/%s", str_or(c.username, "-"), str_or(c.password, "-"),
			  str_or(c.identity_token, "-"), str_or(c.registry_token, "-"));
	assert_string_equal(text, expected);
}

static void precedence(void **state)
{
	struct credentials_given given = {
		.username = "u",
		.password = "p",
		.auth = "YTpiOmM=",
		.identity_token = "i",
		.registry_token = "r",
		.server_address = "",
	};

	(void)state;
	expect_chosen(&given, "busybox", "u/p/-/-");
	given.username = "";
	expect_chosen(&given, "busybox", "-/-/i/-");
	given.identity_token = NULL;
	expect_chosen(&given, "busybox", "a/b:c/-/-");
	given.auth = "";
	expect_chosen(&given, "busybox", "-/-/-/r");
	given.registry_token = "";
	expect_chosen(&given, "busybox", "-/-/-/-");
}

static void registries(void **state)
{
	struct credentials_given given = { .username = "u", .password = "p" };
	static const struct {
		const char *address, *image;
		bool same;
	} rows[] = {
		{ "https://index.docker.io/v1/", "busybox", true },
		{ "docker.io", "busybox", true },
		{ "docker.io", "quay.io/a", false },
		{ "registry:5000", "registry:5000/a", true },
		{ "https://registry:5000/v2/", "registry:5000/a", true },
		{ "registry:5001", "registry:5000/a", false },
		{ "registry", "registry:5000/a", false },
		{ "https://evil.example/registry:5000", "registry:5000/a", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		given.server_address = rows[i].address;
		expect_chosen(&given, rows[i].image, rows[i].same ? "u/p/-/-" : "-/-/-/-");
	}
}

static void auth(void **state)
{
	static const char *const wrong[] = { "!", "YQ", "YWJj" };
	AUTO(reference_done) struct reference ref = { 0 };
	struct hw_err e;

	(void)state;
	/* "u:p" and three NULs */
	expect_chosen(&(struct credentials_given){ .auth = "dTpwAAAA" }, "busybox", "u/p/-/-");
	assert_int_equal(reference_parse("busybox", &ref, &e), 0);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct credentials c = { 0 };

		assert_int_equal(credentials_choose(&(struct credentials_given){ .auth = wrong[i] },
						    &ref, &c, &e),
				 -EINVAL);
		assert_null(c.username);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "credentials: if several kinds are given, the one with the highest precedence is "
		  "used",
		  precedence },
		{ "credentials: credentials for another registry are ignored", registries },
		{ "credentials: auth is decoded to name and password, malformed auth is rejected",
		  auth },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
