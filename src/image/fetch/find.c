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

#define INDEX_DEPTH_MAX 4

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

/* From the reference to the manifest of an image, through indexes. */
static int find_manifest(const struct registry *r, const struct endpoint *ep, struct http *h,
			 struct found *f, struct hw_err *e)
{
	autofree char *name = str_copy(reference_version(&r->ref));
	int64_t size = -1;

	for (int depth = 0; depth < INDEX_DEPTH_MAX; depth++) {
		struct want w = { "manifests", name, size, manifest_accept };
		autofree char *type = NULL;
		const struct descriptor *chosen = NULL;
		int code = get_document(r, ep, h, &w, &f->manifest_bytes, &type, e);

		if (code < 0)
			return code;
		if (depth == 0)
			digest_of(f->manifest_bytes.data, f->manifest_bytes.len, f->digest);
		manifest_free(take_ptr(f->manifest));
		code = manifest_parse(str_or(f->manifest_bytes.data, ""), f->manifest_bytes.len,
				      type, &f->manifest, e);
		if (code < 0 || f->manifest->kind == MANIFEST_IMAGE)
			return code < 0 ? code : manifest_check_image(f->manifest, e);
		code = manifest_choose(f->manifest, &r->job->platform, &chosen, e);
		if (code < 0)
			return code;
		free(name);
		name = str_copy(chosen->digest);
		size = chosen->size;
	}
	return err_text(e, -EINVAL, "an index in an index, more than %d deep", INDEX_DEPTH_MAX);
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
	int code = image_config_parse(str_or(f->config_bytes.data, ""), f->config_bytes.len, &c, e);

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
		code = get_document(r, ep, h, &w, &f->config_bytes, NULL, e);
	}
	if (code == 0)
		code = check_config(r, f, e);
	if (code < 0)
		return err_ctx(e, "pull %s from %s", r->job->reference, ep->host);
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
	buf_done(&f->manifest_bytes);
	buf_done(&f->config_bytes);
	manifest_free(f->manifest);
}
