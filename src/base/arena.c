/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/arena.c - memory that is freed together
 */
#include "base/arena.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#define BLOCK_SIZE (16 << 10)
#define ALIGNMENT  _Alignof(max_align_t)

struct arena_block {
	struct arena_block *next;
	size_t used, size;
	max_align_t data[];
};

static struct arena_block *add_block(struct arena *a, size_t size)
{
	struct arena_block *block = mem_new(sizeof(*block) + size);

	block->size = size;
	block->next = a->blocks;
	a->blocks = block;
	return block;
}

void *arena_new(struct arena *a, size_t size)
{
	struct arena_block *block = a->blocks;
	void *p;

	assert(size <= SIZE_MAX / 2);
	size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (!block || block->size - block->used < size)
		block = add_block(a, size > BLOCK_SIZE ? size : BLOCK_SIZE);
	p = (char *)block->data + block->used;
	block->used += size;
	return p;
}

char *arena_copy(struct arena *a, const char *text)
{
	size_t size = text ? strlen(text) + 1 : 0;

	return text ? memcpy(arena_new(a, size), text, size) : NULL;
}

void arena_done(struct arena *a)
{
	while (a->blocks) {
		struct arena_block *block = a->blocks;

		a->blocks = block->next;
		free(block);
	}
}
