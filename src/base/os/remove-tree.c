/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/remove-tree.c - remove a directory with all its contents
 *
 * How:   depth first. An archive may contain deeper directories than the limits on
 *        descriptors and stack allow. Therefore a directory at depth DEPTH_MAX is
 *        moved up to the top directory, and its contents are removed there.
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

#define DEPTH_MAX 16 /* each level uses a descriptor and 32 KiB of memory */

struct tree_removal {
	int top;	   /* descriptor of the directory to remove */
	unsigned int next; /* next number to try as a name in that directory */
	unsigned int depth;
};

/* Of a call that has failed. A file that does not exist any more was removed by another thread. */
static int result(void)
{
	return errno == ENOENT ? 0 : -errno;
}

/* Return: 0, also if the file does not exist; -ENOTEMPTY for a directory that is not empty; or
 * another negative errno */
static int remove_one(int dir, const char *name)
{
	if (unlinkat(dir, name, 0) == 0)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return result();
	return unlinkat(dir, name, AT_REMOVEDIR) < 0 ? result() : 0;
}

static int move_to_top(struct tree_removal *rm, int dir, const char *name)
{
	char free_name[32];

	do {
		snprintf(free_name, sizeof(free_name), "%u", rm->next++);
		if (renameat2(dir, name, rm->top, free_name, RENAME_NOREPLACE) == 0)
			return 0;
	} while (errno == EEXIST);
	return result();
}

static int remove_contents(struct tree_removal *rm, int dir, const char *name);

static int remove_entry(struct tree_removal *rm, int dir, const char *name)
{
	int r;

	r = remove_one(dir, name);
	if (r != -ENOTEMPTY)
		return r;
	if (rm->depth == DEPTH_MAX)
		return move_to_top(rm, dir, name);
	rm->depth++;
	r = remove_contents(rm, dir, name);
	rm->depth--;
	if ((r == -EMFILE || r == -ENFILE) && rm->depth > 0)
		return move_to_top(rm, dir, name);
	return r < 0 ? r : remove_one(dir, name);
}

static int remove_contents(struct tree_removal *rm, int dir, const char *name)
{
	autoclose int fd = -1;
	struct dirent *entry;
	DIR *d = NULL;
	int r = 0;

	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0)
		d = fdopendir(fd);
	if (!d)
		return result();
	take_fd(fd); /* d owns the descriptor now */
	while (r == 0 && (errno = 0, entry = readdir(d)))
		if (!str_equal(entry->d_name, ".") && !str_equal(entry->d_name, ".."))
			r = remove_entry(rm, dirfd(d), entry->d_name);
	if (r == 0 && errno)
		r = -errno;
	closedir(d);
	return r;
}

int remove_tree(int dir, const char *name, struct hw_err *e)
{
	autoclose int top = -1;
	struct tree_removal rm = { 0 };
	int r;

	r = remove_one(dir, name);
	if (r == -ENOTEMPTY) {
		top = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = top < 0 ? result() : -ENOTEMPTY;
	}
	rm.top = top;
	/* repeated, because readdir() can miss a directory that was moved up meanwhile */
	while (r == -ENOTEMPTY) {
		r = remove_contents(&rm, dir, name);
		if (r == 0)
			r = remove_one(dir, name);
	}
	return r < 0 ? err_set(e, r, "remove \"%s\"", name) : 0;
}
