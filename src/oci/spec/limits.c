/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/limits.c - resource limits in the cgroup of a container
 */
#include "oci/spec/limits.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/str.h"

/* ---- what the host can limit ------------------------------------------------------------------- */

/* As the kernel names the files: hugetlb.2MB.max */
static int add_page_size(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	static const char units[] = "KMG";
	struct spec_host *host = ctx;
	autofree char *text = NULL;
	static const char prefix[] = "hugepages-";
	unsigned long kb;
	size_t unit = 0;

	(void)e;
	if (!str_starts(entry->name, prefix))
		return 0;
	kb = strtoul(entry->name + strlen(prefix), NULL, 10);
	for (; kb >= 1024 && unit < 2; unit++)
		kb /= 1024;
	text = str_printf("%lu%cB", kb, units[unit]);
	strings_add(&host->page_sizes, text);
	return 0;
}

static bool exists(const char *directory, const char *file)
{
	autofree char *path = str_printf("%s%s", directory, file);

	return access(path, F_OK) == 0;
}

int spec_host_init(struct spec_host *ret_host, const struct cgroup_fs *fs, const char *root,
		   struct hw_err *e)
{
	const struct cgroup_hierarchy *memory = cgroup_find_hierarchy(fs, "memory");
	const struct cgroup_hierarchy *hugetlb = cgroup_find_hierarchy(fs, "hugetlb");
	AUTO(spec_host_done) struct spec_host host = { .v2 = fs->mode == CGROUP_V2 };
	autofree char *sizes = str_printf("%s/sys/kernel/mm/hugepages", root);
	int r;

	/* the root of v2 has no memory.swap.max, but every kernel with swap has it below */
	if (memory && memory->v2 == host.v2)
		host.swap = host.v2 ? exists(root, "/proc/swaps")
				    : exists(memory->dir, "/memory.memsw.limit_in_bytes");
	/* beside v1, crun does not use the controllers of v2 */
	if (hugetlb && hugetlb->v2 == host.v2) {
		r = file_walk(AT_FDCWD, sizes, add_page_size, &host, e);
		if (r < 0 && r != -ENOENT)
			return r;
	}
	*ret_host = host;
	host = (struct spec_host){ 0 };
	return 0;
}

void spec_host_done(struct spec_host *host)
{
	hw_strings_free(&host->page_sizes);
}

/* ---- limits -------------------------------------------------------------------------------------- */

static int check_numbers(const struct oci_resources *r, struct hw_err *e)
{
	const struct {
		const char *name;
		int64_t value, min;
	} v[] = {
		{ "cpu_period", r->cpu_period, 0 },
		{ "cpu_quota", r->cpu_quota, -1 },
		{ "cpu_shares", r->cpu_shares, 0 },
		{ "memory_limit_in_bytes", r->memory_limit, -1 },
		{ "memory_swap_limit_in_bytes", r->memory_swap_limit, -1 },
		{ "pids_limit", r->pids_limit, -1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		if (v[i].value < v[i].min)
			return err_text(e, -EINVAL, "%s: invalid value %" PRId64, v[i].name,
					v[i].value);
	return 0;
}

static int set_swap(struct oci_limits *ret, const struct oci_resources *r,
		    const struct spec_host *host, struct hw_err *e)
{
	int64_t swap = r->memory_swap_limit ? r->memory_swap_limit : r->memory_limit;

	if (swap > 0 && (r->memory_limit <= 0 || swap < r->memory_limit))
		return err_text(e, -EINVAL,
				"memory_swap_limit_in_bytes: %" PRId64
				" is less than memory_limit_in_bytes",
				swap);
	if (host->swap)
		ret->swap = swap;
	else if (swap > r->memory_limit)
		return err_text(e, -EINVAL,
				"memory_swap_limit_in_bytes: this kernel does not limit swap");
	return 0;
}

static int set_hugepages(struct oci_limits *ret, const struct oci_resources *r,
			 const struct spec_host *host, struct hw_err *e)
{
	const struct oci_hugepage *v = r->hugepages.v;

	for (size_t i = 0; i < r->hugepages.n; i++) {
		struct oci_hugepage_limit *limit;

		if (v[i].limit < 0)
			return err_text(e, -EINVAL, "hugepage_limits: invalid value %" PRId64,
					v[i].limit);
		if (!strings_has(&host->page_sizes, str_or(v[i].page_size, ""))) {
			if (v[i].limit == 0)
				continue;
			return err_text(
				e, -EINVAL,
				"hugepage_limits: this kernel does not limit pages of %.100s",
				str_or(v[i].page_size, "\"\""));
		}
		limit = spec_append(&ret->hugepages, sizeof(*limit));
		*limit = (struct oci_hugepage_limit){ str_copy(v[i].page_size), v[i].limit };
	}
	return 0;
}

/* A file of a controller: CONTROLLER.NAME */
static bool is_file_name(const char *name)
{
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '_' && *c != '.')
			return false;
	return isalnum((unsigned char)name[0]) && strchr(name, '.');
}

static int set_unified(struct oci_limits *ret, const struct oci_resources *r,
		       const struct spec_host *host, struct hw_err *e)
{
	const struct hw_map *from = &r->unified;
	struct hw_map *to = &ret->unified;

	if (from->n == 0)
		return 0;
	if (!host->v2)
		return err_text(e, -EINVAL, "unified: this host has cgroup v1");
	for (size_t i = 0; i < from->n; i++)
		if (!is_file_name(from->keys[i]))
			return err_text(e, -EINVAL, "unified: invalid name \"%.100s\"",
					from->keys[i]);
	to->keys = mem_new(from->n * sizeof(*to->keys));
	to->values = mem_new(from->n * sizeof(*to->values));
	for (; to->n < from->n; to->n++) {
		to->keys[to->n] = str_copy(from->keys[to->n]);
		to->values[to->n] = str_copy(from->values[to->n]);
	}
	return 0;
}

int spec_limits_init(struct oci_limits *ret, const struct oci_resources *r,
		     const struct spec_host *host, struct hw_err *e)
{
	AUTO(spec_limits_done)
	struct oci_limits limits = {
		.memory = r->memory_limit,
		.cpu_shares = r->cpu_shares,
		.cpu_quota = r->cpu_quota,
		.cpu_period = r->cpu_period,
		.cpus = str_copy(r->cpuset_cpus),
		.mems = str_copy(r->cpuset_mems),
		.pids = r->pids_limit,
	};

	if (check_numbers(r, e) < 0 || set_swap(&limits, r, host, e) < 0 ||
	    set_hugepages(&limits, r, host, e) < 0 || set_unified(&limits, r, host, e) < 0)
		return e->code;
	*ret = limits;
	limits = (struct oci_limits){ 0 };
	return 0;
}

void spec_limits_done(struct oci_limits *limits)
{
	hw_field_clear(spec_limits_fields, limits);
}
