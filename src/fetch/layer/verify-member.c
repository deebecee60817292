/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/layer/verify-member.c - is a file, link or device what an archive's member says?
 */
#include "fetch/layer/verify-member.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "fetch/tar/path.h"
#include "fetch/unpack/member.h"
#include "fetch/unpack/tree.h"

#define CAPABILITY "security.capability"

/* What is looked at, and what it is to be. */
struct found {
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

static bool is_linked(const struct found *f)
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
static bool xattrs_are_right(const struct found *f)
{
	autoclose int fd = openat(f->dir, f->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	bool powerful = false;

	if (fd < 0)
		return false;
	for (size_t i = 0; i < f->entry->n_xattrs; i++) {
		const struct tar_xattr *x = &f->entry->xattrs[i];

		powerful = powerful || str_equal(x->name, CAPABILITY);
		if (make_sets_xattr(x->name) && !has_xattr(fd, x))
			return false;
	}
	return powerful || fgetxattr(fd, CAPABILITY, NULL, 0) < 0;
}

/* Return: what is wrong; NULL: nothing */
static const char *compare_file(const struct found *f)
{
	if (f->st.st_size < f->entry->size)
		return "it is too short";
	if (f->st.st_size > f->entry->size)
		return "it is too long";
	return xattrs_are_right(f) ? NULL : "its extended attributes are not what they were";
}

static const char *compare(const struct found *f)
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

/**
 * check_compare() - compare what has a name with its member
 * @root:  where targets of hard links are looked for
 * @dir:   the folder of @name
 * @entry: no folder
 *
 * Return: what is wrong; NULL: nothing
 */
const char *check_compare(int root, int dir, const char *name, const struct tar_entry *entry)
{
	struct found f = { .root = root, .dir = dir, .name = name, .entry = entry };

	return fstatat(dir, name, &f.st, AT_SYMLINK_NOFOLLOW) < 0 ? "it is gone" : compare(&f);
}
