/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/test-arena.c - tests of base/arena.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <string.h>

#include "base/arena.h"

static void distinct(void **state)
{
	AUTO(arena_done) struct arena a = { 0 };
	char *p[100];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
		p[i] = arena_new(&a, 1 + i * 7);
		assert_int_equal((uintptr_t)p[i] % _Alignof(max_align_t), 0);
		for (size_t k = 0; k < 1 + i * 7; k++)
			assert_int_equal(p[i][k], 0);
		memset(p[i], (int)i, 1 + i * 7);
	}
	for (size_t i = 0; i < ARRAY_SIZE(p); i++)
		for (size_t k = 0; k < 1 + i * 7; k++)
			assert_int_equal(p[i][k], (int)i);
}

static void large(void **state)
{
	AUTO(arena_done) struct arena a = { 0 };
	char *small, *big;

	(void)state;
	small = arena_new(&a, 8);
	big = arena_new(&a, 1 << 20);
	memset(big, 1, 1 << 20);
	assert_int_equal(small[0], 0);
	assert_non_null(arena_new(&a, 0));
}

static void copies(void **state)
{
	AUTO(arena_done) struct arena a = { 0 };
	char text[] = "text", *copy = arena_copy(&a, text);

	(void)state;
	text[0] = 'n';
	assert_string_equal(copy, "text");
	assert_null(arena_copy(&a, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "arena: objects are zeroed, aligned and do not overlap", distinct, NULL, NULL,
		  NULL },
		{ "arena: an object may be larger than a block", large, NULL, NULL, NULL },
		{ "arena: a text is copied", copies, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
