/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/install.c - installation of hawser-plugin and its symbolic links in a plugin directory
 *
 * What:  DIR/hawser-plugin, a copy of the running binary, and one relative
 *        symbolic link to it per plugin.
 * How:   install checks all names before it changes anything. Each file and link
 *        is written under a temporary name and then renamed, so that a runtime
 *        always finds either the old or the new one.
 * Rules: two kinds of entries are ours: links whose target is named
 *        hawser-plugin, and a file named hawser-plugin that contains our mark.
 *        All other entries are foreign: they are replaced only with --force and
 *        are never removed.
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
#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"

#define BINARY	   "hawser-plugin"
#define BINARY_MAX (64 << 20)

/* Every hawser-plugin binary contains this text. */
static const char mark[] = "hawser-plugin: CNI plugins, all in one binary";

enum install_state {
	ABSENT,
	CURRENT, /* exactly the link that install creates */
	OURS,	 /* see "Rules" above */
	FOREIGN, /* a file or link that is not ours */
	DIRECTORY,
};

static bool has_mark(int dir, const char *name)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err e;

	return file_read(dir, name, BINARY_MAX, &b, &e) >= 0 && b.len &&
	       memmem(b.data, b.len, mark, sizeof(mark));
}

static enum install_state get_state(int dir, const char *name, bool binary)
{
	char target[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return ABSENT;
	if (S_ISDIR(st.st_mode))
		return DIRECTORY;
	if (binary && S_ISREG(st.st_mode))
		return has_mark(dir, name) ? OURS : FOREIGN;
	n = readlinkat(dir, name, target, sizeof(target) - 1);
	if (n < 0)
		return FOREIGN;
	target[n] = '\0';
	if (!binary && str_equal(target, BINARY))
		return CURRENT;
	return str_equal(basename(target), BINARY) ? OURS : FOREIGN;
}

/* Refuses names that are in use by foreign files or by directories. The error lists all of them. */
static int check_names(int dir, const char *path, bool force,
		       const struct hw_plugin *const *plugins, struct hw_err *e)
{
	AUTO(buf_done) struct buf foreign = { 0 };
	bool directory = false;

	for (size_t i = 0; i == 0 || plugins[i - 1]; i++) {
		const char *name = i == 0 ? BINARY : plugins[i - 1]->name;
		enum install_state state = get_state(dir, name, i == 0);

		if (state == DIRECTORY || (state == FOREIGN && !force))
			buf_printf(&foreign, "%s%s", foreign.len ? ", " : "", name);
		directory |= state == DIRECTORY;
	}
	if (!foreign.len)
		return 0;
	return err_text(e, -EEXIST, "%s already contains %s%s", path, foreign.data,
			directory ? "" : " (use --force to replace)");
}

static int install_binary(int dir, struct hw_err *e)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct stat own, existing;
	int r;

	if (stat("/proc/self/exe", &own) == 0 &&
	    fstatat(dir, BINARY, &existing, AT_SYMLINK_NOFOLLOW) == 0 &&
	    own.st_dev == existing.st_dev && own.st_ino == existing.st_ino)
		return 0;
	r = file_read(AT_FDCWD, "/proc/self/exe", BINARY_MAX, &b, e);
	if (r < 0)
		return r;
	return file_replace(dir, BINARY, b.data, b.len, 0755, FILE_SYNC, e);
}

/* Another install may run at the same time, or was killed earlier. It uses the same temporary name
 * for the same link, so it does not matter which of the two is renamed. */
static int install_link(int dir, const char *name, struct hw_err *e)
{
	autofree char *temporary = str_printf(".%s~", name);

	if (get_state(dir, name, false) == CURRENT)
		return 0;
	if (get_state(dir, temporary, false) != CURRENT)
		(void)unlinkat(dir, temporary, 0);
	if (symlinkat(BINARY, dir, temporary) < 0 && errno != EEXIST)
		return err_set(e, -errno, "create link %s", name);
	if (renameat(dir, temporary, dir, name) < 0 && get_state(dir, name, false) != CURRENT) {
		err_set(e, -errno, "rename link %s", name);
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

int install_into(const char *dir, bool force, const struct hw_plugin *const *plugins,
		 struct hw_err *e)
{
	autoclose int fd = -1;
	int r;

	r = file_mkdirs(AT_FDCWD, dir, 0755, e);
	if (r >= 0)
		r = open_dir(dir, &fd, e);
	if (r >= 0)
		r = check_names(fd, dir, force, plugins, e);
	if (r >= 0)
		r = install_binary(fd, e);
	for (size_t i = 0; r >= 0 && plugins[i]; i++)
		r = install_link(fd, plugins[i]->name, e);
	return r < 0 ? err_ctx(e, "install into %s", dir) : 0;
}

static int remove_link(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	int *links = ctx;

	if (get_state(entry->dir, entry->name, false) != CURRENT)
		return 0;
	++*links;
	return file_remove(entry->dir, entry->name, e);
}

int install_remove(const char *dir, struct hw_err *e)
{
	autoclose int fd = -1;
	int links = 0;
	int r;

	r = open_dir(dir, &fd, e);
	if (r >= 0)
		r = file_walk(fd, ".", remove_link, &links, e);
	if (r >= 0 && links && get_state(fd, BINARY, true) == OURS)
		r = file_remove(fd, BINARY, e);
	return r < 0 ? err_ctx(e, "uninstall from %s", dir) : links;
}
