/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/tree.c - directories below a root, safe against links in an archive
 */
#include "fetch/unpack/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"

#define DIRECTORY    (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#define IMPLIED_MODE 0755

bool tree_is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == 0;
}

/* ---- the current directory ------------------------------------------------- */

void tree_init(struct tree *t, int root)
{
	*t = (struct tree){ .root = root, .fd = -1 };
}

void tree_done(struct tree *t)
{
	mem_close_fd(&t->fd);
	t->fd = -1;
}

void tree_enter_fd(struct tree *t, int fd, const char *path, const struct timespec *mtime)
{
	tree_done(t);
	t->fd = fd;
	snprintf(t->path, sizeof(t->path), "%s", path);
	t->mtime = *mtime;
}

int tree_leave(struct tree *t, struct hw_err *e)
{
	const struct timespec times[] = { t->mtime, t->mtime };
	int r = 0;

	if (t->fd >= 0 && futimens(t->fd, times) < 0)
		r = err_set(e, -errno, "set times of directory \"%.256s\"", t->path);
	tree_done(t);
	return r;
}

static int enter_existing(struct tree *t, const char *path)
{
	autoclose int fd = -1;
	struct stat st;

	fd = file_open_in_root(t->root, path, DIRECTORY);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	tree_enter_fd(t, take_fd(fd), path, &st.st_mtim);
	return 0;
}

int tree_create_dir(int dir, const char *name, mode_t mode)
{
	autoclose int fd = -1;
	bool was_whiteout;
	struct stat st;

	was_whiteout = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && tree_is_whiteout(&st);
	if (was_whiteout && unlinkat(dir, name, 0) < 0)
		return -errno;
	if (mkdirat(dir, name, mode) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(dir, name, DIRECTORY | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOTDIR || errno == ELOOP ? -EEXIST : -errno;
	if (was_whiteout && fsetxattr(fd, TREE_OPAQUE, "y", 1, 0) < 0)
		return -errno;
	return take_fd(fd);
}

/* Creates a directory in the current directory, and enters it. */
static int enter_implied(struct tree *t, const char *path, struct hw_err *e)
{
	autoclose int fd = -1;
	struct stat st;
	int r = 0;

	fd = tree_create_dir(t->fd, path_name(path), IMPLIED_MODE);
	if (fd == -EEXIST)
		return err_text(e, -ENOTDIR, "\"%.256s\" is neither a directory nor a link to one",
				path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, fd < 0 ? fd : -errno, "create directory \"%.256s\"", path);
	if (t->implied)
		r = t->implied(t->ctx, path, e);
	if (r < 0)
		return r;
	r = tree_leave(t, e);
	if (r < 0)
		return r;
	tree_enter_fd(t, take_fd(fd), path, &st.st_mtim);
	return 0;
}

int tree_enter(struct tree *t, const char *path, struct hw_err *e)
{
	int r;

	if (t->fd >= 0 && str_equal(t->path, path))
		return 0;
	r = tree_leave(t, e);
	if (r < 0)
		return r;
	r = enter_existing(t, path);
	if (r == 0)
		return 0;
	if (r != -ENOENT && r != -ENOTDIR)
		return err_set(e, r, "open directory \"%.256s\"", path);

	/* enter component by component, and create missing directories */
	r = enter_existing(t, "");
	if (r < 0)
		return err_set(e, r, "open the root");
	for (const char *p = path; *p;) {
		char part[PATH_SIZE];
		size_t n = strcspn(p, "/");
		size_t len = (size_t)(p - path) + n;

		snprintf(part, sizeof(part), "%.*s", (int)len, path);
		r = enter_existing(t, part);
		if (r == -ENOENT || r == -ENOTDIR)
			r = enter_implied(t, part, e);
		else if (r < 0)
			r = err_set(e, r, "open directory \"%.256s\"", part);
		if (r < 0)
			return r;
		p += n + (p[n] == '/');
	}
	return 0;
}
