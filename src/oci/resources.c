/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/resources.c - resource limits of a pod or a container
 */
#include "oci/resources.h"

#include <assert.h>

#include "base/json/field.h"
#include "base/json/value.h"

#define AT(member) HW_AT(struct oci_resources, member)

static const struct hw_field hugepage_fields[] = {
	{ "page_size", HW_STRING, HW_AT(struct oci_hugepage, page_size) },
	{ "limit", HW_INT64, HW_AT(struct oci_hugepage, limit) },
	{ 0 },
};

/* The keys are the names that CRI uses, because error texts contain them. */
const struct hw_field oci_resources_fields[] = {
	{ "cpu_period", HW_INT64, AT(cpu_period) },
	{ "cpu_quota", HW_INT64, AT(cpu_quota) },
	{ "cpu_shares", HW_INT64, AT(cpu_shares) },
	{ "memory_limit_in_bytes", HW_INT64, AT(memory_limit) },
	{ "oom_score_adj", HW_INT64, AT(oom_score_adj) },
	{ "cpuset_cpus", HW_STRING, AT(cpuset_cpus) },
	{ "cpuset_mems", HW_STRING, AT(cpuset_mems) },
	{ "hugepage_limits", HW_LIST, AT(hugepages), .sub = hugepage_fields,
	  .size = sizeof(struct oci_hugepage) },
	{ "unified", HW_MAP, AT(unified) },
	{ "memory_swap_limit_in_bytes", HW_INT64, AT(memory_swap_limit) },
	{ "pids_limit", HW_INT64, AT(pids_limit) },
	{ 0 },
};

void resources_done(struct oci_resources *r)
{
	hw_field_clear(oci_resources_fields, r);
}

/* Adds the pages of @update to @pages, or replaces those of the same size. */
static void merge_pages(struct value *pages, const struct value *update)
{
	for (size_t i = 0; i < value_count(update); i++) {
		struct value *page = value_at(update, i), *same = NULL;
		const struct value *size = value_get(page, "page_size");

		for (size_t j = 0; j < value_count(pages) && !same; j++)
			if (value_equal(value_get(value_at(pages, j), "page_size"), size))
				same = value_at(pages, j);
		if (!same) {
			value_append(pages, value_ref(page));
			continue;
		}
		value_remove(same, "limit");
		if (value_get(page, "limit"))
			value_set(same, "limit", value_ref(value_get(page, "limit")));
	}
}

/* The encoded form has only the limits that are set, so its keys replace those of the same name. */
void resources_merge(const struct oci_resources *from, const struct oci_resources *update,
		     struct oci_resources *ret)
{
	AUTO(value_free) struct value *merged = field_encode(oci_resources_fields, from);
	AUTO(value_free) struct value *changes = field_encode(oci_resources_fields, update);
	struct value *member, *file;
	const char *key, *name;
	struct hw_err e;
	int r;

	for (void *i = NULL; value_next(changes, &i, &key, &member);) {
		struct value *old = value_get(merged, key);

		if (old && value_kind(old) == VALUE_ARRAY)
			merge_pages(old, member);
		else if (old && value_kind(old) == VALUE_OBJECT)
			for (void *j = NULL; value_next(member, &j, &name, &file);)
				value_set(old, name, value_ref(file));
		else
			value_set(merged, key, value_ref(member));
	}
	r = field_decode(oci_resources_fields, merged, ret, &e);
	assert(r == 0); /* nothing is required, and each value has its type */
}
