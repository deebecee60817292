/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/shared.c - reference-counted objects, and slots in which the current one is published
 *
 * How:   the count is the only member that changes after publication, so the objects are const for
 *        everybody else. The slot's lock makes "read the pointer and count a reference" one step.
 */
#include "base/shared.h"

#include <stdint.h>

static struct shared *shared_of(const void *object)
{
	return (struct shared *)(uintptr_t)object;
}

void shared_init(struct shared *s, void (*free)(void *object))
{
	*s = (struct shared){ .refs = 1, .free = free };
}

void *shared_ref(const void *object)
{
	__atomic_add_fetch(&shared_of(object)->refs, 1, __ATOMIC_RELAXED);
	return shared_of(object);
}

void shared_unref(const void *object)
{
	struct shared *s = shared_of(object);

	if (s && __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL) == 0)
		s->free(s);
}

void auto_shared_unref(void *p)
{
	shared_unref(*(void **)p);
}

void slot_init(struct slot *s, const struct shared *first)
{
	pthread_mutex_init(&s->lock, NULL);
	s->current = first;
}

void slot_done(struct slot *s)
{
	shared_unref(s->current);
	s->current = NULL;
	pthread_mutex_destroy(&s->lock);
}

void *slot_get(struct slot *s)
{
	void *object;

	pthread_mutex_lock(&s->lock);
	object = s->current ? shared_ref(s->current) : NULL;
	pthread_mutex_unlock(&s->lock);
	return object;
}

void slot_publish(struct slot *s, const struct shared *next)
{
	const struct shared *before;

	pthread_mutex_lock(&s->lock);
	before = s->current;
	s->current = next;
	pthread_mutex_unlock(&s->lock);
	shared_unref(before);
}
