/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/layer/verify-tree.c - compares an unpacked layer with the members of its archive
 *
 * How:   a sink of the tar reader. A member is compared when it is read, except for directories and
 *        whiteouts. Later members may change these, so they are compared at the end, on a walk
 *        through the tree. For this walk, each expected name is stored with the inode of its
 *        directory, since a member's path may lead through symbolic links:
 *
 *	kind of name     expected
 *	WHITEOUT         a device 0:0
 *	IMPLIED          a directory, with any attributes (from the layers below)
 *	DIRECTORY        a directory with the attributes of its last member
 *	OTHER            exists; already compared
 */
#include "fetch/layer/verify-tree.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "fetch/tar/path.h"
#include "fetch/tar/tar.h"
#include "fetch/unpack/member.h"
#include "fetch/unpack/tree.h"

#define KEY_SIZE   (NAME_MAX + 32)
#define CAPABILITY "security.capability"

enum name_kind { WHITEOUT, IMPLIED, DIRECTORY, OTHER };

struct expected_name {
	enum name_kind kind; /* the highest kind of all members with this name */
	bool hides;	     /* a member with this name is a whiteout */
	bool seen;
	mode_t mode; /* mode and owner are set for a DIRECTORY only */
	uid_t uid;
	gid_t gid;
	char path[];
};

struct verify_tree {
	int root;
	verify_damaged *damaged;
	void *ctx;
	struct tar *tar;
	struct map *names;	   /* struct expected_name by format_key() */
	struct map *parents;	   /* paths whose components are in names */
	struct map *opaque;	   /* opaque directories, by format_key() with the name "" */
	struct expected_name *top; /* the root directory */
	struct hw_strings dirs;	   /* directories to walk through */
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
	return report(v, v->path, why, e);
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
	ssize_t n = readlinkat(c->dir, c->name, got, sizeof(got));

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
	fd = tree_open(c->root, path, O_PATH | O_NOFOLLOW);
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

static void format_key(ino_t dir, const char *name, char ret_key[KEY_SIZE])
{
	snprintf(ret_key, KEY_SIZE, "%llx/%s", (unsigned long long)dir, name);
}

static struct expected_name *name_new(const char *path)
{
	struct expected_name *n = mem_new(sizeof(*n) + strlen(path) + 1);

	memcpy(n->path, path, strlen(path) + 1);
	return n;
}

/* Adds an expected name in the directory that was opened last, or updates it. */
static struct expected_name *expect_name(struct verify_tree *v, const char *path, const char *name,
					 enum name_kind kind)
{
	struct expected_name *n;
	char key[KEY_SIZE];

	format_key(v->ino, name, key);
	n = map_find(v->names, key);
	if (!n) {
		n = name_new(path);
		map_set(v->names, key, n);
	}
	if (kind > n->kind)
		n->kind = kind;
	n->hides = n->hides || kind == WHITEOUT;
	return n;
}

static void expect_attributes(struct expected_name *n, const struct tar_entry *entry)
{
	n->kind = DIRECTORY;
	n->mode = entry->mode;
	n->uid = entry->uid;
	n->gid = entry->gid;
}

static int open_dir(struct verify_tree *v, const char *path)
{
	struct stat st;

	if (v->dir >= 0 && str_equal(v->dir_path, path))
		return 0;
	mem_close_fd(&v->dir);
	v->dir = tree_open(v->root, path, O_PATH | O_DIRECTORY);
	if (v->dir < 0 || fstat(v->dir, &st) < 0)
		return v->dir < 0 ? v->dir : -errno;
	v->ino = st.st_ino;
	snprintf(v->dir_path, sizeof(v->dir_path), "%s", path);
	return 0;
}

/* Opens the directory of the current member. The directories in the member's path are expected as
 * IMPLIED, unless they have members of their own. */
static int open_parent(struct verify_tree *v)
{
	char path[PATH_SIZE], part[PATH_SIZE], parent[PATH_SIZE];
	int r;

	path_parent(v->path, path);
	if (map_find(v->parents, path))
		return open_dir(v, path);
	for (const char *p = path; *p; p += strspn(p, "/")) {
		p += strcspn(p, "/");
		snprintf(part, sizeof(part), "%.*s", (int)(p - path), path);
		path_parent(part, parent);
		r = open_dir(v, parent);
		if (r < 0)
			return r;
		expect_name(v, part, path_name(part), IMPLIED);
	}
	map_set(v->parents, path, v);
	return open_dir(v, path);
}

/* ---- the walk through the tree ---------------------------------------------------- */

static bool is_opaque(int dir, const char *name)
{
	autoclose int fd = -1;
	char value[2];

	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && fgetxattr(fd, TREE_OPAQUE, value, sizeof(value)) == 1 && *value == 'y';
}

static const char *compare_name(const struct verify_tree *v, struct expected_name *n, int dir,
				const char *name)
{
	char key[KEY_SIZE];
	struct stat st;

	if (!n)
		return "not part of the layer";
	n->seen = true;
	if (n->kind == OTHER)
		return NULL;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return "missing";
	if (n->kind == WHITEOUT)
		return tree_is_whiteout(&st) ? NULL : "not a whiteout";
	if (!S_ISDIR(st.st_mode))
		return "not a directory";
	if (n->kind == DIRECTORY && (st.st_uid != n->uid || st.st_gid != n->gid))
		return "owner changed";
	if (n->kind == DIRECTORY && (st.st_mode & 07777) != n->mode)
		return "mode changed";
	format_key(st.st_ino, "", key);
	if (is_opaque(dir, name) != (n->hides || map_find(v->opaque, key)))
		return "opaque attribute changed";
	return NULL;
}

static int on_name(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct verify_tree *v = ctx;
	autofree char *path =
		str_printf("%s%s%s", v->dir_path, *v->dir_path ? "/" : "", entry->name);
	const char *why;
	char key[KEY_SIZE];

	format_key(v->ino, entry->name, key);
	why = compare_name(v, map_find(v->names, key), entry->dir, entry->name);
	if (why)
		return report(v, path, why, e);
	if (entry->type == DT_DIR)
		strings_add(&v->dirs, path);
	return 0;
}

/* ---- the archive ----------------------------------------------------------------- */

static int on_entry(void *ctx, const struct tar_entry *entry, struct hw_err *e)
{
	struct verify_tree *v = ctx;
	struct compared c = { .root = v->root, .entry = entry };
	const char *hidden = NULL, *why = "missing";
	char key[KEY_SIZE];
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
		expect_attributes(v->top, entry);
		return 0;
	}
	if (open_parent(v) < 0)
		return report_member(v, "missing", e);
	if (kind == PATH_WHITEOUT) {
		r = path_hidden(v->path, &hidden, e);
		if (r == 0)
			expect_name(v, v->path, hidden, WHITEOUT);
		return r;
	}
	if (kind == PATH_OPAQUE) {
		format_key(v->ino, "", key);
		map_set(v->opaque, key, v);
		return 0;
	}
	c.dir = v->dir;
	c.name = path_name(v->path);
	if (entry->type == TAR_DIR) {
		expect_attributes(expect_name(v, v->path, c.name, DIRECTORY), entry);
		return 0;
	}
	expect_name(v, v->path, c.name, OTHER);
	if (fstatat(v->dir, c.name, &c.st, AT_SYMLINK_NOFOLLOW) == 0)
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

struct verify_tree *verify_tree_new(int root, verify_damaged *damaged, void *ctx)
{
	struct verify_tree *v = mem_new(sizeof(*v));

	v->root = root;
	v->damaged = damaged;
	v->ctx = ctx;
	v->dir = -1;
	v->tar = tar_new(&verify_sink, v);
	v->names = map_new(free);
	v->parents = map_new(NULL);
	v->opaque = map_new(NULL);
	v->top = name_new("");
	v->top->kind = IMPLIED;
	return v;
}

void verify_tree_free(struct verify_tree *v)
{
	if (!v)
		return;
	mem_close_fd(&v->dir);
	tar_free(v->tar);
	map_free(v->names);
	map_free(v->parents);
	map_free(v->opaque);
	hw_strings_free(&v->dirs);
	free(v->top);
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
	return v->reported;
}

int verify_tree_file_end(struct verify_tree *v, struct hw_err *e)
{
	return tar_skip(v->tar, e);
}

int verify_tree_finish(struct verify_tree *v, struct hw_err *e)
{
	const char *why, *key;
	void *value;
	int r;

	r = tar_finish(v->tar, e);
	if (r < 0)
		return r;
	why = compare_name(v, v->top, v->root, ".");
	if (why)
		r = report(v, "", why, e);
	strings_add(&v->dirs, "");
	for (size_t i = 0; r == 0 && i < v->dirs.n; i++) {
		r = open_dir(v, v->dirs.v[i]);
		if (r < 0)
			return err_set(e, r, "open directory \"%.256s\"", v->dirs.v[i]);
		r = file_walk(v->dir, ".", on_name, v, e);
	}
	for (size_t i = 0; r == 0 && map_next(v->names, &i, &key, &value);) {
		const struct expected_name *n = value;

		if (!n->seen && n->kind != OTHER && n->kind != IMPLIED)
			r = report(v, n->path, "missing", e);
	}
	return r;
}
