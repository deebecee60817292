/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/source.c - the bytes of an image, from a registry
 *
 * How:   a thread uses a connection while it has work, and leaves it for the next.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/list.h"
#include "base/str.h"
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

/* Whom to ask, and how. */
struct asking {
	const struct registry *registry;
	const struct endpoint *endpoint;
	struct http *http;
};

static int ask(const struct asking *a, struct http_request *q, struct http_response *answer,
	       struct hw_err *e)
{
	struct registry_retry p = { 0 };
	int code;

	do {
		code = registry_request(a->endpoint, a->http, q, answer, e);
	} while (code < 0 && registry_backoff(a->registry, &p, code, answer));
	return code;
}

static int get(void *ctx, const char *kind, const char *name, struct buf *ret_body, char **ret_type,
	       struct hw_err *e)
{
	const struct asking *a = ctx;
	AUTO(http_response_done) struct http_response answer = { 0 };
	autofree char *url = str_printf("%s/%s/%s", a->endpoint->base, kind, name);
	struct http_request q = { .url = url, .max = MANIFEST_SIZE_MAX };
	int code;

	if (str_equal(kind, "manifests"))
		q.accept = manifest_accept;
	code = ask(a, &q, &answer, e);
	if (code < 0)
		return code;
	*ret_body = answer.body;
	answer.body = (struct buf){ 0 };
	if (ret_type)
		*ret_type = take_ptr(answer.content_type);
	return 0;
}

static int find_on(const struct registry *r, const struct endpoint *ep, struct http *h,
		   struct resolved_image *f, struct hw_err *e)
{
	struct asking a = { r, ep, h };
	struct document_source from = { get, &a, &r->job->known };
	int code = resolve_image(f, &from, reference_version(&r->ref), -1, &r->job->platform, e);

	f->host = ep->host;
	return code < 0 ? err_ctx(e, "pull %s from %s", r->job->reference, ep->host) : 0;
}

/*
 * registry_find() - ask for the image, mirrors first
 * @ret_found: overwritten, on success only
 *
 * Return: 0, or the registry's own error, with those of its mirrors before it in the
 * message
 */
static int registry_find(struct registry *r, struct http *h, struct resolved_image *ret_found,
			 struct hw_err *e)
{
	AUTO(buf_done) struct buf before = { 0 };
	int code = -EINVAL;

	for (size_t i = 0; i < r->n; i++) {
		AUTO(resolved_image_done) struct resolved_image f = { .endpoint = i };

		code = find_on(r, &r->endpoints[i], h, &f, e);
		if (code == 0) {
			*ret_found = f;
			f = (struct resolved_image){ 0 };
			return 0;
		}
		if (i + 1 < r->n)
			buf_printf(&before, "; before that, mirror: %.400s", e->msg);
	}
	if (before.len > 0) {
		autofree char *own = str_copy(e->msg);

		return err_text(e, code, "%s%s", own, before.data);
	}
	return code;
}

static int find(struct source *source, struct resolved_image *ret_found, struct hw_err *e)
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

static int blob(struct source *source, const struct resolved_image *f, const struct descriptor *d,
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
 * registry_source_new() - the job's registry and its mirrors
 *
 * Return: 0, or negative errno
 */
int registry_source_new(const struct job *job, struct source **ret_source, struct hw_err *e)
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
