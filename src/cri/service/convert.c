/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/convert.c - parts of CRI messages as structs of pods, and back
 */
#include "cri/service/convert.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "api/cri-v1.pb-c.h"
#include "base/mem.h"
#include "base/str.h"

#define PAGE_SIZES_MAX 64 /* no architecture has so many */

/* ---- maps --------------------------------------------------------------------------- */

/* The fields of a descriptor are sorted by number: first the key, then the value. */
static char **entry_key(ProtobufCMessage *entry)
{
	return (char **)((char *)entry + entry->descriptor->fields[0].offset);
}

static char **entry_value(ProtobufCMessage *entry)
{
	return (char **)((char *)entry + entry->descriptor->fields[1].offset);
}

struct pair {
	const char *key, *value;
	size_t i;
};

static int compare_pairs(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	int order = strcmp(x->key, y->key);

	return order ? order : x->i < y->i ? -1 : 1;
}

void convert_map(void *entries, size_t n, struct hw_map *ret)
{
	autofree struct pair *list = mem_new((n + 1) * sizeof(*list));
	ProtobufCMessage **from = entries;

	*ret = (struct hw_map){ mem_new((n + 1) * sizeof(char *)),
				mem_new((n + 1) * sizeof(char *)), 0 };
	for (size_t i = 0; i < n; i++)
		list[i] = (struct pair){ *entry_key(from[i]), *entry_value(from[i]), i };
	qsort(list, n, sizeof(*list), compare_pairs);
	for (size_t i = 0; i < n; i++) {
		if (i + 1 < n && str_equal(list[i].key, list[i + 1].key))
			continue;
		ret->keys[ret->n] = str_copy(list[i].key);
		ret->values[ret->n++] = str_copy(list[i].value);
	}
}

bool convert_map_contains(const struct hw_map *map, void *entries, size_t n)
{
	ProtobufCMessage **list = entries;

	for (size_t i = 0; i < n; i++) {
		const char *key = *entry_key(list[i]), *value = *entry_value(list[i]);
		bool found = false;

		for (size_t k = 0; k < map->n && !found; k++)
			found = str_equal(map->keys[k], key) && str_equal(map->values[k], value);
		if (!found)
			return false;
	}
	return true;
}

void *convert_entries(struct arena *a, const ProtobufCMessageDescriptor *type,
		      const struct hw_map *map)
{
	ProtobufCMessage **list = arena_new(a, map->n * sizeof(ProtobufCMessage *));

	for (size_t i = 0; i < map->n; i++) {
		list[i] = arena_new(a, type->sizeof_message);
		protobuf_c_message_init(type, list[i]);
		*entry_key(list[i]) = map->keys[i];
		*entry_value(list[i]) = map->values[i];
	}
	return list;
}

const char *convert_deprecated(const ProtobufCMessage *m, const char *field)
{
	const ProtobufCFieldDescriptor *f =
		protobuf_c_message_descriptor_get_field_by_name(m->descriptor, field);

	return *(char *const *)((const char *)m + f->offset);
}

void convert_strings(char **strings, size_t n, struct hw_strings *ret)
{
	*ret = (struct hw_strings){ 0 };
	for (size_t i = 0; i < n; i++)
		strings_add(ret, strings[i]);
}

/* ---- resources ---------------------------------------------------------------------- */

int convert_resources(const Runtime__V1__LinuxContainerResources *m, const char *field,
		      struct oci_resources *ret, struct hw_err *e)
{
	struct oci_hugepage *pages;

	if (m->oom_score_adj < -1000 || m->oom_score_adj > 1000)
		return err_text(e, -EINVAL,
				"%s.oom_score_adj: %" PRId64 " is not in the range -1000 to 1000",
				field, m->oom_score_adj);
	if (m->n_hugepage_limits > PAGE_SIZES_MAX)
		return err_text(e, -EINVAL, "%s.hugepage_limits: more than %d", field,
				PAGE_SIZES_MAX);
	for (size_t i = 0; i < m->n_hugepage_limits; i++)
		if (m->hugepage_limits[i]->limit > INT64_MAX)
			return err_text(e, -EINVAL,
					"%s.hugepage_limits[%zu].limit: %" PRIu64 " is too large",
					field, i, m->hugepage_limits[i]->limit);
	pages = mem_new((m->n_hugepage_limits + 1) * sizeof(*pages));
	for (size_t i = 0; i < m->n_hugepage_limits; i++)
		pages[i] = (struct oci_hugepage){ str_copy(m->hugepage_limits[i]->page_size),
						  (int64_t)m->hugepage_limits[i]->limit };
	*ret = (struct oci_resources){
		.cpu_period = m->cpu_period,
		.cpu_quota = m->cpu_quota,
		.cpu_shares = m->cpu_shares,
		.memory_limit = m->memory_limit_in_bytes,
		.oom_score_adj = m->oom_score_adj,
		.cpuset_cpus = str_copy(m->cpuset_cpus),
		.cpuset_mems = str_copy(m->cpuset_mems),
		.hugepages = { pages, m->n_hugepage_limits },
		.memory_swap_limit = m->memory_swap_limit_in_bytes,
	};
	convert_map(CONVERT_MAP(m, unified), &ret->unified);
	return 0;
}

Runtime__V1__LinuxContainerResources *convert_make_resources(struct arena *a,
							     const struct oci_resources *r)
{
	Runtime__V1__LinuxContainerResources *m = arena_new(a, sizeof(*m));
	const struct oci_hugepage *pages = r->hugepages.v;

	runtime__v1__linux_container_resources__init(m);
	m->cpu_period = r->cpu_period;
	m->cpu_quota = r->cpu_quota;
	m->cpu_shares = r->cpu_shares;
	m->memory_limit_in_bytes = r->memory_limit;
	m->oom_score_adj = r->oom_score_adj;
	m->cpuset_cpus = no_const(str_or(r->cpuset_cpus, ""));
	m->cpuset_mems = no_const(str_or(r->cpuset_mems, ""));
	m->memory_swap_limit_in_bytes = r->memory_swap_limit;
	m->hugepage_limits = arena_new(a, r->hugepages.n * sizeof(Runtime__V1__HugepageLimit *));
	for (; m->n_hugepage_limits < r->hugepages.n; m->n_hugepage_limits++) {
		Runtime__V1__HugepageLimit *page = arena_new(a, sizeof(*page));

		runtime__v1__hugepage_limit__init(page);
		page->page_size = pages[m->n_hugepage_limits].page_size;
		page->limit = (uint64_t)pages[m->n_hugepage_limits].limit;
		m->hugepage_limits[m->n_hugepage_limits] = page;
	}
	m->n_unified = r->unified.n;
	m->unified = convert_entries(
		a, &runtime__v1__linux_container_resources__unified_entry__descriptor, &r->unified);
	return m;
}

/* ---- namespaces --------------------------------------------------------------------- */

struct hw_list convert_mappings(Runtime__V1__IDMapping **list, size_t n)
{
	struct oci_mapping *mappings = mem_new((n + 1) * sizeof(*mappings));

	for (size_t i = 0; i < n; i++)
		mappings[i] = (struct oci_mapping){ list[i]->container_id, list[i]->host_id,
						    list[i]->length };
	return (struct hw_list){ mappings, n };
}

size_t convert_make_mappings(struct arena *a, const struct hw_list *mappings,
			     Runtime__V1__IDMapping ***ret_list)
{
	const struct oci_mapping *from = mappings->v;

	*ret_list = arena_new(a, mappings->n * sizeof(Runtime__V1__IDMapping *));
	for (size_t i = 0; i < mappings->n; i++) {
		Runtime__V1__IDMapping *m = arena_new(a, sizeof(*m));

		runtime__v1__idmapping__init(m);
		m->host_id = from[i].host_id;
		m->container_id = from[i].container_id;
		m->length = from[i].size;
		(*ret_list)[i] = m;
	}
	return mappings->n;
}

void convert_namespaces(const Runtime__V1__NamespaceOption *m, struct pod_namespaces *n)
{
	if (!m)
		return;
	n->network = (int)m->network;
	n->pid = (int)m->pid;
	n->ipc = (int)m->ipc;
	n->target = str_copy(m->target_id);
	n->has_user = m->userns_options != NULL;
	if (!n->has_user)
		return;
	n->user = (int)m->userns_options->mode;
	n->uids = convert_mappings(m->userns_options->uids, m->userns_options->n_uids);
	n->gids = convert_mappings(m->userns_options->gids, m->userns_options->n_gids);
}

/* ---- SELinux ------------------------------------------------------------------------ */

void convert_selinux(const Runtime__V1__SELinuxOption *m, struct pod_selinux *label)
{
	if (!m)
		return;
	label->user = str_copy(m->user);
	label->role = str_copy(m->role);
	label->type = str_copy(m->type);
	label->level = str_copy(m->level);
}
