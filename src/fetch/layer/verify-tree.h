/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/layer/verify-tree.h - compares an unpacked layer with the members of its archive
 *
 * What:  reads the archive without the file data, which the caller compares. Reports each member
 *        that is missing or that differs in type, mode, owner, size or link target; for files also
 *        in extended attributes. At the end it reports files that are not in the archive.
 *        The names are compared in several passes if there are many (expected.h), each with a
 *        struct verify_tree of its own. Only the first pass compares anything else.
 * Rules: the tree is not changed. Times are not compared. The archive must be rebuildable: no
 *        member replaces another one.
 */
#ifndef FETCH_LAYER_VERIFY_TREE_H
#define FETCH_LAYER_VERIFY_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "fetch/recipe/recipe.h"

/* Called for each damaged file; a negative result stops the verification. */
typedef int verify_damaged(void *ctx, const char *path, const char *why, struct hw_err *e);

struct verify_tree;

struct verify_pass {
	uint32_t part, parts; /* names that this pass compares; the first pass: 0, 1 */
	size_t names;	      /* maximum number of names in memory */
};

/* @root: directory into which the layer was unpacked; borrowed */
struct verify_tree *verify_tree_new(int root, const struct verify_pass *pass,
				    verify_damaged *damaged, void *ctx);
void verify_tree_free(struct verify_tree *v);
/* Feed the next bytes of the archive that are not file data. */
int verify_tree_feed(struct verify_tree *v, const void *data, size_t len, struct hw_err *e);
/* To be called when the data of @file follows in the archive. The data is not fed. Return: 0; 1:
 * the file was already reported or compared; -EBADMSG: the current member is not this file */
int verify_tree_file(struct verify_tree *v, const struct recipe_file *file, struct hw_err *e);
/* To be called at the end of the file's data. */
int verify_tree_file_end(struct verify_tree *v, struct hw_err *e);
/* To be called at the end of the archive: compare directories and whiteouts, report missing and
 * extra files. */
int verify_tree_finish(struct verify_tree *v, struct hw_err *e);
/* At the end: @parts of the names that were compared. If it is greater than that of the pass, other
 * passes must compare the rest. */
uint32_t verify_tree_parts(const struct verify_tree *v);

AUTO_DEFINE(verify_tree_free, struct verify_tree);

#endif
