/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/test-auth.c - secrets do not stay in freed memory
 *
 * Tests of the protocol are in test/image/test_fetch_auth.py.
 */
#include "fetch/registry/auth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* Longer than the buffer with which vasprintf() begins, so that str_printf() would move it. */
#define SECRET_LEN 300

/* The secret is generated: a constant would be found in the program itself. */
static void make_secret(char *ret_secret)
{
	for (size_t i = 0; i < SECRET_LEN; i++)
		ret_secret[i] = (char)('a' + i * 7 % 26);
	ret_secret[SECRET_LEN] = '\0';
}

/* Is the end of the secret on the heap? The allocator overwrites the start of a freed block. */
static bool is_on_heap(const char *secret)
{
	const char *tail = secret + SECRET_LEN / 2;
	bool found = false;
	char line[512], *dash;
	FILE *maps = fopen("/proc/self/maps", "re");

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		uintptr_t start, end;

		if (!strstr(line, "[heap]"))
			continue;
		start = strtoul(line, &dash, 16);
		end = strtoul(dash + 1, NULL, 16);
		found = found || memmem((void *)start, end - start, tail, SECRET_LEN / 2);
	}
	fclose(maps);
	return found;
}

static void test_secrets(void **state)
{
	struct credentials c = { 0 };
	char secret[SECRET_LEN + 1];
	unsigned int generation;
	struct auth *a;
	char *header;

	(void)state;
	make_secret(secret);
	c.registry_token = str_copy(secret);
	a = auth_new("https://registry.example", "app", &c);
	header = auth_header(a, &generation);
	assert_true(str_ends(header, secret));
	str_wipe(header);
	assert_true(is_on_heap(secret)); /* this test finds a secret where there is one */
	auth_free(a);
	assert_false(is_on_heap(secret));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "auth: freeing overwrites the credentials and the header", test_secrets },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
