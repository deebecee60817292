/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/archive/archive.c - random access to the files of a tar archive of images
 */
#include "fetch/archive/archive.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/str.h"
#include "fetch/tar/tar.h"

#define CHUNK	  (64 << 10)
#define LINKS_MAX 8 /* maximum number of links that archive_find() follows in a row */

struct archive_member {
	struct archive_file file; /* size -1: a sparse file, which cannot be read */
	char *target;		  /* path of the member that a link points to; NULL: not a link */
};

struct archive {
	int fd;
	struct map *members; /* struct archive_member by path */
	struct map *blobs;   /* paths by digest */
};

static void member_free(void *value)
{
	struct archive_member *m = value;

	free(m->target);
	free(m);
}

void archive_free(struct archive *a)
{
	if (!a)
		return;
	map_free(a->members);
	map_free(a->blobs);
	free(a);
}

/* ---- names ----------------------------------------------------------------- */

/* Resolves @name relative to the directory in the first @len bytes of @base, and removes "." and
 * "..". Return: the path; NULL if it escapes the archive or is longer than ARCHIVE_PATH_MAX */
static char *clean_path(const char *base, size_t len, const char *name)
{
	AUTO(hw_strings_free) struct hw_strings parts = { 0 };
	autofree char *all = str_printf("%.*s/%s", (int)len, base, name);
	AUTO(buf_done) struct buf b = { 0 };

	if (*name == '/' || strlen(all) > ARCHIVE_PATH_MAX)
		return NULL;
	strings_split(all, '/', &parts);
	for (size_t i = 0; i < parts.n; i++) {
		if (str_empty(parts.v[i]) || str_equal(parts.v[i], "."))
			continue;
		if (!str_equal(parts.v[i], "..")) {
			buf_printf(&b, "/%s", parts.v[i]);
			continue;
		}
		if (b.len == 0)
			return NULL;
		b.len = (size_t)((char *)memrchr(b.data, '/', b.len) - b.data);
	}
	return b.len > 0 ? str_ncopy(b.data + 1, b.len - 1) : str_copy("");
}

/* ---- the scan -------------------------------------------------------------- */

struct scan {
	struct archive *a;
	int64_t at;			/* bytes scanned so far */
	struct archive_member *current; /* member whose data is being scanned; NULL: none */
};

static int on_entry(void *ctx, const struct tar_entry *entry, struct hw_err *e)
{
	struct scan *s = ctx;
	autofree char *path = clean_path("", 0, entry->path);
	bool is_symlink = entry->type == TAR_SYMLINK;
	struct archive_member *m;

	s->current = NULL;
	if (strlen(entry->path) > ARCHIVE_PATH_MAX)
		return 0;
	if (!path)
		return err_text(e, -EBADMSG, "member \"%.256s\": path escapes the archive",
				entry->path);
	if (map_count(s->a->members) >= ARCHIVE_MEMBERS_MAX)
		return err_text(e, -EFBIG, "archive has more than %d members", ARCHIVE_MEMBERS_MAX);
	if (entry->type != TAR_FILE && entry->type != TAR_HARDLINK && !is_symlink)
		return 0;
	m = mem_new(sizeof(*m));
	*m = (struct archive_member){ .file = { -1, entry->size } };
	if (entry->type != TAR_FILE) {
		/* a hard link's target is relative to the archive, a symlink's to its directory */
		const char *slash = is_symlink ? strrchr(path, '/') : NULL;

		m->target = clean_path(path, slash ? (size_t)(slash - path) : 0, entry->target);
		if (!m->target) /* the target escapes the archive: use a path that no member has */
			m->target = str_copy("");
	}
	if (entry->stored != entry->size)
		m->file.size = -1;
	s->current = m;
	map_set(s->a->members, path, m);
	return 0;
}

static int on_data(void *ctx, int64_t offset, const void *data, size_t len, struct hw_err *e)
{
	struct scan *s = ctx;

	(void)offset;
	(void)data;
	(void)e;
	if (s->current && s->current->file.at < 0)
		s->current->file.at = s->at;
	s->at += (int64_t)len;
	return 0;
}

static int on_end(void *ctx, struct hw_err *e)
{
	struct scan *s = ctx;

	(void)e;
	s->current = NULL;
	return 0;
}

static int on_other(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	struct scan *s = ctx;

	(void)data;
	(void)e;
	s->at += (int64_t)len;
	return 0;
}

static const struct tar_sink scan_sink = { on_entry, on_data, on_end, on_other };

static int feed_tar(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	return tar_feed(ctx, data, len, e);
}

int archive_open(int fd, struct archive **ret_archive, struct hw_err *e)
{
	AUTO(archive_free) struct archive *a = mem_new(sizeof(*a));
	struct scan scan = { .a = a };
	AUTO(tar_free) struct tar *tar = tar_new(&scan_sink, &scan);
	struct archive_file whole = { 0, lseek(fd, 0, SEEK_END) };
	int r;

	a->fd = fd;
	a->members = map_new(member_free);
	a->blobs = map_new(free);
	r = archive_stream(a, &whole, feed_tar, tar, e);
	if (r == 0)
		r = tar_finish(tar, e);
	if (r < 0)
		return err_replace(e, -EINVAL, -EBADMSG);
	*ret_archive = take_ptr(a);
	return 0;
}

/* ---- files ----------------------------------------------------------------- */

const struct archive_file *archive_find(const struct archive *a, const char *path)
{
	autofree char *name = clean_path("", 0, path);

	for (int i = 0; name && i < LINKS_MAX; i++) {
		const struct archive_member *m;

		m = map_find(a->members, name);
		if (!m || (!m->target && m->file.size < 0))
			return NULL;
		if (!m->target)
			return &m->file;
		free(name);
		name = str_copy(m->target);
	}
	return NULL;
}

int archive_stream(const struct archive *a, const struct archive_file *file, source_write *write,
		   void *ctx, struct hw_err *e)
{
	autofree char *chunk = mem_new(CHUNK);
	int64_t done = 0;
	int r = 0;

	while (r == 0 && done < file->size) {
		int64_t left = file->size - done;
		size_t want = left < CHUNK ? (size_t)left : CHUNK;
		ssize_t n;

		n = pread(a->fd, chunk, want, file->at + done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, -errno, "read the archive");
		if (n == 0)
			return err_text(e, -EBADMSG, "truncated archive");
		done += n;
		r = write(ctx, chunk, (size_t)n, e);
	}
	return r;
}

static int add_to_buf(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	(void)e;
	buf_add(ctx, data, len);
	return 0;
}

int archive_read(const struct archive *a, const char *path, struct buf *ret, struct hw_err *e)
{
	const struct archive_file *file;
	AUTO(buf_done) struct buf b = { 0 };
	int r;

	file = archive_find(a, path);
	if (!file)
		return err_text(e, -EBADMSG, "%.300s is missing", path);
	if (file->size > MANIFEST_SIZE_MAX)
		return err_text(e, -EFBIG, "%.300s is too large: %lld bytes, at most %d allowed",
				path, (long long)file->size, MANIFEST_SIZE_MAX);
	r = archive_stream(a, file, add_to_buf, &b, e);
	if (r < 0)
		return r;
	*ret = b;
	b = (struct buf){ 0 };
	return 0;
}

/* ---- blobs ----------------------------------------------------------------- */

void archive_set_blob_path(struct archive *a, const char *digest, const char *path)
{
	map_set(a->blobs, digest, str_copy(path));
}

const char *archive_blob_path(const struct archive *a, const char *digest, struct buf *space)
{
	const char *path = map_find(a->blobs, digest);

	if (path)
		return path;
	buf_printf(space, "blobs/sha256/%s", digest + strlen("sha256:"));
	return space->data;
}
