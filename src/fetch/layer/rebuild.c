/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/layer/rebuild.c - rebuilds or verifies a layer from its recipe and its files
 *
 * How:   both operations read the recipe and each file in it. Rebuilding writes the bytes that it
 *        reads and stops at the first difference; verifying reports each difference, and passes the
 *        bytes that are not file data to verify-tree.c, which compares the members.
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
	struct sha256 *archive_hash, *file_hash;
	char *chunk;
	struct verify_tree *verify; /* NULL: write the archive */
	verify_damaged *damaged;
	void *ctx;
};

static int write_out(struct rebuild *b, const void *data, size_t len, struct hw_err *e)
{
	b->size += (int64_t)len;
	sha256_add(b->archive_hash, data, len);
	return file_write_fd(b->out, data, len, e);
}

static int on_other(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	struct rebuild *b = ctx;

	return b->verify ? verify_tree_feed(b->verify, data, len, e) : write_out(b, data, len, e);
}

/* Hashes the piece, and writes it when rebuilding. Return: 0; -EBADMSG: file too short; or negative
 * errno */
static int read_piece(struct rebuild *b, int fd, const struct tar_piece *piece, struct hw_err *e)
{
	for (int64_t at = 0; at < piece->len;) {
		size_t want = piece->len - at < CHUNK ? (size_t)(piece->len - at) : CHUNK;
		ssize_t n;
		int r;

		n = pread(fd, b->chunk, want, piece->offset + at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, -errno, "read");
		if (n == 0)
			return err_text(e, -EBADMSG, "too short");
		sha256_add(b->file_hash, b->chunk, (size_t)n);
		r = b->verify ? 0 : write_out(b, b->chunk, (size_t)n, e);
		if (r < 0)
			return r;
		at += n;
	}
	return 0;
}

/* Checks that all bytes of a hole are zero. */
static int verify_hole(struct rebuild *b, int fd, int64_t from, int64_t to, struct hw_err *e)
{
	while (from < to) {
		off_t at;
		ssize_t n;

		at = lseek(fd, from, SEEK_DATA);
		if (at < 0 && errno != ENXIO)
			return err_set(e, -errno, "seek to data");
		if (at < 0 || at >= to)
			return 0;
		n = pread(fd, b->chunk, to - at < CHUNK ? (size_t)(to - at) : CHUNK, at);
		if (n < 0 && errno != EINTR)
			return err_set(e, -errno, "read");
		if (n == 0)
			return 0;
		/* all bytes are zero if the first byte is zero and each byte is equal to the next
		 * one */
		if (n > 0 &&
		    (b->chunk[0] != '\0' || memcmp(b->chunk, b->chunk + 1, (size_t)n - 1) != 0))
			return err_text(e, -EBADMSG, "content changed");
		from = at + (n > 0 ? n : 0);
	}
	return 0;
}

/* Checks the type before opening: opening a device can have side effects. */
static int open_file(int root, const char *path)
{
	autoclose int handle = -1;
	struct stat st;

	handle = file_open_in_root(root, path, O_PATH | O_NOFOLLOW);
	if (handle < 0)
		return handle;
	if (fstat(handle, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? file_open_in_root(root, path, O_RDONLY | O_NOFOLLOW) : -EISDIR;
}

static int read_file(struct rebuild *b, const struct recipe_file *file, struct hw_err *e)
{
	autoclose int fd = -1;
	uint8_t sum[DIGEST_SIZE];
	int64_t at = 0;
	int r = 0;

	fd = open_file(b->root, file->path);
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return err_text(e, -EBADMSG, "missing");
	if (fd == -EISDIR)
		return err_text(e, -EBADMSG, "not a regular file");
	if (fd < 0)
		return err_set(e, fd, "open");
	sha256_begin(b->file_hash);
	for (size_t i = 0; r == 0 && i < file->n_pieces; i++)
		r = read_piece(b, fd, &file->pieces[i], e);
	if (r < 0)
		return r;
	sha256_end(b->file_hash, sum);
	if (memcmp(sum, file->sum, sizeof(sum)) != 0)
		return err_text(e, -EBADMSG, "content changed");
	if (!b->verify)
		return 0;
	for (size_t i = 0; r == 0 && i < file->n_pieces; i++) {
		r = verify_hole(b, fd, at, file->pieces[i].offset, e);
		at = file->pieces[i].offset + file->pieces[i].len;
	}
	return r < 0 ? r : verify_hole(b, fd, at, INT64_MAX, e);
}

static int on_file(void *ctx, const struct recipe_file *file, struct hw_err *e)
{
	struct rebuild *b = ctx;
	int r = 0;

	if (b->verify)
		r = verify_tree_file(b->verify, file, e);
	if (r < 0)
		return r;
	if (r == 0) { /* otherwise verify-tree.c has already reported the file */
		r = read_file(b, file, e);
		if (r == -EBADMSG && b->verify) {
			struct hw_err why = *e;

			r = b->damaged(b->ctx, file->path, why.msg, e);
		}
		if (r < 0)
			return err_ctx(e, "file \"%.256s\"", file->path);
	}
	return b->verify ? verify_tree_file_end(b->verify, e) : 0;
}

static int on_end(void *ctx, int64_t size, const uint8_t sum[DIGEST_SIZE], struct hw_err *e)
{
	struct rebuild *b = ctx;
	uint8_t got[DIGEST_SIZE];

	if (b->verify)
		return verify_tree_finish(b->verify, e);
	sha256_end(b->archive_hash, got);
	if (b->size == size && memcmp(got, sum, sizeof(got)) == 0)
		return 0;
	return err_text(e, -EBADMSG, "rebuilt archive differs from the original");
}

static const struct recipe_sink rebuild_sink = { on_other, on_file, on_end };

static int run_recipe(struct rebuild *b, int recipe, struct hw_err *e)
{
	AUTO(sha256_free) struct sha256 *archive_hash = sha256_new(), *file_hash = sha256_new();
	autofree char *chunk = mem_new(CHUNK);

	b->archive_hash = archive_hash;
	b->file_hash = file_hash;
	b->chunk = chunk;
	return recipe_read(recipe, &rebuild_sink, b, e);
}

int rebuild_archive(int recipe, int root, int out, struct hw_err *e)
{
	struct rebuild b = { .root = root, .out = out };

	return run_recipe(&b, recipe, e);
}

/* Runs one pass, and then those for the names that it had to drop. */
static int run_pass(const struct rebuild *all, int recipe, const struct verify_pass *pass,
		    struct hw_err *e)
{
	AUTO(verify_tree_free)
	struct verify_tree *verify = verify_tree_new(all->root, pass, all->damaged, all->ctx);
	struct rebuild b = *all;
	uint32_t parts;
	int r;

	b.verify = verify;
	if (lseek(recipe, 0, SEEK_SET) < 0)
		return err_set(e, -errno, "seek in the recipe");
	r = run_recipe(&b, recipe, e);
	parts = verify_tree_parts(verify);
	verify_tree_free(take_ptr(verify));
	for (uint32_t n = pass->parts; r == 0 && n < parts; n *= 2)
		r = run_pass(all, recipe,
			     &(struct verify_pass){ pass->part + n, 2 * n, pass->names }, e);
	return r;
}

int rebuild_verify(int recipe, int root, size_t names, verify_damaged *damaged, void *ctx,
		   struct hw_err *e)
{
	const struct rebuild b = { .root = root, .out = -1, .damaged = damaged, .ctx = ctx };

	return run_pass(&b, recipe, &(struct verify_pass){ 0, 1, names }, e);
}
