/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/spec/test-pod.h - specs for the unit tests of this folder
 */
#ifndef POD_SPEC_TEST_POD_H
#define POD_SPEC_TEST_POD_H

#include "base/mem.h"
#include "base/str.h"
#include "pod/spec/spec.h"

/* Return: the smallest valid spec, not sealed */
static inline struct pod_spec *test_spec(const char *name)
{
	struct pod_spec *spec = pod_spec_new();

	spec->name = str_copy(name);
	spec->namespace = str_copy("default");
	spec->uid = str_printf("uid-%s", name);
	return spec;
}

static inline void test_set(struct hw_map *map, const char *key, const char *value)
{
	map->keys = mem_resize(map->keys, map->n + 1, sizeof(char *));
	map->values = mem_resize(map->values, map->n + 1, sizeof(char *));
	map->keys[map->n] = str_copy(key);
	map->values[map->n++] = str_copy(value);
}

#endif
