/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/fetch/inherit.c - folders that a layer has and does not speak of
 *
 * How:   the folder is looked for in the layers below, from the top, until it is
 *        found, or something hides what is further down.
 */
#include "image/fetch/inherit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "image/fetch/tree.h"

#define FOLDER	   (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
#define XATTRS_MAX (64 << 10) /* as much as the kernel lists and gives */

static bool is_opaque(int fd)
{
	char value[2];

	return fgetxattr(fd, TREE_OPAQUE, value, sizeof(value)) == 1 && value[0] == 'y';
}

/* Does a folder on the way to path hide the layers below this one? */
static bool is_hidden(int layer, const char *path)
{
	for (const char *p = path; *p; p += strspn(p, "/")) {
		char part[PATH_SIZE];
		autoclose int fd = -1;

		p += strcspn(p, "/");
		snprintf(part, sizeof(part), "%.*s", (int)(p - path), path);
		fd = tree_open(layer, part, FOLDER);
		if (fd < 0)
			return fd != -ENOENT;
		if (is_opaque(fd))
			return true;
	}
	return false;
}

static int copy_xattrs(int from, int to)
{
	autofree char *list = mem_new(XATTRS_MAX), *value = mem_new(XATTRS_MAX);
	ssize_t len = flistxattr(from, list, XATTRS_MAX);

	if (len < 0)
		return errno == EOPNOTSUPP ? 0 : -errno;
	for (const char *name = list; name < list + len; name += strlen(name) + 1) {
		ssize_t n = -1;

		if (!str_starts(name, "user."))
			continue;
		n = fgetxattr(from, name, value, XATTRS_MAX);
		if (n < 0 || fsetxattr(to, name, value, (size_t)n, 0) < 0)
			return -errno;
	}
	return 0;
}

static int copy_attributes(int from, int to)
{
	struct stat st;
	int r;

	if (fstat(from, &st) < 0 || fchown(to, st.st_uid, st.st_gid) < 0 ||
	    fchmod(to, st.st_mode & 07777) < 0)
		return -errno;
	r = copy_xattrs(from, to);
	if (r < 0)
		return r;
	return futimens(to, (struct timespec[]){ st.st_atim, st.st_mtim }) < 0 ? -errno : 0;
}

/* Return: 1 when the search has an end: it was found, or there is nothing to find */
static int inherit_from(int layer, const char *path, int to)
{
	autoclose int fd = tree_open(layer, path, FOLDER);
	int r;

	if (fd == -ENOENT)
		return is_hidden(layer, path);
	if (fd == -ENOTDIR || fd == -ELOOP)
		return 1; /* a file, a link or a whiteout */
	if (fd < 0)
		return fd;
	r = copy_attributes(fd, to);
	return r < 0 ? r : 1;
}

static int inherit_one(int root, const char *path, const int *below, size_t n_below)
{
	autoclose int to = tree_open(root, path, FOLDER);
	int r = 0;

	if (to == -ENOENT || to == -ENOTDIR || to == -ELOOP)
		return 0; /* a later member took its place */
	if (to < 0)
		return to;
	if (is_opaque(to))
		return 0;
	for (size_t i = 0; r == 0 && i < n_below; i++)
		r = inherit_from(below[i], path, to);
	return r < 0 ? r : 0;
}

/**
 * inherit() - give implied folders the attributes that they have below
 * @root:    of the layer
 * @implied: paths, from its struct unpacked
 * @below:   the layers below, @n_below of them, the uppermost first
 *
 * A folder that is nowhere below keeps what it was made with.
 *
 * Return: 0, or negative errno
 */
int inherit(int root, const struct hw_strings *implied, const int *below, size_t n_below,
	    struct hw_err *e)
{
	for (size_t i = 0; i < implied->n; i++) {
		int r = inherit_one(root, implied->v[i], below, n_below);

		if (r < 0)
			return err_set(e, r, "copy attributes of folder \"%.256s\" from below",
				       implied->v[i]);
	}
	return 0;
}
