/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/layer/verify-tree.c - compares an unpacked layer with the members of its archive
 *
 * How:   a sink of the tar reader. A member is compared when it is read, except for the attributes
 *        of directories, and whiteouts. Later members may change these, so they are compared at the
 *        end, on a walk through the tree, with the names that are expected (expected.h). The walk
 *        also finds names that are not expected.
 *        Only one directory is open during the walk: after a subdirectory, ".." is opened and read
 *        on from the same position, so that the depth of the tree does not matter.
 */
#include "fetch/layer/verify-tree.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "fetch/layer/expected.h"
#include "fetch/tar/path.h"
#include "fetch/tar/tar.h"
#include "fetch/unpack/member.h"
#include "fetch/unpack/tree.h"

#define CAPABILITY  "security.capability"
#define PARENTS_MAX (1 << 12) /* a power of two */

struct verify_tree {
	int root;
	bool first; /* the pass in which members are compared */
	verify_damaged *damaged;
	void *ctx;
	struct tar *tar;
	struct expected *expected;
	struct expected_name top; /* the root directory */
	/* A cache of paths whose components are expected: their keys, each at key % PARENTS_MAX. */
	uint64_t parents[PARENTS_MAX];
	/* the directory that was opened last; -1: none */
	int dir;
	ino_t ino;
	char dir_path[PATH_SIZE];
	/* the current member; NULL: none */
	const struct tar_entry *entry;
	char path[PATH_SIZE];
	bool reported; /* the current member was reported as damaged */
};

static int report(struct verify_tree *v, const char *path, const char *why, struct hw_err *e)
{
	return v->damaged(v->ctx, *path ? path : "/", why, e);
}

static int report_member(struct verify_tree *v, const char *why, struct hw_err *e)
{
	v->reported = true;
	return v->first ? report(v, v->path, why, e) : 0;
}

/* ---- comparison of a member ------------------------------------------------------ */

/* An existing file, and the member of the archive to compare it with. The member is not a
 * directory. */
struct compared {
	int root, dir;
	const char *name;
	const struct tar_entry *entry;
	struct stat st;
};

static bool has_target(const struct compared *c)
{
	const char *target = c->entry->target;
	char got[PATH_SIZE];
	ssize_t n;

	n = readlinkat(c->dir, c->name, got, sizeof(got));
	return n >= 0 && (size_t)n == strlen(target) && memcmp(got, target, (size_t)n) == 0;
}

static bool is_hardlink_to_target(const struct compared *c)
{
	autoclose int fd = -1;
	char path[PATH_SIZE];
	struct hw_err ignored;
	struct stat target;

	if (path_clean(c->entry->target, path, &ignored) < 0)
		return false;
	fd = file_open_in_root(c->root, path, O_PATH | O_NOFOLLOW);
	return fd >= 0 && fstat(fd, &target) == 0 && target.st_ino == c->st.st_ino &&
	       target.st_dev == c->st.st_dev;
}

/* The kernel returns a capability of version 3 with root ID 0 as version 2, see
 * cap_inode_getsecurity() in security/commoncap.c. Converts such a value in the same way.
 * Return: its new size */
static size_t convert_capability(void *value, size_t len)
{
	struct vfs_ns_cap_data *cap = value;
	uint32_t magic;

	if (len != XATTR_CAPS_SZ_3 || cap->rootid != 0)
		return len;
	magic = le32toh(cap->magic_etc);
	if ((magic & VFS_CAP_REVISION_MASK) != VFS_CAP_REVISION_3)
		return len;
	cap->magic_etc = htole32(VFS_CAP_REVISION_2 | (magic & VFS_CAP_FLAGS_EFFECTIVE));
	return XATTR_CAPS_SZ_2;
}

static bool has_xattr(int fd, const struct tar_xattr *x)
{
	autofree char *got = mem_new(x->len + 1), *want = mem_copy(x->value, x->len);
	size_t len = x->len;
	ssize_t n;

	if (str_equal(x->name, CAPABILITY))
		len = convert_capability(want, len);
	n = fgetxattr(fd, x->name, got, x->len + 1);
	if (n < 0)
		return errno == EOPNOTSUPP; /* then unpacking has skipped it */
	return (size_t)n == len && memcmp(got, want, len) == 0;
}

/* Does the file have all extended attributes of the member, and no capability if the member has
 * none? */
static bool xattrs_match(const struct compared *c)
{
	autoclose int fd = -1;
	bool has_capability = false;

	fd = openat(c->dir, c->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return false;
	for (size_t i = 0; i < c->entry->n_xattrs; i++) {
		const struct tar_xattr *x = &c->entry->xattrs[i];

		has_capability = has_capability || str_equal(x->name, CAPABILITY);
		if (member_allows_xattr(x->name) && !has_xattr(fd, x))
			return false;
	}
	return has_capability || fgetxattr(fd, CAPABILITY, NULL, 0) < 0;
}

/* Return: description of the first difference; NULL: none */
static const char *compare(const struct compared *c)
{
	static const mode_t types[] = {
		[TAR_FILE] = S_IFREG,	  [TAR_SYMLINK] = S_IFLNK, [TAR_CHAR] = S_IFCHR,
		[TAR_BLOCKDEV] = S_IFBLK, [TAR_DIR] = S_IFDIR,	   [TAR_FIFO] = S_IFIFO,
	};
	const struct tar_entry *entry = c->entry;

	if (entry->type == TAR_HARDLINK)
		return is_hardlink_to_target(c) ? NULL : "not a hard link to its target";
	if ((c->st.st_mode & S_IFMT) != types[entry->type])
		return entry->type == TAR_FILE ? "not a regular file" : "file type changed";
	if (c->st.st_uid != entry->uid || c->st.st_gid != entry->gid)
		return "owner changed";
	if (entry->type == TAR_SYMLINK)
		return has_target(c) ? NULL : "link target changed";
	if ((c->st.st_mode & 07777) != entry->mode)
		return "mode changed";
	if (entry->type == TAR_FILE) {
		if (c->st.st_size != entry->size)
			return c->st.st_size < entry->size ? "too short" : "too long";
		return xattrs_match(c) ? NULL : "extended attributes changed";
	}
	if (entry->type != TAR_FIFO && c->st.st_rdev != makedev(entry->major, entry->minor))
		return "device number changed";
	return NULL;
}

/* ---- expected names -------------------------------------------------------------- */

/* Expects a name in the directory that was opened last. */
static struct expected_name *expect_name(struct verify_tree *v, const char *name,
					 enum expected_kind kind)
{
	return expected_add(v->expected, expected_key(v->expected, v->ino, name), kind);
}

static void expect_opaque(struct verify_tree *v, ino_t dir)
{
	expected_add(v->expected, expected_key(v->expected, dir, ""), EXPECT_OPAQUE);
}

static void set_attributes(struct expected_name *n, const struct tar_entry *entry)
{
	n->kind = EXPECT_DIRECTORY;
	n->mode = (uint16_t)entry->mode;
	n->uid = entry->uid;
	n->gid = entry->gid;
}

static int open_dir(struct verify_tree *v, const char *path)
{
	struct stat st;

	if (v->dir >= 0 && str_equal(v->dir_path, path))
		return 0;
	mem_close_fd(&v->dir);
	v->dir = file_open_in_root(v->root, path, O_PATH | O_DIRECTORY);
	if (v->dir < 0 || fstat(v->dir, &st) < 0)
		return v->dir < 0 ? v->dir : -errno;
	v->ino = st.st_ino;
	snprintf(v->dir_path, sizeof(v->dir_path), "%s", path);
	return 0;
}

/* Expects a directory and its parents as IMPLIED, unless they have members of their own. */
static int expect_implied(struct verify_tree *v, const char *path)
{
	uint64_t key = expected_key(v->expected, 0, path);
	uint64_t *cached = &v->parents[key % PARENTS_MAX];
	char parent[PATH_SIZE];
	size_t len = 0;
	int r;

	if (!*path || *cached == key)
		return 0;
	/* find the longest path that is in the cache, and continue below it */
	snprintf(parent, sizeof(parent), "%s", path);
	for (char *slash; len == 0 && (slash = strrchr(parent, '/'));) {
		*slash = '\0';
		key = expected_key(v->expected, 0, parent);
		if (v->parents[key % PARENTS_MAX] == key)
			len = strlen(parent);
	}
	for (const char *p = path + len + (path[len] == '/'); *p; p += strspn(p, "/")) {
		char part[PATH_SIZE];

		p += strcspn(p, "/");
		snprintf(part, sizeof(part), "%.*s", (int)(p - path), path);
		path_parent(part, parent);
		r = open_dir(v, parent);
		if (r < 0)
			return r;
		expect_name(v, path_name(part), EXPECT_IMPLIED);
		key = expected_key(v->expected, 0, part);
		v->parents[key % PARENTS_MAX] = key;
	}
	return 0;
}

/* Opens the directory of the current member. */
static int open_parent(struct verify_tree *v)
{
	char parent[PATH_SIZE];
	int r;

	path_parent(v->path, parent);
	r = expect_implied(v, parent);
	return r < 0 ? r : open_dir(v, parent);
}

/* ---- the walk through the tree ---------------------------------------------------- */

static bool is_opaque(int dir, const char *name)
{
	autoclose int fd = -1;
	char value[2];

	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && fgetxattr(fd, TREE_OPAQUE, value, sizeof(value)) == 1 && *value == 'y';
}

static const char *compare_name(const struct expected_name *n, const struct stat *st)
{
	if (n->kind == EXPECT_OTHER)
		return NULL;
	if (n->kind == EXPECT_WHITEOUT)
		return tree_is_whiteout(st) ? NULL : "not a whiteout";
	if (!S_ISDIR(st->st_mode))
		return "not a directory";
	if (n->kind == EXPECT_IMPLIED)
		return NULL;
	if (st->st_uid != n->uid || st->st_gid != n->gid)
		return "owner changed";
	return (st->st_mode & 07777) != n->mode ? "mode changed" : NULL;
}

static const char *compare_opaque(const struct verify_tree *v, int dir, const char *name, ino_t ino)
{
	uint64_t key = expected_key(v->expected, ino, "");

	if (!expected_in_pass(v->expected, key) ||
	    is_opaque(dir, name) == (expected_find(v->expected, key) != NULL))
		return NULL;
	return "opaque attribute changed";
}

/* A directory that is being read. */
struct walk_level {
	ino_t ino;
	long position; /* in the directory, while a subdirectory is read */
	size_t len;    /* length of its path */
};

struct walk {
	struct verify_tree *v;
	DIR *dir;
	struct buf path; /* path of the directory */
	struct walk_level *levels;
	size_t n, room;
};

static void walk_done(struct walk *w)
{
	if (w->dir)
		closedir(w->dir);
	buf_done(&w->path);
	free(w->levels);
}

AUTO_VALUE_DEFINE(walk_done, struct walk);

static void cut_path(struct walk *w, size_t len)
{
	w->path.len = len;
	if (w->path.data)
		w->path.data[len] = '\0';
}

/* Closes the current directory and opens another one relative to it. */
static int change_dir(struct walk *w, int from, const char *name, ino_t *ret_ino, struct hw_err *e)
{
	autoclose int fd = -1;
	struct stat st;
	DIR *dir = NULL;

	fd = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &st) == 0)
		dir = fdopendir(fd);
	if (!dir)
		return err_set(e, -errno, "open directory \"%.256s\"", str_or(w->path.data, ""));
	take_fd(fd); /* dir owns the descriptor now */
	if (w->dir)
		closedir(w->dir);
	w->dir = dir;
	*ret_ino = st.st_ino;
	return 0;
}

static int enter_dir(struct walk *w, int from, const char *name, struct hw_err *e)
{
	ino_t ino = 0;
	int r;

	if (w->n > 0)
		w->levels[w->n - 1].position = telldir(w->dir);
	r = change_dir(w, from, name, &ino, e);
	if (r < 0)
		return r;
	if (w->n == w->room) {
		w->room = w->room ? 2 * w->room : 64;
		w->levels = mem_resize(w->levels, w->room, sizeof(*w->levels));
	}
	w->levels[w->n++] = (struct walk_level){ .ino = ino, .len = w->path.len };
	return 0;
}

/* Return: 1; 0: the walk has ended */
static int leave_dir(struct walk *w, struct hw_err *e)
{
	const struct walk_level *up;
	ino_t ino = 0;
	int r;

	if (--w->n == 0)
		return 0;
	r = change_dir(w, dirfd(w->dir), "..", &ino, e);
	if (r < 0)
		return r;
	up = &w->levels[w->n - 1];
	if (ino != up->ino)
		return err_text(e, -EAGAIN, "the layer was changed while it was read");
	cut_path(w, up->len);
	seekdir(w->dir, up->position);
	return 1;
}

static int on_name(struct walk *w, const char *name, struct hw_err *e)
{
	struct verify_tree *v = w->v;
	uint64_t key = expected_key(v->expected, w->levels[w->n - 1].ino, name);
	const struct expected_name *n = expected_find(v->expected, key);
	const char *why = NULL;
	size_t len = w->path.len;
	struct stat st;
	int r;

	if (fstatat(dirfd(w->dir), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		why = "missing";
	else if (n)
		why = compare_name(n, &st);
	else if (expected_in_pass(v->expected, key))
		why = "not part of the layer";
	if (!why && S_ISDIR(st.st_mode))
		why = compare_opaque(v, dirfd(w->dir), name, st.st_ino);
	if (!why && !S_ISDIR(st.st_mode))
		return 0;
	buf_printf(&w->path, "%s%s", len > 0 ? "/" : "", name);
	if (!why)
		return enter_dir(w, dirfd(w->dir), name, e);
	r = report(v, w->path.data, why, e);
	cut_path(w, len);
	return r;
}

static int walk_tree(struct verify_tree *v, struct hw_err *e)
{
	AUTO(walk_done) struct walk w = { .v = v };
	const struct dirent *entry;
	int r;

	r = enter_dir(&w, v->root, ".", e);
	while (r >= 0) {
		errno = 0;
		entry = readdir(w.dir);
		if (!entry && errno)
			return err_set(e, -errno, "read directory \"%.256s\"",
				       str_or(w.path.data, ""));
		if (!entry) {
			r = leave_dir(&w, e);
			if (r <= 0)
				return r;
		} else if (!str_equal(entry->d_name, ".") && !str_equal(entry->d_name, "..")) {
			r = on_name(&w, entry->d_name, e);
		}
	}
	return r;
}

/* ---- the archive ----------------------------------------------------------------- */

static int on_whiteout(struct verify_tree *v, struct hw_err *e)
{
	const char *hidden = NULL;
	struct stat st;
	int r;

	r = path_hidden(v->path, &hidden, e);
	if (r < 0)
		return r;
	if (fstatat(v->dir, hidden, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return report_member(v, "missing", e);
	expect_name(v, hidden, EXPECT_WHITEOUT);
	if (S_ISDIR(st.st_mode))
		expect_opaque(v, st.st_ino);
	return 0;
}

static int on_entry(void *ctx, const struct tar_entry *entry, struct hw_err *e)
{
	struct verify_tree *v = ctx;
	struct compared c = { .root = v->root, .entry = entry };
	struct expected_name *n;
	const char *why = NULL;
	enum path_kind kind;
	int r;

	v->entry = entry;
	v->reported = false;
	r = path_clean(entry->path, v->path, e);
	if (r < 0)
		return r;
	kind = path_kind(v->path);
	if (kind == PATH_AUFS)
		return 0;
	if (!*v->path) {
		set_attributes(&v->top, entry);
		return 0;
	}
	if (open_parent(v) < 0)
		return report_member(v, "missing", e);
	if (kind == PATH_WHITEOUT)
		return on_whiteout(v, e);
	if (kind == PATH_OPAQUE) {
		expect_opaque(v, v->ino);
		return 0;
	}
	c.dir = v->dir;
	c.name = path_name(v->path);
	n = expect_name(v, c.name, entry->type == TAR_DIR ? EXPECT_DIRECTORY : EXPECT_OTHER);
	if (n && entry->type == TAR_DIR)
		set_attributes(n, entry);
	if (!v->first)
		return 0;
	if (fstatat(v->dir, c.name, &c.st, AT_SYMLINK_NOFOLLOW) < 0)
		why = "missing";
	else if (entry->type != TAR_DIR)
		why = compare(&c);
	return why ? report_member(v, why, e) : 0;
}

static int on_data(void *ctx, int64_t offset, const void *data, size_t len, struct hw_err *e)
{
	(void)ctx;
	(void)offset;
	(void)data;
	(void)len;
	(void)e;
	return 0;
}

static int on_end(void *ctx, struct hw_err *e)
{
	struct verify_tree *v = ctx;

	(void)e;
	v->entry = NULL;
	return 0;
}

static int on_other(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	return on_data(ctx, 0, data, len, e);
}

static const struct tar_sink verify_sink = { on_entry, on_data, on_end, on_other };

struct verify_tree *verify_tree_new(int root, const struct verify_pass *pass,
				    verify_damaged *damaged, void *ctx)
{
	struct verify_tree *v = mem_new(sizeof(*v));

	v->root = root;
	v->first = pass->part == 0;
	v->damaged = damaged;
	v->ctx = ctx;
	v->dir = -1;
	v->tar = tar_new(&verify_sink, v);
	v->expected = expected_new(pass->part, pass->parts, pass->names);
	v->top.kind = EXPECT_IMPLIED;
	return v;
}

void verify_tree_free(struct verify_tree *v)
{
	if (!v)
		return;
	mem_close_fd(&v->dir);
	tar_free(v->tar);
	expected_free(v->expected);
	free(v);
}

int verify_tree_feed(struct verify_tree *v, const void *data, size_t len, struct hw_err *e)
{
	return tar_feed(v->tar, data, len, e);
}

int verify_tree_file(struct verify_tree *v, const struct recipe_file *file, struct hw_err *e)
{
	const struct tar_entry *entry = v->entry;

	if (!entry || !str_equal(file->path, v->path) || file->n_pieces != entry->n_pieces ||
	    memcmp(file->pieces, entry->pieces, entry->n_pieces * sizeof(*entry->pieces)) != 0)
		return err_text(e, -EBADMSG,
				"corrupt recipe: file \"%.256s\" does not match a member",
				file->path);
	return v->reported || !v->first;
}

int verify_tree_file_end(struct verify_tree *v, struct hw_err *e)
{
	return tar_skip(v->tar, e);
}

int verify_tree_finish(struct verify_tree *v, struct hw_err *e)
{
	const char *why;
	struct stat st;
	int r;

	r = tar_finish(v->tar, e);
	if (r < 0)
		return r;
	if (fstatat(v->root, "", &st, AT_EMPTY_PATH) < 0)
		return err_set(e, -errno, "stat the root");
	why = v->first ? compare_name(&v->top, &st) : NULL;
	if (!why)
		why = compare_opaque(v, v->root, ".", st.st_ino);
	if (why)
		r = report(v, "", why, e);
	return r < 0 ? r : walk_tree(v, e);
}

uint32_t verify_tree_parts(const struct verify_tree *v)
{
	return expected_parts(v->expected);
}
