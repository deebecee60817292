/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/arena.h - memory that is freed together
 *
 * For trees of small objects that are built, used and freed as a whole, such as a response.
 *
 *	AUTO(arena_done) struct arena a = { 0 };
 *	x = arena_new(&a, sizeof(*x));
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

#include "base/mem.h"

struct arena {
	struct arena_block *blocks;
};

/* Return: zeroed memory, aligned for every type, valid until arena_done() */
void *arena_new(struct arena *a, size_t size);
/* Return: a copy; NULL for NULL */
char *arena_copy(struct arena *a, const char *text);
void arena_done(struct arena *a);

AUTO_VALUE_DEFINE(arena_done, struct arena);

#endif
