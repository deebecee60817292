/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/shared.h - reference-counted objects, and slots in which the current one is published
 *
 *	struct view { struct shared shared; ... };
 *	shared_init(&view->shared, view_free);
 *	slot_publish(&slot, &view->shared);          a writer replaces the current view
 *	v = slot_get(&slot); ... shared_unref(v);    a reader uses the view that was current
 *
 * An object starts with a struct shared, and it does not change once it is published: readers need
 * no lock, and they never wait for a writer that prepares the next object.
 */
#ifndef BASE_SHARED_H
#define BASE_SHARED_H

#include <pthread.h>

struct shared {
	unsigned refs;
	void (*free)(void *object);
};

struct slot {
	pthread_mutex_t lock; /* protects the pointer only */
	const struct shared *current;
};

/* The caller has the only reference. @free is called when the last one is dropped. */
void shared_init(struct shared *s, void (*free)(void *object));

/* @object: starts with a struct shared. Return: @object */
void *shared_ref(const void *object);

/* NULL is allowed. AUTO(shared_unref) is for pointers to every type of object. */
void shared_unref(const void *object);
void auto_shared_unref(void *p); /* p points to a pointer variable */

/* Takes over the caller's reference to @first, which may be NULL. */
void slot_init(struct slot *s, const struct shared *first);
void slot_done(struct slot *s);

/* Return: a new reference to the current object; NULL if the slot is empty */
void *slot_get(struct slot *s);

/* Replaces the current object; takes over the caller's reference to @next. */
void slot_publish(struct slot *s, const struct shared *next);

#endif
