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

/* Reads a list such as "0-3" of CPUs or of nodes of memory. Return: the last number and 1; 1 if it cannot be read,
 * because a kernel without nodes has one */
static unsigned count_possible(const char *root, const char *what)
{
	autofree char *path = str_printf("%s/sys/devices/system/%s/possible", root, what);
	AUTO(buf_done) struct buf text = { 0 };
	struct hw_err ignored;
	const char *last;

	if (file_read(AT_FDCWD, path, 4096, &text, &ignored) < 0 || text.len == 0)
		return 1;
	last = text.data + text.len - 1;
	while (last > text.data && !isdigit((unsigned char)*last))
		last--;
	while (last > text.data && isdigit((unsigned char)last[-1]))
		last--;
	return (unsigned)strtoul(last, NULL, 10) + 1;
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
	AUTO(spec_host_done)
	struct spec_host host = { .v2 = fs->mode == CGROUP_V2,
				  .n_cpus = count_possible(root, "cpu"),
				  .n_nodes = count_possible(root, "node") };
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

/* The kernel refuses other values, or changes them. */
static int check_numbers(const struct oci_resources *r, struct hw_err *e)
{
	const struct {
		const char *name;
		int64_t value, min, max;
		bool unlimited; /* -1 is allowed */
	} v[] = {
		{ "cpu_period", r->cpu_period, 1000, 1000000 },
		{ "cpu_quota", r->cpu_quota, 1000, (INT64_C(1) << 44) - 1, true },
		{ "cpu_shares", r->cpu_shares, 2, 262144 },
		{ "memory_limit_in_bytes", r->memory_limit, SPEC_MEMORY_MIN, INT64_MAX, true },
		{ "memory_swap_limit_in_bytes", r->memory_swap_limit, 1, INT64_MAX, true },
		{ "pids_limit", r->pids_limit, 1, INT32_MAX, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		if (v[i].value == 0 || (v[i].unlimited && v[i].value == -1))
			continue;
		if (v[i].value < v[i].min || v[i].value > v[i].max)
			return err_text(e, -EINVAL,
					"%s: %" PRId64 " is not in the range %" PRId64
					" to %" PRId64,
					v[i].name, v[i].value, v[i].min, v[i].max);
	}
	return 0;
}

/* Reads "N" or "N-N", and moves *text behind it. Return: false if that is not there */
static bool read_range(const char **text, unsigned long *ret_first, unsigned long *ret_last)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	*ret_first = *ret_last = strtoul(*text, &end, 10);
	if (*end == '-' && isdigit((unsigned char)end[1]))
		*ret_last = strtoul(end + 1, &end, 10);
	*text = end;
	return *ret_first <= *ret_last;
}

#define SET_MAX 4000 /* bytes that the kernel accepts in one write */

/* A list of numbers below @n. */
static int check_set(const char *name, const char *list, unsigned n, struct hw_err *e)
{
	const char *at = str_or(list, "");
	unsigned long first, last;

	if (strlen(at) > SET_MAX)
		return err_text(e, -EINVAL, "%s: more than %d bytes", name, SET_MAX);
	while (*at) {
		if (!read_range(&at, &first, &last) || (*at && *at != ',') ||
		    (*at == ',' && !at[1]))
			return err_text(e, -EINVAL, "%s: \"%.100s\" is not a list of numbers", name,
					list);
		if (last >= n)
			return err_text(e, -EINVAL, "%s: %lu is not in the range 0 to %u", name,
					last, n - 1);
		at += *at == ',';
	}
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
	return isalnum((unsigned char)name[0]) && strchr(name, '.') && !strstr(name, "..");
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

	if (check_numbers(r, e) < 0 ||
	    check_set("cpuset_cpus", r->cpuset_cpus, host->n_cpus, e) < 0 ||
	    check_set("cpuset_mems", r->cpuset_mems, host->n_nodes, e) < 0 ||
	    set_swap(&limits, r, host, e) < 0 || set_hugepages(&limits, r, host, e) < 0 ||
	    set_unified(&limits, r, host, e) < 0)
		return e->code;
	*ret = limits;
	limits = (struct oci_limits){ 0 };
	return 0;
}

void spec_limits_done(struct oci_limits *limits)
{
	hw_field_clear(spec_limits_fields, limits);
}
