/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/tree.h - directories below a root, safe against links in an archive
 *
 * What:  opens and creates directories below a root. A path is resolved as in a container with
 *        that root, whatever links an archive has put there.
 * How:   openat2() with RESOLVE_IN_ROOT; then only names without a slash, relative to the opened
 *        directory and never following a link.
 * Rules: changes in a directory do not change its times.
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
	struct timespec mtime; /* to restore in tree_leave() */
	/* called for each parent directory that tree_enter() creates; may be NULL */
	int (*implied)(void *ctx, const char *path, struct hw_err *e);
	void *ctx;
};

/* All paths are from path_clean(). */

void tree_init(struct tree *t, int root); /* @root is borrowed; no current directory */
void tree_done(struct tree *t);		  /* does not restore times */
/* Make @path the current directory, creating missing directories. Return: 0; -ENOTDIR: a component
 * is neither a directory nor a link to one; -ELOOP; or another negative errno */
int tree_enter(struct tree *t, const char *path, struct hw_err *e);
/* Make an open directory the current one; does not restore the times of the last one. @fd is taken
 * over; @mtime: of the directory */
void tree_enter_fd(struct tree *t, int fd, const char *path, const struct timespec *mtime);
/* Leave the current directory and restore its times. */
int tree_leave(struct tree *t, struct hw_err *e);

/* An overlayfs whiteout is a character device 0:0. */
bool tree_is_whiteout(const struct stat *st);
/* Create a directory, or open an existing one. A directory that replaces a whiteout becomes opaque,
 * so that it still hides the layers below. @name: without a slash; @mode: of a new directory.
 * Return: descriptor; -EEXIST: exists and is not a directory; or negative errno */
int tree_create_dir(int dir, const char *name, mode_t mode);
/* Open a file below a root, as in a container with that root. With O_NOFOLLOW in @flags the last
 * component may not be a link. Return: descriptor, or negative errno */
int tree_open(int root, const char *path, int flags);

#endif
