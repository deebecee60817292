/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/fetch/find.c - what an image consists of: manifest and configuration
 *
 * How:   each endpoint in turn, until one has all of it. An index is asked for the
 *        manifest that fits the platform, which may be an index again.
 */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "image/config.h"
#include "image/fetch/registry.h"

/* What is asked for. */
struct want {
	const char *kind;   /* "manifests" or "blobs" */
	const char *name;   /* a digest, or a tag */
	int64_t size;	    /* -1: not known */
	const char *accept; /* NULL: anything */
};

static int check_document(const struct want *w, const struct buf *body, struct hw_err *e)
{
	char digest[DIGEST_TEXT];

	if (w->size >= 0 && (int64_t)body->len != w->size)
		return err_text(e, -EBADMSG, "it has %zu bytes and not %lld", body->len,
				(long long)w->size);
	if (!strchr(w->name, ':'))
		return 0; /* a tag */
	if (!digest_is_sha256(w->name))
		return err_text(e, -EOPNOTSUPP, "only SHA-256 digests are supported");
	digest_of(str_or(body->data, ""), body->len, digest);
	if (!str_equal(digest, w->name))
		return err_text(e, -EBADMSG, "its digest is %s", digest);
	return 0;
}

static int ask_document(const struct registry *r, const struct endpoint *ep, struct http *h,
			const char *url, const struct want *w, struct http_answer *answer,
			struct hw_err *e)
{
	struct http_question q = { .url = url, .accept = w->accept, .max = MANIFEST_SIZE_MAX };
	struct patience p = { 0 };
	int code;

	do {
		code = registry_try(ep, h, &q, answer, e);
	} while (code < 0 && registry_wait(r, &p, code, answer));
	return code;
}

static int get_document(const struct registry *r, const struct endpoint *ep, struct http *h,
			const struct want *w, struct buf *ret_body, char **ret_type,
			struct hw_err *e)
{
	AUTO(http_answer_done) struct http_answer answer = { 0 };
	autofree char *url = str_printf("%s/%s/%s", ep->base, w->kind, w->name);
	int code = ask_document(r, ep, h, url, w, &answer, e);

	if (code == 0)
		code = check_document(w, &answer.body, e);
	if (code < 0)
		return err_ctx(e, "%s/%s", w->kind, w->name);
	buf_done(ret_body);
	*ret_body = answer.body;
	answer.body = (struct buf){ 0 };
	if (ret_type)
		*ret_type = take_ptr(answer.content_type);
	return 0;
}

/* One more document, by the name of a tag or by its digest. */
static int add_document(const struct registry *r, const struct endpoint *ep, struct http *h,
			const char *name, int64_t size, struct found *f, struct hw_err *e)
{
	struct want w = { "manifests", name, size, manifest_accept };
	struct buf *bytes = &f->documents[f->n_documents];
	autofree char *type = NULL;
	int code = get_document(r, ep, h, &w, bytes, &type, e);

	if (code < 0)
		return code;
	f->n_documents++;
	manifest_free(take_ptr(f->manifest));
	return manifest_parse(str_or(bytes->data, ""), bytes->len, type, &f->manifest, e);
}

/* From the reference to the manifest of an image, through indexes. */
static int find_manifest(const struct registry *r, const struct endpoint *ep, struct http *h,
			 struct found *f, struct hw_err *e)
{
	autofree char *name = str_copy(reference_version(&r->ref));
	int64_t size = -1;

	while (f->n_documents < FOUND_DOCUMENTS_MAX) {
		const struct descriptor *chosen = NULL;
		int code = add_document(r, ep, h, name, size, f, e);

		if (code < 0)
			return code;
		if (f->manifest->kind == MANIFEST_IMAGE)
			return manifest_check_image(f->manifest, e);
		code = manifest_choose(f->manifest, &r->job->platform, &chosen, e);
		if (code < 0)
			return code;
		free(name);
		name = str_copy(chosen->digest);
		size = chosen->size;
	}
	return err_text(e, -EINVAL, "indexes in indexes, more than %d deep",
			FOUND_DOCUMENTS_MAX - 1);
}

static int check_platform(const struct image_config *c, const struct platform *wanted,
			  struct hw_err *e)
{
	autofree char *is = NULL, *want = NULL;

	if (str_empty(c->platform.architecture) || platform_rank(wanted, &c->platform) >= 0)
		return 0;
	is = platform_format(&c->platform);
	want = platform_format(wanted);
	return err_text(e, -ENOENT, "no image for %s: it is for %.64s", want, is);
}

static int check_config(const struct registry *r, const struct found *f, struct hw_err *e)
{
	AUTO(image_config_free) struct image_config *c = NULL;
	int code = image_config_parse(str_or(f->config.data, ""), f->config.len, &c, e);

	if (code == 0)
		code = image_config_check(c, f->manifest, e);
	return code < 0 ? code : check_platform(c, &r->job->platform, e);
}

static int find_on(const struct registry *r, const struct endpoint *ep, struct http *h,
		   struct found *f, struct hw_err *e)
{
	struct want w = { "blobs", NULL, 0, NULL };
	int code = find_manifest(r, ep, h, f, e);

	if (code == 0) {
		w.name = f->manifest->config.digest;
		w.size = f->manifest->config.size;
		code = get_document(r, ep, h, &w, &f->config, NULL, e);
	}
	if (code == 0)
		code = check_config(r, f, e);
	if (code < 0)
		return err_ctx(e, "pull %s from %s", r->job->reference, ep->host);
	digest_of(f->documents[0].data, f->documents[0].len, f->digest);
	return 0;
}

/**
 * registry_find() - ask for the image, mirrors first
 * @ret_found: overwritten, on success only
 *
 * Return: 0, or the registry's own error, with those of its mirrors before it in the
 * message
 */
int registry_find(struct registry *r, struct http *h, struct found *ret_found, struct hw_err *e)
{
	AUTO(buf_done) struct buf before = { 0 };
	int code = -EINVAL;

	for (size_t i = 0; i < r->n; i++) {
		AUTO(found_done) struct found f = { .endpoint = i };

		code = find_on(r, &r->endpoints[i], h, &f, e);
		if (code == 0) {
			*ret_found = f;
			f = (struct found){ 0 };
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

/** found_done() - free what it holds */
void found_done(struct found *f)
{
	for (size_t i = 0; i < f->n_documents; i++)
		buf_done(&f->documents[i]);
	buf_done(&f->config);
	manifest_free(f->manifest);
}
