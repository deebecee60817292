/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/layer/expected.c - the names that a layer's tree should have, in bounded memory
 *
 * How:   a hash table with linear probing, at most half full. It grows up to the maximum, so that
 *        small layers need little memory.
 */
#include "fetch/layer/expected.h"

#include <string.h>

#include "fetch/codec/sha256.h"

#define FIRST_SLOTS 256

struct expected {
	uint32_t part, parts;
	size_t n, max;
	struct expected_name *slots;
	size_t n_slots; /* a power of two, at least 2 * n */
	struct sha256 *hash;
};

struct expected *expected_new(uint32_t part, uint32_t parts, size_t max)
{
	struct expected *x = mem_new(sizeof(*x));

	x->part = part;
	x->parts = parts;
	x->max = max;
	x->n_slots = FIRST_SLOTS;
	x->slots = mem_new(x->n_slots * sizeof(*x->slots));
	x->hash = sha256_new();
	return x;
}

void expected_free(struct expected *x)
{
	if (!x)
		return;
	sha256_free(x->hash);
	free(x->slots);
	free(x);
}

uint64_t expected_key(struct expected *x, ino_t dir, const char *name)
{
	uint8_t sum[DIGEST_SIZE];
	uint64_t key;

	sha256_begin(x->hash);
	sha256_add(x->hash, &dir, sizeof(dir));
	sha256_add(x->hash, name, strlen(name));
	sha256_end(x->hash, sum);
	memcpy(&key, sum, sizeof(key));
	return key ? key : 1;
}

bool expected_in_pass(const struct expected *x, uint64_t key)
{
	return (key & (x->parts - 1)) == x->part;
}

/* Return: the slot of the key, or the unused slot for it */
static struct expected_name *find_slot(const struct expected *x, uint64_t key)
{
	/* the upper bits, because the lower ones are the same for all keys of a pass */
	size_t i = (key >> 32) & (x->n_slots - 1);

	while (x->slots[i].key && x->slots[i].key != key)
		i = (i + 1) & (x->n_slots - 1);
	return &x->slots[i];
}

struct expected_name *expected_find(const struct expected *x, uint64_t key)
{
	struct expected_name *slot = find_slot(x, key);

	return slot->key ? slot : NULL;
}

/* Moves the names of this pass to a new table. The old one is freed before, to save memory. */
static void rebuild_table(struct expected *x, size_t n_slots)
{
	autofree struct expected_name *kept = mem_new(x->n * sizeof(*kept));
	size_t n = 0;

	for (size_t i = 0; i < x->n_slots; i++)
		if (x->slots[i].key && expected_in_pass(x, x->slots[i].key))
			kept[n++] = x->slots[i];
	free(x->slots);
	x->slots = mem_new(n_slots * sizeof(*x->slots));
	x->n_slots = n_slots;
	x->n = n;
	for (size_t i = 0; i < n; i++)
		*find_slot(x, kept[i].key) = kept[i];
}

struct expected_name *expected_add(struct expected *x, uint64_t key, enum expected_kind kind)
{
	struct expected_name *name;

	name = expected_find(x, key);
	while (!name) {
		if (x->n == x->max) {
			x->parts *= 2;
			rebuild_table(x, x->n_slots);
		}
		if (!expected_in_pass(x, key))
			return NULL;
		if (x->n == x->max)
			continue; /* all names are in the half that was kept */
		if (2 * x->n >= x->n_slots)
			rebuild_table(x, 2 * x->n_slots);
		name = find_slot(x, key);
		*name = (struct expected_name){ .key = key };
		x->n++;
	}
	if (kind > name->kind)
		name->kind = (uint8_t)kind;
	return name;
}

uint32_t expected_parts(const struct expected *x)
{
	return x->parts;
}
