/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/tree.h - a folder and what is below it, and nothing else
 *
 * What:  open and make folders below a root, whatever links an archive has put
 *        there: a path is looked up as in a container with that root.
 * How:   openat2() with RESOLVE_IN_ROOT; then names without a slash, relative to
 *        the folder that was opened, never through a link.
 * Rules: work in a folder leaves its times as they were.
 *        Nobody else changes the tree meanwhile.
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

/* The folder that is worked in. */
struct tree {
	int root; /* borrowed */
	int fd;	  /* -1: none */
	char path[PATH_SIZE];
	struct timespec mtime; /* to be given back */
	/* called for each folder that no member has asked for */
	int (*implied)(void *ctx, const char *path, struct hw_err *e);
	void *ctx;
};

void tree_init(struct tree *t, int root);
void tree_done(struct tree *t);
int tree_enter(struct tree *t, const char *path, struct hw_err *e);
int tree_leave(struct tree *t, struct hw_err *e);
void tree_enter_fd(struct tree *t, int fd, const char *path, const struct timespec *mtime);

bool tree_is_whiteout(const struct stat *st);
int tree_create_dir(int dir, const char *name, mode_t mode);
int tree_open(int root, const char *path, int flags); /* a descriptor, or negative errno */

#endif
