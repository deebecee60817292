/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/layer/rebuild.h - rebuilds or verifies a layer from its recipe and its files
 *
 * @recipe: open file, at its beginning; @root: directory into which the layer was unpacked.
 */
#ifndef FETCH_LAYER_REBUILD_H
#define FETCH_LAYER_REBUILD_H

#include "base/err.h"
#include "fetch/layer/expected.h"
#include "fetch/layer/verify-tree.h"

/* Write the layer's original archive to @out, byte for byte. Return: 0; -EBADMSG: a file or the
 * recipe is damaged; or negative errno */
int rebuild_archive(int recipe, int root, int out, struct hw_err *e);

/* Compare each file with its digest, and the tree with the archive's members. damaged() is called
 * for each damaged file. The recipe must be a file: it is read several times if the archive has more
 * than @names members. @names: EXPECTED_MAX, or another number for a test. Return: 0, with or without damaged files; -EBADMSG: the recipe is corrupt;
 * the error of damaged(); or negative errno */
int rebuild_verify(int recipe, int root, size_t names, verify_damaged *damaged, void *ctx,
		   struct hw_err *e);

#endif
