/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/layer/verify-tree.h - is what lies below a root what an archive has put there?
 *
 * What:  takes the archive without the data of its files, which the caller compares,
 *        and tells of each member that is gone or another one: by kind, mode, owner,
 *        size, target and a file's extended attributes. At the end it tells of what
 *        the archive has not put there.
 * Rules: nothing is changed. Of archives whose members take each other's place it
 *        knows nothing. Times are not compared.
 */
#ifndef FETCH_LAYER_VERIFY_TREE_H
#define FETCH_LAYER_VERIFY_TREE_H

#include "base/err.h"
#include "base/mem.h"
#include "fetch/recipe/recipe.h"

/* Called for each that is not what it was; a negative answer ends the check. */
typedef int verify_damaged(void *ctx, const char *path, const char *why, struct hw_err *e);

struct verify_tree;

struct verify_tree *verify_tree_new(int root, verify_damaged *damaged,
				    void *ctx); /* root is borrowed */
void verify_tree_free(struct verify_tree *c);
int verify_tree_feed(struct verify_tree *c, const void *data, size_t len, struct hw_err *e);
/* The data of a file comes, which is not fed. Return: 1 when it was told of already; -EBADMSG: the
 * archive has none here, or another one */
int verify_tree_file(struct verify_tree *c, const struct recipe_file *file, struct hw_err *e);
int verify_tree_file_end(struct verify_tree *c, struct hw_err *e);
int verify_tree_finish(struct verify_tree *c, struct hw_err *e);

AUTO_DEFINE(verify_tree_free, struct verify_tree);

#endif
