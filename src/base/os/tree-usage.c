/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/tree-usage.c - how much disk space a directory with all its contents uses
 *
 * How:   depth first, with a descriptor for each level. To count a file with N names once, without a list of
 *        such files, each name counts as an Nth part of it.
 */
#include "base/os/tree-usage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define BLOCK 512 /* unit of st_blocks */

struct count {
	bool (*go_on)(void *ctx);
	void *ctx;
	dev_t dev;
	unsigned depth;
	double bytes, inodes;
};

static void add_file(struct count *c, const struct stat *st)
{
	/* the number of links of a directory says how many subdirectories it has */
	double names = S_ISDIR(st->st_mode) || st->st_nlink < 1 ? 1 : (double)st->st_nlink;

	c->bytes += (double)st->st_blocks * BLOCK / names;
	c->inodes += 1 / names;
}

static int count_contents(struct count *c, int fd);

static int count_directory(struct count *c, int parent, const char *name)
{
	int fd, r;

	if (c->depth == TREE_USAGE_DEPTH)
		return 0;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) /* it was removed, or replaced by a file */
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
	c->depth++;
	r = count_contents(c, fd);
	c->depth--;
	return r;
}

static int count_entry(struct count *c, int dir, const char *name)
{
	struct stat st;

	if (!c->go_on(c->ctx))
		return -ECANCELED;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (st.st_dev != c->dev)
		return 0;
	add_file(c, &st);
	return S_ISDIR(st.st_mode) ? count_directory(c, dir, name) : 0;
}

static bool is_dots(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Takes the descriptor. */
static int count_contents(struct count *c, int fd)
{
	struct dirent *entry;
	int r = 0;
	DIR *list;

	list = fdopendir(fd);
	if (!list) {
		r = -errno;
		close(fd);
		return r;
	}
	while (r == 0) {
		errno = 0;
		entry = readdir(list);
		if (!entry) {
			r = -errno;
			break;
		}
		if (!is_dots(entry->d_name))
			r = count_entry(c, fd, entry->d_name);
	}
	closedir(list);
	return r;
}

int tree_usage(const char *path, bool (*go_on)(void *ctx), void *ctx, struct tree_usage *ret,
	       struct hw_err *e)
{
	struct count c = { .go_on = go_on, .ctx = ctx };
	autoclose int dir = -1;
	struct stat st;
	int r;

	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || fstat(dir, &st) < 0)
		return err_set(e, -errno, "open %s", path);
	c.dev = st.st_dev;
	add_file(&c, &st);
	r = count_contents(&c, take_fd(dir));
	if (r < 0)
		return err_set(e, r, "count the contents of %s", path);
	ret->bytes = (uint64_t)(c.bytes + 0.5);
	ret->inodes = (uint64_t)(c.inodes + 0.5);
	return 0;
}
