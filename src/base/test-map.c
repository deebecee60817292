/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/test-map.c - hash map from strings to pointers
 */
#include "base/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/str.h"

static char *format_entries(const struct map *m)
{
	AUTO(buf_done) struct buf b = { 0 };
	const char *key;
	void *value;

	for (size_t i = 0; map_next(m, &i, &key, &value);)
		buf_printf(&b, "%s=%s ", key, (const char *)value);
	return buf_take(&b);
}

static void finds_values(void **state)
{
	AUTO(map_free) struct map *m = map_new(NULL);
	char key[] = "a", one[] = "1", two[] = "2";

	(void)state;
	assert_null(map_find(m, "a"));
	map_set(m, key, one);
	key[0] = 'b';
	map_set(m, key, two);
	assert_ptr_equal(map_find(m, "a"), one);
	assert_ptr_equal(map_find(m, "b"), two);
	assert_null(map_find(m, ""));
	assert_int_equal(map_count(m), 2);
}

static void keeps_insertion_order(void **state)
{
	AUTO(map_free) struct map *m = map_new(free);
	autofree char *before = NULL, *after = NULL;

	(void)state;
	map_set(m, "z", str_copy("1"));
	map_set(m, "a", str_copy("2"));
	map_set(m, "m", str_copy("3"));
	map_set(m, "z", str_copy("4"));
	before = format_entries(m);
	assert_string_equal(before, "z=4 a=2 m=3 ");
	free(map_take(m, "z"));
	map_set(m, "z", str_copy("5"));
	after = format_entries(m);
	assert_string_equal(after, "a=2 m=3 z=5 ");
}

static void take_removes_the_key(void **state)
{
	AUTO(map_free) struct map *m = map_new(free);
	autofree char *value = NULL;

	(void)state;
	map_set(m, "k", str_copy("v"));
	value = map_take(m, "k");
	assert_string_equal(value, "v");
	assert_null(map_take(m, "k"));
	assert_null(map_find(m, "k"));
	assert_int_equal(map_count(m), 0);
}

/* Adds 20000 keys, and removes each key after 50 others were added: the space of removed entries is
 * reused. */
static void survives_many_changes(void **state)
{
	AUTO(map_free) struct map *m = map_new(free);

	(void)state;
	for (int i = 0; i < 20000; i++) {
		autofree char *key = str_printf("key-%d", i), *old = str_printf("key-%d", i - 50);
		autofree char *taken = map_take(m, old);

		assert_int_equal(taken != NULL, i >= 50);
		map_set(m, key, str_printf("%d", i));
	}
	assert_int_equal(map_count(m), 50);
	for (int i = 20000 - 50; i < 20000; i++) {
		autofree char *key = str_printf("key-%d", i), *value = str_printf("%d", i);

		assert_string_equal(map_find(m, key), value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "map: values are found by a copy of the key", finds_values },
		{ "map: iteration is in insertion order", keeps_insertion_order },
		{ "map: map_take() returns the value and removes the key", take_removes_the_key },
		{ "map: the map stays correct after many additions and removals",
		  survives_many_changes },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
