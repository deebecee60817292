/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/archive/fuzz-archive.c - what an archive of images says, from any bytes
 *
 * The bytes are names and contents of members, by turns, with a zero behind each; the
 * archive is made of them here (fuzz-tar.c has archives that are none). It is read
 * as both of its kinds: what is found has its documents, and every layer that is
 * found lies inside of the archive.
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

static void make_archive(const char *data, size_t size, struct buf *tar)
{
	const char *at = data, *end = data + size;

	while (at < end) {
		const char *content = at + strnlen(at, (size_t)(end - at)) + 1;
		size_t len = content < end ? strnlen(content, (size_t)(end - content)) : 0;

		add_member(tar, at, content, len);
		at = content + len + 1;
	}
}

static void check_found(const struct archive *a, const struct resolved_image *f, int64_t size)
{
	assert(f->n_documents > 0 && f->manifest && f->manifest->kind == MANIFEST_IMAGE);
	assert(f->images > 0 && f->config.len > 0);
	for (size_t i = 0; i < f->manifest->layers.n; i++) {
		AUTO(buf_done) struct buf space = { 0 };
		const char *digest = manifest_layer(f->manifest, i)->digest;
		const struct archive_file *file;

		if (!digest_is_sha256(digest))
			continue;
		file = archive_find(a, archive_blob_path(a, digest, &space));
		assert(!file || file->size == 0 || (file->at > 0 && file->at + file->size <= size));
	}
}

static void look(int fd, int64_t size,
		 int (*find)(struct archive *a, const struct job *job, struct resolved_image *f,
			     struct hw_err *e))
{
	AUTO(archive_free) struct archive *a = NULL;
	AUTO(resolved_image_done) struct resolved_image f = { 0 };
	char os[] = "linux", architecture[] = "amd64";
	struct job job = { .image = 1, .platform = { .os = os, .architecture = architecture } };
	struct hw_err e = { 0 };

	if (archive_open(fd, &a, &e) == 0 && find(a, &job, &f, &e) == 0)
		check_found(a, &f, size);
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
	make_archive(copy, size, &tar);
	assert(fd >= 0 && file_write_fd(fd, tar.data, tar.len, &e) == 0);
	look(fd, (int64_t)tar.len, archive_resolve_oci);
	look(fd, (int64_t)tar.len, archive_resolve_docker);
	return 0;
}
