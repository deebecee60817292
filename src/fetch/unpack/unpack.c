/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/unpack.c - unpacks an archive in the format of an overlayfs layer
 *
 * How:   a sink of the tar reader. member.c creates the members. File data is written and hashed
 *        here. All other bytes are written to the recipe, including the data of members that create
 *        no file.
 * Rules: the limits on bytes and members are checked before memory or disk space is used for them,
 *        and free disk space is checked before it is used (disk-space.h).
 */
#include "fetch/unpack/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/os/file.h"
#include "base/str.h"
#include "fetch/codec/sha256.h"
#include "fetch/recipe/recipe.h"
#include "fetch/tar/path.h"
#include "fetch/tar/tar.h"
#include "fetch/unpack/disk-space.h"
#include "fetch/unpack/member.h"

#define LARGE_FILE	 (1 << 20)
#define IMPLIED_MAX	 100000
#define IMPLIED_JSON_MAX (3 << 20) /* size of the paths as JSON; the daemon reads at most 4 MiB */

struct unpack {
	struct unpack_options options;
	struct tar *tar;
	struct member_writer writer;
	struct recipe *recipe; /* NULL: none */
	struct sha256 *archive_hash, *file_hash;
	struct map *implied; /* paths of implied directories */
	size_t implied_size; /* size of these paths as JSON */
	bool has_root;	     /* the archive has a member for the root */
	int64_t archive, entries, content, disk, inodes;
	struct disk_space space;
	/* the current member */
	const struct tar_entry *entry;
	char path[PATH_SIZE];
	int fd; /* -1: the member creates no file */
};

/* ---- limits ---------------------------------------------------------------- */

static int count_entry(struct unpack *u, struct hw_err *e)
{
	if (++u->entries > u->options.entries)
		return err_text(e, -EFBIG, "the layer has more than %lld members",
				(long long)u->options.entries);
	return disk_space_use(&u->space, DISK_SPACE_BLOCK, e);
}

/* ---- implied directories --------------------------------------------------- */

/* Return: size of a path in the JSON of struct unpacked */
static size_t json_size(const char *path)
{
	size_t n = strlen("\"\",");

	for (const char *p = path; *p; p++)
		n += strchr("\"\\", *p) ? 2 : *p < ' ' || *p > '~' || *p == '%' ? strlen("%XX") : 1;
	return n;
}

static int add_implied(void *ctx, const char *path, struct hw_err *e)
{
	struct unpack *u = ctx;

	u->implied_size += json_size(path);
	if (u->implied_size > IMPLIED_JSON_MAX || map_count(u->implied) == IMPLIED_MAX)
		return err_text(
			e, -EFBIG,
			"too many implied directories (directories without a member of their own)");
	map_set(u->implied, path, u);
	u->inodes++;
	u->disk += DISK_SPACE_BLOCK;
	return count_entry(u, e);
}

/* ---- members --------------------------------------------------------------- */

static int create_member(struct unpack *u, const struct tar_entry *entry, struct hw_err *e)
{
	int r;

	r = path_clean(entry->path, u->path, e);
	if (r < 0)
		return r;
	switch (path_kind(u->path)) {
	case PATH_WHITEOUT:
		u->inodes++;
		return member_create_whiteout(&u->writer, u->path, e);
	case PATH_OPAQUE:
		return member_set_opaque(&u->writer, u->path, e);
	case PATH_AUFS:
		return 0;
	case PATH_PLAIN:
		break;
	}
	/* holes count, too: they use no disk space here, but may in a copy of the file */
	if (entry->size > u->options.bytes)
		return err_text(e, -EFBIG, "file too large: %lld bytes, at most %lld allowed",
				(long long)entry->size, (long long)u->options.bytes);
	if (entry->stored >= LARGE_FILE)
		r = disk_space_check(&u->space, entry->stored, e);
	if (r == 0)
		r = member_create(&u->writer, entry, u->path, &u->fd, e);
	if (r < 0)
		return r;
	if (!*u->path)
		u->has_root = true;
	else if (entry->type == TAR_DIR && map_count(u->implied) > 0)
		map_take(u->implied, u->path);
	if (entry->type != TAR_HARDLINK)
		u->inodes++;
	if (entry->type == TAR_DIR)
		u->disk += DISK_SPACE_BLOCK;
	return 0;
}

static int on_entry(void *ctx, const struct tar_entry *entry, struct hw_err *e)
{
	struct unpack *u = ctx;
	int r;

	u->entry = entry;
	u->fd = -1;
	r = count_entry(u, e);
	if (r == 0)
		r = create_member(u, entry, e);
	return r < 0 ? err_ctx(e, "member \"%.256s\"", entry->path) : 0;
}

static int write_at(int fd, int64_t offset, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n;

		n = pwrite(fd, data, len, offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		offset += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Counts the uncompressed bytes, although the recipe uses less disk space. */
static int on_other(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	struct unpack *u = ctx;
	int r;

	if (!u->recipe)
		return 0;
	r = disk_space_use(&u->space, (int64_t)len, e);
	return r < 0 ? r : recipe_other(u->recipe, data, len, e);
}

static int on_data(void *ctx, int64_t offset, const void *data, size_t len, struct hw_err *e)
{
	struct unpack *u = ctx;
	int r;

	if (u->fd < 0)
		return on_other(u, data, len, e);
	r = disk_space_use(&u->space, (int64_t)len, e);
	if (r == 0) {
		r = write_at(u->fd, offset, data, len);
		if (r < 0)
			err_set(e, r, "write");
	}
	if (r < 0)
		return err_ctx(e, "member \"%.256s\"", u->entry->path);
	sha256_add(u->file_hash, data, len);
	return 0;
}

static int end_file(struct unpack *u, int fd, struct hw_err *e)
{
	const struct tar_entry *entry = u->entry;
	uint8_t sum[DIGEST_SIZE];
	int64_t end = 0; /* end of the data */
	int r;

	for (size_t i = 0; i < entry->n_pieces; i++)
		if (entry->pieces[i].len > 0)
			end = entry->pieces[i].offset + entry->pieces[i].len;
	/* the file ends with a hole; an empty piece may mark the end of the hole */
	if (end < entry->size && ftruncate(fd, entry->size) < 0)
		return err_set(e, -errno, "set size");
	r = member_set_attributes(&u->writer, fd, entry, e);
	if (r < 0)
		return r;
	u->content += entry->size;
	u->disk += (entry->stored + DISK_SPACE_BLOCK - 1) / DISK_SPACE_BLOCK * DISK_SPACE_BLOCK;
	if (entry->stored == 0)
		return 0;
	sha256_end(u->file_hash, sum);
	if (!u->recipe)
		return 0;
	return recipe_file(u->recipe, u->path, entry->pieces, entry->n_pieces, sum, e);
}

static int on_end(void *ctx, struct hw_err *e)
{
	struct unpack *u = ctx;
	autoclose int fd = take_fd(u->fd);

	if (fd >= 0 && end_file(u, fd, e) < 0)
		return err_ctx(e, "member \"%.256s\"", u->entry->path);
	return 0;
}

static const struct tar_sink unpack_sink = { on_entry, on_data, on_end, on_other };

/* ---- the whole archive ----------------------------------------------------- */

struct unpack *unpack_new(const struct unpack_options *options)
{
	struct unpack *u = mem_new(sizeof(*u));

	u->options = *options;
	u->space = (struct disk_space){ .fd = options->root, .reserve = options->reserve };
	u->fd = -1;
	u->tar = tar_new(&unpack_sink, u);
	u->archive_hash = sha256_new();
	u->file_hash = sha256_new();
	u->implied = map_new(NULL);
	if (options->recipe >= 0)
		u->recipe = recipe_new(options->recipe);
	tree_init(&u->writer.tree, options->root);
	u->writer.tree.implied = add_implied;
	u->writer.tree.ctx = u;
	return u;
}

void unpack_free(struct unpack *u)
{
	if (!u)
		return;
	mem_close_fd(&u->fd);
	tree_done(&u->writer.tree);
	tar_free(u->tar);
	sha256_free(u->archive_hash);
	sha256_free(u->file_hash);
	map_free(u->implied);
	recipe_free(u->recipe);
	free(u);
}

int unpack_feed(struct unpack *u, const void *data, size_t len, struct hw_err *e)
{
	if ((int64_t)len > u->options.bytes - u->archive)
		return err_text(e, -EFBIG, "the layer has more than %lld bytes",
				(long long)u->options.bytes);
	u->archive += (int64_t)len;
	sha256_add(u->archive_hash, data, len);
	return tar_feed(u->tar, data, len, e);
}

int unpack_finish(struct unpack *u, const char *diff_id, struct unpacked *ret_unpacked,
		  struct hw_err *e)
{
	static const struct tar_entry default_root = { .type = TAR_DIR, .mode = 0755 };
	uint8_t sum[DIGEST_SIZE];
	char got[DIGEST_TEXT];
	const char *path;
	void *value;
	int fd, r;

	r = tar_finish(u->tar, e);
	if (r == 0 && !u->has_root)
		r = member_create(&u->writer, &default_root, "", &fd, e);
	if (r == 0)
		r = tree_leave(&u->writer.tree, e);
	if (r < 0)
		return r;
	sha256_end(u->archive_hash, sum);
	digest_format(sum, got);
	if (diff_id && !str_equal(diff_id, got))
		return err_text(e, -EBADMSG, "diff ID mismatch: got %s, want %s", got, diff_id);
	if (u->recipe)
		r = recipe_end(u->recipe, u->archive, sum, e);
	if (r < 0)
		return r;
	if (u->options.sync) { /* one call for all files */
		autoclose int root = -1;

		root = file_open_in_root(u->options.root, "", O_RDONLY | O_DIRECTORY);
		if (root < 0 || syncfs(root) < 0)
			return err_set(e, root < 0 ? root : -errno, "sync the layer to disk");
	}
	*ret_unpacked = (struct unpacked){
		.diff_id = str_copy(got),
		.archive = u->archive,
		.content = u->content,
		.disk = u->disk,
		.inodes = u->inodes,
		.skipped = u->writer.skipped,
		.rebuildable = !u->writer.replaced,
		.opaque = u->writer.opaque,
	};
	if (!u->has_root)
		strings_add(&ret_unpacked->implied, "");
	for (size_t i = 0; map_next(u->implied, &i, &path, &value);)
		strings_add(&ret_unpacked->implied, path);
	return 0;
}
