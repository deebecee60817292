/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/metrics.c - counters of calls, and metrics in Prometheus' text format 0.0.4
 *
 * How:   atomic counters per method. The metrics of the process have the names that
 *        Prometheus' client libraries use.
 */
#include "cri/metrics.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/histogram.h"
#include "base/map.h"
#include "base/os/file.h"
#include "base/str.h"
#include "rpc/grpc/status.h"

#define CODES (STATUS_UNAUTHENTICATED + 1)

struct counters {
	_Atomic uint64_t codes[CODES];
	struct histogram seconds;
};

struct metrics {
	struct map *methods; /* maps "/runtime.v1.RuntimeService/Version" to struct counters */
	struct counters unknown;
};

struct metrics *metrics_new(void)
{
	struct metrics *m = mem_new(sizeof(*m));

	m->methods = map_new(free);
	return m;
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	map_free(m->methods);
	free(m);
}

void metrics_add_methods(struct metrics *m, const struct rpc_method *methods)
{
	for (; methods->path; methods++)
		map_set(m->methods, methods->path, mem_new(sizeof(struct counters)));
}

void metrics_count_call(void *ctx, const struct rpc_finished_call *call)
{
	struct metrics *m = ctx;
	struct counters *c;

	c = map_find(m->methods, call->path);
	if (!c)
		c = &m->unknown;
	atomic_fetch_add_explicit(&c->codes[call->code < CODES ? call->code : STATUS_UNKNOWN], 1,
				  memory_order_relaxed);
	histogram_add(&c->seconds, call->ns);
}

/* ---- format ------------------------------------------------------------------------- */

static void put_head(struct buf *b, const char *name, const char *type, const char *help)
{
	buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metrics_format_number(struct buf *b, const char *name, const char *type, const char *help,
			   int64_t value)
{
	put_head(b, name, type, help);
	buf_printf(b, "%s %" PRId64 "\n", name, value);
}

static void put_codes(struct buf *b, const char *path, const struct counters *c)
{
	for (int i = 0; i < CODES; i++) {
		uint64_t n = atomic_load_explicit(&c->codes[i], memory_order_relaxed);

		if (n > 0)
			buf_printf(b,
				   "hawser_cri_calls_total{method=\"%s\",code=\"%s\"} %" PRIu64
				   "\n",
				   path, status_name(i), n);
	}
}

static void put_histogram(struct buf *b, const char *path, const struct counters *c)
{
	autofree char *labels = str_printf("method=\"%s\"", path);

	histogram_format(&c->seconds, "hawser_cri_call_seconds", labels, b);
}

static void put_each(const struct metrics *m, struct buf *b,
		     void (*put)(struct buf *b, const char *path, const struct counters *c))
{
	const char *path;
	void *counters;

	for (size_t i = 0; map_next(m->methods, &i, &path, &counters);)
		put(b, path + 1, counters);
	put(b, "unknown", &m->unknown);
}

void metrics_format_calls(const struct metrics *m, struct buf *b)
{
	put_head(b, "hawser_cri_calls_total", "counter",
		 "Finished calls by method and status code.");
	put_each(m, b, put_codes);
	put_head(b, "hawser_cri_call_seconds", "histogram", "Duration of finished calls.");
	put_each(m, b, put_histogram);
}

static int64_t count_entries(const char *path)
{
	DIR *dir;
	int64_t n = 0;

	dir = opendir(path);
	if (!dir)
		return 0;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

/* The second number in /proc/self/statm. */
static int64_t resident_pages(void)
{
	AUTO(hw_strings_free) struct hw_strings words = { 0 };
	AUTO(buf_done) struct buf text = { 0 };
	long long pages = 0;
	struct hw_err e;

	if (file_read(AT_FDCWD, "/proc/self/statm", 4096, &text, &e) < 0)
		return 0;
	strings_split(str_or(text.data, ""), ' ', &words);
	return words.n > 1 && str_to_int64(words.v[1], 0, INT64_MAX, &pages) ? pages : 0;
}

void metrics_format_process(struct buf *b)
{
	metrics_format_number(b, "process_threads", "gauge", "Threads of the process.",
			      count_entries("/proc/self/task"));
	metrics_format_number(b, "process_open_fds", "gauge", "Open file descriptors.",
			      count_entries("/proc/self/fd") - 1);
	metrics_format_number(b, "process_resident_memory_bytes", "gauge",
			      "Resident memory in bytes.",
			      resident_pages() * sysconf(_SC_PAGESIZE));
}
