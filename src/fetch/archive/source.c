/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/archive/source.c - the bytes of an image, from an archive
 *
 * What:  the archive is a tar of an OCI image layout, or what docker save writes, or
 *        both at once; then it is read as the first.
 * Rules: the process needs no file but those that are open, and no network: before the
 *        first byte is read it gives up both (confine.h).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "fetch/archive/archive.h"
#include "fetch/codec/sha256.h"
#include "fetch/confine/confine.h"
#include "image/reference.h"

#define INVALID_ARGUMENT 3 /* gRPC's */

struct from_archive {
	struct source source;
	int fd;
	struct archive *archive;
	char *where; /* for messages */
};

/* ---- what it is ------------------------------------------------------------ */

/* It is not what was asked for, rather than damaged. */
static int refuse(struct hw_err *e, const char *why)
{
	err_text(e, -EINVAL, "%s", why);
	e->domain = HW_DOMAIN_GRPC;
	e->wire = INVALID_ARGUMENT;
	return e->code;
}

static int check_packing(int fd, struct hw_err *e)
{
	static const struct {
		const char *bytes, *program;
		size_t n;
	} packed[] = { { "\x1f\x8b", "gzip", 2 },
		       { "\x28\xb5\x2f\xfd", "zstd", 4 },
		       { "BZh", "bzip2", 3 },
		       { "\xfd"
			 "7zXZ",
			 "xz", 5 } };
	char first[8] = "", why[128];
	ssize_t n = pread(fd, first, sizeof(first), 0);

	if (n == 0)
		return refuse(e, "it is empty");
	for (size_t i = 0; i < ARRAY_SIZE(packed); i++) {
		if (memcmp(first, packed[i].bytes, packed[i].n) != 0)
			continue;
		snprintf(why, sizeof(why), "it is compressed; %s -dc FILE | hawser load loads it",
			 packed[i].program);
		return refuse(e, why);
	}
	return 0;
}

static int look_into(struct from_archive *s, struct resolved_image *f, struct hw_err *e)
{
	const struct job *job = s->source.job;
	const char *format = str_or(job->format, "");
	bool is_oci = archive_find(s->archive, "index.json");
	bool is_docker = archive_find(s->archive, "manifest.json");

	if (is_oci && !str_equal(format, "docker"))
		return archive_resolve_oci(s->archive, job, f, e);
	if (is_docker && !str_equal(format, "oci"))
		return archive_resolve_docker(s->archive, job, f, e);
	return refuse(e, str_empty(format)
				 ? "it is neither an OCI image layout nor what docker save writes"
				 : "it is of another format than was asked for");
}

/* The first of its names, if that can be one. */
static void set_where(struct from_archive *s, const struct resolved_image *f)
{
	AUTO(reference_done) struct reference ref = { 0 };
	autofree char *name = NULL;
	struct hw_err ignored;

	if (f->names.n == 0 || reference_parse(f->names.v[0], &ref, &ignored) < 0)
		return;
	name = reference_format(&ref);
	free(s->where);
	s->where = str_printf("the archive (%s)", name);
}

/* OpenSSL reads its configuration when it is used first. */
static int give_up(const struct from_archive *s, struct hw_err *e)
{
	sha256_free(sha256_new());
	return s->source.job->keep_open ? 0 : confine_reader(e);
}

static int find(struct source *source, struct resolved_image *ret_found, struct hw_err *e)
{
	struct from_archive *s = (struct from_archive *)source;
	AUTO(resolved_image_done) struct resolved_image f = { 0 };
	int r = give_up(s, e);

	if (r == 0)
		r = check_packing(s->fd, e);
	if (r == 0)
		r = archive_open(s->fd, &s->archive, e);
	if (r == 0)
		r = look_into(s, &f, e);
	set_where(s, &f);
	if (r < 0)
		return err_ctx(e, "load %s from %s", source->job->reference, s->where);
	f.host = s->where;
	*ret_found = f;
	f = (struct resolved_image){ 0 };
	return 0;
}

/* ---- a blob ---------------------------------------------------------------- */

struct passing {
	struct sha256 *hash;
	int (*take)(void *ctx, const void *data, size_t len, struct hw_err *e);
	void *ctx;
};

static int pass(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	struct passing *p = ctx;

	sha256_add(p->hash, data, len);
	return p->take(p->ctx, data, len, e);
}

static int stream(const struct archive *a, const struct descriptor *d, struct passing *p,
		  struct hw_err *e)
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
		return err_text(e, -EBADMSG, "it is missing");
	if (file->size != d->size)
		return err_text(e, -EBADMSG, "it has %lld bytes, and %lld in its manifest",
				(long long)file->size, (long long)d->size);
	r = archive_stream(a, file, pass, p, e);
	if (r < 0)
		return r;
	sha256_end(p->hash, sum);
	digest_format(sum, digest);
	return str_equal(digest, d->digest) ? 0 : err_text(e, -EBADMSG, "its digest is %s", digest);
}

static int blob(struct source *source, const struct resolved_image *f, const struct descriptor *d,
		int (*take)(void *ctx, const void *data, size_t len, struct hw_err *e), void *ctx,
		struct hw_err *e)
{
	struct from_archive *s = (struct from_archive *)source;
	AUTO(sha256_free) struct sha256 *hash = sha256_new();
	struct passing p = { hash, take, ctx };
	int r = stream(s->archive, d, &p, e);

	return r < 0 ? err_ctx(e, "load %s from %s: layer %s", source->job->reference, f->host,
			       d->digest)
		     : 0;
}

/** archive_source_new() - the file @fd */
struct source *archive_source_new(const struct job *job, int fd)
{
	struct from_archive *s = mem_new(sizeof(*s));

	*s = (struct from_archive){ .source = { job, find, blob },
				    .fd = fd,
				    .where = str_copy("the archive") };
	return &s->source;
}
