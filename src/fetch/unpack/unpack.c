/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/unpack.c - a layer's archive into a folder, in the form that overlayfs knows
 *
 * How:   the sink of a tar reader. Each member goes to member.c; a file's data is
 *        written and hashed here; every other byte goes into the recipe, and so
 *        does the data of members that leave no file.
 * Rules: bytes and members are counted before they cost anything, and whether there
 *        is space for them is asked before they take it (disk-space.h).
 */
#include "fetch/unpack/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/str.h"
#include "fetch/codec/sha256.h"
#include "fetch/recipe/recipe.h"
#include "fetch/tar/path.h"
#include "fetch/tar/tar.h"
#include "fetch/unpack/disk-space.h"
#include "fetch/unpack/member.h"

#define LARGE	     (1 << 20)
#define IMPLIED_MAX  100000
#define IMPLIED_TEXT (3 << 20) /* of all their paths as JSON; the daemon reads 4 MiB */

struct unpack {
	struct unpack_options options;
	struct tar *tar;
	struct member_writer make;
	struct recipe *recipe; /* NULL: none */
	struct sha256 *whole, *file;
	struct map *implied;
	size_t implied_size;
	bool root_named;
	int64_t archive, entries, content, disk, inodes;
	struct disk_space space;
	/* the member at hand */
	const struct tar_entry *entry;
	char path[PATH_SIZE];
	int fd; /* -1: it leaves no file */
};

/* ---- limits ---------------------------------------------------------------- */

static int count_bytes(struct unpack *u, size_t len, struct hw_err *e)
{
	if ((int64_t)len > u->options.bytes - u->archive)
		return err_text(e, -EFBIG, "the layer has more than %lld bytes",
				(long long)u->options.bytes);
	u->archive += (int64_t)len;
	return 0;
}

static int count_entry(struct unpack *u, struct hw_err *e)
{
	if (++u->entries > u->options.entries)
		return err_text(e, -EFBIG, "the layer has more than %lld members",
				(long long)u->options.entries);
	return disk_space_use(&u->space, DISK_SPACE_BLOCK, e);
}

static int check_file(struct unpack *u, const struct tar_entry *entry, struct hw_err *e)
{
	if (entry->size > u->options.bytes) /* holes cost nothing here, but whoever copies it */
		return err_text(e, -EFBIG, "a file of %lld bytes is larger than %lld",
				(long long)entry->size, (long long)u->options.bytes);
	return entry->stored >= LARGE ? disk_space_check(&u->space, entry->stored, e) : 0;
}

/* ---- folders that no member speaks of --------------------------------------- */

/* Bytes of a path in JSON, see unpacked.c. */
static size_t json_size(const char *path)
{
	size_t n = strlen("\"\",");

	for (const char *p = path; *p; p++)
		n += strchr("\"\\", *p) ? 2 : *p < ' ' || *p > '~' || *p == '%' ? strlen("%XX") : 1;
	return n;
}

static int note_implied(void *ctx, const char *path, struct hw_err *e)
{
	struct unpack *u = ctx;

	u->implied_size += json_size(path);
	if (u->implied_size > IMPLIED_TEXT || map_count(u->implied) == IMPLIED_MAX)
		return err_text(e, -EFBIG, "too many folders have no member of their own");
	map_set(u->implied, path, u);
	u->inodes++;
	u->disk += DISK_SPACE_BLOCK;
	return count_entry(u, e);
}

static void note_named(struct unpack *u)
{
	if (!*u->path)
		u->root_named = true;
	else if (u->entry->type == TAR_DIR && map_count(u->implied) > 0)
		map_take(u->implied, u->path);
}

/* Most layers do not speak of the root. */
static int settle_root(struct unpack *u, struct hw_err *e)
{
	static const struct tar_entry plain = { .type = TAR_DIR, .mode = 0755 };
	int fd;

	return u->root_named ? 0 : member_create(&u->make, &plain, "", &fd, e);
}

/* ---- members --------------------------------------------------------------- */

static int make_plain(struct unpack *u, struct hw_err *e)
{
	int r = check_file(u, u->entry, e);

	if (r == 0)
		r = member_create(&u->make, u->entry, u->path, &u->fd, e);
	if (r < 0)
		return r;
	note_named(u);
	if (u->entry->type != TAR_HARDLINK)
		u->inodes++;
	if (u->entry->type == TAR_DIR)
		u->disk += DISK_SPACE_BLOCK;
	return 0;
}

static int make_entry(struct unpack *u, struct hw_err *e)
{
	int r = path_clean(u->entry->path, u->path, e);

	if (r < 0)
		return r;
	switch (path_kind(u->path)) {
	case PATH_WHITEOUT:
		u->inodes++;
		return member_create_whiteout(&u->make, u->path, e);
	case PATH_OPAQUE:
		return member_set_opaque(&u->make, u->path, e);
	case PATH_AUFS:
		return 0;
	default:
		return make_plain(u, e);
	}
}

static int take_entry(void *ctx, const struct tar_entry *entry, struct hw_err *e)
{
	struct unpack *u = ctx;
	int r = count_entry(u, e);

	u->entry = entry;
	u->fd = -1;
	if (r == 0)
		r = make_entry(u, e);
	return r < 0 ? err_ctx(e, "member \"%.256s\"", entry->path) : 0;
}

static int write_at(int fd, int64_t offset, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, data, len, offset);

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

/* Into the recipe; before it is packed it takes more than it does on disk. */
static int take_other(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	struct unpack *u = ctx;
	int r = u->recipe ? disk_space_use(&u->space, (int64_t)len, e) : 0;

	return r == 0 && u->recipe ? recipe_other(u->recipe, data, len, e) : r;
}

static int take_data(void *ctx, int64_t offset, const void *data, size_t len, struct hw_err *e)
{
	struct unpack *u = ctx;
	int r;

	if (u->fd < 0)
		return take_other(u, data, len, e);
	r = disk_space_use(&u->space, (int64_t)len, e);
	if (r == 0) {
		r = write_at(u->fd, offset, data, len);
		if (r < 0)
			err_set(e, r, "write it");
	}
	if (r < 0)
		return err_ctx(e, "member \"%.256s\"", u->entry->path);
	sha256_add(u->file, data, len);
	return 0;
}

/* A hole at the end is not written, and neither is a piece without length that marks it. */
static int set_size(int fd, const struct tar_entry *entry)
{
	int64_t end = 0;

	for (size_t i = 0; i < entry->n_pieces; i++)
		if (entry->pieces[i].len > 0)
			end = entry->pieces[i].offset + entry->pieces[i].len;
	return end < entry->size && ftruncate(fd, entry->size) < 0 ? -errno : 0;
}

static int end_file(struct unpack *u, int fd, struct hw_err *e)
{
	const struct tar_entry *entry = u->entry;
	uint8_t sum[DIGEST_SIZE];
	int r = set_size(fd, entry);

	if (r < 0)
		return err_set(e, r, "set its size");
	r = member_set_attributes(&u->make, fd, entry, e);
	if (r < 0)
		return r;
	u->content += entry->size;
	u->disk += (entry->stored + DISK_SPACE_BLOCK - 1) / DISK_SPACE_BLOCK * DISK_SPACE_BLOCK;
	if (entry->stored == 0)
		return 0;
	sha256_end(u->file, sum);
	if (!u->recipe)
		return 0;
	return recipe_file(u->recipe, u->path, entry->pieces, entry->n_pieces, sum, e);
}

static int take_end(void *ctx, struct hw_err *e)
{
	struct unpack *u = ctx;
	autoclose int fd = take_fd(u->fd);

	if (fd >= 0 && end_file(u, fd, e) < 0)
		return err_ctx(e, "member \"%.256s\"", u->entry->path);
	return 0;
}

static const struct tar_sink unpack_sink = {
	.entry = take_entry,
	.data = take_data,
	.end = take_end,
	.other = take_other,
};

/* ---- the whole ------------------------------------------------------------- */

/** unpack_new() - begin to unpack */
struct unpack *unpack_new(const struct unpack_options *options)
{
	struct unpack *u = mem_new(sizeof(*u));

	u->options = *options;
	u->space = (struct disk_space){ .fd = options->root, .reserve = options->reserve };
	u->fd = -1;
	u->tar = tar_new(&unpack_sink, u);
	u->whole = sha256_new();
	u->file = sha256_new();
	u->implied = map_new(NULL);
	if (options->recipe >= 0)
		u->recipe = recipe_new(options->recipe);
	tree_init(&u->make.tree, options->root);
	u->make.tree.implied = note_implied;
	u->make.tree.ctx = u;
	return u;
}

/** unpack_free() - end it; what was made stays */
void unpack_free(struct unpack *u)
{
	if (!u)
		return;
	mem_close_fd(&u->fd);
	tree_done(&u->make.tree);
	tar_free(u->tar);
	sha256_free(u->whole);
	sha256_free(u->file);
	map_free(u->implied);
	recipe_free(u->recipe);
	free(u);
}

/**
 * unpack_feed() - take the next bytes of the archive
 *
 * Return: 0; -EINVAL, -EOPNOTSUPP: it is not as it should be; -EFBIG: it is larger
 * than allowed; -ENOSPC; or what the kernel says about a member
 */
int unpack_feed(struct unpack *u, const void *data, size_t len, struct hw_err *e)
{
	int r = count_bytes(u, len, e);

	if (r < 0)
		return r;
	sha256_add(u->whole, data, len);
	return tar_feed(u->tar, data, len, e);
}

static void list_implied(struct unpack *u, struct hw_strings *ret)
{
	const char *path;
	void *value;

	if (!u->root_named)
		strings_add(ret, "");
	for (size_t i = 0; map_next(u->implied, &i, &path, &value);)
		strings_add(ret, path);
}

static int end_archive(struct unpack *u, const char *diff_id, char ret_diff_id[DIGEST_TEXT],
		       struct hw_err *e)
{
	uint8_t sum[DIGEST_SIZE];
	int r = tar_finish(u->tar, e);

	if (r == 0)
		r = settle_root(u, e);
	if (r == 0)
		r = tree_leave(&u->make.tree, e);
	if (r < 0)
		return r;
	sha256_end(u->whole, sum);
	digest_format(sum, ret_diff_id);
	if (diff_id && !str_equal(diff_id, ret_diff_id))
		return err_text(e, -EBADMSG, "the layer's content is %s, and not %s", ret_diff_id,
				diff_id);
	return u->recipe ? recipe_end(u->recipe, u->archive, sum, e) : 0;
}

/* The whole file system: one call, where fsync() would be one for each file. */
static int sync_root(int root)
{
	autoclose int fd = tree_open(root, "", O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		return fd;
	return syncfs(fd) < 0 ? -errno : 0;
}

/**
 * unpack_finish() - no more bytes come
 * @diff_id:      that it must have; NULL: any
 * @ret_unpacked: for unpacked_done()
 *
 * Return: 0; -EBADMSG: it has another; -EINVAL: the archive stops in the middle
 */
int unpack_finish(struct unpack *u, const char *diff_id, struct unpacked *ret_unpacked,
		  struct hw_err *e)
{
	char got[DIGEST_TEXT];
	int r = end_archive(u, diff_id, got, e);

	if (r < 0)
		return r;
	if (u->options.sync && (r = sync_root(u->options.root)) < 0)
		return err_set(e, r, "write the layer to disk");
	*ret_unpacked = (struct unpacked){
		.diff_id = str_copy(got),
		.archive = u->archive,
		.content = u->content,
		.disk = u->disk,
		.inodes = u->inodes,
		.skipped = u->make.skipped,
		.rebuildable = !u->make.replaced,
		.opaque = u->make.opaque,
	};
	list_implied(u, &ret_unpacked->implied);
	return 0;
}
