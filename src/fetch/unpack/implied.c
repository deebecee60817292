/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/implied.c - folders that a layer has and does not speak of
 *
 * How:   the folder is looked for in the layers below, from the top, until it is
 *        found, or something hides what is further down. A link is followed one
 *        step: where it leads is then an implied folder itself, or one that the
 *        layer has.
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
#include "base/str.h"
#include "fetch/unpack/tree.h"

#define FOLDER	   (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
#define XATTRS_MAX (64 << 10) /* as much as the kernel lists and gives */
#define MOVES_MAX  40	      /* as many links as the kernel follows */

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

/* ---- moving what is in a folder --------------------------------------------- */

struct move {
	int root;
	const char *from, *to;
	struct tree tree;	 /* in the place to go to */
	struct hw_strings parts; /* below both, still to be moved; "": all of it */
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

static int move_one(struct move *m, int dir, const char *part, const char *name, struct hw_err *e)
{
	int r = 0;

	if (is_dir(dir, name) && is_dir(m->tree.fd, name)) {
		autofree char *below = join(part, name);

		strings_add(&m->parts, below);
		return 0;
	}
	if (renameat2(dir, name, m->tree.fd, name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno == EEXIST)
		r = remove_tree(m->tree.fd, name, e);
	if (r == 0 && renameat(dir, name, m->tree.fd, name) < 0)
		r = err_set(e, -errno, "move \"%.256s\"", name);
	return r;
}

static int move_names(struct move *m, DIR *d, const char *part, struct hw_err *e)
{
	struct dirent *entry;
	int r = 0;

	while (r == 0 && (errno = 0, entry = readdir(d)))
		if (!str_equal(entry->d_name, ".") && !str_equal(entry->d_name, ".."))
			r = move_one(m, dirfd(d), part, entry->d_name, e);
	if (r == 0 && errno)
		r = err_set(e, -errno, "read folder \"%.256s\"", part);
	return r;
}

static int move_part(struct move *m, const char *part, struct hw_err *e)
{
	autofree char *from = join(m->from, part), *to = join(m->to, part);
	autoclose int fd = tree_open(m->root, from, FOLDER);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	int r;

	if (!d)
		return err_set(e, fd < 0 ? fd : -errno, "open folder \"%.256s\"", from);
	take_fd(fd); /* it is d's now */
	r = tree_enter(&m->tree, to, e);
	if (r == 0)
		r = move_names(m, d, part, e);
	closedir(d);
	return r;
}

static int remove_from(struct move *m, struct hw_err *e)
{
	char parent[PATH_SIZE];
	int r;

	path_parent(m->from, parent);
	r = tree_enter(&m->tree, parent, e);
	if (r == 0)
		r = remove_tree(m->tree.fd, path_name(m->from), e);
	return r < 0 ? r : tree_leave(&m->tree, e);
}

/*
 * move_contents() - move what is in a folder, and remove the folder
 * @from: not the root, and not above @to
 * @to:   another folder; made when it is not there
 *
 * Return: 0, or negative errno
 */
static int move_contents(int root, const char *from, const char *to,
			 int (*implied)(void *ctx, const char *path, struct hw_err *e), void *ctx,
			 struct hw_err *e)
{
	struct move m = { .root = root, .from = from, .to = to };
	int r = 0;

	tree_init(&m.tree, root);
	m.tree.implied = implied;
	m.tree.ctx = ctx;
	strings_add(&m.parts, "");
	for (size_t i = 0; r == 0 && i < m.parts.n; i++)
		r = move_part(&m, m.parts.v[i], e);
	if (r == 0)
		r = remove_from(&m, e);
	hw_strings_free(&m.parts);
	tree_done(&m.tree);
	return r;
}

/* ---- links below ----------------------------------------------------------- */

struct inherit {
	int root;
	const int *below;
	size_t n_below;
	struct hw_strings work; /* paths; grows while folders move */
	size_t at;		/* the one at hand */
	int moves;
};

static int add_work(void *ctx, const char *path, struct hw_err *e)
{
	struct inherit *h = ctx;

	(void)e;
	strings_add(&h->work, path);
	return 0;
}

/* Where a link leads, as a path from the root. Return: 1, or 0 when that is no other place. */
static int link_target(int link, const char *path, char ret_to[PATH_SIZE])
{
	char target[PATH_SIZE], parent[PATH_SIZE];
	ssize_t n = readlinkat(link, "", target, sizeof(target) - 1);
	struct hw_err e;

	if (n < 0)
		return -errno;
	target[n] = '\0';
	path_parent(path, parent);
	autofree char *whole = str_printf("%s/%s", target[0] == '/' ? "" : parent, target);
	if (path_clean(whole, ret_to, &e) < 0 || str_equal(ret_to, path))
		return 0;
	return !str_starts(ret_to, path) || ret_to[strlen(path)] != '/';
}

/* What is still to be done in the folder that moved is to be done where it is now. */
static void rename_work(struct inherit *h, const char *from, const char *to)
{
	size_t len = strlen(from);

	for (size_t i = h->at + 1; i < h->work.n; i++) {
		char *old = h->work.v[i];

		if (!str_starts(old, from) || old[len] != '/')
			continue;
		h->work.v[i] = str_printf("%s%s", to, *to ? old + len : old + len + 1);
		free(old);
	}
}

static int follow_link(struct inherit *h, int link, const char *path, struct hw_err *e)
{
	char to[PATH_SIZE];
	int r = link_target(link, path, to);

	if (r < 0)
		return err_set(e, r, "read the link below");
	if (r == 0 || ++h->moves > MOVES_MAX)
		return 1;
	r = move_contents(h->root, path, to, add_work, h, e);
	if (r < 0)
		return r;
	rename_work(h, path, to);
	return 1;
}

/* ---- folders --------------------------------------------------------------- */

/* Return: 1 when the search has an end: it was found, or there is nothing to find */
static int inherit_from(struct inherit *h, int layer, const char *path, int to, struct hw_err *e)
{
	autoclose int fd = tree_open(layer, path, O_PATH | O_NOFOLLOW);
	autoclose int from = -1;
	struct stat st;
	int r;

	if (fd == -ENOENT)
		return is_hidden(layer, path);
	if (fd == -ENOTDIR || fd == -ELOOP)
		return 1; /* on the way a file, or a whiteout */
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, fd < 0 ? fd : -errno, "look below");
	if (S_ISLNK(st.st_mode))
		return follow_link(h, fd, path, e);
	if (!S_ISDIR(st.st_mode))
		return 1;
	from = tree_open(layer, path, FOLDER);
	r = from < 0 ? from : copy_attributes(from, to);
	return r < 0 ? err_set(e, r, "copy its attributes") : 1;
}

static int inherit_one(struct inherit *h, const char *path, struct hw_err *e)
{
	autoclose int to = tree_open(h->root, path, FOLDER);
	int r = 0;

	if (to == -ENOENT || to == -ENOTDIR || to == -ELOOP)
		return 0; /* a later member took its place */
	if (to < 0)
		return err_set(e, to, "open it");
	if (is_opaque(to))
		return 0;
	for (size_t i = 0; r == 0 && i < h->n_below; i++)
		r = inherit_from(h, h->below[i], path, to, e);
	return r < 0 ? r : 0;
}

/**
 * implied_inherit() - make implied folders what they are below
 * @root:    of the layer
 * @implied: paths, from its struct unpacked
 * @below:   the layers below, @n_below of them, the uppermost first
 *
 * A folder that is nowhere below keeps what it was made with.
 *
 * Return: 0; 1 when files have moved, so that the recipe no longer finds them; or
 * negative errno
 */
int implied_inherit(int root, const struct hw_strings *implied, const int *below, size_t n_below,
		    struct hw_err *e)
{
	struct inherit h = { .root = root, .below = below, .n_below = n_below };
	int r = 0;

	for (size_t i = 0; i < implied->n; i++)
		strings_add(&h.work, implied->v[i]);
	for (; r == 0 && h.at < h.work.n; h.at++) {
		autofree char *path = str_copy(h.work.v[h.at]);

		r = inherit_one(&h, path, e);
		if (r < 0)
			err_ctx(e, "folder \"%.256s\"", path);
	}
	hw_strings_free(&h.work);
	return r < 0 ? r : h.moves > 0;
}
