/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/test-environment.c - which variables a program gets
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/mem.h"
#include "base/os/environment.h"

static void assert_selected(const char *const *all, const char *const *wanted,
			    const char *const *want)
{
	autofree const char **list = environment_select(all, wanted);
	size_t n = 0;

	for (; list[n] && want[n]; n++)
		assert_string_equal(list[n], want[n]);
	assert_ptr_equal(list[n], NULL);
	assert_ptr_equal(want[n], NULL);
}

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static const char *const all[] = { "A=1",    "AB=2",   "ETCD_=3", "ETCD_KEY=4=5",
				   "ETCD=6", "EMPTY=", NULL };

static void names(void **state)
{
	(void)state;
	assert_selected(all, LIST("A", "EMPTY", "UNSET"), LIST("A=1", "EMPTY="));
	assert_selected(all, LIST("a", "B", "A=", ""), LIST("A="));
}

static void prefixes(void **state)
{
	(void)state;
	assert_selected(all, LIST("ETCD_*"), LIST("ETCD_=3", "ETCD_KEY=4=5"));
	assert_selected(all, LIST("ETCD_KEY=*"), LIST("ETCD_KEY=*"));
	assert_selected(all, LIST("A*"), LIST("A=1", "AB=2"));
}

static void added(void **state)
{
	(void)state;
	assert_selected(all, LIST("A=7", "AB"), LIST("AB=2", "A=7"));
	assert_selected(NULL, LIST("A=7"), LIST("A=7"));
}

static void nothing(void **state)
{
	(void)state;
	assert_selected(all, NULL, LIST(NULL));
	assert_selected(NULL, NULL, LIST(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "environment: variables are selected by name", names, NULL, NULL, NULL },
		{ "environment: PREFIX* selects all variables whose names begin so", prefixes, NULL,
		  NULL, NULL },
		{ "environment: NAME=VALUE is added and replaces the variable", added, NULL, NULL,
		  NULL },
		{ "environment: nothing is selected if nothing is wanted", nothing, NULL, NULL,
		  NULL },
	};

	return cmocka_run_group_tests_name("environment", tests, NULL, NULL);
}
