/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/source.c - the bytes of an image, from a registry
 *
 * How:   a thread uses a connection while it has work, and leaves it for the next.
 */
#include <pthread.h>

#include "base/list.h"
#include "fetch/registry/blob.h"
#include "fetch/registry/registry.h"
#include "fetch/source/source.h"

struct from_registry {
	struct source source;
	struct registry *registry;
	pthread_mutex_t lock;
	struct list idle; /* of struct line */
};

/* Connections that a thread uses while it has work. */
struct line {
	struct list link;
	struct http *http;
};

static struct line *line_take(struct from_registry *s)
{
	struct line *line = NULL;

	pthread_mutex_lock(&s->lock);
	if (!list_is_empty(&s->idle)) {
		line = list_entry(s->idle.next, struct line, link);
		list_remove(&line->link);
	}
	pthread_mutex_unlock(&s->lock);
	if (line)
		return line;
	line = mem_new(sizeof(*line));
	list_init(&line->link);
	line->http = http_new(s->registry->certs, s->source.job->idle_ms);
	return line;
}

static void line_give(struct from_registry *s, struct line *line)
{
	pthread_mutex_lock(&s->lock);
	list_append(&s->idle, &line->link);
	pthread_mutex_unlock(&s->lock);
}

static int find(struct source *source, struct found *ret_found, struct hw_err *e)
{
	struct from_registry *s = (struct from_registry *)source;
	struct line *line;
	int r = http_global_init(e);

	if (r < 0)
		return r;
	line = line_take(s);
	r = registry_find(s->registry, line->http, ret_found, e);
	line_give(s, line);
	return r;
}

static int blob(struct source *source, const struct found *f, const struct descriptor *d,
		int (*take)(void *ctx, const void *data, size_t len, struct hw_err *e), void *ctx,
		struct hw_err *e)
{
	struct from_registry *s = (struct from_registry *)source;
	struct line *line = line_take(s);
	struct blob b = { .registry = s->registry,
			  .http = line->http,
			  .endpoint = f->endpoint,
			  .descriptor = d,
			  .data = take,
			  .ctx = ctx };
	int r = blob_fetch(&b, e);

	line_give(s, line);
	return r;
}

/**
 * source_registry() - the job's registry and its mirrors
 *
 * Return: 0, or negative errno
 */
int source_registry(const struct job *job, struct source **ret_source, struct hw_err *e)
{
	struct from_registry *s;
	struct registry *registry = NULL;
	int r = registry_new(job, &registry, e);

	if (r < 0)
		return r;
	s = mem_new(sizeof(*s));
	*s = (struct from_registry){ .source = { job, find, blob }, .registry = registry };
	pthread_mutex_init(&s->lock, NULL);
	list_init(&s->idle);
	*ret_source = &s->source;
	return 0;
}
