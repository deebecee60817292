/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/tree.c - a folder and what is below it, and nothing else
 */
#include "fetch/unpack/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

#define FOLDER	     (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#define AGAIN_MAX    1000 /* somebody renames on this machine all the time */
#define IMPLIED_MODE 0755

/**
 * tree_open() - open what is below a root, as a container with that root would
 * @path:  from path_clean()
 * @flags: of open(); with O_NOFOLLOW the last part is not a link
 *
 * Return: the descriptor, or negative errno
 */
int tree_open(int root, const char *path, int flags)
{
	const struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
	};

	/* A link with ".." in it is tried again while there are renames anywhere: openat2(2). */
	for (int i = 0; i < AGAIN_MAX; i++) {
		long fd = syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof(how));

		if (fd >= 0)
			return (int)fd;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
	}
	return -EAGAIN;
}

/** tree_is_whiteout() - does it say, to overlayfs, that there is nothing? */
bool tree_is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == 0;
}

/* ---- the folder that is worked in ------------------------------------------ */

/** tree_init() - work below @root, which is borrowed; in no folder yet */
void tree_init(struct tree *t, int root)
{
	*t = (struct tree){ .root = root, .fd = -1 };
}

/** tree_done() - leave the folder as it is */
void tree_done(struct tree *t)
{
	mem_close_fd(&t->fd);
	t->fd = -1;
}

/**
 * tree_enter_fd() - a folder is open already: work there
 * @fd:    taken over
 * @path:  of it, from path_clean()
 * @mtime: that it has
 */
void tree_enter_fd(struct tree *t, int fd, const char *path, const struct timespec *mtime)
{
	tree_done(t);
	t->fd = fd;
	snprintf(t->path, sizeof(t->path), "%s", path);
	t->mtime = *mtime;
}

/** tree_leave() - leave the folder, with the times that it had */
int tree_leave(struct tree *t, struct hw_err *e)
{
	const struct timespec times[] = { t->mtime, t->mtime };
	int r = 0;

	if (t->fd >= 0 && futimens(t->fd, times) < 0)
		r = err_set(e, -errno, "set the times of folder \"%.256s\"", t->path);
	tree_done(t);
	return r;
}

/* Opens it without making anything. */
static int move_to(struct tree *t, const char *path)
{
	autoclose int fd = tree_open(t->root, path, FOLDER);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	tree_enter_fd(t, take_fd(fd), path, &st.st_mtim);
	return 0;
}

static int remove_whiteout(int dir, const char *name)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !tree_is_whiteout(&st))
		return 0;
	return unlinkat(dir, name, 0) < 0 ? -errno : 1;
}

/**
 * tree_create_dir() - make a folder, or open the one that is there
 * @name: without a slash
 * @mode: of a new one
 *
 * Where a whiteout stood, nothing of the layers below is to be seen in the folder
 * that takes its place.
 *
 * Return: its descriptor; -EEXIST: something else is there; or negative errno
 */
int tree_create_dir(int dir, const char *name, mode_t mode)
{
	autoclose int fd = -1;
	int hides = remove_whiteout(dir, name);

	if (hides < 0)
		return hides;
	if (mkdirat(dir, name, mode) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(dir, name, FOLDER | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOTDIR || errno == ELOOP ? -EEXIST : -errno;
	if (hides && fsetxattr(fd, TREE_OPAQUE, "y", 1, 0) < 0)
		return -errno;
	return take_fd(fd);
}

/* Makes a folder in the one that is worked in, and goes there. */
static int make_implied(struct tree *t, const char *path, struct hw_err *e)
{
	autoclose int fd = tree_create_dir(t->fd, path_name(path), IMPLIED_MODE);
	struct stat st;
	int r;

	if (fd == -EEXIST)
		return err_text(e, -ENOTDIR, "\"%.256s\" is not a folder, nor a link to one", path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, fd < 0 ? fd : -errno, "make folder \"%.256s\"", path);
	r = t->implied ? t->implied(t->ctx, path, e) : 0;
	if (r == 0)
		r = tree_leave(t, e);
	if (r == 0)
		tree_enter_fd(t, take_fd(fd), path, &st.st_mtim);
	return r;
}

/* Folder by folder, those made that are not there. */
static int enter_slowly(struct tree *t, const char *path, struct hw_err *e)
{
	int r = move_to(t, "");

	if (r < 0)
		return err_set(e, r, "open the root");
	for (const char *p = path; *p;) {
		char part[PATH_SIZE];
		size_t n = strcspn(p, "/");
		size_t len = (size_t)(p - path) + n;

		snprintf(part, sizeof(part), "%.*s", (int)len, path);
		r = move_to(t, part);
		if (r == -ENOENT || r == -ENOTDIR)
			r = make_implied(t, part, e);
		else if (r < 0)
			r = err_set(e, r, "open folder \"%.256s\"", part);
		if (r < 0)
			return r;
		p += n + (p[n] == '/');
	}
	return 0;
}

/**
 * tree_enter() - work in another folder
 * @path: from path_clean(); folders on the way that are not there are made
 *
 * Return: 0; -ENOTDIR, -ELOOP and the like
 */
int tree_enter(struct tree *t, const char *path, struct hw_err *e)
{
	int r;

	if (t->fd >= 0 && str_equal(t->path, path))
		return 0;
	r = tree_leave(t, e);
	if (r < 0)
		return r;
	r = move_to(t, path);
	if (r == -ENOENT || r == -ENOTDIR)
		return enter_slowly(t, path, e);
	return r < 0 ? err_set(e, r, "open folder \"%.256s\"", path) : 0;
}
