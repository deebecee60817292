/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/source/source.c - what an image consists of: from a name to manifest and configuration
 *
 * How:   an index is asked for the manifest that fits the platform, which may be an
 *        index again.
 */
#include "fetch/source/source.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/str.h"
#include "image/config.h"

/** resolved_image_done() - free what it holds */
void resolved_image_done(struct resolved_image *f)
{
	for (size_t i = 0; i < f->n_documents; i++)
		buf_done(&f->documents[i]);
	buf_done(&f->config);
	manifest_free(f->manifest);
	hw_strings_free(&f->names);
}

/* ---- documents ------------------------------------------------------------- */

static int check_document(const char *name, int64_t size, const struct buf *body, struct hw_err *e)
{
	char digest[DIGEST_TEXT];

	if (size >= 0 && (int64_t)body->len != size)
		return err_text(e, -EBADMSG, "it has %zu bytes and not %lld", body->len,
				(long long)size);
	if (!strchr(name, ':'))
		return 0; /* a tag */
	if (!digest_is_sha256(name))
		return err_text(e, -EOPNOTSUPP, "only SHA-256 digests are supported");
	digest_of(str_or(body->data, ""), body->len, digest);
	if (!str_equal(digest, name))
		return err_text(e, -EBADMSG, "its digest is %s", digest);
	return 0;
}

static int get_document(const struct document_source *from, const char *kind, const char *name,
			int64_t size, struct buf *ret_body, char **ret_type, struct hw_err *e)
{
	int r = from->get(from->ctx, kind, name, ret_body, ret_type, e);

	if (r == 0)
		r = check_document(name, size, ret_body, e);
	return r < 0 ? err_ctx(e, "%s/%s", kind, name) : 0;
}

static bool is_known(const struct document_source *from, const char *digest, struct buf *ret_body)
{
	char known[DIGEST_TEXT];

	for (size_t i = 0; from->known && i < from->known->n; i++) {
		const char *text = from->known->v[i];

		digest_of(text, strlen(text), known);
		if (str_equal(known, digest)) {
			buf_add(ret_body, text, strlen(text));
			return true;
		}
	}
	return false;
}

/* A document that another one has named by its digest. What the first one has named is of the same
 * repository: who may have that may have this. */
static int get_named(const struct document_source *from, const char *kind, const char *digest,
		     int64_t size, struct buf *ret_body, char **ret_type, struct hw_err *e)
{
	if (is_known(from, digest, ret_body))
		return check_document(digest, size, ret_body, e) < 0
			       ? err_ctx(e, "%s/%s", kind, digest)
			       : 0;
	return get_document(from, kind, digest, size, ret_body, ret_type, e);
}

/* One more document, by the name of a tag or by its digest. */
static int add_document(struct resolved_image *f, const struct document_source *from,
			const char *name, int64_t size, struct hw_err *e)
{
	struct buf *bytes = &f->documents[f->n_documents++];
	autofree char *type = NULL;
	int r = f->n_documents == 1 ? get_document(from, "manifests", name, size, bytes, &type, e)
				    : get_named(from, "manifests", name, size, bytes, &type, e);

	if (r < 0)
		return r;
	manifest_free(take_ptr(f->manifest));
	return manifest_parse(str_or(bytes->data, ""), bytes->len, type, &f->manifest, e);
}

static int find_manifest(struct resolved_image *f, const struct document_source *from,
			 const char *first, int64_t size, const struct platform *wanted,
			 struct hw_err *e)
{
	autofree char *name = str_copy(first);

	while (f->n_documents < RESOLVE_DOCUMENTS_MAX) {
		const struct descriptor *chosen = NULL;
		int r = add_document(f, from, name, size, e);

		if (r < 0)
			return r;
		if (f->manifest->kind == MANIFEST_IMAGE)
			return manifest_check_image(f->manifest, e);
		r = manifest_choose(f->manifest, wanted, &chosen, e);
		if (r < 0)
			return r;
		free(name);
		name = str_copy(chosen->digest);
		size = chosen->size;
	}
	return err_text(e, -EINVAL, "indexes in indexes, more than %d deep",
			RESOLVE_DOCUMENTS_MAX - 1);
}

/* ---- the configuration ------------------------------------------------------ */

static int check_platform(const struct image_config *c, const struct platform *wanted,
			  struct hw_err *e)
{
	autofree char *is = NULL, *want = NULL;

	if (str_empty(c->platform.architecture) || platform_rank(wanted, &c->platform) >= 0)
		return 0;
	is = platform_format(&c->platform);
	want = platform_format(wanted);
	return err_text(e, -ENODATA, "no image for %s: it is for %.64s", want, is);
}

static int check_config(const struct resolved_image *f, const struct platform *wanted,
			struct hw_err *e)
{
	AUTO(image_config_free) struct image_config *c = NULL;
	int r = image_config_parse(str_or(f->config.data, ""), f->config.len, &c, e);

	if (r == 0)
		r = image_config_check(c, f->manifest, e);
	return r < 0 ? r : check_platform(c, wanted, e);
}

/**
 * resolve_image() - find out what the image is
 * @f: empty; may have a part of it when this fails
 *
 * Return: 0, or negative errno
 */
int resolve_image(struct resolved_image *f, const struct document_source *from, const char *name,
		  int64_t size, const struct platform *wanted, struct hw_err *e)
{
	int r = find_manifest(f, from, name, size, wanted, e);

	if (r == 0)
		r = get_named(from, "blobs", f->manifest->config.digest, f->manifest->config.size,
			      &f->config, NULL, e);
	if (r == 0)
		r = check_config(f, wanted, e);
	if (r == 0)
		digest_of(f->documents[0].data, f->documents[0].len, f->digest);
	return r;
}
