/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/remove-tree.c - a folder goes, with all that is in it
 */
#include "base/os/remove-tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

#define FOLDER	  (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#define DEPTH_MAX 16 /* a descriptor and 32 KiB each */

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
	unsigned int depth;
};

/* A folder that is deep inside goes up to the top, under a name that is free there. */
static int lift(struct removal *rm, int dir, const char *name)
{
	char free_name[32];

	do {
		snprintf(free_name, sizeof(free_name), "%u", rm->next++);
		if (renameat2(dir, name, rm->top, free_name, RENAME_NOREPLACE) == 0)
			return 0;
	} while (errno == EEXIST);
	return -errno;
}

static int empty(struct removal *rm, int dir, const char *name);

static int remove_any(struct removal *rm, int dir, const char *name)
{
	int r = remove_one(dir, name);

	if (r != -ENOTEMPTY)
		return r;
	if (rm->depth == DEPTH_MAX)
		return lift(rm, dir, name);
	rm->depth++;
	r = empty(rm, dir, name);
	rm->depth--;
	if ((r == -EMFILE || r == -ENFILE) && rm->depth > 0)
		return lift(rm, dir, name);
	return r < 0 ? r : remove_one(dir, name);
}

static int empty(struct removal *rm, int dir, const char *name)
{
	autoclose int fd = openat(dir, name, FOLDER | O_NOFOLLOW);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int r = 0;

	if (!d)
		return -errno;
	fd = -1; /* it is d's now */
	while (r == 0 && (errno = 0, entry = readdir(d)))
		if (!is_dots(entry->d_name))
			r = remove_any(rm, dirfd(d), entry->d_name);
	if (r == 0 && errno)
		r = -errno;
	closedir(d);
	return r;
}

/**
 * remove_tree() - remove a folder and all that is in it, or whatever else it is
 * @name: without a slash
 *
 * An archive can make folders deeper than there are descriptors or stack to
 * follow: those below DEPTH_MAX others are lifted to the top, and emptied there.
 *
 * Return: 0 (also when there was nothing), or negative errno
 */
int remove_tree(int dir, const char *name, struct hw_err *e)
{
	autoclose int top = -1;
	struct removal rm = { 0 };
	int r = remove_one(dir, name);

	if (r == -ENOTEMPTY) {
		top = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = top < 0 ? -errno : -ENOTEMPTY;
	}
	rm.top = top;
	while (r == -ENOTEMPTY) { /* what was lifted may have come behind the reader */
		r = empty(&rm, dir, name);
		if (r == 0)
			r = remove_one(dir, name);
	}
	return r < 0 ? err_set(e, r, "remove \"%s\"", name) : 0;
}
