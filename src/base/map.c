/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/map.c - hash map from strings to pointers, iterated in insertion order
 *
 * How:   entries are stored in an array in insertion order. A hash table with
 *        twice as many slots holds indices into that array; it uses linear
 *        probing. A removed entry stays in the array with a NULL key, so that
 *        probing continues past it. Removed entries are dropped when the array
 *        is full.
 */
#include "base/map.h"

#include <stdint.h>
#include <string.h>

#include "base/str.h"

#define MAP_FIRST_ROOM 8

struct map_entry {
	char *key; /* NULL: the entry was removed */
	void *value;
	uint32_t hash;
};

struct map {
	void (*free_value)(void *value);
	struct map_entry *entries;
	size_t used;   /* number of entries, including removed ones */
	size_t count;  /* number of entries, without removed ones */
	size_t room;   /* allocated entries: a power of two, or 0 */
	size_t *slots; /* 2 * room slots; each is 1 + an index into entries, or 0: unused */
};

/* FNV-1a */
static uint32_t hash_key(const char *key)
{
	uint32_t h = 2166136261U;

	for (; *key; key++)
		h = (h ^ (unsigned char)*key) * 16777619U;
	return h;
}

struct map *map_new(void (*free_value)(void *value))
{
	struct map *m = mem_new(sizeof(*m));

	m->free_value = free_value;
	return m;
}

void map_free(struct map *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->used; i++) {
		if (m->entries[i].key && m->free_value)
			m->free_value(m->entries[i].value);
		free(m->entries[i].key);
	}
	free(m->entries);
	free(m->slots);
	free(m);
}

static struct map_entry *find_entry(const struct map *m, const char *key)
{
	size_t mask = 2 * m->room - 1;
	uint32_t hash = hash_key(key);

	if (m->room == 0)
		return NULL;
	for (size_t s = hash & mask; m->slots[s]; s = (s + 1) & mask) {
		struct map_entry *entry = &m->entries[m->slots[s] - 1];

		if (entry->key && entry->hash == hash && str_equal(entry->key, key))
			return entry;
	}
	return NULL;
}

static void add_to_index(struct map *m, size_t i)
{
	size_t mask = 2 * m->room - 1, s = m->entries[i].hash & mask;

	while (m->slots[s])
		s = (s + 1) & mask;
	m->slots[s] = i + 1;
}

/* Drops removed entries, and doubles the capacity if at least half of it is still in use. */
static void make_room(struct map *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->used; i++)
		if (m->entries[i].key)
			m->entries[kept++] = m->entries[i];
	m->used = kept;
	if (kept >= m->room / 2)
		m->room = m->room ? 2 * m->room : MAP_FIRST_ROOM;

	m->entries = mem_resize(m->entries, m->room, sizeof(*m->entries));
	m->slots = mem_resize(m->slots, 2 * m->room, sizeof(*m->slots));
	memset(m->slots, 0, 2 * m->room * sizeof(*m->slots));
	for (size_t i = 0; i < kept; i++)
		add_to_index(m, i);
}

void *map_find(const struct map *m, const char *key)
{
	struct map_entry *entry = find_entry(m, key);

	return entry ? entry->value : NULL;
}

void map_set(struct map *m, const char *key, void *value)
{
	struct map_entry *entry = find_entry(m, key);

	if (entry) {
		if (m->free_value && entry->value != value)
			m->free_value(entry->value);
		entry->value = value;
		return;
	}
	if (m->used == m->room)
		make_room(m);
	m->entries[m->used] =
		(struct map_entry){ .key = str_copy(key), .value = value, .hash = hash_key(key) };
	add_to_index(m, m->used++);
	m->count++;
}

void *map_take(struct map *m, const char *key)
{
	struct map_entry *entry;

	entry = find_entry(m, key);
	if (!entry)
		return NULL;
	free(take_ptr(entry->key));
	m->count--;
	return entry->value;
}

size_t map_count(const struct map *m)
{
	return m->count;
}

bool map_next(const struct map *m, size_t *i, const char **ret_key, void **ret_value)
{
	while (*i < m->used) {
		const struct map_entry *entry = &m->entries[(*i)++];

		if (!entry->key)
			continue;
		*ret_key = entry->key;
		*ret_value = entry->value;
		return true;
	}
	return false;
}
