/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/archive/source.c - an archive as source of an image
 *
 * What:  the archive is a tar archive of an OCI image layout, a docker save archive, or both at
 *        once. An archive that is both is read as an OCI image layout.
 * Rules: needs no network, and no files except those that are already open: the fetcher is confined
 *        accordingly (CONFINE_READER).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "fetch/archive/archive.h"
#include "fetch/codec/sha256.h"
#include "image/reference.h"

struct archive_source {
	struct source source;
	int fd;
	struct archive *archive;
	char *description; /* describes the archive in messages */
};

/* ---- resolving ------------------------------------------------------------- */

/* Here -EINVAL is for a file that is not an archive of images. A damaged archive is -EBADMSG. */

static int reject_compressed(int fd, struct hw_err *e)
{
	static const struct {
		const char *bytes, *program;
		size_t n;
	} magics[] = { { "\x1f\x8b", "gzip", 2 },
		       { "\x28\xb5\x2f\xfd", "zstd", 4 },
		       { "BZh", "bzip2", 3 },
		       { "\xfd"
			 "7zXZ",
			 "xz", 5 } };
	char first[8] = "";
	ssize_t n = pread(fd, first, sizeof(first), 0);

	if (n == 0)
		return err_text(e, -EINVAL, "archive is empty");
	for (size_t i = 0; i < ARRAY_SIZE(magics); i++) {
		if (memcmp(first, magics[i].bytes, magics[i].n) != 0)
			continue;
		return err_text(e, -EINVAL, "archive is compressed; use: %s -dc FILE | hawser load",
				magics[i].program);
	}
	return 0;
}

static int resolve_by_format(struct archive_source *s, struct resolved_image *image,
			     struct hw_err *e)
{
	const struct fetch_job *job = s->source.job;
	const char *format = str_or(job->format, "");

	if (archive_find(s->archive, "index.json") && !str_equal(format, "docker"))
		return archive_resolve_oci(s->archive, job, image, e);
	if (archive_find(s->archive, "manifest.json") && !str_equal(format, "oci"))
		return archive_resolve_docker(s->archive, job, image, e);
	if (str_empty(format))
		return err_text(e, -EINVAL,
				"unrecognized archive format: neither an OCI image layout nor a "
				"docker save archive");
	return err_text(e, -EINVAL, "archive is not in the requested format %.16s", format);
}

static int resolve(struct source *source, struct resolved_image *ret_image, struct hw_err *e)
{
	struct archive_source *s = (struct archive_source *)source;
	AUTO(resolved_image_done) struct resolved_image image = { 0 };
	AUTO(reference_done) struct reference ref = { 0 };
	struct hw_err ignored;
	int r;

	r = reject_compressed(s->fd, e);
	if (r == 0)
		r = archive_open(s->fd, &s->archive, e);
	if (r == 0)
		r = resolve_by_format(s, &image, e);
	/* describe the archive by the image's first name, if it is a valid reference */
	if (image.names.n > 0 && reference_parse(image.names.v[0], &ref, &ignored) == 0) {
		autofree char *name = reference_format(&ref);

		free(s->description);
		s->description = str_printf("the archive (%s)", name);
	}
	if (r < 0)
		return err_ctx(e, "load %s from %s", source->job->reference, s->description);
	image.host = s->description;
	*ret_image = image;
	image = (struct resolved_image){ 0 };
	return 0;
}

/* ---- blobs ----------------------------------------------------------------- */

struct hashing_writer {
	struct sha256 *hash;
	source_write *write;
	void *ctx;
};

static int hash_and_write(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	struct hashing_writer *w = ctx;

	sha256_add(w->hash, data, len);
	return w->write(w->ctx, data, len, e);
}

static int stream_blob(const struct archive *a, const struct descriptor *d,
		       struct hashing_writer *w, struct hw_err *e)
{
	AUTO(buf_done) struct buf space = { 0 };
	const struct archive_file *file;
	uint8_t sum[DIGEST_SIZE];
	char digest[DIGEST_TEXT];
	int r;

	if (!digest_is_sha256(d->digest))
		return err_text(e, -EOPNOTSUPP, "only SHA-256 digests are supported");
	file = archive_find(a, archive_blob_path(a, d->digest, &space));
	if (!file)
		return err_text(e, -EBADMSG, "blob is missing");
	if (file->size != d->size)
		return err_text(e, -EBADMSG, "size mismatch: got %lld bytes, want %lld",
				(long long)file->size, (long long)d->size);
	r = archive_stream(a, file, hash_and_write, w, e);
	if (r < 0)
		return r;
	sha256_end(w->hash, sum);
	digest_format(sum, digest);
	if (!str_equal(digest, d->digest))
		return err_text(e, -EBADMSG, "digest mismatch: got %s, want %s", digest, d->digest);
	return 0;
}

static int fetch_blob(struct source *source, const struct resolved_image *image,
		      const struct descriptor *d, source_write *write, void *ctx, struct hw_err *e)
{
	struct archive_source *s = (struct archive_source *)source;
	AUTO(sha256_free) struct sha256 *hash = sha256_new();
	struct hashing_writer w = { hash, write, ctx };

	if (stream_blob(s->archive, d, &w, e) < 0)
		return err_ctx(e, "load %s from %s: layer %s", source->job->reference, image->host,
			       d->digest);
	return 0;
}

struct source *archive_source_new(const struct fetch_job *job, int fd)
{
	struct archive_source *s = mem_new(sizeof(*s));

	*s = (struct archive_source){ .source = { job, resolve, fetch_blob },
				      .fd = fd,
				      .description = str_copy("the archive") };
	return &s->source;
}
