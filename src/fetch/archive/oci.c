/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/archive/oci.c - images in an archive of an OCI image layout
 *
 * What:  index.json names manifests, or indexes of manifests. Entries with the same digest are one
 *        image with several names; entries for other platforms are ignored.
 */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "fetch/archive/archive.h"

/* Annotations that contain the image's name. containerd and nerdctl write the first one, OCI tools
 * such as podman and skopeo the second one. */
static const char *const name_keys[] = { "io.containerd.image.name",
					 "org.opencontainers.image.ref.name" };

/* Finds the image's name in the annotations. A value with neither ":" nor "/" is only a tag, not a
 * name. */
static const char *find_name(const struct descriptor *d)
{
	for (size_t i = 0; i < ARRAY_SIZE(name_keys); i++)
		for (size_t k = 0; k < d->annotations.n; k++)
			if (str_equal(d->annotations.keys[k], name_keys[i]) &&
			    strpbrk(d->annotations.values[k], ":/"))
				return d->annotations.values[k];
	return NULL;
}

static bool is_for_platform(const struct descriptor *d, const struct platform *wanted)
{
	if (manifest_kind_of(d->media_type) == MANIFEST_NONE)
		return false;
	return !d->has_platform || platform_rank(wanted, &d->platform) != PLATFORM_NONE;
}

static bool is_first_of_digest(const struct descriptor *v, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (str_equal(v[k].digest, v[i].digest))
			return false;
	return true;
}

static int get_document(void *ctx, const char *kind, const char *name, struct buf *ret_body,
			struct document_head *ret_head, struct hw_err *e)
{
	AUTO(buf_done) struct buf space = { 0 };

	(void)kind;
	(void)ret_head;
	if (!digest_is_sha256(name))
		return err_text(e, -EOPNOTSUPP, "only SHA-256 digests are supported");
	return archive_read(ctx, archive_blob_path(ctx, name, &space), ret_body, e);
}

int archive_resolve_oci(struct archive *a, const struct fetch_job *job,
			struct resolved_image *image, struct hw_err *e)
{
	AUTO(buf_done) struct buf json = { 0 };
	AUTO(manifest_free) struct manifest *index = NULL;
	const struct descriptor *v, *chosen = NULL, *any;
	struct document_source from = { .get = get_document, .ctx = a };
	int r;

	r = archive_read(a, "index.json", &json, e);
	if (r < 0)
		return r;
	r = manifest_parse(str_or(json.data, ""), json.len, NULL, &index, e);
	if (r < 0)
		return r;
	if (index->kind != MANIFEST_INDEX)
		return err_text(e, -EBADMSG, "index.json is not an OCI image index");

	/* find the job's image, and count the images for the job's platform */
	v = index->manifests.v;
	image->images = 0;
	for (size_t i = 0; i < index->manifests.n; i++)
		if (is_for_platform(&v[i], &job->platform) && is_first_of_digest(v, i) &&
		    ++image->images == job->image)
			chosen = &v[i];
	if (image->images == 0) /* manifest_choose() fails; its error lists the platforms */
		return manifest_choose(index, &job->platform, &any, e) < 0 ? e->code : -ENODATA;
	if (!chosen)
		return err_text(e, -EBADMSG, "image %d not found: the archive has %d images",
				job->image, image->images);
	for (size_t i = 0; i < index->manifests.n; i++) {
		const char *name = str_equal(v[i].digest, chosen->digest) ? find_name(&v[i]) : NULL;

		if (name && !strings_has(&image->names, name))
			strings_add(&image->names, name);
	}
	return resolve_image(image, &from, chosen->digest, chosen->size, &job->platform, e);
}
