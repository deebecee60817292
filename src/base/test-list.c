/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/test-list.c - intrusive doubly linked list
 */
#include "base/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <stdlib.h>

#include "base/mem.h"

struct item {
	int n;
	struct list link;
};

static struct item *item_new(int n)
{
	struct item *item = mem_new(sizeof(*item));

	item->n = n;
	return item;
}

/* Return: a number whose digits are the numbers in the list */
static int digits(struct list *l)
{
	int all = 0;

	list_for_each(struct item, i, l, link)
		all = 10 * all + i->n;
	return all;
}

static void keeps_order(void **state)
{
	struct list l = LIST_INIT(l);
	struct item a = { 1 }, b = { 2 }, c = { 3 }, d = { 4 };

	(void)state;
	assert_true(list_is_empty(&l));
	list_append(&l, &b.link);
	list_append(&l, &c.link);
	list_prepend(&l, &a.link);
	assert_int_equal(digits(&l), 123);
	list_insert_before(&c.link, &d.link);
	assert_int_equal(digits(&l), 1243);
	assert_false(list_is_empty(&l));
}

static void removes(void **state)
{
	struct list l;
	struct item a = { 1 }, b = { 2 }, c = { 3 };

	(void)state;
	list_init(&l);
	list_append(&l, &a.link);
	list_append(&l, &b.link);
	list_append(&l, &c.link);
	list_remove(&b.link);
	list_remove(&b.link);
	assert_int_equal(digits(&l), 13);
	list_append(&l, &b.link);
	assert_int_equal(digits(&l), 132);
	list_remove(&a.link);
	list_remove(&b.link);
	list_remove(&c.link);
	assert_true(list_is_empty(&l));
}

static void frees_while_iterating(void **state)
{
	struct list l = LIST_INIT(l);

	(void)state;
	for (int n = 1; n <= 6; n++)
		list_append(&l, &item_new(n)->link);
	list_for_each_safe(struct item, i, &l, link) {
		if (i->n % 2)
			continue;
		list_remove(&i->link);
		free(i);
	}
	assert_int_equal(digits(&l), 135);
	list_for_each_safe(struct item, i, &l, link) {
		list_remove(&i->link);
		free(i);
	}
	assert_true(list_is_empty(&l));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "list: entries are appended, prepended and inserted in the expected order",
		  keeps_order },
		{ "list: an entry can be removed twice and added again", removes },
		{ "list: entries can be freed while iterating", frees_while_iterating },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
