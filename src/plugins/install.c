/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/install.c - hawser-plugin and its links in a directory of plugins
 *
 * What:  DIR/hawser-plugin, a copy of the running binary, and one relative link
 *        to it per plugin.
 * How:   first everything is looked at, then changed: a refusal changes
 *        nothing. Each file and link takes its place by rename(), so that a
 *        runtime finds the old or the new one at any instant.
 * Rules: ours is a link whose target is named hawser-plugin, and a file of that
 *        name. Anything else is foreign: replaced only by force, never removed.
 */
#include "plugins/install.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#define BINARY	   "hawser-plugin"
#define BINARY_MAX (64 << 20)

enum state { ABSENT, RIGHT, OURS, FOREIGN, DIRECTORY };

/* What is at this place? RIGHT: the very link that we would make. */
static enum state look(int dir, const char *name, bool binary)
{
	char target[PATH_MAX];
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return ABSENT;
	if (S_ISDIR(st.st_mode))
		return DIRECTORY;
	if (binary && S_ISREG(st.st_mode))
		return OURS;
	ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);
	if (n < 0)
		return FOREIGN;
	target[n] = '\0';
	if (!binary && str_equal(target, BINARY))
		return RIGHT;
	return str_equal(basename(target), BINARY) ? OURS : FOREIGN;
}

/* Names all that stand in the way at once. */
static int check_places(int dir, const char *path, bool force,
			const struct hw_plugin *const *plugins, struct hw_err *e)
{
	AUTO(buf_done) struct buf foreign = { 0 };
	bool directory = false;

	for (size_t i = 0; i == 0 || plugins[i - 1]; i++) {
		const char *name = i == 0 ? BINARY : plugins[i - 1]->name;
		enum state state = look(dir, name, i == 0);

		if (state == DIRECTORY || (state == FOREIGN && !force))
			buf_printf(&foreign, "%s%s", foreign.len ? ", " : "", name);
		directory |= state == DIRECTORY;
	}
	if (!foreign.len)
		return 0;
	return err_text(e, -EEXIST, "%s has its own %s%s", path, foreign.data,
			directory ? "" : "; --force replaces them");
}

static int put_binary(int dir, struct hw_err *e)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct stat own, there;

	if (stat("/proc/self/exe", &own) == 0 &&
	    fstatat(dir, BINARY, &there, AT_SYMLINK_NOFOLLOW) == 0 && own.st_dev == there.st_dev &&
	    own.st_ino == there.st_ino)
		return 0;
	int r = file_read(AT_FDCWD, "/proc/self/exe", BINARY_MAX, &b, e);
	if (r < 0)
		return r;
	return file_replace(dir, BINARY, b.data, b.len, 0755, FILE_SYNC, e);
}

static int put_link(int dir, const char *name, struct hw_err *e)
{
	if (look(dir, name, false) == RIGHT)
		return 0;
	autofree char *temporary = str_printf(".%s.%d", name, (int)getpid());
	(void)unlinkat(dir, temporary, 0);
	if (symlinkat(BINARY, dir, temporary) < 0)
		return err_set(e, -errno, "make the link %s", name);
	if (renameat(dir, temporary, dir, name) < 0) {
		err_set(e, -errno, "put the link %s in its place", name);
		(void)unlinkat(dir, temporary, 0);
		return e->code;
	}
	return 0;
}

static int open_dir(const char *path, int *ret_fd, struct hw_err *e)
{
	*ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret_fd < 0 ? err_set(e, -errno, "open %s", path) : 0;
}

/**
 * install_into() - put this binary and a link per plugin into a directory
 * @force: replace foreign files
 *
 * Return: 0, or a negative errno; -EEXIST and nothing changed when foreign files are in the way
 */
int install_into(const char *dir, bool force, const struct hw_plugin *const *plugins,
		 struct hw_err *e)
{
	autoclose int fd = -1;

	int r = file_mkdirs(AT_FDCWD, dir, 0755, e);
	if (r >= 0)
		r = open_dir(dir, &fd, e);
	if (r >= 0)
		r = check_places(fd, dir, force, plugins, e);
	if (r >= 0)
		r = put_binary(fd, e);
	for (size_t i = 0; r >= 0 && plugins[i]; i++)
		r = put_link(fd, plugins[i]->name, e);
	return r < 0 ? err_ctx(e, "install into %s", dir) : 0;
}

/**
 * install_remove() - remove the links that lead to the directory's hawser-plugin, and that
 *
 * A directory without such links keeps its hawser-plugin: it was not put there by install.
 *
 * Return: how many links there were, or a negative errno
 */
int install_remove(const char *dir, const struct hw_plugin *const *plugins, struct hw_err *e)
{
	autoclose int fd = -1;
	int links = 0;

	int r = open_dir(dir, &fd, e);
	for (size_t i = 0; r >= 0 && plugins[i]; i++) {
		if (look(fd, plugins[i]->name, false) != RIGHT)
			continue;
		links++;
		r = file_remove(fd, plugins[i]->name, e);
	}
	if (r >= 0 && links && look(fd, BINARY, true) == OURS)
		r = file_remove(fd, BINARY, e);
	return r < 0 ? err_ctx(e, "uninstall from %s", dir) : links;
}
