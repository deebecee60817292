/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/source.c - a registry as source of an image
 *
 * How:   the image is resolved at each endpoint in turn until one has all of its documents. A
 *        thread takes a connection from a pool while it works, and then returns it to the pool.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/list.h"
#include "base/str.h"
#include "fetch/registry/blob.h"
#include "fetch/registry/registry.h"
#include "fetch/source/source.h"

struct registry_source {
	struct source source;
	struct registry *registry;
	pthread_mutex_t lock;
	struct list idle; /* pool of struct connection */
};

/* ---- connections ----------------------------------------------------------- */

struct connection {
	struct list link;
	struct http *http;
};

static struct connection *acquire_connection(struct registry_source *s)
{
	struct connection *c = NULL;

	pthread_mutex_lock(&s->lock);
	if (!list_is_empty(&s->idle)) {
		c = list_entry(s->idle.next, struct connection, link);
		list_remove(&c->link);
	}
	pthread_mutex_unlock(&s->lock);
	if (c)
		return c;
	c = mem_new(sizeof(*c));
	list_init(&c->link);
	c->http = http_new(s->registry->certs, s->source.job->idle_ms, s->source.job->slow_ms);
	return c;
}

static void release_connection(struct registry_source *s, struct connection *c)
{
	pthread_mutex_lock(&s->lock);
	list_append(&s->idle, &c->link);
	pthread_mutex_unlock(&s->lock);
}

/* ---- documents ------------------------------------------------------------- */

struct endpoint_documents {
	const struct registry *registry;
	const struct endpoint *endpoint;
	struct http *http;
};

static int get_document(void *ctx, const char *kind, const char *name, struct buf *ret_body,
			struct document_head *ret_head, struct hw_err *e)
{
	const struct endpoint_documents *d = ctx;
	AUTO(http_response_done) struct http_response response = { 0 };
	autofree char *url = str_printf("%s/%s/%s", d->endpoint->base, kind, name);
	struct http_request request = { .url = url, .body_max = MANIFEST_SIZE_MAX };
	struct registry_retry retry = { 0 };
	int code;

	if (str_equal(kind, "manifests"))
		request.accept = manifest_accept;
	do {
		code = registry_request(d->endpoint, d->http, &request, &response, e);
	} while (code < 0 && registry_backoff(d->registry, &retry, code, &response));
	if (code < 0)
		return code;
	*ret_body = response.body;
	response.body = (struct buf){ 0 };
	*ret_head =
		(struct document_head){ take_ptr(response.content_type), response.cross_origin };
	return 0;
}

/* Tries the mirrors first. If all endpoints fail, the message is the error of the image's own
 * registry, followed by the errors of the mirrors. */
static int resolve_at_any(struct registry *r, struct http *h, struct resolved_image *ret_image,
			  struct hw_err *e)
{
	AUTO(buf_done) struct buf mirror_errors = { 0 };
	int code = -EINVAL;

	for (size_t i = 0; i < r->n; i++) {
		AUTO(resolved_image_done)
		struct resolved_image image = { .endpoint = i, .host = r->endpoints[i].host };
		struct endpoint_documents documents = { r, &r->endpoints[i], h };
		struct document_source from = { get_document, &documents,
						&r->job->known_documents };

		code = resolve_image(&image, &from, reference_version(&r->ref), -1,
				     &r->job->platform, e);
		if (code == 0) {
			*ret_image = image;
			image = (struct resolved_image){ 0 };
			return 0;
		}
		code = err_ctx(e, "pull %s from %s", r->job->reference, image.host);
		if (i + 1 < r->n)
			buf_printf(&mirror_errors, "; mirror: %.400s", e->msg);
	}
	if (mirror_errors.len > 0)
		return err_text(e, code, "%s%s", e->msg, mirror_errors.data);
	return code;
}

/* ---- the source ------------------------------------------------------------ */

static int resolve(struct source *source, struct resolved_image *ret_image, struct hw_err *e)
{
	struct registry_source *s = (struct registry_source *)source;
	struct connection *c;
	int r;

	r = http_global_init(e);
	if (r < 0)
		return r;
	c = acquire_connection(s);
	r = resolve_at_any(s->registry, c->http, ret_image, e);
	release_connection(s, c);
	return r < 0 ? registry_hide_secrets(s->registry, e) : r;
}

static int fetch_blob(struct source *source, const struct resolved_image *image,
		      const struct descriptor *d, source_write *write, void *ctx, struct hw_err *e)
{
	struct registry_source *s = (struct registry_source *)source;
	struct connection *c = acquire_connection(s);
	struct blob b = { .registry = s->registry,
			  .http = c->http,
			  .endpoint = image->endpoint,
			  .descriptor = d,
			  .write = write,
			  .ctx = ctx };
	int r;

	r = blob_fetch(&b, e);
	release_connection(s, c);
	return r < 0 ? registry_hide_secrets(s->registry, e) : r;
}

int registry_source_new(const struct fetch_job *job, struct source **ret_source, struct hw_err *e)
{
	struct registry_source *s;
	struct registry *registry = NULL;
	int r;

	r = registry_new(job, &registry, e);
	if (r < 0)
		return r;
	s = mem_new(sizeof(*s));
	*s = (struct registry_source){ .source = { job, resolve, fetch_blob },
				       .registry = registry };
	pthread_mutex_init(&s->lock, NULL);
	list_init(&s->idle);
	*ret_source = &s->source;
	return 0;
}
