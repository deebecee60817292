/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/test-shared.c - reference-counted objects, and slots in which the current one is published
 */
#include "base/shared.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/os/thread.h"

#define READERS 2
#define ROUNDS	20000

struct object {
	struct shared shared;
	int a, b; /* equal in every published object */
};

static int n_objects;

static void object_free(void *object)
{
	__atomic_sub_fetch(&n_objects, 1, __ATOMIC_RELAXED);
	free(object);
}

static struct object *object_new(int value)
{
	struct object *o = mem_new(sizeof(*o));

	shared_init(&o->shared, object_free);
	o->a = o->b = value;
	__atomic_add_fetch(&n_objects, 1, __ATOMIC_RELAXED);
	return o;
}

static void frees_with_the_last_reference(void **state)
{
	struct object *o = object_new(1);

	(void)state;
	assert_ptr_equal(shared_ref(o), o);
	shared_unref(o);
	assert_int_equal(n_objects, 1);
	shared_unref(o);
	assert_int_equal(n_objects, 0);
	shared_unref(NULL);
	{
		AUTO(shared_unref) const struct object *in_scope = object_new(2);

		assert_int_equal(in_scope->a, 2);
	}
	assert_int_equal(n_objects, 0);
}

static void keeps_what_readers_use(void **state)
{
	struct object *first, *second;
	struct slot slot;

	(void)state;
	slot_init(&slot, NULL);
	assert_null(slot_get(&slot));
	slot_publish(&slot, &object_new(1)->shared);
	first = slot_get(&slot);
	slot_publish(&slot, &object_new(2)->shared);
	second = slot_get(&slot);
	assert_int_equal(first->a, 1);
	assert_int_equal(second->a, 2);
	shared_unref(first);
	assert_int_equal(n_objects, 1);
	slot_done(&slot);
	assert_int_equal(second->b, 2);
	shared_unref(second);
	assert_int_equal(n_objects, 0);
}

static void *read_objects(void *arg)
{
	uintptr_t differences = 0;

	for (int i = 0; i < ROUNDS; i++) {
		struct object *o = slot_get(arg);

		differences += o->a != o->b;
		shared_unref(o);
	}
	return (void *)differences;
}

static void serves_threads(void **state)
{
	pthread_t threads[READERS];
	struct slot slot;
	struct hw_err e;

	(void)state;
	slot_init(&slot, &object_new(0)->shared);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(thread_start(read_objects, &slot, &threads[i], &e), 0);
	for (int i = 0; i < ROUNDS; i++)
		slot_publish(&slot, &object_new(i)->shared);
	for (int i = 0; i < READERS; i++) {
		void *differences;

		pthread_join(threads[i], &differences);
		assert_null(differences);
	}
	slot_done(&slot);
	assert_int_equal(n_objects, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "shared: an object is freed with its last reference",
		  frees_with_the_last_reference },
		{ "shared: a reader keeps its object when another one is published",
		  keeps_what_readers_use },
		{ "shared: threads read complete objects while a thread publishes new ones",
		  serves_threads },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
