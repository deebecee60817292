/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/archive/fuzz-archive.c - fuzz test: archives of images with arbitrary content
 *
 * The bytes are names and contents of members, alternating, each ending with a NUL; the tar archive
 * is built from them here (fuzz-tar.c tests malformed tar archives). The archive is read in both
 * formats: a resolved image must have its documents, and its layers must lie inside the archive.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/file.h"
#include "fetch/archive/archive.h"
#include "fetch/tar/fuzz-sums.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_member(struct buf *tar, const char *name, const char *content, size_t len)
{
	static const char zeros[TAR_BLOCK], magic[8] = { 'u', 's', 't', 'a', 'r', 0, '0', '0' };
	uint8_t head[TAR_BLOCK] = { 0 };

	snprintf((char *)head, 100, "%s", name);
	snprintf((char *)head + 124, 12, "%011zo", len);
	memcpy(head + 257, magic, sizeof(magic));
	head[156] = '0';
	fix_checksums(head, sizeof(head));
	buf_add(tar, head, sizeof(head));
	buf_add(tar, content, len);
	buf_add(tar, zeros, (TAR_BLOCK - len % TAR_BLOCK) % TAR_BLOCK);
}

static void build_archive(const char *data, size_t size, struct buf *tar)
{
	const char *at = data, *end = data + size;

	while (at < end) {
		const char *content = at + strnlen(at, (size_t)(end - at)) + 1;
		size_t len = content < end ? strnlen(content, (size_t)(end - content)) : 0;

		add_member(tar, at, content, len);
		at = content + len + 1;
	}
}

static void check_image(const struct archive *a, const struct resolved_image *image, int64_t size)
{
	assert(image->n_documents > 0 && image->manifest &&
	       image->manifest->kind == MANIFEST_IMAGE);
	assert(image->images > 0 && image->config.len > 0);
	for (size_t i = 0; i < image->manifest->layers.n; i++) {
		AUTO(buf_done) struct buf space = { 0 };
		const char *digest = manifest_layer(image->manifest, i)->digest;
		const struct archive_file *file;

		if (!digest_is_sha256(digest))
			continue;
		file = archive_find(a, archive_blob_path(a, digest, &space));
		assert(!file || file->size == 0 || (file->at > 0 && file->at + file->size <= size));
	}
}

static void resolve(int fd, int64_t size,
		    int (*resolve_format)(struct archive *a, const struct fetch_job *job,
					  struct resolved_image *image, struct hw_err *e))
{
	AUTO(archive_free) struct archive *a = NULL;
	AUTO(resolved_image_done) struct resolved_image image = { 0 };
	char os[] = "linux", architecture[] = "amd64";
	struct fetch_job job = { .image = 1,
				 .platform = { .os = os, .architecture = architecture } };
	struct hw_err e = { 0 };

	if (archive_open(fd, &a, &e) == 0 && resolve_format(a, &job, &image, &e) == 0)
		check_image(a, &image, size);
	else
		assert(e.code < 0 && e.msg[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf_done) struct buf tar = { 0 };
	autofree char *copy = mem_new(size + 1);
	autoclose int fd = memfd_create("archive", MFD_CLOEXEC);
	struct hw_err e;

	if (size > 0)
		memcpy(copy, data, size);
	build_archive(copy, size, &tar);
	assert(fd >= 0 && file_write_fd(fd, tar.data, tar.len, &e) == 0);
	resolve(fd, (int64_t)tar.len, archive_resolve_oci);
	resolve(fd, (int64_t)tar.len, archive_resolve_docker);
	return 0;
}
