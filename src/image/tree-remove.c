/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/tree-remove.c - a folder goes, with all that is in it
 */
#include "image/tree-remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

#define FOLDER (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

static bool is_dots(const char *name)
{
	return str_equal(name, ".") || str_equal(name, "..");
}

/* Return: 0, or -ENOTEMPTY: a folder with something in it */
static int remove_one(int dir, const char *name)
{
	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	return unlinkat(dir, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

struct removal {
	int top;	   /* the folder that is to go */
	unsigned int next; /* for a name that is free there */
};

static int for_each_name(struct removal *rm, int dir,
			 int (*each)(struct removal *rm, int dir, const char *name))
{
	autoclose int again = openat(dir, ".", FOLDER);
	DIR *d = again < 0 ? NULL : fdopendir(again);
	struct dirent *entry;
	int r = 0;

	if (!d)
		return -errno;
	again = -1; /* it is d's now */
	while (r == 0 && (errno = 0, entry = readdir(d)))
		if (!is_dots(entry->d_name))
			r = each(rm, dir, entry->d_name);
	if (r == 0 && errno)
		r = -errno;
	closedir(d);
	return r;
}

/* A folder that is deep inside goes up to the top, under a name that is free there. */
static int lift(struct removal *rm, int dir, const char *name)
{
	int r = remove_one(dir, name);
	char free_name[32];

	while (r == -ENOTEMPTY) {
		snprintf(free_name, sizeof(free_name), "%u", rm->next++);
		if (renameat2(dir, name, rm->top, free_name, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
	return r;
}

static int empty_one(struct removal *rm, int dir, const char *name)
{
	autoclose int fd = -1;
	int r = remove_one(dir, name);

	if (r != -ENOTEMPTY)
		return r;
	fd = openat(dir, name, FOLDER | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	r = for_each_name(rm, fd, lift);
	return r < 0 ? r : remove_one(dir, name);
}

/**
 * tree_remove() - remove a folder and all that is in it, or whatever else it is
 * @name: without a slash
 *
 * An archive can make folders deeper than there are descriptors or stack to
 * follow: so nothing is followed, folders are lifted to the top and emptied
 * there. Three descriptors do, whatever there is.
 *
 * Return: 0 (also when there was nothing), or negative errno
 */
int tree_remove(int dir, const char *name, struct hw_err *e)
{
	autoclose int top = -1;
	struct removal rm = { 0 };
	int r = remove_one(dir, name);

	if (r == -ENOTEMPTY) {
		top = openat(dir, name, FOLDER | O_NOFOLLOW);
		r = top < 0 ? -errno : -ENOTEMPTY;
	}
	rm.top = top;
	while (r == -ENOTEMPTY) { /* what was lifted may have come behind the reader */
		r = for_each_name(&rm, top, empty_one);
		if (r == 0)
			r = remove_one(dir, name);
	}
	return r < 0 ? err_set(e, r, "remove \"%s\"", name) : 0;
}
