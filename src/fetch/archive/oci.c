/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/archive/oci.c - the images of an archive that is an OCI image layout
 *
 * What:  index.json names manifests, or indexes of such. Those of one digest are one
 *        image, with several names; those for other machines are none of ours.
 */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "fetch/archive/archive.h"

/* As containerd and nerdctl write names, and as OCI's tools do, podman and skopeo among them. */
static const char *const name_keys[] = { "io.containerd.image.name",
					 "org.opencontainers.image.ref.name" };

static const char *annotation(const struct descriptor *d, const char *key)
{
	for (size_t i = 0; i < d->annotations.n; i++)
		if (str_equal(d->annotations.keys[i], key))
			return d->annotations.values[i];
	return NULL;
}

/* A word alone is a tag, and of what repository is not said. */
static const char *name_of(const struct descriptor *d)
{
	for (size_t i = 0; i < ARRAY_SIZE(name_keys); i++) {
		const char *name = annotation(d, name_keys[i]);

		if (name && strpbrk(name, ":/"))
			return name;
	}
	return NULL;
}

static bool is_ours(const struct descriptor *d, const struct platform *wanted)
{
	if (manifest_kind_of(d->media_type) == MANIFEST_NONE)
		return false;
	return !d->has_platform || platform_rank(wanted, &d->platform) != PLATFORM_NONE;
}

static bool is_new(const struct descriptor *v, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (str_equal(v[k].digest, v[i].digest))
			return false;
	return true;
}

/* Counts all, and remembers the job's. */
static int choose(const struct manifest *index, const struct job *job,
		  const struct descriptor **ret_chosen, int *ret_n, struct hw_err *e)
{
	const struct descriptor *v = index->manifests.v, *any;

	*ret_n = 0;
	for (size_t i = 0; i < index->manifests.n; i++)
		if (is_ours(&v[i], &job->platform) && is_new(v, i) && ++*ret_n == job->image)
			*ret_chosen = &v[i];
	if (*ret_n == 0)
		return manifest_choose(index, &job->platform, &any, e) < 0 ? e->code : -ENODATA;
	if (!*ret_chosen)
		return err_text(e, -EINVAL, "it has %d images", *ret_n);
	return 0;
}

static void add_names(const struct manifest *index, const char *digest, struct hw_strings *names)
{
	const struct descriptor *v = index->manifests.v;

	for (size_t i = 0; i < index->manifests.n; i++) {
		const char *name = str_equal(v[i].digest, digest) ? name_of(&v[i]) : NULL;

		if (name && !strings_has(names, name))
			strings_add(names, name);
	}
}

static int get(void *ctx, const char *kind, const char *name, struct buf *ret_body, char **ret_type,
	       struct hw_err *e)
{
	AUTO(buf_done) struct buf space = { 0 };

	(void)kind;
	(void)ret_type;
	if (!digest_is_sha256(name))
		return err_text(e, -EOPNOTSUPP, "only SHA-256 digests are supported");
	return archive_read(ctx, archive_blob_path(ctx, name, &space), ret_body, e);
}

/** archive_resolve_oci() - what an image of an OCI image layout consists of */
int archive_resolve_oci(struct archive *a, const struct job *job, struct resolved_image *f,
			struct hw_err *e)
{
	AUTO(buf_done) struct buf json = { 0 };
	AUTO(manifest_free) struct manifest *index = NULL;
	const struct descriptor *chosen = NULL;
	struct document_source from = { get, a };
	int r = archive_read(a, "index.json", &json, e);

	if (r == 0)
		r = manifest_parse(str_or(json.data, ""), json.len, NULL, &index, e);
	if (r == 0 && index->kind != MANIFEST_INDEX)
		r = err_text(e, -EINVAL, "index.json is no index");
	if (r == 0)
		r = choose(index, job, &chosen, &f->images, e);
	if (!chosen)
		return r;
	add_names(index, chosen->digest, &f->names);
	return resolve_image(f, &from, chosen->digest, chosen->size, &job->platform, e);
}
