/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/tree.h - directories below a root, safe against links in an archive
 *
 * What:  opens and creates directories below a root. A path is resolved as in a container with that
 *        root, whatever links the archive has created.
 * How:   directories are opened by openat2() with RESOLVE_IN_ROOT. All other calls use names
 *        without a slash, relative to an opened directory, and never follow a link.
 * Rules: creating or removing files in a directory does not change its times.
 *        No other process may change the tree at the same time.
 */
#ifndef FETCH_UNPACK_TREE_H
#define FETCH_UNPACK_TREE_H

#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>

#include "base/err.h"
#include "base/os/remove-tree.h"
#include "fetch/tar/path.h"

#define TREE_OPAQUE "trusted.overlay.opaque"

/* The root and the current directory. */
struct tree {
	int root; /* borrowed */
	int fd;	  /* current directory; -1: none */
	char path[PATH_SIZE];
	struct timespec mtime; /* time of the current directory, restored by tree_leave() */
	/* called for each parent directory that tree_enter() creates; may be NULL */
	int (*implied)(void *ctx, const char *path, struct hw_err *e);
	void *ctx;
};

/* All paths must come from path_clean(). */

void tree_init(struct tree *t, int root); /* @root is borrowed; there is no current directory yet */
void tree_done(struct tree *t);		  /* does not restore times */
/* Make @path the current directory, creating missing directories. Return: 0; -ENOTDIR: a component
 * is neither a directory nor a link to one; -ELOOP; or another negative errno */
int tree_enter(struct tree *t, const char *path, struct hw_err *e);
/* Make an open directory the current directory. Does not restore the times of the previous one.
 * @fd: taken over; @mtime: modification time of the directory */
void tree_enter_fd(struct tree *t, int fd, const char *path, const struct timespec *mtime);
/* Leave the current directory and restore its times. */
int tree_leave(struct tree *t, struct hw_err *e);

/* An overlayfs whiteout is a character device 0:0. */
bool tree_is_whiteout(const struct stat *st);
/* Create a directory, or open an existing one. A directory that replaces a whiteout becomes opaque,
 * so that it still hides the layers below. @name: without a slash; @mode: mode of a new directory.
 * Return: descriptor; -EEXIST: exists and is not a directory; or negative errno */
int tree_create_dir(int dir, const char *name, mode_t mode);

#endif
