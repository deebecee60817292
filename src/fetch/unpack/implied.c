/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/implied.c - directories that a layer implies without a member of their own
 *
 * How:   each directory is looked up in the layers below, topmost first, until it is found or a
 *        layer hides the directories of the layers below. If a layer below has a link instead, the
 *        content moves to the link's target. The target is then processed as another implied
 *        directory, unless the layer already has it.
 */
#include "fetch/unpack/implied.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "fetch/unpack/tree.h"

#define DIRECTORY  (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
#define XATTRS_MAX (64 << 10) /* the kernel's limit for a list and for a value */
#define MOVES_MAX  40	      /* the kernel also follows at most 40 links */

struct inherit {
	int root;
	const int *below;
	size_t n_below;
	/* directories to process; move_content() appends those that it creates */
	struct hw_strings paths;
	size_t at; /* index of the current directory */
	int moves;
};

static bool is_opaque(int fd)
{
	char value[2];

	return fgetxattr(fd, TREE_OPAQUE, value, sizeof(value)) == 1 && value[0] == 'y';
}

/* Does this layer hide @path in the layers below it? */
static bool hides_path(int layer, const char *path)
{
	for (const char *p = path; *p; p += strspn(p, "/")) {
		char part[PATH_SIZE];
		autoclose int fd = -1;

		p += strcspn(p, "/");
		snprintf(part, sizeof(part), "%.*s", (int)(p - path), path);
		fd = file_open_in_root(layer, part, DIRECTORY);
		if (fd < 0)
			return fd != -ENOENT;
		if (is_opaque(fd))
			return true;
	}
	return false;
}

/* ---- attributes ------------------------------------------------------------ */

/* Copies owner, mode, times, and the extended attributes in the user namespace. */
static int copy_attributes(int from, int to)
{
	autofree char *list = mem_new(XATTRS_MAX), *value = mem_new(XATTRS_MAX);
	struct stat st;
	ssize_t len;

	if (fstat(from, &st) < 0 || fchown(to, st.st_uid, st.st_gid) < 0 ||
	    fchmod(to, st.st_mode & 07777) < 0)
		return -errno;
	len = flistxattr(from, list, XATTRS_MAX);
	if (len < 0 && errno != EOPNOTSUPP)
		return -errno;
	for (const char *name = list; len > 0 && name < list + len; name += strlen(name) + 1) {
		ssize_t n;

		if (!str_starts(name, "user."))
			continue;
		n = fgetxattr(from, name, value, XATTRS_MAX);
		if (n < 0 || fsetxattr(to, name, value, (size_t)n, 0) < 0)
			return -errno;
	}
	return futimens(to, (struct timespec[]){ st.st_atim, st.st_mtim }) < 0 ? -errno : 0;
}

/* ---- moving the content of a directory --------------------------------------- */

struct move {
	int root;
	const char *from, *to;
	struct tree tree; /* current directory in the destination */
	/* directories to move: paths relative to .from and .to; "" is the directory itself */
	struct hw_strings dirs;
};

static bool is_dir(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static char *join(const char *a, const char *b)
{
	return str_printf("%s%s%s", a, *a && *b ? "/" : "", b);
}

/* Adds a directory that exists in both places to m->dirs, and renames anything else. */
static int move_name(struct move *m, int from, const char *dir, const char *name, struct hw_err *e)
{
	int r = 0;

	if (is_dir(from, name) && is_dir(m->tree.fd, name)) {
		autofree char *path = join(dir, name);

		strings_add(&m->dirs, path);
		return 0;
	}
	if (renameat2(from, name, m->tree.fd, name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno == EEXIST)
		r = remove_tree(m->tree.fd, name, e);
	if (r == 0 && renameat(from, name, m->tree.fd, name) < 0)
		r = err_set(e, -errno, "move \"%.256s\"", name);
	return r;
}

static int move_dir(struct move *m, const char *dir, struct hw_err *e)
{
	autofree char *from = join(m->from, dir), *to = join(m->to, dir);
	autoclose int fd = -1;
	struct dirent *entry;
	DIR *d;
	int r;

	fd = file_open_in_root(m->root, from, DIRECTORY);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		return err_set(e, fd < 0 ? fd : -errno, "open directory \"%.256s\"", from);
	take_fd(fd); /* d owns the descriptor now */
	r = tree_enter(&m->tree, to, e);
	if (r == 0) {
		while (r == 0 && (errno = 0, entry = readdir(d)))
			if (!str_equal(entry->d_name, ".") && !str_equal(entry->d_name, ".."))
				r = move_name(m, dirfd(d), dir, entry->d_name, e);
		if (r == 0 && errno)
			r = err_set(e, -errno, "read directory \"%.256s\"", dir);
	}
	closedir(d);
	return r;
}

static int add_path(void *ctx, const char *path, struct hw_err *e)
{
	struct inherit *h = ctx;

	(void)e;
	strings_add(&h->paths, path);
	return 0;
}

/*
 * Moves the content of directory @from to directory @to and removes @from, which is neither the
 * root nor a parent of @to. Directories that exist in both are merged; a moved file replaces an
 * existing one. Missing directories of @to are created, and are added to the implied directories.
 */
static int move_content(struct inherit *h, const char *from, const char *to, struct hw_err *e)
{
	struct move m = { .root = h->root, .from = from, .to = to };
	char parent[PATH_SIZE];
	int r = 0;

	tree_init(&m.tree, h->root);
	m.tree.implied = add_path;
	m.tree.ctx = h;
	strings_add(&m.dirs, "");
	for (size_t i = 0; r == 0 && i < m.dirs.n; i++)
		r = move_dir(&m, m.dirs.v[i], e);
	/* only empty directories are left in @from */
	path_parent(from, parent);
	if (r == 0)
		r = tree_enter(&m.tree, parent, e);
	if (r == 0)
		r = remove_tree(m.tree.fd, path_name(from), e);
	if (r == 0)
		r = tree_leave(&m.tree, e);
	hw_strings_free(&m.dirs);
	tree_done(&m.tree);
	return r;
}

/* ---- links below ----------------------------------------------------------- */

/* Called when a layer below has a link in place of the directory: moves the directory's content to
 * the link's target. */
static int follow_link(struct inherit *h, int link, const char *path, struct hw_err *e)
{
	char target[PATH_SIZE], parent[PATH_SIZE], to[PATH_SIZE];
	autofree char *whole = NULL;
	size_t len = strlen(path);
	struct hw_err ignored;
	ssize_t n;
	int r;

	n = readlinkat(link, "", target, sizeof(target) - 1);
	if (n < 0)
		return err_set(e, -errno, "read link of a layer below");
	target[n] = '\0';
	path_parent(path, parent);
	whole = str_printf("%s/%s", target[0] == '/' ? "" : parent, target);
	if (path_clean(whole, to, &ignored) < 0)
		return 1;
	if (str_starts(to, path) && (to[len] == '\0' || to[len] == '/'))
		return 1; /* the target is the link itself, or below it */
	if (++h->moves > MOVES_MAX)
		return 1;
	r = move_content(h, path, to, e);
	if (r < 0)
		return r;
	/* update the paths of directories that have moved and are still to be processed */
	for (size_t i = h->at + 1; i < h->paths.n; i++) {
		char *old = h->paths.v[i];

		if (!str_starts(old, path) || old[len] != '/')
			continue;
		h->paths.v[i] = str_printf("%s%s", to, *to ? old + len : old + len + 1);
		free(old);
	}
	return 1;
}

/* ---- directories ----------------------------------------------------------- */

/* Return: 1: found, or this layer hides the layers below it; 0: continue with the next layer; or
 * negative errno */
static int inherit_from(struct inherit *h, int layer, const char *path, int to, struct hw_err *e)
{
	autoclose int fd = -1;
	autoclose int from = -1;
	struct stat st;
	int r;

	fd = file_open_in_root(layer, path, O_PATH | O_NOFOLLOW);
	if (fd == -ENOENT)
		return hides_path(layer, path);
	if (fd == -ENOTDIR || fd == -ELOOP)
		return 1; /* a component of the path is a file or a whiteout */
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, fd < 0 ? fd : -errno, "open in a layer below");
	if (S_ISLNK(st.st_mode))
		return follow_link(h, fd, path, e);
	if (!S_ISDIR(st.st_mode))
		return 1;
	from = file_open_in_root(layer, path, DIRECTORY);
	r = from < 0 ? from : copy_attributes(from, to);
	return r < 0 ? err_set(e, r, "copy attributes from a layer below") : 1;
}

static int inherit_dir(struct inherit *h, const char *path, struct hw_err *e)
{
	autoclose int to = -1;
	int r = 0;

	to = file_open_in_root(h->root, path, DIRECTORY);
	if (to == -ENOENT || to == -ENOTDIR || to == -ELOOP)
		return 0; /* a later member has replaced the directory */
	if (to < 0)
		return err_set(e, to, "open");
	if (is_opaque(to))
		return 0;
	for (size_t i = 0; r == 0 && i < h->n_below; i++)
		r = inherit_from(h, h->below[i], path, to, e);
	return r < 0 ? r : 0;
}

int implied_inherit(int root, const struct hw_strings *implied, const int *below, size_t n_below,
		    struct hw_err *e)
{
	struct inherit h = { .root = root, .below = below, .n_below = n_below };
	int r = 0;

	for (size_t i = 0; i < implied->n; i++)
		strings_add(&h.paths, implied->v[i]);
	for (; r == 0 && h.at < h.paths.n; h.at++) {
		autofree char *path = str_copy(h.paths.v[h.at]);

		r = inherit_dir(&h, path, e);
		if (r < 0)
			err_ctx(e, "directory \"%.256s\"", path);
	}
	hw_strings_free(&h.paths);
	return r < 0 ? r : h.moves > 0;
}
