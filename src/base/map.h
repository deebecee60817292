/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/map.h - hash map from strings to pointers, iterated in insertion order
 *
 * The map copies its keys. The caller owns the values, unless the map was created with free_value.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"

struct map;

struct map *map_new(void (*free_value)(void *value)); /* free_value may be NULL */
void map_free(struct map *m);
void *map_find(const struct map *m, const char *key); /* NULL if not found */
/* Adds a key, or replaces its value. A replaced value is freed by free_value, and the key keeps its
 * position. */
void map_set(struct map *m, const char *key, void *value);
/* Removes a key. Return: its value, now owned by the caller; NULL if not found */
void *map_take(struct map *m, const char *key);
size_t map_count(const struct map *m);
/* for (size_t i = 0; map_next(m, &i, &key, &value);) ...
 * The map must not be changed during the iteration. */
bool map_next(const struct map *m, size_t *i, const char **ret_key, void **ret_value);

AUTO_DEFINE(map_free, struct map);

#endif
