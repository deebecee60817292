/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/cgroup-stats.c - what a cgroup uses: processor, memory, swap, pressure, tasks, devices
 *
 * How:   a table lists the files of v1 and v2, and the values in each. The values of v1 are those that
 *        include the cgroups below ("total_").
 *        On a host with both versions, processes are in the cgroups of v1.
 */
#include "oci/cgroup-stats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/os/file.h"
#include "base/str.h"
#include "oci/cgroup-internal.h"

#define FILE_MAX      (64 << 10)
#define LIST_MAX      256	   /* devices or page sizes of a cgroup */
#define UNLIMITED_MIN (1ULL << 62) /* v1 writes "no limit" as a number near 2^63 */
#define US	      1000	   /* nanoseconds */

/* A value in a file with lines "KEY NUMBER". */
struct key {
	const char *name;
	enum cgroup_value value;
	unsigned scale; /* 0: 1 */
};

/* A file of a cgroup. */
struct file {
	const char *controller;
	const char *name;
	unsigned what; /* enum cgroup_read */
	void (*parse)(const struct file *f, const char *text, struct cgroup_stats *s);
	enum cgroup_value value;       /* of parse_number() */
	const struct key *keys;	       /* of parse_keys() */
	enum cgroup_resource resource; /* of parse_pressure() */
};

/* ---- numbers ------------------------------------------------------------------------------- */

/* Reads a number at the start of a text. Return: the text after it; NULL if there is no number, or it
 * is too large */
static const char *read_number(const char *text, uint64_t *ret)
{
	uint64_t n = 0;

	if (*text < '0' || *text > '9')
		return NULL;
	for (; *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, *text - '0', &n) || n == CGROUP_UNKNOWN)
			return NULL;
	*ret = n;
	return text;
}

static bool is_end(const char *text)
{
	return text && (*text == '\0' || *text == '\n');
}

static void set_value(struct cgroup_stats *s, enum cgroup_value value, uint64_t n, unsigned scale)
{
	if (!__builtin_mul_overflow(n, scale ? scale : 1, &n))
		s->v[value] = n;
}

/* "12", or "max" */
static void parse_number(const struct file *f, const char *text, struct cgroup_stats *s)
{
	uint64_t n;

	if (is_end(read_number(text, &n)))
		set_value(s, f->value, n, 1);
}

static void parse_limit(const struct file *f, const char *text, struct cgroup_stats *s)
{
	uint64_t n;

	if (is_end(read_number(text, &n)) && n < UNLIMITED_MIN)
		set_value(s, f->value, n, 1);
}

/* ---- lines --------------------------------------------------------------------------------- */

/* Return: the start of the next line; NULL at the end */
static const char *next_line(const char *line)
{
	const char *end = strchr(line, '\n');

	return end && end[1] ? end + 1 : NULL;
}

static void parse_key(const struct key *keys, const char *line, struct cgroup_stats *s)
{
	size_t len = strcspn(line, " \n");
	uint64_t n;

	if (line[len] != ' ' || !is_end(read_number(line + len + 1, &n)))
		return;
	for (const struct key *k = keys; k->name; k++)
		if (strlen(k->name) == len && memcmp(k->name, line, len) == 0)
			set_value(s, k->value, n, k->scale);
}

static void parse_keys(const struct file *f, const char *text, struct cgroup_stats *s)
{
	for (const char *line = text; line; line = next_line(line))
		parse_key(f->keys, line, s);
}

/* memory.stat of v1 also has the limits of memory, and of memory and swap together. */
static void parse_memory_v1(const struct file *f, const char *text, struct cgroup_stats *s)
{
	uint64_t *memory = &s->v[CGROUP_MEMORY_LIMIT], *swap = &s->v[CGROUP_SWAP_LIMIT];

	parse_keys(f, text, s);
	if (*memory >= UNLIMITED_MIN)
		*memory = CGROUP_UNKNOWN;
	*swap = *swap >= UNLIMITED_MIN ? CGROUP_UNKNOWN : cgroup_stats_left(*swap, *memory);
}

/* Reads NAME and a number, and skips the space after it. Return: the text after that; NULL if @text is NULL or
 * does not match */
static const char *read_field(const char *text, const char *name, uint64_t *ret)
{
	const char *end;

	if (!text || !str_starts(text, name))
		return NULL;
	end = read_number(text + strlen(name), ret);
	return end && *end == ' ' ? end + 1 : end;
}

/* As read_field(), for a number with two decimals. */
static const char *read_percent(const char *text, const char *name, double *ret)
{
	uint64_t n, hundredths;
	const char *end;

	end = read_field(text, name, &n);
	if (!end || *end != '.')
		return NULL;
	end = read_field(end, ".", &hundredths);
	if (!end)
		return NULL;
	*ret = (double)n + (double)hundredths / 100;
	return end;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=0". Return: whether the line begins with @word and is valid */
static bool read_stall(const char *line, const char *word, struct cgroup_stall *ret)
{
	struct cgroup_stall stall = { .known = true };
	uint64_t total;
	const char *at;

	if (!str_starts(line, word))
		return false;
	at = read_percent(line + strlen(word), "avg10=", &stall.avg10);
	at = read_percent(at, "avg60=", &stall.avg60);
	at = read_percent(at, "avg300=", &stall.avg300);
	at = read_field(at, "total=", &total);
	if (!is_end(at) || __builtin_mul_overflow(total, US, &stall.total))
		return false;
	*ret = stall;
	return true;
}

static void parse_pressure(const struct file *f, const char *text, struct cgroup_stats *s)
{
	struct cgroup_pressure *p = &s->pressure[f->resource];

	for (const char *line = text; line; line = next_line(line))
		if (!read_stall(line, "some ", &p->some))
			read_stall(line, "full ", &p->full);
}

/* ---- devices ------------------------------------------------------------------------------- */

/* "8:0 ...". Return: the text after the number and a space; NULL if it is malformed */
static const char *read_device(const char *line, unsigned *ret_major, unsigned *ret_minor)
{
	uint64_t major, minor;
	const char *at;

	at = read_number(line, &major);
	if (!at || *at != ':')
		return NULL;
	at = read_number(at + 1, &minor);
	if (!at || *at != ' ' || major > UINT32_MAX || minor > UINT32_MAX)
		return NULL;
	*ret_major = (unsigned)major;
	*ret_minor = (unsigned)minor;
	return at + 1;
}

/* Return: NULL if there are too many */
static struct cgroup_device *get_device(struct cgroup_stats *s, unsigned major, unsigned minor)
{
	struct cgroup_device *d = s->devices.v;

	for (size_t i = 0; i < s->devices.n; i++)
		if (d[i].major == major && d[i].minor == minor)
			return &d[i];
	if (s->devices.n == LIST_MAX)
		return NULL;
	s->devices.v = d = mem_resize(d, s->devices.n + 1, sizeof(*d));
	d += s->devices.n++;
	*d = (struct cgroup_device){ .major = major,
				     .minor = minor,
				     .read_bytes = CGROUP_UNKNOWN,
				     .written_bytes = CGROUP_UNKNOWN,
				     .reads = CGROUP_UNKNOWN,
				     .writes = CGROUP_UNKNOWN };
	return d;
}

/* "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6" */
static void parse_io_v2(const struct file *f, const char *text, struct cgroup_stats *s)
{
	(void)f;
	for (const char *line = text; line; line = next_line(line)) {
		uint64_t rbytes, wbytes, rios, wios;
		unsigned major, minor;
		struct cgroup_device *d;
		const char *at;

		at = read_device(line, &major, &minor);
		at = read_field(at, "rbytes=", &rbytes);
		at = read_field(at, "wbytes=", &wbytes);
		at = read_field(at, "rios=", &rios);
		at = read_field(at, "wios=", &wios);
		if (!at)
			continue;
		d = get_device(s, major, minor);
		if (!d)
			return;
		d->read_bytes = rbytes;
		d->written_bytes = wbytes;
		d->reads = rios;
		d->writes = wios;
	}
}

/* "8:0 Read 1"; other words are sums. @bytes: else the number of operations */
static void parse_io_v1(const char *text, bool bytes, struct cgroup_stats *s)
{
	for (const char *line = text; line; line = next_line(line)) {
		unsigned major, minor;
		const char *at = read_device(line, &major, &minor);
		bool read = at && str_starts(at, "Read "), write = at && str_starts(at, "Write ");
		struct cgroup_device *d;
		uint64_t n;

		if ((!read && !write) || !is_end(read_number(strchr(at, ' ') + 1, &n)))
			continue;
		d = get_device(s, major, minor);
		if (!d)
			return;
		if (bytes)
			*(read ? &d->read_bytes : &d->written_bytes) = n;
		else
			*(read ? &d->reads : &d->writes) = n;
	}
}

static void parse_io_bytes_v1(const struct file *f, const char *text, struct cgroup_stats *s)
{
	(void)f;
	parse_io_v1(text, true, s);
}

static void parse_io_count_v1(const struct file *f, const char *text, struct cgroup_stats *s)
{
	(void)f;
	parse_io_v1(text, false, s);
}

/* ---- the files ----------------------------------------------------------------------------- */

static const struct key cpu_stat_v1[] = {
	{ "nr_periods", CGROUP_CPU_PERIODS, 1 },
	{ "nr_throttled", CGROUP_CPU_THROTTLED_PERIODS, 1 },
	{ "throttled_time", CGROUP_CPU_THROTTLED_TIME, 1 },
	{ 0 },
};

static const struct key memory_stat_v1[] = {
	{ "total_rss", CGROUP_MEMORY_ANONYMOUS, 1 },
	{ "total_cache", CGROUP_MEMORY_CACHE, 1 },
	{ "total_mapped_file", CGROUP_MEMORY_MAPPED, 1 },
	{ "total_inactive_file", CGROUP_MEMORY_INACTIVE_FILE, 1 },
	{ "total_pgfault", CGROUP_PAGE_FAULTS, 1 },
	{ "total_pgmajfault", CGROUP_MAJOR_PAGE_FAULTS, 1 },
	{ "total_swap", CGROUP_SWAP_USAGE, 1 },
	{ "hierarchical_memory_limit", CGROUP_MEMORY_LIMIT, 1 },
	{ "hierarchical_memsw_limit", CGROUP_SWAP_LIMIT, 1 },
	{ 0 },
};

static const struct key oom_control_v1[] = {
	{ "oom_kill", CGROUP_OOM_KILLS, 1 },
	{ 0 },
};

static const struct file files_v1[] = {
	{ "cpuacct", "cpuacct.usage", CGROUP_READ_CPU, parse_number, .value = CGROUP_CPU_USAGE },
	{ "memory", "memory.usage_in_bytes", CGROUP_READ_USAGE, parse_number,
	  .value = CGROUP_MEMORY_USAGE },
	{ "memory", "memory.stat", CGROUP_READ_USAGE, parse_memory_v1, .keys = memory_stat_v1 },
	{ "pids", "pids.current", CGROUP_READ_USAGE, parse_number, .value = CGROUP_TASKS },
	{ "cpuacct", "cpuacct.usage_user", CGROUP_READ_ALL, parse_number,
	  .value = CGROUP_CPU_USER },
	{ "cpuacct", "cpuacct.usage_sys", CGROUP_READ_ALL, parse_number,
	  .value = CGROUP_CPU_SYSTEM },
	{ "cpu", "cpu.stat", CGROUP_READ_ALL, parse_keys, .keys = cpu_stat_v1 },
	{ "memory", "memory.soft_limit_in_bytes", CGROUP_READ_ALL, parse_limit,
	  .value = CGROUP_MEMORY_RESERVATION },
	{ "memory", "memory.max_usage_in_bytes", CGROUP_READ_ALL, parse_number,
	  .value = CGROUP_MEMORY_PEAK },
	{ "memory", "memory.kmem.usage_in_bytes", CGROUP_READ_ALL, parse_number,
	  .value = CGROUP_MEMORY_KERNEL },
	{ "memory", "memory.failcnt", CGROUP_READ_ALL, parse_number,
	  .value = CGROUP_MEMORY_LIMIT_HITS },
	{ "memory", "memory.oom_control", CGROUP_READ_ALL, parse_keys, .keys = oom_control_v1 },
	{ "pids", "pids.max", CGROUP_READ_ALL, parse_limit, .value = CGROUP_TASKS_LIMIT },
	{ "blkio", "blkio.throttle.io_service_bytes_recursive", CGROUP_READ_ALL,
	  parse_io_bytes_v1 },
	{ "blkio", "blkio.throttle.io_serviced_recursive", CGROUP_READ_ALL, parse_io_count_v1 },
	{ 0 },
};

static const struct key cpu_stat_v2[] = {
	{ "usage_usec", CGROUP_CPU_USAGE, US },
	{ "user_usec", CGROUP_CPU_USER, US },
	{ "system_usec", CGROUP_CPU_SYSTEM, US },
	{ "nr_periods", CGROUP_CPU_PERIODS, 1 },
	{ "nr_throttled", CGROUP_CPU_THROTTLED_PERIODS, 1 },
	{ "throttled_usec", CGROUP_CPU_THROTTLED_TIME, US },
	{ 0 },
};

static const struct key memory_stat_v2[] = {
	{ "anon", CGROUP_MEMORY_ANONYMOUS, 1 },
	{ "file", CGROUP_MEMORY_CACHE, 1 },
	{ "kernel", CGROUP_MEMORY_KERNEL, 1 },
	{ "file_mapped", CGROUP_MEMORY_MAPPED, 1 },
	{ "inactive_file", CGROUP_MEMORY_INACTIVE_FILE, 1 },
	{ "pgfault", CGROUP_PAGE_FAULTS, 1 },
	{ "pgmajfault", CGROUP_MAJOR_PAGE_FAULTS, 1 },
	{ 0 },
};

static const struct key memory_events_v2[] = {
	{ "max", CGROUP_MEMORY_LIMIT_HITS, 1 },
	{ "oom_kill", CGROUP_OOM_KILLS, 1 },
	{ 0 },
};

static const struct file files_v2[] = {
	{ NULL, "cpu.stat", CGROUP_READ_CPU, parse_keys, .keys = cpu_stat_v2 },
	{ NULL, "memory.current", CGROUP_READ_USAGE, parse_number, .value = CGROUP_MEMORY_USAGE },
	{ NULL, "memory.max", CGROUP_READ_USAGE, parse_limit, .value = CGROUP_MEMORY_LIMIT },
	{ NULL, "memory.stat", CGROUP_READ_USAGE, parse_keys, .keys = memory_stat_v2 },
	{ NULL, "memory.swap.current", CGROUP_READ_USAGE, parse_number,
	  .value = CGROUP_SWAP_USAGE },
	{ NULL, "memory.swap.max", CGROUP_READ_USAGE, parse_limit, .value = CGROUP_SWAP_LIMIT },
	{ NULL, "pids.current", CGROUP_READ_USAGE, parse_number, .value = CGROUP_TASKS },
	{ NULL, "cpu.pressure", CGROUP_READ_USAGE, parse_pressure, .resource = CGROUP_CPU },
	{ NULL, "memory.pressure", CGROUP_READ_USAGE, parse_pressure, .resource = CGROUP_MEMORY },
	{ NULL, "io.pressure", CGROUP_READ_USAGE, parse_pressure, .resource = CGROUP_IO },
	{ NULL, "memory.low", CGROUP_READ_ALL, parse_limit, .value = CGROUP_MEMORY_RESERVATION },
	{ NULL, "memory.peak", CGROUP_READ_ALL, parse_number, .value = CGROUP_MEMORY_PEAK },
	{ NULL, "memory.events", CGROUP_READ_ALL, parse_keys, .keys = memory_events_v2 },
	{ NULL, "pids.max", CGROUP_READ_ALL, parse_limit, .value = CGROUP_TASKS_LIMIT },
	{ NULL, "io.stat", CGROUP_READ_ALL, parse_io_v2 },
	{ 0 },
};

/* ---- reading ------------------------------------------------------------------------------- */

/* Return: 0, also if the file does not exist; or a negative errno */
static int read_text(const char *dir, const char *name, struct buf *ret, struct hw_err *e)
{
	autofree char *path = str_printf("%s/%s", dir, name);
	int r;

	r = file_read(AT_FDCWD, path, FILE_MAX, ret, e);
	if (r == 0 && !ret->data)
		buf_puts(ret, "");
	return r;
}

/* Return: whether the file was read */
static bool read_file(const struct cgroup_hierarchy *h, const char *path, const struct file *f,
		      struct cgroup_stats *s)
{
	autofree char *dir = cgroup_dir(h, path);
	AUTO(buf_done) struct buf text = { 0 };
	struct hw_err ignored;

	/* an error, such as EOPNOTSUPP of a disabled cpu.pressure, means that the value is unknown */
	if (read_text(dir, f->name, &text, &ignored) < 0)
		return false;
	f->parse(f, text.data, s);
	return true;
}

/* Reads a file of hugepages: hugetlb.SIZE.@name. */
static uint64_t read_hugepages(const char *dir, const char *size, const char *name)
{
	autofree char *file = str_printf("hugetlb.%s.%s", size, name);
	AUTO(buf_done) struct buf text = { 0 };
	struct hw_err ignored;
	uint64_t n;

	if (read_text(dir, file, &text, &ignored) < 0 || !is_end(read_number(text.data, &n)))
		return CGROUP_UNKNOWN;
	return n;
}

struct hugepages_walk {
	const char *dir;
	bool v2;
	struct hw_list *list;
};

/* Adds a size of pages for each file hugetlb.SIZE.max or hugetlb.SIZE.limit_in_bytes. */
static int add_hugepages(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct hugepages_walk *walk = ctx;
	const char *size = entry->name + strlen("hugetlb."), *dot;
	struct cgroup_hugepages *h;

	(void)e;
	if (!str_starts(entry->name, "hugetlb.") || walk->list->n == LIST_MAX)
		return 0;
	dot = strchr(size, '.');
	if (!dot || !str_equal(dot + 1, walk->v2 ? "max" : "limit_in_bytes") ||
	    (size_t)(dot - size) >= sizeof(h->size))
		return 0;
	walk->list->v = h = mem_resize(walk->list->v, walk->list->n + 1, sizeof(*h));
	h += walk->list->n++;
	*h = (struct cgroup_hugepages){ .peak = CGROUP_UNKNOWN };
	snprintf(h->size, sizeof(h->size), "%.*s", (int)(dot - size), size);
	h->usage = read_hugepages(walk->dir, h->size, walk->v2 ? "current" : "usage_in_bytes");
	if (!walk->v2)
		h->peak = read_hugepages(walk->dir, h->size, "max_usage_in_bytes");
	return 0;
}

static void read_all_hugepages(const struct cgroup_fs *fs, const char *path, struct cgroup_stats *s)
{
	const struct cgroup_hierarchy *h = cgroup_find_hierarchy(fs, "hugetlb");
	autofree char *dir = h ? cgroup_dir(h, path) : NULL;
	struct hugepages_walk walk = { dir, h && h->v2, &s->hugepages };
	struct hw_err ignored;

	if (dir)
		(void)file_walk(AT_FDCWD, dir, add_hugepages, &walk, &ignored);
}

int cgroup_stats_read(const struct cgroup_fs *fs, const char *path, unsigned what,
		      struct cgroup_stats *ret, struct hw_err *e)
{
	bool v2 = fs->mode == CGROUP_V2, any = false;

	cgroup_stats_init(ret);
	for (const struct file *f = v2 ? files_v2 : files_v1; f->name; f++) {
		const struct cgroup_hierarchy *h =
			v2 ? &fs->v[0] : cgroup_find_hierarchy(fs, f->controller);

		if (h && f->what & what)
			any |= read_file(h, path, f, ret);
	}
	if (!any)
		return err_text(e, -ENOENT, "cgroup %s does not exist", path);
	if (what & CGROUP_READ_ALL)
		read_all_hugepages(fs, path, ret);
	return 0;
}

void cgroup_stats_init(struct cgroup_stats *ret)
{
	*ret = (struct cgroup_stats){ 0 };
	for (size_t i = 0; i < CGROUP_VALUES; i++)
		ret->v[i] = CGROUP_UNKNOWN;
}

void cgroup_stats_done(struct cgroup_stats *s)
{
	free(take_ptr(s->devices.v));
	free(take_ptr(s->hugepages.v));
}

void cgroup_stats_parse(bool v2, const char *name, const char *text, struct cgroup_stats *s)
{
	for (const struct file *f = v2 ? files_v2 : files_v1; f->name; f++)
		if (str_equal(f->name, name))
			f->parse(f, text, s);
}

/* ---- derived values ------------------------------------------------------------------------ */

uint64_t cgroup_stats_left(uint64_t limit, uint64_t used)
{
	if (limit == CGROUP_UNKNOWN || used == CGROUP_UNKNOWN)
		return CGROUP_UNKNOWN;
	return limit > used ? limit - used : 0;
}

uint64_t cgroup_stats_working_set(const struct cgroup_stats *s)
{
	return cgroup_stats_left(s->v[CGROUP_MEMORY_USAGE], s->v[CGROUP_MEMORY_INACTIVE_FILE]);
}
