/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/layer/verify-tree.c - is what lies below a root what an archive has put there?
 *
 * How:   the sink of a tar reader. A member is compared when it comes, except for
 *        folders and whiteouts, which later members may change: those are compared
 *        when all is known, on a walk through the tree. For that each name is
 *        noted with the inode of its folder, since a member's path may lead
 *        through links:
 *
 *	name is of       and is to be
 *	WHITEOUT         a device 0:0
 *	IMPLIED          a folder, with whatever it has from the layers below
 *	FOLDER           a folder, as its last member has it
 *	OTHER            there; it has been compared
 */
#include "fetch/layer/verify-tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

#define KEY (NAME_MAX + 32)

enum kind { WHITEOUT, IMPLIED, FOLDER, OTHER };

struct name {
	enum kind kind; /* the greatest of those that were said */
	bool hides;	/* a whiteout was one of them */
	bool seen;
	mode_t mode; /* of a folder */
	uid_t uid;
	gid_t gid;
	char path[];
};

struct verify_tree {
	int root;
	verify_damaged *damaged;
	void *ctx;
	struct tar *tar;
	struct map *names;	   /* by key_of(): struct name */
	struct map *ways;	   /* folders of members, whose own folders are noted */
	struct map *opaque;	   /* inodes of folders */
	struct name *top;	   /* the root, when a member speaks of it */
	struct hw_strings folders; /* that are to be walked through */
	/* the folder that was looked at last; -1: none */
	int dir;
	ino_t ino;
	char dir_path[PATH_SIZE];
	/* the member at hand; NULL: none */
	const struct tar_entry *entry;
	char path[PATH_SIZE];
	bool told; /* it is damaged, and that was said */
};

static int tell(struct verify_tree *c, const char *path, const char *why, struct hw_err *e)
{
	return c->damaged(c->ctx, *path ? path : "/", why, e);
}

static int tell_member(struct verify_tree *c, const char *why, struct hw_err *e)
{
	c->told = true;
	return tell(c, c->path, why, e);
}

/* ---- what a member says ------------------------------------------------------- */

#define CAPABILITY "security.capability"

/* What is looked at, and what it is to be. */
struct verified_member {
	int root, dir;
	const char *name;
	const struct tar_entry *entry;
	struct stat st;
};

static mode_t type_of(const struct tar_entry *entry)
{
	static const mode_t types[] = {
		[TAR_FILE] = S_IFREG,	  [TAR_SYMLINK] = S_IFLNK, [TAR_CHAR] = S_IFCHR,
		[TAR_BLOCKDEV] = S_IFBLK, [TAR_DIR] = S_IFDIR,	   [TAR_FIFO] = S_IFIFO,
	};

	return types[entry->type];
}

static bool leads_to(int dir, const char *name, const char *target)
{
	char got[PATH_SIZE];
	ssize_t n = readlinkat(dir, name, got, sizeof(got));

	return n >= 0 && (size_t)n == strlen(target) && memcmp(got, target, (size_t)n) == 0;
}

static bool is_linked(const struct verified_member *f)
{
	char path[PATH_SIZE];
	struct hw_err ignored;
	struct stat other;

	if (path_clean(f->entry->target, path, &ignored) < 0)
		return false;
	autoclose int fd = tree_open(f->root, path, O_PATH | O_NOFOLLOW);

	return fd >= 0 && fstat(fd, &other) == 0 && other.st_ino == f->st.st_ino &&
	       other.st_dev == f->st.st_dev;
}

static bool has_xattr(int fd, const struct tar_xattr *x)
{
	autofree char *value = mem_new(x->len + 1);
	ssize_t n = fgetxattr(fd, x->name, value, x->len + 1);

	if (n < 0)
		return errno == EOPNOTSUPP;
	return (size_t)n == x->len && memcmp(value, x->value, x->len) == 0;
}

/* What the member has; and no power that it has not. */
static bool xattrs_are_right(const struct verified_member *f)
{
	autoclose int fd = openat(f->dir, f->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	bool powerful = false;

	if (fd < 0)
		return false;
	for (size_t i = 0; i < f->entry->n_xattrs; i++) {
		const struct tar_xattr *x = &f->entry->xattrs[i];

		powerful = powerful || str_equal(x->name, CAPABILITY);
		if (member_allows_xattr(x->name) && !has_xattr(fd, x))
			return false;
	}
	return powerful || fgetxattr(fd, CAPABILITY, NULL, 0) < 0;
}

/* Return: what is wrong; NULL: nothing */
static const char *compare_file(const struct verified_member *f)
{
	if (f->st.st_size < f->entry->size)
		return "it is too short";
	if (f->st.st_size > f->entry->size)
		return "it is too long";
	return xattrs_are_right(f) ? NULL : "its extended attributes are not what they were";
}

static const char *compare(const struct verified_member *f)
{
	const struct tar_entry *entry = f->entry;

	if (entry->type == TAR_HARDLINK)
		return is_linked(f) ? NULL : "it is not the file that it was linked to";
	if ((f->st.st_mode & S_IFMT) != type_of(entry))
		return entry->type == TAR_FILE ? "it is not a file" : "it is of another kind";
	if (f->st.st_uid != entry->uid || f->st.st_gid != entry->gid)
		return "its owner is not who it was";
	if (entry->type == TAR_SYMLINK)
		return leads_to(f->dir, f->name, entry->target) ? NULL : "it leads elsewhere";
	if ((f->st.st_mode & 07777) != entry->mode)
		return "its mode is not what it was";
	if (entry->type == TAR_FILE)
		return compare_file(f);
	if (entry->type != TAR_FIFO && f->st.st_rdev != makedev(entry->major, entry->minor))
		return "it is another device";
	return NULL;
}

/*
 * check_compare() - compare what has a name with its member
 * @root:  where targets of hard links are looked for
 * @dir:   the folder of @name
 * @entry: no folder
 *
 * Return: what is wrong; NULL: nothing
 */
static const char *check_compare(int root, int dir, const char *name, const struct tar_entry *entry)
{
	struct verified_member f = { .root = root, .dir = dir, .name = name, .entry = entry };

	return fstatat(dir, name, &f.st, AT_SYMLINK_NOFOLLOW) < 0 ? "it is gone" : compare(&f);
}

/* ---- names that are to be there ------------------------------------------------ */

static void key_of(ino_t folder, const char *name, char ret_key[KEY])
{
	snprintf(ret_key, KEY, "%llx/%s", (unsigned long long)folder, name);
}

static struct name *name_new(const char *path)
{
	struct name *n = mem_new(sizeof(*n) + strlen(path) + 1);

	memcpy(n->path, path, strlen(path) + 1);
	return n;
}

/* In the folder that was entered. */
static struct name *note(struct verify_tree *c, const char *path, const char *name, enum kind kind)
{
	struct name *n;
	char key[KEY];

	key_of(c->ino, name, key);
	n = map_find(c->names, key);
	if (!n) {
		n = name_new(path);
		map_set(c->names, key, n);
	}
	if (kind > n->kind)
		n->kind = kind;
	n->hides = n->hides || kind == WHITEOUT;
	return n;
}

static void note_folder(struct name *n, const struct tar_entry *entry)
{
	n->kind = FOLDER;
	n->mode = entry->mode;
	n->uid = entry->uid;
	n->gid = entry->gid;
}

static int look_into(struct verify_tree *c, const char *path)
{
	struct stat st;

	if (c->dir >= 0 && str_equal(c->dir_path, path))
		return 0;
	mem_close_fd(&c->dir);
	c->dir = tree_open(c->root, path, O_PATH | O_DIRECTORY);
	if (c->dir < 0 || fstat(c->dir, &st) < 0)
		return c->dir < 0 ? c->dir : -errno;
	c->ino = st.st_ino;
	snprintf(c->dir_path, sizeof(c->dir_path), "%s", path);
	return 0;
}

/* Folders on the way are implied, where no member speaks of them. */
static int note_way(struct verify_tree *c, const char *path)
{
	int r = 0;

	for (const char *p = path; r == 0 && *p; p += strspn(p, "/")) {
		char part[PATH_SIZE], parent[PATH_SIZE];

		p += strcspn(p, "/");
		snprintf(part, sizeof(part), "%.*s", (int)(p - path), path);
		path_parent(part, parent);
		r = look_into(c, parent);
		if (r == 0)
			note(c, part, path_name(part), IMPLIED);
	}
	return r;
}

static int enter_parent(struct verify_tree *c)
{
	char parent[PATH_SIZE];
	int r = 0;

	path_parent(c->path, parent);
	if (!map_find(c->ways, parent))
		r = note_way(c, parent);
	if (r < 0)
		return r;
	map_set(c->ways, parent, c);
	return look_into(c, parent);
}

/* ---- a member ------------------------------------------------------------------- */

static int check_member(struct verify_tree *c, struct hw_err *e)
{
	const char *name = path_name(c->path), *why;

	if (c->entry->type == TAR_DIR) {
		note_folder(note(c, c->path, name, FOLDER), c->entry);
		return 0;
	}
	note(c, c->path, name, OTHER);
	why = check_compare(c->root, c->dir, name, c->entry);
	return why ? tell_member(c, why, e) : 0;
}

static int note_whiteout(struct verify_tree *c, struct hw_err *e)
{
	const char *name = NULL;
	int r = path_hidden(c->path, &name, e);

	if (r == 0)
		note(c, c->path, name, WHITEOUT);
	return r;
}

static void note_opaque(struct verify_tree *c)
{
	char key[KEY];

	key_of(c->ino, "", key);
	map_set(c->opaque, key, c);
}

static int check_entry(struct verify_tree *c, struct hw_err *e)
{
	enum path_kind kind = path_kind(c->path);

	if (kind == PATH_AUFS)
		return 0;
	if (!*c->path) {
		note_folder(c->top, c->entry);
		return 0;
	}
	if (enter_parent(c) < 0)
		return tell_member(c, "it is gone", e);
	if (kind == PATH_WHITEOUT)
		return note_whiteout(c, e);
	if (kind == PATH_PLAIN)
		return check_member(c, e);
	note_opaque(c);
	return 0;
}

/* ---- all the rest --------------------------------------------------------------- */

static bool is_opaque(int dir, const char *name)
{
	autoclose int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char value[2];

	return fd >= 0 && fgetxattr(fd, TREE_OPAQUE, value, sizeof(value)) == 1 && *value == 'y';
}

static const char *compare_folder(const struct verify_tree *c, const struct name *n, int dir,
				  const char *name, const struct stat *st)
{
	char key[KEY];

	if (!S_ISDIR(st->st_mode))
		return "it is not a folder";
	if (n->kind == FOLDER && (st->st_uid != n->uid || st->st_gid != n->gid))
		return "its owner is not who it was";
	if (n->kind == FOLDER && (st->st_mode & 07777) != n->mode)
		return "its mode is not what it was";
	key_of(st->st_ino, "", key);
	if (is_opaque(dir, name) != (n->hides || map_find(c->opaque, key)))
		return "what it hides of the layers below is not what it was";
	return NULL;
}

static const char *compare_name(const struct verify_tree *c, struct name *n, int dir,
				const char *name)
{
	struct stat st;

	if (!n)
		return "it was not in the layer";
	n->seen = true;
	if (n->kind == OTHER)
		return NULL;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return "it is gone";
	if (n->kind == WHITEOUT)
		return tree_is_whiteout(&st) ? NULL : "it is not a whiteout";
	return compare_folder(c, n, dir, name, &st);
}

static int take_name(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct verify_tree *c = ctx;
	autofree char *path =
		str_printf("%s%s%s", c->dir_path, *c->dir_path ? "/" : "", entry->name);
	const char *why;
	char key[KEY];

	key_of(c->ino, entry->name, key);
	why = compare_name(c, map_find(c->names, key), entry->dir, entry->name);
	if (why)
		return tell(c, path, why, e);
	if (entry->type == DT_DIR)
		strings_add(&c->folders, path);
	return 0;
}

static int walk(struct verify_tree *c, struct hw_err *e)
{
	const char *why = compare_name(c, c->top, c->root, ".");
	int r = why ? tell(c, "", why, e) : 0;

	strings_add(&c->folders, "");
	for (size_t i = 0; r == 0 && i < c->folders.n; i++) {
		r = look_into(c, c->folders.v[i]);
		r = r < 0 ? err_set(e, r, "open folder \"%.256s\"", c->folders.v[i])
			  : file_walk(c->dir, ".", take_name, c, e);
	}
	return r;
}

static int tell_gone(struct verify_tree *c, struct hw_err *e)
{
	const char *key;
	void *value;
	int r = 0;

	for (size_t i = 0; r == 0 && map_next(c->names, &i, &key, &value);) {
		const struct name *n = value;

		if (!n->seen && n->kind != OTHER && n->kind != IMPLIED)
			r = tell(c, n->path, "it is gone", e);
	}
	return r;
}

/* ---- the archive ---------------------------------------------------------------- */

static int take_entry(void *ctx, const struct tar_entry *entry, struct hw_err *e)
{
	struct verify_tree *c = ctx;
	int r = path_clean(entry->path, c->path, e);

	c->entry = entry;
	c->told = false;
	return r < 0 ? r : check_entry(c, e);
}

static int take_data(void *ctx, int64_t offset, const void *data, size_t len, struct hw_err *e)
{
	(void)ctx;
	(void)offset;
	(void)data;
	(void)len;
	(void)e;
	return 0;
}

static int take_end(void *ctx, struct hw_err *e)
{
	struct verify_tree *c = ctx;

	(void)e;
	c->entry = NULL;
	return 0;
}

static int take_other(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	return take_data(ctx, 0, data, len, e);
}

static const struct tar_sink check_sink = { take_entry, take_data, take_end, take_other };

/** verify_tree_new() - of which nothing is known yet */
struct verify_tree *verify_tree_new(int root, verify_damaged *damaged, void *ctx)
{
	struct verify_tree *c = mem_new(sizeof(*c));

	c->root = root;
	c->damaged = damaged;
	c->ctx = ctx;
	c->dir = -1;
	c->tar = tar_new(&check_sink, c);
	c->names = map_new(free);
	c->ways = map_new(NULL);
	c->opaque = map_new(NULL);
	c->top = name_new("");
	c->top->kind = IMPLIED;
	return c;
}

/** verify_tree_free() - NULL is fine */
void verify_tree_free(struct verify_tree *c)
{
	if (!c)
		return;
	mem_close_fd(&c->dir);
	tar_free(c->tar);
	map_free(c->names);
	map_free(c->ways);
	map_free(c->opaque);
	hw_strings_free(&c->folders);
	free(c->top);
	free(c);
}

/** verify_tree_feed() - bytes of the archive that are not a file's data */
int verify_tree_feed(struct verify_tree *c, const void *data, size_t len, struct hw_err *e)
{
	return tar_feed(c->tar, data, len, e);
}

/** verify_tree_file() - now a file's data would come: is it that of the member at hand? */
int verify_tree_file(struct verify_tree *c, const struct recipe_file *file, struct hw_err *e)
{
	const struct tar_entry *entry = c->entry;

	if (!entry || !str_equal(file->path, c->path) || file->n_pieces != entry->n_pieces ||
	    memcmp(file->pieces, entry->pieces, entry->n_pieces * sizeof(*entry->pieces)) != 0)
		return err_text(e, -EBADMSG, "the recipe has a file that the archive has not");
	return c->told;
}

/** verify_tree_file_end() - it is over */
int verify_tree_file_end(struct verify_tree *c, struct hw_err *e)
{
	return tar_skip(c->tar, e);
}

/** verify_tree_finish() - no more bytes come: tell of what is gone, and of what is too much */
int verify_tree_finish(struct verify_tree *c, struct hw_err *e)
{
	int r = tar_finish(c->tar, e);

	if (r == 0)
		r = walk(c, e);
	return r < 0 ? r : tell_gone(c, e);
}
