/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/layer/rebuild.c - a layer's archive from its recipe and its files, and the check of both
 *
 * How:   both read the recipe, and each file in its turn; the one writes what it
 *        reads and stops at the first difference, the other tells of each. What is
 *        no file's data goes to verify-tree.c then, which knows the members.
 */
#include "fetch/layer/rebuild.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/file.h"
#include "fetch/codec/sha256.h"
#include "fetch/layer/verify-tree.h"
#include "fetch/recipe/recipe.h"
#include "fetch/unpack/tree.h"

#define CHUNK (256 << 10)

struct rebuild {
	int root;
	int out;
	int64_t size;
	struct sha256 *whole, *file;
	char *chunk;
	struct verify_tree *check; /* NULL: the archive is written */
	verify_damaged *damaged;
	void *ctx;
};

static int emit(struct rebuild *b, const void *data, size_t len, struct hw_err *e)
{
	b->size += (int64_t)len;
	sha256_add(b->whole, data, len);
	return file_write_fd(b->out, data, len, e);
}

static int take_other(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	struct rebuild *b = ctx;

	return b->check ? verify_tree_feed(b->check, data, len, e) : emit(b, data, len, e);
}

/* Return: 0, -EBADMSG when the file is too short, or another error of reading or writing */
static int take_piece(struct rebuild *b, int fd, const struct tar_piece *piece, struct hw_err *e)
{
	for (int64_t at = 0; at < piece->len;) {
		size_t want = piece->len - at < CHUNK ? (size_t)(piece->len - at) : CHUNK;
		ssize_t n = pread(fd, b->chunk, want, piece->offset + at);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, -errno, "read it");
		if (n == 0)
			return err_text(e, -EBADMSG, "it is too short");
		sha256_add(b->file, b->chunk, (size_t)n);
		r = b->check ? 0 : emit(b, b->chunk, (size_t)n, e);
		if (r < 0)
			return r;
		at += n;
	}
	return 0;
}

static int read_pieces(struct rebuild *b, int fd, const struct recipe_file *file, struct hw_err *e)
{
	uint8_t sum[DIGEST_SIZE];
	int r = 0;

	sha256_begin(b->file);
	for (size_t i = 0; r == 0 && i < file->n_pieces; i++)
		r = take_piece(b, fd, &file->pieces[i], e);
	if (r < 0)
		return r;
	sha256_end(b->file, sum);
	if (memcmp(sum, file->sum, sizeof(sum)) != 0)
		return err_text(e, -EBADMSG, "its content is not what it was");
	return 0;
}

static bool is_zero(const char *data, size_t len)
{
	return len == 0 || (data[0] == '\0' && memcmp(data, data + 1, len - 1) == 0);
}

/* What the archive has not is zeros. */
static int check_hole(struct rebuild *b, int fd, int64_t from, int64_t to, struct hw_err *e)
{
	while (from < to) {
		off_t at = lseek(fd, from, SEEK_DATA);
		ssize_t n;

		if (at < 0 && errno != ENXIO)
			return err_set(e, -errno, "look for its holes");
		if (at < 0 || at >= to)
			return 0;
		n = pread(fd, b->chunk, to - at < CHUNK ? (size_t)(to - at) : CHUNK, at);
		if (n < 0 && errno != EINTR)
			return err_set(e, -errno, "read it");
		if (n == 0)
			return 0;
		if (n > 0 && !is_zero(b->chunk, (size_t)n))
			return err_text(e, -EBADMSG, "its content is not what it was");
		from = at + (n > 0 ? n : 0);
	}
	return 0;
}

static int check_holes(struct rebuild *b, int fd, const struct recipe_file *file, struct hw_err *e)
{
	int64_t at = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < file->n_pieces; i++) {
		r = check_hole(b, fd, at, file->pieces[i].offset, e);
		at = file->pieces[i].offset + file->pieces[i].len;
	}
	return r < 0 ? r : check_hole(b, fd, at, INT64_MAX, e);
}

/* It is looked at before it is opened: to open a device can be to use it. */
static int open_file(int root, const char *path)
{
	autoclose int look = tree_open(root, path, O_PATH | O_NOFOLLOW);
	struct stat st;

	if (look < 0)
		return look;
	if (fstat(look, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? tree_open(root, path, O_RDONLY | O_NOFOLLOW) : -EISDIR;
}

static int read_file(struct rebuild *b, const struct recipe_file *file, struct hw_err *e)
{
	autoclose int fd = open_file(b->root, file->path);
	int r;

	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return err_text(e, -EBADMSG, "it is gone");
	if (fd == -EISDIR)
		return err_text(e, -EBADMSG, "it is not a file");
	if (fd < 0)
		return err_set(e, fd, "open it");
	r = read_pieces(b, fd, file, e);
	return r == 0 && b->check ? check_holes(b, fd, file, e) : r;
}

/* Unless something else is known to be wrong with it. */
static int verify_file(struct rebuild *b, const struct recipe_file *file, struct hw_err *e)
{
	int r = verify_tree_file(b->check, file, e);

	if (r < 0)
		return r;
	if (r == 0) {
		r = read_file(b, file, e);
		if (r == -EBADMSG) {
			struct hw_err why = *e;

			r = b->damaged(b->ctx, file->path, why.msg, e);
		}
		if (r < 0)
			return err_ctx(e, "file \"%.256s\"", file->path);
	}
	return verify_tree_file_end(b->check, e);
}

static int take_file(void *ctx, const struct recipe_file *file, struct hw_err *e)
{
	struct rebuild *b = ctx;
	int r;

	if (b->check)
		return verify_file(b, file, e);
	r = read_file(b, file, e);
	return r < 0 ? err_ctx(e, "file \"%.256s\"", file->path) : 0;
}

static int take_end(void *ctx, int64_t size, const uint8_t sum[DIGEST_SIZE], struct hw_err *e)
{
	struct rebuild *b = ctx;
	uint8_t got[DIGEST_SIZE];

	if (b->check)
		return verify_tree_finish(b->check, e);
	sha256_end(b->whole, got);
	if (b->size == size && memcmp(got, sum, sizeof(got)) == 0)
		return 0;
	return err_text(e, -EBADMSG, "the archive has not become what it was");
}

static const struct recipe_sink rebuild_sink = {
	.other = take_other,
	.file = take_file,
	.end = take_end,
};

static int run(struct rebuild *b, int recipe, struct hw_err *e)
{
	AUTO(sha256_free) struct sha256 *whole = sha256_new(), *file = sha256_new();
	autofree char *chunk = mem_new(CHUNK);

	b->whole = whole;
	b->file = file;
	b->chunk = chunk;
	return recipe_read(recipe, &rebuild_sink, b, e);
}

/**
 * rebuild_archive() - write a layer's archive again
 * @recipe: open at its beginning
 * @root:   where the layer is unpacked
 * @out:    where the archive goes
 *
 * Return: 0; -EBADMSG: a file or the recipe is not what it was
 */
int rebuild_archive(int recipe, int root, int out, struct hw_err *e)
{
	struct rebuild b = { .root = root, .out = out };

	return run(&b, recipe, e);
}

/**
 * rebuild_verify() - look at everything that a layer has, and is to have
 * @damaged: called for each that is not what it was
 *
 * Return: 0, whatever was found; -EBADMSG: the recipe itself is damaged; or what
 * @damaged returned
 */
int rebuild_verify(int recipe, int root, verify_damaged *damaged, void *ctx, struct hw_err *e)
{
	AUTO(verify_tree_free) struct verify_tree *check = verify_tree_new(root, damaged, ctx);
	struct rebuild b = {
		.root = root, .out = -1, .check = check, .damaged = damaged, .ctx = ctx
	};

	return run(&b, recipe, e);
}
