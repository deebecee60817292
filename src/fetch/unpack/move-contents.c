/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/move-contents.c - what is in a folder goes to another one below the same root
 *
 * How:   a list of folders whose contents are still to be moved: a folder that is
 *        in both places is put on it, everything else is renamed. What is left of
 *        the first folder, empty folders, is then removed.
 */
#include "fetch/unpack/move-contents.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "fetch/unpack/tree.h"

#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)

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

/**
 * move_contents() - move what is in a folder, and remove the folder
 * @from: not the root, and not above @to
 * @to:   another folder; made when it is not there
 *
 * Return: 0, or negative errno
 */
int move_contents(int root, const char *from, const char *to,
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
