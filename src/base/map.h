/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/map.h - strings to pointers, by hash, iterated in insertion order
 *
 * The map copies its keys; the values belong to the caller unless free_value
 * was given.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"

struct map;

struct map *map_new(void (*free_value)(void *value));
void map_free(struct map *m);
void *map_find(const struct map *m, const char *key);	   /* NULL: not there */
void map_set(struct map *m, const char *key, void *value); /* replaces, frees the old value */
void *map_take(struct map *m, const char *key);		   /* removes and hands over */
size_t map_count(const struct map *m);
/* for (size_t i = 0; map_next(m, &i, &key, &value);) ... ; no changes meanwhile */
bool map_next(const struct map *m, size_t *i, const char **ret_key, void **ret_value);

AUTO_DEFINE(map_free, struct map);

#endif
