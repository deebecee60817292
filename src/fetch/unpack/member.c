/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/member.c - the members of a layer as files, folders, links and devices
 *
 * How:   the folder of a member is opened below the root (tree.h); the member is
 *        made in it by its bare name, with calls that make something new or fail,
 *        and never through a link. Owner before mode, since a change of owner
 *        takes set-user-id away; then capabilities, which writing takes away;
 *        times last.
 */
#include "fetch/unpack/member.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "fetch/tar/path.h"

#define PRIVATE_FILE   0600 /* until it is settled */
#define PRIVATE_FOLDER 0700

/* ---- attributes ------------------------------------------------------------ */

/** member_allows_xattr() - others would steer overlayfs, or the host's security modules */
bool member_allows_xattr(const char *name)
{
	return str_equal(name, "security.capability") ||
	       (str_starts(name, "user.") && !str_starts(name, "user.overlay."));
}

static int set_xattrs(struct member_writer *m, int fd, const struct tar_entry *entry,
		      struct hw_err *e)
{
	for (size_t i = 0; i < entry->n_xattrs; i++) {
		const struct tar_xattr *x = &entry->xattrs[i];

		if (!member_allows_xattr(x->name))
			m->skipped++;
		else if (fsetxattr(fd, x->name, x->value, x->len, 0) == 0)
			continue;
		else if (errno == EOPNOTSUPP)
			m->skipped++;
		else
			return err_set(e, -errno, "set extended attribute %.64s", x->name);
	}
	return 0;
}

/**
 * member_set_attributes() - give an open file or folder the attributes of its member
 *
 * Return: 0, or negative errno
 */
int member_set_attributes(struct member_writer *m, int fd, const struct tar_entry *entry,
			  struct hw_err *e)
{
	const struct timespec times[] = { entry->mtime, entry->mtime };
	int r;

	if (fchown(fd, entry->uid, entry->gid) < 0)
		return err_set(e, -errno, "set its owner to %u:%u", entry->uid, entry->gid);
	if (fchmod(fd, entry->mode) < 0)
		return err_set(e, -errno, "set its mode to %04o", entry->mode);
	r = set_xattrs(m, fd, entry, e);
	if (r < 0)
		return r;
	if (futimens(fd, times) < 0)
		return err_set(e, -errno, "set its times");
	return 0;
}

/* The same for what cannot be opened: links, pipes, devices. */
static int settle_name(struct member_writer *m, const char *name, const struct tar_entry *entry,
		       struct hw_err *e)
{
	const struct timespec times[] = { entry->mtime, entry->mtime };
	int dir = m->tree.fd;

	m->skipped += (int64_t)entry->n_xattrs;
	if (fchownat(dir, name, entry->uid, entry->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "set its owner to %u:%u", entry->uid, entry->gid);
	if (entry->type != TAR_SYMLINK && fchmodat(dir, name, entry->mode, 0) < 0)
		return err_set(e, -errno, "set its mode to %04o", entry->mode);
	if (utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "set its times");
	return 0;
}

/* ---- making ---------------------------------------------------------------- */

/* Each returns a descriptor or 0, or negative errno: -EEXIST when something is in its place. */

static int new_file(struct member_writer *m, const char *name, const struct tar_entry *entry)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(m->tree.fd, name, flags, PRIVATE_FILE);

	(void)entry;
	return fd < 0 ? -errno : fd;
}

static int new_symlink(struct member_writer *m, const char *name, const struct tar_entry *entry)
{
	return symlinkat(entry->target, m->tree.fd, name) < 0 ? -errno : 0;
}

static int new_node(struct member_writer *m, const char *name, const struct tar_entry *entry)
{
	mode_t kind = entry->type == TAR_FIFO	? S_IFIFO
		      : entry->type == TAR_CHAR ? S_IFCHR
						: S_IFBLK;
	dev_t dev = entry->type == TAR_FIFO ? 0 : makedev(entry->major, entry->minor);

	return mknodat(m->tree.fd, name, kind | PRIVATE_FILE, dev) < 0 ? -errno : 0;
}

static int new_dir(struct member_writer *m, const char *name, const struct tar_entry *entry)
{
	(void)entry;
	return tree_create_dir(m->tree.fd, name, PRIVATE_FOLDER);
}

/* Makes room for it when something is in its place. */
static int make_new(struct member_writer *m, const char *name, const struct tar_entry *entry,
		    int (*make)(struct member_writer *m, const char *name,
				const struct tar_entry *entry),
		    struct hw_err *e)
{
	struct stat st;
	int r = make(m, name, entry);

	if (r != -EEXIST)
		return r < 0 ? err_set(e, r, "make it") : r;
	if (fstatat(m->tree.fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "look at what is in its place");
	m->replaced = m->replaced || !tree_is_whiteout(&st);
	r = remove_tree(m->tree.fd, name, e);
	if (r < 0)
		return r;
	r = make(m, name, entry);
	return r < 0 ? err_set(e, r, "make it") : r;
}

/* ---- hard links ------------------------------------------------------------ */

struct link_target {
	int dir;
	char path[PATH_SIZE];
	struct stat st;
};

/* The archive is wrong, and not this machine. */
static int no_target(const char *target, struct hw_err *e)
{
	return err_text(e, -EBADMSG, "target \"%.256s\" is not in the layer", target);
}

static int find_target(struct member_writer *m, const char *target, struct link_target *ret,
		       struct hw_err *e)
{
	char parent[PATH_SIZE];
	int r = path_clean(target, ret->path, e);

	if (r < 0)
		return err_ctx(e, "target \"%.256s\"", target);
	path_parent(ret->path, parent);
	ret->dir = tree_open(m->tree.root, parent, O_PATH | O_DIRECTORY);
	if (ret->dir == -ENOENT)
		return no_target(target, e);
	if (ret->dir < 0 || !*ret->path)
		return err_set(e, ret->dir < 0 ? ret->dir : -EISDIR, "open target \"%.256s\"",
			       target);
	if (fstatat(ret->dir, path_name(ret->path), &ret->st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? no_target(target, e)
				       : err_set(e, -errno, "find target \"%.256s\"", target);
	return tree_is_whiteout(&ret->st) ? no_target(target, e) : 0;
}

static bool is_same(int dir, const char *name, const struct stat *st)
{
	struct stat here;

	return fstatat(dir, name, &here, AT_SYMLINK_NOFOLLOW) == 0 && here.st_ino == st->st_ino &&
	       here.st_dev == st->st_dev;
}

static int make_hardlink(struct member_writer *m, const char *name, const struct tar_entry *entry,
			 struct hw_err *e)
{
	struct link_target target = { .dir = -1 };
	int r = find_target(m, entry->target, &target, e);
	autoclose int dir = target.dir;
	int here = m->tree.fd;

	if (r < 0 || is_same(here, name, &target.st))
		return r;
	if (linkat(dir, path_name(target.path), here, name, 0) == 0)
		return 0;
	if (errno == EEXIST) {
		m->replaced = true;
		r = remove_tree(here, name, e);
		if (r < 0 || linkat(dir, path_name(target.path), here, name, 0) == 0)
			return r;
	}
	return err_set(e, -errno, "link to \"%.256s\"", entry->target);
}

/* ---- members --------------------------------------------------------------- */

/* What follows is often in the folder: it stays open. */
static int make_dir(struct member_writer *m, const char *name, const struct tar_entry *entry,
		    const char *path, struct hw_err *e)
{
	autoclose int fd = make_new(m, name, entry, new_dir, e);
	int r;

	if (fd < 0)
		return fd;
	r = member_set_attributes(m, fd, entry, e);
	if (r == 0)
		r = tree_leave(&m->tree, e);
	if (r == 0)
		tree_enter_fd(&m->tree, take_fd(fd), path, &entry->mtime);
	return r;
}

static int make_root(struct member_writer *m, const struct tar_entry *entry, struct hw_err *e)
{
	int r;

	if (entry->type != TAR_DIR)
		return err_text(e, -EINVAL, "the root is a folder and nothing else");
	r = tree_enter(&m->tree, "", e);
	if (r == 0)
		r = member_set_attributes(m, m->tree.fd, entry, e);
	if (r == 0)
		m->tree.mtime = entry->mtime;
	return r;
}

static int make_in_folder(struct member_writer *m, const struct tar_entry *entry, const char *path,
			  int *ret_fd, struct hw_err *e)
{
	const char *name = path_name(path);
	int r;

	switch (entry->type) {
	case TAR_FILE:
		r = make_new(m, name, entry, new_file, e);
		*ret_fd = r < 0 ? -1 : r;
		return r < 0 ? r : 0;
	case TAR_DIR:
		return make_dir(m, name, entry, path, e);
	case TAR_HARDLINK:
		return make_hardlink(m, name, entry, e);
	default:
		r = make_new(m, name, entry, entry->type == TAR_SYMLINK ? new_symlink : new_node,
			     e);
		return r < 0 ? r : settle_name(m, name, entry, e);
	}
}

static int enter_parent(struct member_writer *m, const char *path, struct hw_err *e)
{
	char parent[PATH_SIZE];

	path_parent(path, parent);
	return tree_enter(&m->tree, parent, e);
}

/**
 * member_create() - make a member below the root
 * @path:   of it, from path_clean()
 * @ret_fd: a file, open for writing, that is to be settled; -1: there is nothing to write
 *
 * Return: 0, or negative errno
 */
int member_create(struct member_writer *m, const struct tar_entry *entry, const char *path,
		  int *ret_fd, struct hw_err *e)
{
	int r;

	*ret_fd = -1;
	if (!*path)
		return make_root(m, entry, e);
	r = enter_parent(m, path, e);
	return r < 0 ? r : make_in_folder(m, entry, path, ret_fd, e);
}

/* ---- what a layer takes away ----------------------------------------------- */

static bool is_root(const struct tree *t)
{
	struct stat root, here;

	return fstat(t->root, &root) == 0 && fstat(t->fd, &here) == 0 &&
	       root.st_ino == here.st_ino && root.st_dev == here.st_dev;
}

/**
 * member_set_opaque() - nothing of the layers below is to be seen in a folder
 * @path: of the member that says so, in that folder
 *
 * Overlayfs does not look for the mark at a layer's root: m->opaque tells whoever
 * mounts it.
 */
int member_set_opaque(struct member_writer *m, const char *path, struct hw_err *e)
{
	int r = enter_parent(m, path, e);

	if (r < 0)
		return r;
	if (fsetxattr(m->tree.fd, TREE_OPAQUE, "y", 1, 0) < 0)
		return err_set(e, -errno, "make folder \"%.256s\" opaque", m->tree.path);
	m->opaque = m->opaque || is_root(&m->tree);
	return 0;
}

/* The layer itself has something of that name: a file hides what is below anyway. */
static int hide_below(int dir, const char *name)
{
	autoclose int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
	return fsetxattr(fd, TREE_OPAQUE, "y", 1, 0) < 0 ? -errno : 0;
}

/**
 * member_create_whiteout() - something of the layers below is not to be seen
 * @path: of the member that says so: beside it, with .wh. before the name
 */
int member_create_whiteout(struct member_writer *m, const char *path, struct hw_err *e)
{
	const char *name = NULL;
	int r = path_hidden(path, &name, e);

	if (r == 0)
		r = enter_parent(m, path, e);
	if (r < 0)
		return r;
	if (mknodat(m->tree.fd, name, S_IFCHR, makedev(0, 0)) == 0)
		return 0;
	r = errno == EEXIST ? hide_below(m->tree.fd, name) : -errno;
	return r < 0 ? err_set(e, r, "hide \"%.256s\"", name) : 0;
}
