/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/source/source.c - resolves the name of an image to its manifest and configuration
 *
 * How:   selects the manifest for the platform from an index; the selected entry may itself be an
 *        index.
 */
#include "fetch/source/source.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "image/config.h"

static void document_head_done(struct document_head *head)
{
	free(head->type);
}
AUTO_VALUE_DEFINE(document_head_done, struct document_head);

void resolved_image_done(struct resolved_image *image)
{
	for (size_t i = 0; i < image->n_documents; i++)
		buf_done(&image->documents[i]);
	buf_done(&image->config);
	manifest_free(image->manifest);
	hw_strings_free(&image->names);
}

/* ---- documents ------------------------------------------------------------- */

static int check_document(const char *name, int64_t size, const struct buf *body, struct hw_err *e)
{
	char digest[DIGEST_TEXT];

	if (size >= 0 && (int64_t)body->len != size)
		return err_text(e, -EBADMSG, "size mismatch: got %zu bytes, want %lld", body->len,
				(long long)size);
	if (!strchr(name, ':'))
		return 0; /* a tag: there is no digest to compare */
	if (!digest_is_sha256(name))
		return err_text(e, -EOPNOTSUPP, "only SHA-256 digests are supported");
	digest_of(str_or(body->data, ""), body->len, digest);
	if (!str_equal(digest, name))
		return err_text(e, -EBADMSG, "digest mismatch: got %s, want %s", digest, name);
	return 0;
}

static bool find_known(const struct document_source *from, const char *digest, struct buf *ret_body)
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

/*
 * @may_be_known: a document that is already in the store (from->known) may be used instead of
 * fetching it. True only if another document refers to it by digest: then both are in the same
 * repository, and a client that was allowed to fetch the other document may also read this one.
 */
static int get_document(const struct document_source *from, const char *kind, const char *name,
			int64_t size, bool may_be_known, struct buf *ret_body,
			struct document_head *ret_head, struct hw_err *e)
{
	int r = 0;

	if (!may_be_known || !find_known(from, name, ret_body))
		r = from->get(from->ctx, kind, name, ret_body, ret_head, e);
	if (r == 0)
		r = check_document(name, size, ret_body, e);
	return r < 0 ? err_ctx(e, "%s/%s", kind, name) : 0;
}

/* Return: 1 if the document is the image's manifest; 0 if it is an index, with the chosen entry; or
 * negative errno */
static int parse_document(struct resolved_image *image, const struct buf *body, const char *type,
			  const struct platform *wanted, const struct descriptor **ret_chosen,
			  struct hw_err *e)
{
	int r;

	manifest_free(take_ptr(image->manifest));
	r = manifest_parse(str_or(body->data, ""), body->len, type, &image->manifest, e);
	if (r < 0)
		return r;
	if (image->manifest->kind != MANIFEST_IMAGE)
		return manifest_choose(image->manifest, wanted, ret_chosen, e);
	r = manifest_check_image(image->manifest, e);
	return r < 0 ? r : 1;
}

static int find_manifest(struct resolved_image *image, const struct document_source *from,
			 const char *first, int64_t size, const struct platform *wanted,
			 struct hw_err *e)
{
	autofree char *name = str_copy(first);

	while (image->n_documents < RESOLVE_DOCUMENTS_MAX) {
		struct buf *body = &image->documents[image->n_documents++];
		const struct descriptor *chosen = NULL;
		AUTO(document_head_done) struct document_head head = { 0 };
		int r;

		r = get_document(from, "manifests", name, size, image->n_documents > 1, body, &head,
				 e);
		if (r < 0)
			return r;
		r = parse_document(image, body, head.type, wanted, &chosen, e);
		/* The error would show a part of any document that this machine can read. Only a
		 * digest proves that the document is the one that the user has asked for. */
		if (r < 0 && head.foreign && !strchr(name, ':'))
			return err_text(e, r,
					"manifests/%s: invalid document, received from another "
					"server",
					name);
		if (r != 0)
			return r < 0 ? r : 0;
		free(name);
		name = str_copy(chosen->digest);
		size = chosen->size;
	}
	return err_text(e, -EBADMSG, "too many nested indexes: more than %d levels",
			RESOLVE_DOCUMENTS_MAX - 1);
}

/* ---- the configuration ------------------------------------------------------ */

static int check_config(const struct resolved_image *image, const struct platform *wanted,
			struct hw_err *e)
{
	AUTO(image_config_free) struct image_config *c = NULL;
	autofree char *got = NULL, *want = NULL;
	int r;

	r = image_config_parse(str_or(image->config.data, ""), image->config.len, &c, e);
	if (r < 0)
		return r;
	r = image_config_check(c, image->manifest, e);
	if (r < 0)
		return r;
	if (str_empty(c->platform.architecture) || platform_rank(wanted, &c->platform) >= 0)
		return 0;
	got = platform_format(&c->platform);
	want = platform_format(wanted);
	return err_text(e, -ENODATA, "no image for %s: the image is for %.64s", want, got);
}

int resolve_image(struct resolved_image *image, const struct document_source *from,
		  const char *name, int64_t size, const struct platform *wanted, struct hw_err *e)
{
	AUTO(document_head_done) struct document_head head = { 0 };
	const struct descriptor *config;
	int r;

	r = find_manifest(image, from, name, size, wanted, e);
	if (r < 0)
		return r;
	config = &image->manifest->config;
	r = get_document(from, "blobs", config->digest, config->size, true, &image->config, &head,
			 e);
	if (r < 0)
		return r;
	r = check_config(image, wanted, e);
	if (r < 0)
		return r;
	digest_of(image->documents[0].data, image->documents[0].len, image->digest);
	return 0;
}
