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
typedef int check_damaged(void *ctx, const char *path, const char *why, struct hw_err *e);

struct check;

struct check *check_new(int root, check_damaged *damaged, void *ctx); /* root is borrowed */
void check_free(struct check *c);
int check_feed(struct check *c, const void *data, size_t len, struct hw_err *e);
/* The data of a file comes, which is not fed. Return: 1 when it was told of already; -EBADMSG: the
 * archive has none here, or another one */
int check_file(struct check *c, const struct recipe_file *file, struct hw_err *e);
int check_file_end(struct check *c, struct hw_err *e);
int check_finish(struct check *c, struct hw_err *e);

AUTO_DEFINE(check_free, struct check);

#endif
