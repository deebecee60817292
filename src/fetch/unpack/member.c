/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/member.c - creates a layer's members: files, directories, links, devices, whiteouts
 *
 * How:   opens the member's directory below the root (tree.h) and creates the member in it by its
 *        bare name, with calls that create a new file or fail, and never follow a link. The owner
 *        is set before the mode, since chown() clears set-user-ID. Capabilities are set after the
 *        data is written, since writing clears them. Times are set last.
 */
#include "fetch/unpack/member.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "fetch/tar/path.h"

#define PRIVATE_FILE 0600 /* mode until the attributes are set */
#define PRIVATE_DIR  0700

/* ---- attributes ------------------------------------------------------------ */

bool member_allows_xattr(const char *name)
{
	return str_equal(name, "security.capability") ||
	       (str_starts(name, "user.") && !str_starts(name, "user.overlay."));
}

int member_set_attributes(struct member_writer *m, int fd, const struct tar_entry *entry,
			  struct hw_err *e)
{
	const struct timespec times[] = { entry->mtime, entry->mtime };

	if (fchown(fd, entry->uid, entry->gid) < 0)
		return err_set(e, -errno, "set owner %u:%u", entry->uid, entry->gid);
	if (fchmod(fd, entry->mode) < 0)
		return err_set(e, -errno, "set mode %04o", entry->mode);
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
	if (futimens(fd, times) < 0)
		return err_set(e, -errno, "set times");
	return 0;
}

/* For members that cannot be opened: symbolic links, FIFOs, devices. */
static int set_attributes_by_name(struct member_writer *m, const char *name,
				  const struct tar_entry *entry, struct hw_err *e)
{
	const struct timespec times[] = { entry->mtime, entry->mtime };
	int dir = m->tree.fd;

	m->skipped += (int64_t)entry->n_xattrs;
	if (fchownat(dir, name, entry->uid, entry->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "set owner %u:%u", entry->uid, entry->gid);
	if (entry->type != TAR_SYMLINK && fchmodat(dir, name, entry->mode, 0) < 0)
		return err_set(e, -errno, "set mode %04o", entry->mode);
	if (utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "set times");
	return 0;
}

/* ---- creation -------------------------------------------------------------- */

/* Each function returns a descriptor, 0, or negative errno: -EEXIST if the name exists. */

static int create_file(struct member_writer *m, const char *name, const struct tar_entry *entry)
{
	int fd;

	(void)entry;
	fd = openat(m->tree.fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    PRIVATE_FILE);
	return fd < 0 ? -errno : fd;
}

static int create_symlink(struct member_writer *m, const char *name, const struct tar_entry *entry)
{
	return symlinkat(entry->target, m->tree.fd, name) < 0 ? -errno : 0;
}

static int create_node(struct member_writer *m, const char *name, const struct tar_entry *entry)
{
	mode_t kind = entry->type == TAR_FIFO	? S_IFIFO
		      : entry->type == TAR_CHAR ? S_IFCHR
						: S_IFBLK;
	dev_t dev = entry->type == TAR_FIFO ? 0 : makedev(entry->major, entry->minor);

	return mknodat(m->tree.fd, name, kind | PRIVATE_FILE, dev) < 0 ? -errno : 0;
}

static int create_dir(struct member_writer *m, const char *name, const struct tar_entry *entry)
{
	(void)entry;
	return tree_create_dir(m->tree.fd, name, PRIVATE_DIR);
}

/* Calls create(). If the name exists, removes it, with its content, and calls create() again. */
static int create_or_replace(struct member_writer *m, const char *name,
			     const struct tar_entry *entry,
			     int (*create)(struct member_writer *m, const char *name,
					   const struct tar_entry *entry),
			     struct hw_err *e)
{
	struct stat st;
	int r;

	r = create(m, name, entry);
	if (r != -EEXIST)
		return r < 0 ? err_set(e, r, "create") : r;
	if (fstatat(m->tree.fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "stat existing file");
	m->replaced = m->replaced || !tree_is_whiteout(&st);
	r = remove_tree(m->tree.fd, name, e);
	if (r < 0)
		return r;
	r = create(m, name, entry);
	return r < 0 ? err_set(e, r, "create") : r;
}

/* ---- hard links ------------------------------------------------------------ */

/* The code is -EBADMSG instead of -ENOENT, because the archive is at fault, not this machine. */
static int set_target_missing(const char *target, struct hw_err *e)
{
	return err_text(e, -EBADMSG, "target \"%.256s\" is not in the layer", target);
}

static int create_hardlink(struct member_writer *m, const char *name, const struct tar_entry *entry,
			   struct hw_err *e)
{
	const char *target = entry->target, *target_name;
	char path[PATH_SIZE], parent[PATH_SIZE];
	struct stat st, existing;
	autoclose int dir = -1;
	int here = m->tree.fd, r;

	r = path_clean(target, path, e);
	if (r < 0)
		return err_ctx(e, "target \"%.256s\"", target);
	path_parent(path, parent);
	target_name = path_name(path);
	dir = file_open_in_root(m->tree.root, parent, O_PATH | O_DIRECTORY);
	if (dir == -ENOENT)
		return set_target_missing(target, e);
	if (dir < 0 || !*path)
		return err_set(e, dir < 0 ? dir : -EISDIR, "open target \"%.256s\"", target);
	r = fstatat(dir, target_name, &st, AT_SYMLINK_NOFOLLOW);
	if (r < 0 && errno != ENOENT)
		return err_set(e, -errno, "stat target \"%.256s\"", target);
	if (r < 0 || tree_is_whiteout(&st))
		return set_target_missing(target, e);

	if (fstatat(here, name, &existing, AT_SYMLINK_NOFOLLOW) == 0 &&
	    existing.st_ino == st.st_ino && existing.st_dev == st.st_dev)
		return 0;
	if (linkat(dir, target_name, here, name, 0) == 0)
		return 0;
	if (errno == EEXIST) {
		m->replaced = true;
		r = remove_tree(here, name, e);
		if (r < 0 || linkat(dir, target_name, here, name, 0) == 0)
			return r;
	}
	return err_set(e, -errno, "link to \"%.256s\"", target);
}

/* ---- members --------------------------------------------------------------- */

/* The new directory becomes the current directory, because the next members are often in it. */
static int create_and_enter_dir(struct member_writer *m, const char *name,
				const struct tar_entry *entry, const char *path, struct hw_err *e)
{
	autoclose int fd = -1;
	int r;

	fd = create_or_replace(m, name, entry, create_dir, e);
	if (fd < 0)
		return fd;
	r = member_set_attributes(m, fd, entry, e);
	if (r < 0)
		return r;
	r = tree_leave(&m->tree, e);
	if (r < 0)
		return r;
	tree_enter_fd(&m->tree, take_fd(fd), path, &entry->mtime);
	return 0;
}

static int set_root_attributes(struct member_writer *m, const struct tar_entry *entry,
			       struct hw_err *e)
{
	int r;

	if (entry->type != TAR_DIR)
		return err_text(e, -EINVAL, "the root must be a directory");
	r = tree_enter(&m->tree, "", e);
	if (r < 0)
		return r;
	r = member_set_attributes(m, m->tree.fd, entry, e);
	if (r < 0)
		return r;
	m->tree.mtime = entry->mtime;
	return 0;
}

static int enter_parent(struct member_writer *m, const char *path, struct hw_err *e)
{
	char parent[PATH_SIZE];

	path_parent(path, parent);
	return tree_enter(&m->tree, parent, e);
}

int member_create(struct member_writer *m, const struct tar_entry *entry, const char *path,
		  int *ret_fd, struct hw_err *e)
{
	const char *name = path_name(path);
	int r;

	*ret_fd = -1;
	if (!*path)
		return set_root_attributes(m, entry, e);
	r = enter_parent(m, path, e);
	if (r < 0)
		return r;
	switch (entry->type) {
	case TAR_FILE:
		r = create_or_replace(m, name, entry, create_file, e);
		*ret_fd = r < 0 ? -1 : r;
		return r < 0 ? r : 0;
	case TAR_DIR:
		return create_and_enter_dir(m, name, entry, path, e);
	case TAR_HARDLINK:
		return create_hardlink(m, name, entry, e);
	default:
		r = create_or_replace(m, name, entry,
				      entry->type == TAR_SYMLINK ? create_symlink : create_node, e);
		return r < 0 ? r : set_attributes_by_name(m, name, entry, e);
	}
}

/* ---- whiteouts ------------------------------------------------------------- */

int member_set_opaque(struct member_writer *m, const char *path, struct hw_err *e)
{
	struct stat root, here;
	int r;

	r = enter_parent(m, path, e);
	if (r < 0)
		return r;
	if (fsetxattr(m->tree.fd, TREE_OPAQUE, "y", 1, 0) < 0)
		return err_set(e, -errno, "mark directory \"%.256s\" opaque", m->tree.path);
	if (!m->opaque && fstat(m->tree.root, &root) == 0 && fstat(m->tree.fd, &here) == 0)
		m->opaque = root.st_ino == here.st_ino && root.st_dev == here.st_dev;
	return 0;
}

int member_create_whiteout(struct member_writer *m, const char *path, struct hw_err *e)
{
	const char *name = NULL;
	autoclose int fd = -1;
	int r;

	r = path_hidden(path, &name, e);
	if (r == 0)
		r = enter_parent(m, path, e);
	if (r < 0)
		return r;
	if (mknodat(m->tree.fd, name, S_IFCHR, makedev(0, 0)) == 0)
		return 0;
	if (errno != EEXIST)
		return err_set(e, -errno, "create whiteout of \"%.256s\"", name);

	/* The layer has a file or directory with this name, which must not be replaced. A file
	 * hides the layers below without a whiteout; a directory hides them if it is opaque. */
	fd = openat(m->tree.fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
		return 0;
	if (fd < 0 || fsetxattr(fd, TREE_OPAQUE, "y", 1, 0) < 0)
		return err_set(e, -errno, "create whiteout of \"%.256s\"", name);
	return 0;
}
