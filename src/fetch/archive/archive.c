/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/archive/archive.c - the files in a tar archive of images, where they lie
 */
#include "fetch/archive/archive.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/str.h"
#include "fetch/tar/tar.h"

#define PIECE	  (64 << 10)
#define LINKS_MAX 8 /* one after the other */

struct member {
	struct archive_file file;
	char *target; /* of a link: the member it stands for; NULL: it is a file */
};

struct archive {
	int fd;
	struct map *members; /* of struct member, by path */
	struct map *blobs;   /* of char *: paths, by digest */
};

static void member_free(void *value)
{
	struct member *m = value;

	free(m->target);
	free(m);
}

/** archive_free() - free it; NULL is fine */
void archive_free(struct archive *a)
{
	if (!a)
		return;
	map_free(a->members);
	map_free(a->blobs);
	free(a);
}

/* ---- names ----------------------------------------------------------------- */

/* The path of @name as seen from the folder @from, of which the first @len bytes count, without
 * "." and "..". Return: NULL when it leaves the archive, or is too long to be of interest */
static char *clean(const char *from, size_t len, const char *name)
{
	AUTO(hw_strings_free) struct hw_strings words = { 0 };
	autofree char *all = str_printf("%.*s/%s", (int)len, from, name);
	AUTO(buf_done) struct buf b = { 0 };

	if (*name == '/' || strlen(all) > ARCHIVE_PATH_MAX)
		return NULL;
	strings_split(all, '/', &words);
	for (size_t i = 0; i < words.n; i++) {
		if (str_empty(words.v[i]) || str_equal(words.v[i], "."))
			continue;
		if (!str_equal(words.v[i], "..")) {
			buf_printf(&b, "/%s", words.v[i]);
			continue;
		}
		if (b.len == 0)
			return NULL;
		b.len = (size_t)((char *)memrchr(b.data, '/', b.len) - b.data);
	}
	return b.len > 0 ? str_ncopy(b.data + 1, b.len - 1) : str_copy("");
}

static size_t folder_len(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) : 0;
}

/* ---- reading it once ------------------------------------------------------- */

struct scan {
	struct archive *a;
	int64_t at;	    /* bytes that were seen */
	struct member *now; /* whose data comes; NULL: nobody's */
};

static int take_entry(void *ctx, const struct tar_entry *entry, struct hw_err *e)
{
	struct scan *s = ctx;
	autofree char *path = clean("", 0, entry->path);
	bool is_symlink = entry->type == TAR_SYMLINK;

	s->now = NULL;
	if (strlen(entry->path) > ARCHIVE_PATH_MAX)
		return 0;
	if (!path)
		return err_text(e, -EBADMSG, "member \"%.256s\" leaves the archive", entry->path);
	if (map_count(s->a->members) >= ARCHIVE_MEMBERS_MAX)
		return err_text(e, -EFBIG, "it has more than %d members", ARCHIVE_MEMBERS_MAX);
	if (entry->type != TAR_FILE && entry->type != TAR_HARDLINK && !is_symlink)
		return 0;
	s->now = mem_new(sizeof(*s->now));
	*s->now = (struct member){ .file = { -1, entry->size } };
	if (entry->type != TAR_FILE) {
		s->now->target = clean(path, is_symlink ? folder_len(path) : 0, entry->target);
		if (!s->now->target) /* nowhere */
			s->now->target = str_copy("");
	}
	if (entry->stored != entry->size) /* sparse: nobody writes images so */
		s->now->file.size = -1;
	map_set(s->a->members, path, s->now);
	return 0;
}

static int take_data(void *ctx, int64_t offset, const void *data, size_t len, struct hw_err *e)
{
	struct scan *s = ctx;

	(void)offset;
	(void)data;
	(void)e;
	if (s->now && s->now->file.at < 0)
		s->now->file.at = s->at;
	s->at += (int64_t)len;
	return 0;
}

static int take_end(void *ctx, struct hw_err *e)
{
	struct scan *s = ctx;

	(void)e;
	s->now = NULL;
	return 0;
}

static int take_other(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	struct scan *s = ctx;

	(void)data;
	(void)e;
	s->at += (int64_t)len;
	return 0;
}

static const struct tar_sink sink = { take_entry, take_data, take_end, take_other };

static int feed(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	return tar_feed(ctx, data, len, e);
}

static int scan_all(struct archive *a, struct hw_err *e)
{
	struct scan scan = { .a = a };
	AUTO(tar_free) struct tar *tar = tar_new(&sink, &scan);
	struct archive_file all = { 0, lseek(a->fd, 0, SEEK_END) };
	int r = archive_stream(a, &all, feed, tar, e);

	return r < 0 ? r : tar_finish(tar, e);
}

/**
 * archive_open() - read an archive once, to know where things are
 *
 * Return: 0; -EINVAL, -EBADMSG: it is none, or is damaged; -EFBIG
 */
int archive_open(int fd, struct archive **ret_archive, struct hw_err *e)
{
	AUTO(archive_free) struct archive *a = mem_new(sizeof(*a));
	int r;

	a->fd = fd;
	a->members = map_new(member_free);
	a->blobs = map_new(free);
	r = scan_all(a, e);
	if (r == 0)
		*ret_archive = take_ptr(a);
	return r;
}

/* ---- its files ------------------------------------------------------------- */

/** archive_find() - a file, by its name or that of a link; NULL: there is none */
const struct archive_file *archive_find(const struct archive *a, const char *path)
{
	autofree char *name = clean("", 0, path);

	for (int i = 0; name && i < LINKS_MAX; i++) {
		const struct member *m = map_find(a->members, name);

		if (!m || (!m->target && m->file.size < 0))
			return NULL;
		if (!m->target)
			return &m->file;
		free(name);
		name = str_copy(m->target);
	}
	return NULL;
}

/** archive_stream() - hand on the bytes of a file, in order */
int archive_stream(const struct archive *a, const struct archive_file *file,
		   int (*take)(void *ctx, const void *data, size_t len, struct hw_err *e),
		   void *ctx, struct hw_err *e)
{
	autofree char *piece = mem_new(PIECE);
	int64_t done = 0;
	int r = 0;

	while (r == 0 && done < file->size) {
		int64_t left = file->size - done;
		size_t want = left < PIECE ? (size_t)left : PIECE;
		ssize_t n = pread(a->fd, piece, want, file->at + done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, -errno, "read it");
		if (n == 0)
			return err_text(e, -EBADMSG, "it ends too soon");
		done += n;
		r = take(ctx, piece, (size_t)n, e);
	}
	return r;
}

static int add_bytes(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	(void)e;
	buf_add(ctx, data, len);
	return 0;
}

/** archive_read() - a small file: a document */
int archive_read(const struct archive *a, const char *path, struct buf *ret, struct hw_err *e)
{
	const struct archive_file *file = archive_find(a, path);
	AUTO(buf_done) struct buf b = { 0 };
	int r;

	if (!file)
		return err_text(e, -EBADMSG, "%.300s is missing", path);
	if (file->size > MANIFEST_SIZE_MAX)
		return err_text(e, -EFBIG, "%.300s has %lld bytes, more than %d", path,
				(long long)file->size, MANIFEST_SIZE_MAX);
	r = archive_stream(a, file, add_bytes, &b, e);
	if (r < 0)
		return r;
	*ret = b;
	b = (struct buf){ 0 };
	return 0;
}

/* ---- blobs ----------------------------------------------------------------- */

/** archive_name_blob() - this file is, if it is what it should be, the blob of that digest */
void archive_name_blob(struct archive *a, const char *digest, const char *path)
{
	map_set(a->blobs, digest, str_copy(path));
}

/** archive_blob_path() - where the blob of a digest should be */
const char *archive_blob_path(const struct archive *a, const char *digest, struct buf *space)
{
	const char *path = map_find(a->blobs, digest);

	if (path)
		return path;
	buf_printf(space, "blobs/sha256/%s", digest + strlen("sha256:"));
	return space->data;
}
